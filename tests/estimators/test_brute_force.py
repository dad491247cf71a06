"""Predictions equal a slow walk of the partition and sums of kernels, row by row."""

import numpy as np
import pytest
from support import SlowModel, checkers, is_close, path_of, small_svc

KERNELS = {
    "rbf": {"gamma": [5.0, 30.0]},
    "linear": {},
    "poly": {"degree": 2, "coef0": 1.0, "gamma": 3.0},
    "homogeneous poly": {"kernel": "poly", "gamma": 2.0},
    "rbf with an offset": {"kernel": "rbf", "gamma": [5.0, 30.0], "fit_intercept": True},
}


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_and_labels_equal_brute_force(kernel, n_classes):
    X, y = checkers(500, n_classes=n_classes, dtype="f4")
    labels = np.array(["d", "b", "c", "a"][:n_classes])
    params = {"kernel": kernel, **KERNELS[kernel]}
    model = small_svc(C=[1.0, 10.0], **params).fit(X, labels[y])
    slow = SlowModel(path_of(model))
    has_offsets = any(cell["intercepts"].any() for cell in slow.cells)
    assert has_offsets == model.fit_intercept
    # Rows of training, rows far outside, and rows between.
    rng = np.random.default_rng(3)
    queries = np.concatenate([X[:10], rng.uniform(-1, 2, (50, 2)).astype("f4")])
    # Far from all rows decisions vanish, and rounding alone decides the votes.
    clear = [all(abs(v) > 1e-5 for v in slow.pairs(row)[1]) for row in queries.tolist()]
    queries = queries[clear]
    assert len(queries) > 20
    scores = model.decision_function(queries)
    expected = [slow.scores(row) for row in queries.tolist()]
    assert len({slow.walk(row) for row in queries.tolist()}) > 3
    for found, wanted in zip(scores.tolist(), expected, strict=True):
        if n_classes == 2:
            assert is_close(found, wanted)
        else:
            assert all(map(is_close, found, wanted))
    if n_classes == 2:
        winners = [int(score > 0) for score in expected]
    else:
        winners = [row.index(max(row)) for row in expected]
    np.testing.assert_array_equal(model.predict(queries), model.classes_[winners])


def test_cells_of_one_class_and_absent_classes():
    # Three bands of one class each, wider than a cell: some cells hold one class, some two.
    X, _ = checkers(600)
    y = (X[:, 0] * 3).astype(int)
    model = small_svc(cell_size=60).fit(X, y)
    slow = SlowModel(path_of(model))
    present = {len(cell["classes"]) for cell in slow.cells}
    assert present == {1, 2}
    scores = model.decision_function(X[:40])
    for found, row in zip(scores.tolist(), X[:40].tolist(), strict=True):
        assert all(map(is_close, found, slow.scores(row)))
        absent = set(range(3)) - set(slow.cells[slow.walk(row)]["classes"])
        assert all(found[c] == -1.0 < min(f for f in found if f != -1.0) for c in absent)


def test_training_rows_lie_in_the_cell_that_counted_them():
    X, y = checkers(700)
    model = small_svc().fit(X, y)
    slow = SlowModel(path_of(model))
    counts = np.bincount([slow.walk(row) for row in X.tolist()], minlength=model.n_cells_)
    np.testing.assert_array_equal(counts, model.fit_report_.n_rows)
