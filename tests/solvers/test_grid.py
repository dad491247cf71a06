"""Folds of a cell's rows, and the values of C and gamma that it tries: the papers'."""

import naive
import numpy as np
import pytest

from daskls.records import SolverSpec
from daskls.solvers.grid import (
    assign_folds,
    count_gammas,
    grid_ends,
    resolve_grid,
)


@pytest.mark.parametrize("shape", [(20, 20), (2, 7), (10, 3)])
@pytest.mark.parametrize(("n_rows", "n_features", "n_folds"), [(5000, 631, 5), (60, 2, 3)])
def test_finer_grids_have_the_papers_ends_and_equal_ratios(shape, n_rows, n_features, n_folds):
    spec = SolverSpec(cv=n_folds, n_grid=shape)
    grid = resolve_grid(spec, 1.7, n_rows, n_features)
    gammas, costs, _ = naive.grid_values(1.7, n_rows, n_features, n_folds, shape)
    np.testing.assert_allclose(grid.gammas, gammas, rtol=1e-10)
    np.testing.assert_allclose(grid.costs, costs, rtol=1e-10)
    assert (len(grid.costs), len(grid.gammas)) == shape == (spec.n_costs, count_gammas(spec))
    ends = grid_ends(spec, np.array([1.7]), np.array([n_rows]), n_features)
    for name, own in (("C", grid.costs), ("gamma", grid.gammas)):
        np.testing.assert_allclose(np.ravel(ends[name]), [own[0], own[-1]], rtol=1e-10)


# Folds


def mixed_codes(seed=0, m=103):
    return np.random.default_rng(seed).choice([0, 2, 3, 7], m, p=[0.5, 0.3, 0.15, 0.05])


@pytest.mark.parametrize("n_folds", [2, 3, 5, 10])
def test_folds_and_their_classes_are_balanced(n_folds):
    codes = mixed_codes()
    folds = assign_folds(codes, n_folds, (1, 2))
    sizes = np.bincount(folds, minlength=n_folds)
    assert len(sizes) == n_folds
    assert np.ptp(sizes) <= 1
    for code in np.unique(codes):
        assert np.ptp(np.bincount(folds[codes == code], minlength=n_folds)) <= 1


def test_the_seed_alone_decides():
    codes = mixed_codes()
    first = assign_folds(codes, 5, (3, 4))
    np.testing.assert_array_equal(first, assign_folds(codes, 5, (3, 4)))
    assert (first != assign_folds(codes, 5, (3, 5))).any()
    # Not dealt in row order: rows next to each other are often alike.
    in_order = np.empty(len(codes), int)
    for code in np.unique(codes):
        in_order[codes == code] = np.arange((codes == code).sum()) % 5
    assert (first != in_order).any()
