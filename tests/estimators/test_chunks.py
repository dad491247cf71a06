"""RandomChunkSVC: its chunks and answers; indecision; what cells search, hold and choose by."""

import re

import dask.array as da
import naive
import numpy as np
import pytest
from small import task_memory
from support import MIB, PAPERS, SlowModel, checkers, path_of

from daskls import DataError, MemoryPlanError, ParameterError, RandomChunkSVC, VoronoiSVC

N = 900
QUERIES = np.random.default_rng(7).random((300, 2))


def small_chunks(**params):
    """Return an estimator that trains in a blink."""
    return RandomChunkSVC(
        **{"chunk_size": 200, "C": 10.0, "gamma": 20.0, "cv": 2, "random_state": 0, **params}
    )


def slow_decisions(model, queries, n_classes):
    """Return the mean of clipped decisions of each pair, from the arrays on disk."""
    slow = SlowModel(path_of(model))
    kernel, degree, coef0 = (slow.meta["spec"][name] for name in ("kernel", "degree", "coef0"))
    pairs = [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]
    total = np.zeros((len(queries), len(pairs)))
    for cell in slow.cells:
        assert cell["classes"] == list(range(n_classes))
        K = naive.kernel_matrix(
            queries - cell["center"], cell["rows"], kernel, cell["gamma"], degree, coef0
        )
        decisions = naive.pair_decisions(K, cell["coef"], cell["ptr"]) + cell["intercepts"]
        total += np.clip(decisions, -1, 1)
    return total / len(slow.cells)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_two_classes_answer_with_the_mean_of_all_chunks(kernel):
    X, y = checkers(N)
    # A power of rows as they are given: a small gamma, as they reach beyond 1.
    width = {"gamma": 0.05} if kernel == "poly" else {}
    model = small_chunks(kernel=kernel, coef0=1.0, **width).fit(X, y)
    assert model.n_cells_ == 5
    expected = slow_decisions(model, QUERIES, 2)[:, 0]
    assert len(np.unique(expected)) > 100
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, atol=1e-5)
    assert (model.predict(QUERIES) == (expected > 0)).all()


@pytest.mark.parametrize(("size", "n_chunks"), [(2, 450), (299, 4), (5000, 1)])
def test_chunks_are_full_and_hold_every_row(size, n_chunks):
    X, y = checkers(N)
    rows = small_chunks(chunk_size=size).fit(X, y).fit_report_.n_rows
    assert len(rows) == n_chunks
    assert rows.sum() == N
    assert rows.max() - rows.min() <= 1


def test_indecision_counts_decision_values_near_zero():
    X, y = checkers(N)
    model = small_chunks().fit(X, y)
    values = np.abs(model.decision_function(QUERIES))
    assert model.indecision(QUERIES, 0.1) == (values < 0.1).mean() > 0
    several = model.indecision(QUERIES, [0.5, 0.1, 1e-9])
    assert several.tolist() == [(values < e).mean() for e in (0.5, 0.1, 1e-9)]
    lazy = model.indecision(da.from_array(QUERIES, chunks=(70, 2)), [0.5, 0.1, 1e-9])
    assert lazy.tolist() == several.tolist()


def test_indecision_refuses_what_has_no_answer():
    X, y = checkers(N, n_classes=3)
    with pytest.raises(DataError, match="3 classes"):
        small_chunks().fit(X, y).indecision(QUERIES)
    model = small_chunks().fit(X, y > 0)
    with pytest.raises(ParameterError, match="eps is 0; it must"):
        model.indecision(QUERIES, 0)
    for eps in ([0.1, float("nan")], [[0.1, 0.2], [0.3, 0.4]], "0.1", []):
        with pytest.raises(ParameterError, match="it must be a positive number") as raised:
            model.indecision(QUERIES, eps)
        assert repr(eps) in str(raised.value)


X, Y = checkers(400)
PAPER = {**PAPERS, "random_state": 0, "cv": 3}
OWN = {VoronoiSVC: {"cell_size": 120}, RandomChunkSVC: {"chunk_size": 120}}


@pytest.mark.parametrize("kind", OWN)
def test_each_cell_searches_a_grid_of_so_many_values(kind):
    model = kind(n_grid=(3, 4), search="full", **OWN[kind], **PAPER).fit(X, Y)
    report = model.fit_report_
    assert (report.n_tried == 12).all()
    # Of these a cell's choice is one, scaled by its own rows and radius.
    for row in report:
        gammas, costs, _ = naive.grid_values(row.radius, row.n_rows, 2, 3, (3, 4))
        assert np.isclose(gammas, row.gamma, rtol=1e-9).sum() == 1
        assert np.isclose(costs, row.C, rtol=1e-9).sum() == 1


GIVEN = {"C": [1.0, 30.0], "gamma": [5.0, 50.0], "tol": 1e-6}


@pytest.mark.parametrize("kind", [VoronoiSVC, RandomChunkSVC])
def test_decisions_are_those_of_whole_matrices(kind):
    whole = kind(200, **PAPER, **GIVEN).fit(X, Y).decision_function(X)
    some = kind(200, cache_size=0.01, **PAPER, **GIVEN).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(some, whole, atol=5e-3)
    # Room for both matrices of every cell: the same solver, and the same bits.
    roomy = kind(200, cache_size=1.0, **PAPER, **GIVEN).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(roomy, whole)
    assert (some != whole).any()


def test_a_plan_that_refuses_names_a_size_that_fits():
    rows = np.random.default_rng(0).random((2600, 2)).astype(np.float32)
    labels = (rows[:, 0] > 0.5).astype(int)
    params = {**PAPER, "C": 1.0, "gamma": 1.0, "cv": 2}
    with task_memory(48 * MIB):
        with pytest.raises(MemoryPlanError, match="give cache_size=") as caught:
            VoronoiSVC(2600, **params).fit(rows, labels)
        size = float(re.search(r"give cache_size=([\d.]+), or give each", str(caught.value))[1])
        VoronoiSVC(2600, cache_size=size, **params).fit(rows, labels)
