"""Kernel matrices with their products: against numpy, for any number of rows and sources."""

import numpy as np
import pytest
from cells import class_cell

from daskls.kernels.answers import Ballot, pairs_of, write_winners
from daskls.kernels.exponential import exp_terms, gather_pairs, multiply_rows, write_exponential


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


@pytest.mark.parametrize(("h", "m"), [(1, 5), (4, 9), (7, 3), (10, 40)])
def test_products_of_some_rows(h, m):
    rows, sources = sources_of(h, m, 1), sources_of(3, m)
    products = np.full((3, h), np.nan, np.float32)
    multiply_rows(rows, sources, products)
    np.testing.assert_allclose(products, sources @ rows.T, rtol=1e-4, atol=1e-5)


def test_the_matrices_of_pairs_and_their_products():
    _, codes = class_cell(4)
    m = len(codes)
    K = sources_of(m, m, 1)
    classes = np.unique(codes)
    own = [np.flatnonzero(np.isin(codes, classes[[a, b]])) for a, b in pairs_of(4)]
    rows, ptr = np.concatenate(own), np.cumsum([0, *map(len, own)])
    sources = sources_of(3, len(rows))
    products = np.full_like(sources, np.nan)
    for first, last in ((0, 6), (2, 5)):
        sizes = np.array([len(o) ** 2 for o in own])
        block_ptr = np.zeros(6, np.int64)
        block_ptr[first + 1 : last] = np.cumsum(sizes[first : last - 1])
        blocks = np.full(sizes[first:last].sum(), np.nan, np.float32)
        gather_pairs(K, rows, ptr, first, last, sources, blocks, block_ptr, products)
        for p in range(first, last):
            at, expected = slice(ptr[p], ptr[p + 1]), K[np.ix_(own[p], own[p])]
            block = blocks[block_ptr[p] : block_ptr[p] + sizes[p]].reshape(expected.shape)
            np.testing.assert_array_equal(block, expected)
            np.testing.assert_allclose(
                products[:, at], sources[:, at] @ expected.T, rtol=1e-4, atol=1e-4
            )


@pytest.mark.parametrize("k", [3, 5])
def test_winners_are_the_ballots(k):
    rng = np.random.default_rng(2)
    n, h = 3, 50
    parts = rng.normal(size=(k, n, k - 1, h)).astype(np.float32)
    # Whole numbers tie.
    parts[:, 0] = rng.integers(-1, 2, parts[:, 0].shape)
    offsets = rng.normal(size=(n, k * (k - 1) // 2)).astype(np.float32)
    offsets[0] = 0.0
    winners = np.full((n, h), -1)
    write_winners(parts, offsets, winners)
    for s in range(n):
        ballot = Ballot(h, k)
        for p, (a, b) in enumerate(pairs_of(k)):
            ballot.add(a, b, parts[a, s, b - 1] + parts[b, s, a] + offsets[s, p])
        np.testing.assert_array_equal(winners[s], ballot.scores().argmax(axis=1))
