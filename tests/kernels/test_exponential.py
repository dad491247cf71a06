"""The float32 exponential beside the float64 one, and kernel matrices with their products."""

import numpy as np
import pytest
from cells import class_cell

from daskls.kernels._jit import jit
from daskls.kernels.decisions import pairs_of
from daskls.kernels.exponential import (
    LOWEST_EXPONENT,
    exp_row,
    exp_terms,
    gather_pairs,
    write_exponential,
)


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


@pytest.mark.parametrize("gamma", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_far_arguments_end_at_the_lowest_exponent(gamma):
    x = np.array([0.0, 1e-38, 1.0, 60.0, 61.0, 1e30, 3e38, np.inf], np.float32)
    values, least = _exp(x, gamma), np.exp(LOWEST_EXPONENT)
    assert ((np.float32(least * (1 - 1e-4)) <= values) & (values <= 1.0)).all()


def test_a_value_does_not_depend_on_its_place():
    rng = np.random.default_rng(1)
    x = (10 * rng.random(203)).astype(np.float32)
    whole = _exp(x, 1.0)
    for start in range(40):
        np.testing.assert_array_equal(_exp(x[start:].copy(), 1.0), whole[start:])


def sources_of(n, m, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m)).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 33])
def test_a_gaussian_kernel_and_its_products(m, n):
    base = np.abs(sources_of(m, m, 1))
    sources, K = sources_of(n, m), np.full((m, m), np.nan, np.float32)
    products = np.full((n, m), np.nan, np.float32)
    write_exponential(base, *exp_terms(0.7), sources, K, products)
    np.testing.assert_allclose(K, np.exp(-0.7 * base.astype(float)), rtol=1e-6)
    np.testing.assert_allclose(products, sources @ K.T, rtol=1e-4, atol=1e-5)


def test_the_matrices_of_pairs_and_their_products():
    _, codes = class_cell(4)
    m = len(codes)
    K = sources_of(m, m, 1)
    classes = np.unique(codes)
    own = [np.flatnonzero(np.isin(codes, classes[[a, b]])) for a, b in pairs_of(4)]
    rows, ptr = np.concatenate(own), np.cumsum([0, *map(len, own)])
    sources = sources_of(3, len(rows))
    products = np.full_like(sources, np.nan)
    sizes = np.array([len(o) ** 2 for o in own])
    for first, last in ((0, 6), (2, 5)):
        block_ptr = np.zeros(6, np.int64)
        block_ptr[first + 1 : last] = np.cumsum(sizes[first : last - 1])
        blocks = np.full(sizes[first:last].sum(), np.nan, np.float32)
        gather_pairs(K, rows, ptr, first, last, sources, blocks, block_ptr, products)
        for p in range(first, last):
            at, expected = slice(ptr[p], ptr[p + 1]), K[np.ix_(own[p], own[p])]
            block = blocks[block_ptr[p] : block_ptr[p] + sizes[p]]
            np.testing.assert_array_equal(block, expected.ravel())
            found, wanted = products[:, at], sources[:, at] @ expected.T
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
