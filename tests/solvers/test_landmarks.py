"""The search in the shared bias, on functions whose minimum is known."""

import numpy as np
import pytest

from daskls.solvers.landmarks import BiasSearch, Evaluation


def run(function, tol=1e-6, short=0.0, **options):
    search = BiasSearch(tol, **options)
    while search.is_open:
        value, slope, curvature = function(search.bias)
        own = len(search.history), search.bias, value, value - short, slope, curvature, 1.0
        search.add(Evaluation(*own))
    return search


def piecewise(n, center, seed=0):
    rng = np.random.default_rng(seed)
    kinks = center + rng.normal(size=2 * n)
    signs = np.repeat([1.0, -1.0], n)

    def function(b):
        inside = signs * (b - kinks)
        on = inside > 0
        return inside[on].sum() / n, signs[on].sum() / n, 0.0

    return function


@pytest.mark.parametrize("center", [-50.0, -1.0, 0.0, 0.3, 7.0])
def test_a_parabola_takes_two_steps_once_near(center):
    search = run(lambda b: ((b - center) ** 2, 2 * (b - center), 2.0))
    assert search.is_solved
    assert search.best.bias == pytest.approx(center, abs=1e-2)
    assert len(search.history) < 15


@pytest.mark.parametrize("center", [-20.0, 0.0, 0.4])
@pytest.mark.parametrize("n", [1, 10, 1000])
def test_kinks_everywhere_end_all_the_same(n, center):
    function = piecewise(n, center)
    search = run(function, tol=1e-4)
    assert search.is_solved
    least = min(function(b)[0] for b in np.linspace(center - 5, center + 5, 20001))
    assert least - 1e-3 <= search.best.primal <= least + 1e-4 + 1e-3
    assert search.gap <= 1e-4


@pytest.mark.parametrize("start", [0.0, 2.0, 2.1])
def test_a_gap_that_rounding_keeps_open_and_a_slope_for_ever_end_the_search(start):
    # The dual value is short of the primal one by more than the tolerance, wherever one looks.
    search = run(lambda b: ((b - 2) ** 2 + 1, 2 * (b - 2), 2.0), short=1e-2, bias=start)
    assert not search.is_solved
    assert len(search.history) < 40
    assert search.best.bias == pytest.approx(2, abs=1e-2)
    # It falls for ever, by what it says of itself.
    search = run(lambda b: (5.0, -1.0, 0.0), tol=1e-3, max_rounds=12)
    assert len(search.history) == 12
    assert not search.is_solved
