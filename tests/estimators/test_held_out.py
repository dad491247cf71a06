"""Probabilities by default: maps to values of rows without them, which least squares know.

The oracle trains each cell anew without a row, in plain float64. What maps of nested fits, of
``test_probability.py``, promise alike is tested here too.
"""

import numpy as np
import pytest
from small import set_sizes, small

from daskls import FalkSVC, VoronoiSVC
from daskls.errors import DasklsError
from daskls.methods import held_out
from daskls.methods.held_out import HeldOutRows
from daskls.methods.probability import fit_maps, maps_of, probabilities

N = 300
C, GAMMA = 4.0, 6.0
ONE = {"kernel": "rbf", "C": C, "gamma": GAMMA, "feature_scale": None, "random_state": 0}


def noisy(n_classes=2, n=N, seed=0):
    """Return rows and labels that overlap; some rows are there twice, with labels of their own."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    X[: n // 10] = X[n // 10 : 2 * (n // 10)]
    y = (X.sum(axis=1) * n_classes / 2 + rng.normal(0, 0.2, n)).astype(int)
    return X, y.clip(0, n_classes - 1)


def squares(**params):
    return VoronoiSVC(**{"cell_size": 80, **ONE, **params})


def nested(**params):
    """Return an estimator whose maps are of scores of further fits."""
    return small("VoronoiSVC", **{"probability": True, **params})


both_ways = pytest.mark.parametrize("make", [squares, nested])


def held_of(model):
    """Return the drawn rows of a model, of all of its bundles."""
    return HeldOutRows.joined(HeldOutRows.read(bundle.part) for bundle in model._reader.bundles)


def kernel(a, b):
    return np.exp(-GAMMA * ((a[:, None] - b) ** 2).sum(axis=2))


def without(row, X, y, weights, classes):
    """Return the value of each class at a row, of a model of all rows but those equal to it."""
    others = (X[row] != X).any(axis=1)
    targets = np.where(y[others, None] == classes, 1.0, -1.0)
    K = kernel(X[others], X[others]) + np.diag(1 / (2 * C * weights[others]))
    return (kernel(X[[row]], X[others]) @ np.linalg.solve(K, targets))[0]


def refitted(model, X, y, weights, n_classes):
    """Return the held-out scores of all rows, (n, n_partitions, k): of refits, cell by cell."""
    found = []
    for cells in model._fitted_method().space(model._reader).find(X):
        # Classes that are absent from a cell score less than those that are there.
        scores = np.full((len(X), n_classes), -1.0)
        for cell in np.unique(cells):
            own = np.flatnonzero(cells == cell)
            classes = np.unique(y[own])
            if len(classes) == 1:
                # A constant.
                scores[own, classes[0]] = 1.0
                continue
            for place, row in enumerate(own):
                scores[row, classes] = without(place, X[own], y[own], weights[own], classes)
            if len(classes) < n_classes:
                scores[own] = scores[own].clip(-1)
        found.append(scores)
    found = np.stack(found, axis=1)
    return found[..., 1:] if n_classes == 2 else found


@pytest.mark.parametrize(("n_classes", "n_partitions"), [(2, 1), (3, 1), (2, 3), (3, 2)])
def test_values_and_maps_are_those_of_refits(n_classes, n_partitions):
    X, y = noisy(n_classes)
    X = X.astype("f4").astype(float)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N)
    model = squares(n_partitions=n_partitions).fit(X, y, weights)
    expected = refitted(model, X, y, weights, n_classes)
    held = held_of(model)
    # Copies, rows of equal features and label, are held out as one: the first, of all weight.
    groups = {}
    for i, row in enumerate(np.column_stack([X, y]).tolist()):
        groups.setdefault(tuple(row), []).append(i)
    first = np.array([own[0] for own in groups.values()])
    weights = np.array([weights[own].sum() for own in groups.values()])
    of_first = np.full(N, -1)
    n_units = len(first)
    of_first[first] = np.arange(n_units)
    assert len(held.numbers) == n_units * n_partitions
    for partition in range(n_partitions):
        # In the order of leaves, which is that of partitions.
        own = slice(partition * n_units, (partition + 1) * n_units)
        numbers = held.numbers[own]
        assert sorted(numbers) == sorted(first)
        np.testing.assert_array_equal(held.codes[own], y[numbers])
        np.testing.assert_allclose(held.weights[own], weights[of_first[numbers]])
        scores = held.scores[own].reshape(n_units, -1)
        np.testing.assert_allclose(scores, expected[numbers, partition], atol=2e-4)
    mean = np.clip(expected, -1, 1).mean(axis=1) if n_partitions > 1 else expected[:, 0]
    mean = mean[:, 0] if n_classes == 2 else mean
    given = "sigmoid", mean[first], y[first], weights, n_classes
    maps = fit_maps(*given, of_odds=None, least_own=held_out.LEAST_OWN_ROWS)
    asked = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X), probabilities(maps, asked), atol=2e-3)


@both_ways
def test_the_model_is_the_same_without_them(make):
    X, y = noisy(3)
    plain, model = make(probability=False).fit(X, y), make().fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))
    assert "probability" not in plain._reader.meta
    names = [name for bundle in plain._reader.bundles for name in bundle.part.names]
    assert not [name for name in names if name.startswith("held")]


def test_of_many_rows_some_are_drawn_the_same_in_every_partition(monkeypatch):
    sizes = {"ALL_ROWS": 10, "CELL_DRAWN": 20, "CLASS_DRAWN": 20, "LEAST_DRAWN": 60}
    set_sizes(monkeypatch, {f"daskls.methods.held_out.{k}": n for k, n in sizes.items()})
    X, y = noisy(2, n=2000)
    y[:] = X[:, 0] > 0.97
    assert 40 < y.sum() < 100
    one, three = (squares(n_partitions=n, cell_size=200).fit(X, y) for n in (1, 3))
    first, all_of_them = held_of(one), held_of(three)
    q = len(first.numbers)
    numbers = set(first.numbers.tolist())
    assert len(numbers) == q
    for partition in range(3):
        own = all_of_them.numbers[partition * q : (partition + 1) * q]
        assert set(own.tolist()) == numbers
    # 20 of each of 10 cells; of the rare class about 20, which is more than its share.
    assert 150 < (first.codes == 0).sum() < 250
    assert 10 < (first.codes == 1).sum() < 40
    assert set(held_of(squares(cell_size=200, random_state=1).fit(X, y)).numbers) != numbers
    # The drawn rows stand for all, of the rare class too.
    assert abs(one.predict_proba(X)[:, 1].mean() - y.mean()) < 0.02


def test_maps_of_odds_are_taken_where_values_are_probabilities():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 1))
    # Values of least squares are probabilities: no sigmoid of them is straight.
    y = rng.random(2000) < X[:, 0]
    model = squares(cell_size=2000, gamma=1.0).fit(X, y)
    assert maps_of(model._reader).of_odds
    assert np.abs(model.predict_proba(X)[:, 1] - X[:, 0]).mean() < 0.04


HINGE = {"loss": "hinge", "kernel": "rbf", "feature_scale": None}


ABSENT = [
    (VoronoiSVC(probability=False), r'probability=False\. Pass probability="auto"'),
    (VoronoiSVC(**HINGE), r"loss='hinge' has none\. Pass probability=True"),
    (FalkSVC(), r"FalkSVC has none\. Pass probability=True"),
]


@pytest.mark.parametrize(("model", "says"), ABSENT)
def test_where_they_are_absent_the_error_says_why_and_what_to_pass(model, says):
    for method in ("predict_proba", "predict_log_proba"):
        assert not hasattr(model, method)
        with pytest.raises(AttributeError, match=says) as caught:
            getattr(model, method)
        assert caught.value.__cause__ is None


def test_partitions_that_hold_out_different_rows_are_refused():
    own = HeldOutRows(np.array([4, 2, 4]), np.zeros(3, "i4"), np.ones(3), np.zeros(3, "f4"))
    with pytest.raises(DasklsError, match="hold out different rows: another version"):
        own.merged()
