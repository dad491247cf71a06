"""Center and scale of a sample."""

import math

import numpy as np
import pytest

from daskls.kernels.frame import STEP, find_frame


def rows(n=20_000, offset=0.0):
    return np.random.default_rng(0).random((n, 3)) * [1.0, 2.0, 3.0] + offset


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_a_center_is_the_exact_mean(offset):
    X = rows(offset=offset)
    exact = [math.fsum(column) / len(X) for column in X.T.tolist()]
    # A plain sum of so many rows is wrong by hundreds of these.
    np.testing.assert_allclose(find_frame(X).center, exact, rtol=3e-16)


def test_the_scale_is_the_root_of_the_mean_squared_distance():
    X = rows()
    expected = math.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert find_frame(X).scale == pytest.approx(expected, rel=1e-12)
    assert find_frame(np.ones((5, 2))).scale == 1.0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_powers_of_two_are_exact(dtype):
    X = rows().astype(dtype)
    frame = find_frame(X)
    for power in (-40, 3):
        scaled = X * X.dtype.type(2.0**power)
        other = find_frame(scaled)
        assert (other.center == frame.center * 2.0**power).all()
        assert other.scale == frame.scale * 2.0**power
        assert other.rows(scaled).tobytes() == frame.rows(X).tobytes()


@pytest.mark.parametrize("unit", [1e-3, 1e3, 1 / 3])
def test_rows_are_the_same_bits_in_any_unit(unit):
    X = np.round(rows(500) * 7)
    bits = find_frame(X).rows(X)
    np.testing.assert_array_equal(find_frame(X * unit).rows(X * unit), bits)
    np.testing.assert_array_equal(find_frame(X + 1000).rows(X + 1000), bits)
    assert (np.abs(bits * find_frame(X).scale - (X - X.mean(axis=0))) <= 4 * STEP).all()
