"""Folds of a cell's rows, and the values of C and gamma that it tries: the papers'."""

import naive
import numpy as np
import pytest

from daskls.records import SolverSpec
from daskls.solvers.grid import assign_folds, count_gammas, grid_ends, resolve_grid


@pytest.mark.parametrize("shape", [(10, 10), (20, 20), (2, 7), (10, 3)])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_folds"),
    [(2000, 2, 2), (2000, 2, 5), (60, 28, 5), (7, 1, 2), (7, 1, 5), (5000, 631, 5), (60, 2, 3)],
)
def test_own_grids_are_the_papers(n_rows, n_features, n_folds, shape):
    spec = SolverSpec(cv=n_folds, **({} if shape == (10, 10) else {"n_grid": shape}))
    for radius in (1.7, 0.003):
        grid = resolve_grid(spec, radius, n_rows, n_features)
        gammas, costs, _ = naive.grid_values(radius, n_rows, n_features, n_folds, shape)
        np.testing.assert_allclose(grid.gammas, gammas, rtol=1e-10)
        np.testing.assert_allclose(grid.costs, costs, rtol=1e-10)
        assert (len(grid.costs), len(grid.gammas)) == shape == (spec.n_costs, count_gammas(spec))
        ends = grid_ends(spec, np.array([radius]), np.array([n_rows]), n_features)
        for name, own in (("C", grid.costs), ("gamma", grid.gammas)):
            np.testing.assert_allclose(np.ravel(ends[name]), [own[0], own[-1]], rtol=1e-10)


def test_given_values_are_used_unchanged_in_increasing_order():
    spec = SolverSpec(C=(3.0, 0.1, 7.3), gamma=(2.0, 0.3))
    for size in [(1.0, 50, 2), (30.0, 2000, 8)]:
        grid = resolve_grid(spec, *size)
        assert (grid.costs, grid.gammas) == ((0.1, 3.0, 7.3), (0.3, 2.0))


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_other_kernels_have_a_grid_over_C_alone(kernel):
    grid = resolve_grid(SolverSpec(kernel=kernel), 4.0, 90, 2)
    assert grid.gammas == (1.0,)
    assert grid.costs == resolve_grid(SolverSpec(), 4.0, 90, 2).costs
    assert resolve_grid(SolverSpec(kernel=kernel, gamma=(0.5,)), 4.0, 90, 2).gammas == (0.5,)


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


def test_a_class_with_fewer_rows_than_folds_keeps_its_row_order():
    codes = np.array([5, 1, 1, 5, 1, 0, 5, 1])
    folds = assign_folds(codes, 5, (9,))
    # Class 0 takes fold 0, class 1 goes on with 1, 2, 3, 4 and class 5 with 0, 1, 2.
    assert folds.tolist() == [0, 1, 2, 1, 3, 0, 2, 4]


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
