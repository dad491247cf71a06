"""SVMs of cells whose kernel matrix is not held: those of the whole one, and of brute force."""

import naive
import numpy as np
import pytest
from cells import SEED, TIGHT, binary_cell, check_model, class_cell, fit, queries
from small import small_working_sets
from support import few

from daskls.kernels.kernel import find_kernel
from daskls.records import KernelSpec, SolverSpec
from daskls.solvers.evaluate import cell_scores
from daskls.solvers.grid import assign_folds
from daskls.solvers.hinge.decomposed import KernelRowCache, holds_matrix

# Less than any matrix here.
TINY = 1e-4
GRID = {"gamma": (0.05, 0.5), "C": (0.3, 3.0), "cv": 3, "tol": TIGHT}


@pytest.fixture(autouse=True)
def _sets(monkeypatch):
    small_working_sets(monkeypatch, 16)


def check_equal(model, whole, X, atol=5e-3):
    assert (model.report.gamma, model.report.C) == (whole.report.gamma, whole.report.C)
    np.testing.assert_allclose(model.errors, whole.errors, atol=1e-6)
    assert model.report.n_at_limit == 0
    rows = queries(X, 100)
    np.testing.assert_allclose(cell_scores(model, rows), cell_scores(whole, rows), atol=atol)


def test_a_cell_equals_the_oracle():
    X, codes = binary_cell(0)
    weights = np.random.default_rng(2).uniform(0.2, 3.0, len(X))
    model = fit(X, codes, weights, cache_size=TINY, **GRID)
    oracle = naive.CellOracle(X, codes, weights, assign_folds(codes, 3, SEED))
    chosen = model.report.gamma, model.report.C
    rows = queries(X)
    check_model(model, oracle.mean_decisions(*chosen, rows), rows)
    errors = [[oracle.validation_error(g, C)[0] for C in GRID["C"]] for g in GRID["gamma"]]
    np.testing.assert_allclose(model.errors, errors, atol=1e-6)


@pytest.mark.parametrize("kernel", few(["rbf", "laplacian", "exponential", "poly", "linear"], 3))
@pytest.mark.parametrize("data", ["2 classes", "4 classes", "copies", "copies of other labels"])
def test_a_cell_equals_that_of_the_whole_matrix(data, kernel):
    X, codes = class_cell(4, 1, m=120) if data == "4 classes" else binary_cell(1, m=90)
    if "copies" in data:
        X, codes = np.r_[X, X], np.r_[codes, codes if data == "copies" else 5 - codes]
    options = {**GRID, "kernel": kernel, "coef0": 1.0, "degree": 2}
    if not find_kernel(kernel).has_width:
        options["gamma"] = (0.05,)
    whole = fit(X, codes, **options)
    check_equal(fit(X, codes, cache_size=TINY, **options), whole, X, atol=2e-2)


def test_the_room_changes_no_bit():
    X, codes = binary_cell(4, m=120)
    models = [fit(X, codes, cache_size=size, **GRID) for size in (TINY, 0.01, 0.1)]
    # So many rows of 120 are held: a working set's, 21, all.
    assert [holds_matrix(SolverSpec(cache_size=s), 120, 2) for s in (0.1, 0.12)] == [False, True]
    for model in models[1:]:
        for name in ("rows", "coef", "center"):
            np.testing.assert_array_equal(getattr(model, name), getattr(models[0], name))


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
def test_rows_are_those_of_the_matrix_with_the_same_bits_each_time(name):
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    kernel = KernelSpec(name, 0.7, 2, 1.0)
    rows = KernelRowCache(X, name, 0)
    rows.move(kernel)
    K = naive.kernel_matrix(X, X, name, 0.7, 2, 1.0)
    first = rows.values[rows.fetch(np.arange(3, 12))].copy()
    np.testing.assert_allclose(first, K[3:12], rtol=1e-5, atol=1e-6)
    # Others take their place.
    rows.fetch(np.arange(30, 46))
    assert (rows.slot_of[3:12] < 0).all()
    again = rows.values[rows.fetch(np.r_[20, np.arange(3, 12), 49])][1:-1]
    np.testing.assert_array_equal(again, first)
    tiles = np.concatenate([tile for _, tile in rows.tiles()])
    np.testing.assert_array_equal(tiles[3:12], first)
