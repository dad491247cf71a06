"""Kernel matrices and blocks: their definition, the bits of a row, sums over a triangle."""

import naive
import numpy as np
import pytest
from cells import class_cell
from threadpoolctl import threadpool_limits

from daskls.kernels._jit import jit
from daskls.kernels.decisions import pairs_of
from daskls.kernels.exponential import (
    LOWEST_EXPONENT,
    exp_row,
    exp_terms,
    gather_pairs,
    write_exponential,
)
from daskls.kernels.frame import frame_rows
from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.kernel import find_kernel
from daskls.records import Frame, KernelSpec

KERNELS = [
    KernelSpec("rbf", 0.7),
    KernelSpec("rbf", 40.0),
    KernelSpec("laplacian", 0.7),
    KernelSpec("linear"),
    KernelSpec("poly", 0.5, 3, 1.0),
    KernelSpec("poly", 2.0, 2, 0.0),
]


def rows(m, d, seed=0):
    return np.random.default_rng(seed).normal(size=(m, d))


@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.name}-{kernel.gamma}")
def test_block_and_matrix_equal_the_definition(kernel, d):
    A, B, own = rows(11, d), rows(7, d, 1), find_kernel(kernel.name)
    options = kernel.name, kernel.gamma, kernel.degree, kernel.coef0
    base = own.block(A, B)
    assert base.dtype == np.float64
    assert own.apply(base, kernel, base) is base
    least = np.exp(-60.0) if kernel.name == "rbf" else -9e9
    expected = np.maximum(naive.kernel_matrix(A, B, *options), least)
    np.testing.assert_allclose(base, expected, rtol=1e-11, atol=1e-12)
    base = own.matrix(A)
    assert base.dtype == np.float32
    K = own.apply(base, kernel, np.empty_like(base))
    np.testing.assert_allclose(K, naive.kernel_matrix(A, A, *options), rtol=5e-5, atol=1e-5)


def test_distance_of_a_row_to_itself_is_zero():
    A = rows(GRAM_TILE_ROWS + 5, 6) * 1e3
    A[7] = A[3]
    base = find_kernel("rbf").matrix(A)
    assert (np.diagonal(base) == 0).all()
    assert (base >= 0).all()
    K = find_kernel("rbf").apply(base, KernelSpec("rbf", 25.0), np.empty_like(base))
    assert (np.diagonal(K) == 1).all()
    assert K[7, 3] == pytest.approx(1.0, abs=1e-4)


def test_features_offset_by_a_million():
    # Multiples of 1/16 survive the offset in float32, so both cells hold the same rows.
    small = np.round(rows(20, 4) * 16) / 16
    large = (small + 1e6).astype(np.float32)
    A = frame_rows(large, Frame(large.mean(axis=0, dtype=np.float64)))
    assert A.dtype == np.float64
    squared = ((small[:, None] - small[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(find_kernel("rbf").matrix(A), squared, rtol=1e-6, atol=1e-9)


def test_narrow_kernels_have_no_subnormal_values():
    A = rows(30, 3) * 100
    base = find_kernel("rbf").matrix(A)
    K = find_kernel("rbf").apply(base, KernelSpec("rbf", 1e4), np.empty_like(base))
    written = np.empty_like(base)
    find_kernel("rbf").write(base, KernelSpec("rbf", 1e4), written)
    for values in (K, written):
        off = values[~np.eye(30, dtype=bool)]
        # Nor have their products, of which a factorization consists.
        assert (off * off >= np.finfo(np.float32).tiny).all()
        # A sum of many of them is lost beside a row's own value of 1.
        assert (100_000 * off < np.finfo(np.float32).eps).all()
        assert np.isfinite(values).all()


# As in each task: threads share out a product by its rows.
@threadpool_limits.wrap(1, user_api="blas")
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 22, 28, 54, 256])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear"])
def test_bits_of_a_row_depend_neither_on_other_rows_nor_on_its_place(name, d):
    n, block = GRAM_TILE_ROWS, find_kernel(name).block
    A, copies = rows(n + 70, d), np.repeat(rows(1, d), n, axis=0)
    for n_columns in [1, 3, 130, *range(200, 270, 3), 299, 500, 501, 1001]:
        B = rows(n_columns, d, 1)
        whole, same = block(A, B), block(copies, B)
        for start, stop in [(0, 1), (5, 6), (3, 20), (200, 300), (n, n + 70)]:
            part = block(np.ascontiguousarray(A[start:stop]), B)
            np.testing.assert_array_equal(part, whole[start:stop])
        np.testing.assert_array_equal(block(np.ascontiguousarray(A[::-1]), B)[::-1], whole)
        assert (same == same[0]).all(), n_columns


# The float32 exponential, and products with it


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


def sources_of(*shape):
    return rows(*shape).astype(np.float32)


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
