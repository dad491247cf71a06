"""Sums over a triangle ignore what the other half holds."""

import numpy as np
import pytest

from daskls.kernels.gram import squared_columns


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("m", [1, 2, 37])
def test_columns_of_a_lower_triangle(m, dtype):
    lower = np.random.default_rng(m).normal(size=(m, m)).astype(dtype)
    expected = (np.tril(lower).astype(float) ** 2).sum(axis=0)
    found = squared_columns(np.ascontiguousarray(lower.T))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_they_are_the_diagonal_of_an_inverse():
    A = np.random.default_rng(0).normal(size=(30, 40))
    K = A @ A.T
    inverse = np.linalg.inv(np.linalg.cholesky(K))
    found = squared_columns(np.ascontiguousarray(inverse.T))
    np.testing.assert_allclose(found, np.diagonal(np.linalg.inv(K)), rtol=1e-10)
