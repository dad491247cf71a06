"""RandomChunkSVC: which rows a chunk holds, what it answers, what it refuses; indecision."""

import dask.array as da
import naive
import numpy as np
import pytest
from cells import fit_cell
from small import task_memory
from support import (
    MIB,
    SlowModel,
    checkers,
    path_of,
)

from daskls import (
    DataError,
    MemoryPlanError,
    ParameterError,
    RandomChunkSVC,
)
from daskls.partition.shuffle import shuffle_numbers
from daskls.records import CellReport, SolverSpec

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


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
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


def test_a_chunk_is_a_cell_of_its_rows():
    X, y = checkers(N)
    model = small_chunks().fit(X, y)
    chunk = shuffle_numbers(np.arange(N), N, 0) * 5 // N
    report = model.fit_report_
    assert report.n_rows.tolist() == np.bincount(chunk).tolist() == [180] * 5
    spec = SolverSpec(C=(10.0,), gamma=(20.0,), cv=2)
    for number in range(5):
        own = chunk == number
        expected = fit_cell(
            X[own],
            y[own],
            np.ones(own.sum()),
            spec,
            CellReport(0, number, 0, 0, 0.0),
            (0, number, 0),
        )
        found = model._reader.read_cell(number)
        for name in ("center", "rows", "coef"):
            assert (getattr(found, name) == getattr(expected, name)).all()


@pytest.mark.parametrize(("size", "n_chunks"), [(2, 450), (299, 4), (300, 3), (900, 1), (5000, 1)])
def test_chunks_are_full_and_hold_every_row(size, n_chunks):
    X, y = checkers(N)
    rows = small_chunks(chunk_size=size).fit(X, y).fit_report_.n_rows
    assert len(rows) == n_chunks
    assert rows.sum() == N
    assert rows.max() - rows.min() <= 1


def test_a_chunk_that_fits_no_worker_is_refused():
    X, y = checkers(N)
    refused = r"A chunk of 900 rows .* lower chunk_size to about"
    with task_memory(MIB), pytest.raises(MemoryPlanError, match=refused):
        small_chunks(chunk_size=900).fit(X, y)
    with pytest.raises(ValueError, match="chunk_size"):
        small_chunks(chunk_size=1).fit(X, y)


def test_indecision_counts_decision_values_near_zero():
    X, y = checkers(N)
    model = small_chunks().fit(X, y)
    values = np.abs(model.decision_function(QUERIES))
    assert model.indecision(QUERIES, 0.1) == (values < 0.1).mean() > 0
    several = model.indecision(QUERIES, [0.5, 0.1, 1e-9])
    assert several.tolist() == [(values < e).mean() for e in (0.5, 0.1, 1e-9)]
    lazy = model.indecision(da.from_array(QUERIES, chunks=(70, 2)), [0.5, 0.1, 1e-9])
    assert lazy.tolist() == several.tolist()
    # Strictly nearer: a value that equals eps is decided.
    bound = float(values[0])
    assert model.indecision(QUERIES[:1], bound) == 0.0
    assert model.indecision(QUERIES[:1], np.nextafter(bound, 2)) == 1.0


def test_indecision_refuses_what_has_no_answer():
    X, y = checkers(N, n_classes=3)
    with pytest.raises(DataError, match="3 classes"):
        small_chunks().fit(X, y).indecision(QUERIES)
    model = small_chunks().fit(X, y > 0)
    with pytest.raises(ParameterError, match="eps is 0; it must"):
        model.indecision(QUERIES, 0)
    for eps in ([0.1, float("nan")], [[0.1, 0.2], [0.3, 0.4]], "a", "0.1", True, [[1], 2], []):
        with pytest.raises(ParameterError, match="it must be a positive number") as raised:
            model.indecision(QUERIES, eps)
        assert repr(eps) in str(raised.value)
