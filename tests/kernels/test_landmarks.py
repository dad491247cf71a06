"""Center and scale of a sample, and projections of rows on landmarks."""

import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from daskls.kernels.landmarks import NORMALIZED_STEP, find_normalization, project_rows
from daskls.kernels.route import GEMM_ROWS


def rows(n=20_000, offset=0.0):
    return np.random.default_rng(0).random((n, 3)) * [1.0, 2.0, 3.0] + offset


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_the_center_is_the_exact_mean_and_the_scale_that_of_distances_to_it(offset):
    X = rows(offset=offset)
    exact, found = [math.fsum(column) / len(X) for column in X.T.tolist()], find_normalization(X)
    # A plain sum of so many rows is wrong by hundreds of these.
    np.testing.assert_allclose(found.center, exact, rtol=3e-16)
    expected = math.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())
    assert found.scale == pytest.approx(expected, rel=1e-12 if offset == 0 else 1e-6)
    assert find_normalization(np.ones((5, 2))).scale == 1.0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_are_the_same_bits_in_any_unit(dtype):
    X = rows().astype(dtype)
    own = find_normalization(X)
    # Powers of two are exact.
    for power in (-40, 3):
        scaled = X * X.dtype.type(2.0**power)
        other = find_normalization(scaled)
        assert (other.center == own.center * 2.0**power).all()
        assert other.scale == own.scale * 2.0**power
        assert other.rows(scaled).tobytes() == own.rows(X).tobytes()
    X = np.round(rows(500) * 7)
    own = find_normalization(X)
    for moved in (X * 1e-3, X * 1e3, X / 3, X + 1000):
        np.testing.assert_array_equal(find_normalization(moved).rows(moved), own.rows(X))
    lost = np.abs(own.rows(X) * own.scale - (X - X.mean(axis=0)))
    assert (lost <= 4 * NORMALIZED_STEP).all()


@pytest.mark.parametrize("d", [2, 5, 22])
def test_bits_of_a_projection_do_not_depend_on_a_rows_place(d):
    rng = np.random.default_rng(0)
    X, landmarks = np.repeat(rng.normal(size=(1, d)), GEMM_ROWS, axis=0), rng.normal(size=(300, d))
    with threadpool_limits(1, user_api="blas"):
        for n_landmarks in range(200, 301, 3):
            seen = project_rows(X, np.zeros(d), landmarks[:n_landmarks], 0.5)
            assert (seen == seen[0]).all(), n_landmarks
