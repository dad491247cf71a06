"""The float32 exponential agrees with the float64 one at every argument that it can meet."""

import numpy as np
import pytest

from daskls.kernels._jit import jit
from daskls.kernels.exponential import LOWEST_EXPONENT, exp_row, exp_terms


@jit
def _write(x, factor, last, out):
    exp_row(x, factor, last, out)


def _exp(x, gamma):
    out = np.empty_like(x)
    _write(x, *exp_terms(gamma), out)
    return out


@pytest.mark.parametrize("gamma", [1.0, 0.04, 1234.5])
def test_values_are_exact_to_float32(gamma):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random(5000), 60 * rng.random(5000)]).astype(np.float32)
    x = (x / np.float32(gamma)).astype(np.float32)
    exact = np.exp(-gamma * x.astype(float))
    error = np.abs(_exp(x, gamma) - exact) / exact
    # The polynomial's error, and what rounding the argument costs at its size.
    assert (error <= 3e-7 + 2.0**-23 * gamma * x).all()


def test_zero_gives_one_exactly_and_neighbors_fall():
    x = np.array([0.0, 1e-30, 1e-7, 1e-6, 1e-3], np.float32)
    values = _exp(x, 1.0)
    assert values[0] == values[1] == 1.0
    assert (np.diff(values) <= 0).all()
    assert (values <= 1.0).all()


@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_far_arguments_end_at_the_lowest_exponent(gamma):
    x = np.array([0.0, 1e-38, 1.0, 60.0, 61.0, 1e30, 3e38, np.inf], np.float32)
    values = _exp(x, gamma)
    least = np.exp(LOWEST_EXPONENT)
    assert np.isfinite(values).all()
    assert (values >= np.float32(least * (1 - 1e-4))).all()
    assert (values <= 1.0).all()


def test_a_value_does_not_depend_on_its_place():
    rng = np.random.default_rng(1)
    x = (10 * rng.random(203)).astype(np.float32)
    whole = _exp(x, 1.0)
    for start in range(40):
        np.testing.assert_array_equal(_exp(x[start:].copy(), 1.0), whole[start:])
