"""Weights of rows and classes, and labels of every kind."""

import dask.array as da
import numpy as np
import pytest
from support import assert_same_model, checkers, model_bits, small_svc

from daskls.store.dataset import DatasetWriter

N = 400
X, Y = checkers(N, n_classes=3)
QUERIES = np.random.default_rng(9).random((200, 2))


def all_but_fingerprint(model):
    return {name: bits for name, bits in model_bits(model).items() if name != "fingerprint"}


def test_rows_of_weight_0_are_as_if_not_there(set_block_nbytes):
    set_block_nbytes(1)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 3.0], N)
    # A whole block without weight, and a class that only such rows hold.
    weights[100:200] = 0.0
    y = Y.copy()
    y[100:150] = 9
    kept = weights > 0
    rows = [da.from_array(a, chunks=(50, *a.shape[1:])) for a in (X, y, weights)]
    model = small_svc().fit(*rows)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.fit_report_.n_rows.sum() == kept.sum()
    assert_same_model(model, small_svc().fit(X[kept], y[kept], weights[kept]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_whole_weights_equal_repeated_rows(n_classes):
    X, y = checkers(N, n_classes=n_classes)
    weights = np.random.default_rng(0).integers(1, 4, N)
    # One cell, as repeated rows fill cells sooner; one C and gamma, as folds would differ.
    params = {"cell_size": 10_000, "C": 1.0, "gamma": 20.0, "tol": 1e-6}
    weighted = small_svc(**params).fit(X, y, weights)
    repeated = small_svc(**params).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    unweighted = small_svc(**params).fit(X, y)
    scores = repeated.decision_function(QUERIES)
    # The two cells' centers differ by rounding only after the mean is weighted: rows are float32.
    np.testing.assert_allclose(weighted.decision_function(QUERIES), scores, atol=2e-3)
    assert np.abs(unweighted.decision_function(QUERIES) - scores).max() > 0.05


@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_is_the_dict_of_its_weights(n_classes):
    X, y = checkers(N, n_classes=n_classes)
    keep = (y > 0) | (np.arange(N) % 5 == 0)
    X, y = X[keep], y[keep]
    counts = np.bincount(y)
    weights = {c: len(y) / (n_classes * counts[c]) for c in range(n_classes)}
    balanced = small_svc(class_weight="balanced").fit(X, y)
    given = small_svc(class_weight=weights).fit(X, y)
    by_row = small_svc().fit(X, y, np.array([weights[c] for c in y]))
    plain = small_svc().fit(X, y)
    a, b, c, d = map(all_but_fingerprint, (balanced, given, by_row, plain))
    assert_same_model(a, b)
    assert_same_model(a, c)
    assert any(a[name] != d[name] for name in a)


def test_a_class_of_the_data_set_that_has_no_row(tmp_path):
    with DatasetWriter(tmp_path / "d", 2, "f8", classes=["a", "b", "c", "d"]) as writer:
        writer.append(X, np.array([0, 2, 3])[Y])
    model = small_svc().fit(tmp_path / "d")
    assert model.classes_.tolist() == ["a", "c", "d"]
    np.testing.assert_array_equal(
        model.predict(X), np.array(["a", "c", "d"])[small_svc().fit(X, Y).predict(X)]
    )
