"""Predictions equal a slow walk of partitions and sums of kernels, row by row.

Several partitions of the same rows: independent cells, one averaged answer.
"""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from support import SlowModel, checkers, is_close, model_bits, path_of, small_svc

from daskls import VoronoiQuantileRegressor, VoronoiSVC, VoronoiSVR

N = 600
KERNELS = {
    "rbf": {"gamma": [5.0, 30.0]},
    "linear": {},
    "poly": {"degree": 2, "coef0": 1.0, "gamma": 3.0},
    "homogeneous poly": {"kernel": "poly", "gamma": 2.0},
    "rbf with an offset": {"kernel": "rbf", "gamma": [5.0, 30.0], "fit_intercept": True},
}


def fit(n_partitions=3, n_classes=2, **params):
    X, y = checkers(N, n_classes=n_classes)
    return small_svc(n_partitions=n_partitions, **params).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("kernel", "n_partitions"), [*((own, 1) for own in KERNELS), ("rbf", 3)])
def test_scores_and_labels_equal_brute_force(kernel, n_partitions, n_classes):
    X, y = checkers(N, n_classes=n_classes, dtype="f4")
    labels = np.array(["d", "b", "c", "a"][:n_classes])
    params = {"kernel": kernel, "n_partitions": n_partitions, **KERNELS[kernel]}
    model = small_svc(C=[1.0, 10.0], **params).fit(X, labels[y])
    slow = SlowModel(path_of(model))
    assert slow.n_partitions == n_partitions
    assert any(cell["intercepts"].any() for cell in slow.cells) == model.fit_intercept
    # Rows of training, rows far outside, and rows between.
    rng = np.random.default_rng(3)
    queries = np.concatenate([X[:10], rng.uniform(-1, 2, (50, 2)).astype("f4")])
    each = [[slow.pairs(row, p)[1] for p in range(n_partitions)] for row in queries.tolist()]
    # Far from all rows decisions vanish, and rounding alone decides the votes.
    clear = [all(abs(v) > 1e-5 for values in row for v in values) for row in each]
    queries = queries[clear]
    assert len(queries) > 20
    assert len({slow.walk(row) for row in queries.tolist()}) > 3
    scores = model.decision_function(queries).reshape(len(queries), -1)
    expected = np.array([slow.scores(row) for row in queries.tolist()]).reshape(scores.shape)
    for found, wanted in zip(scores.ravel().tolist(), expected.ravel().tolist(), strict=True):
        assert is_close(found, wanted)
    winners = expected.argmax(axis=1) if n_classes > 2 else (expected[:, 0] > 0).astype(int)
    np.testing.assert_array_equal(model.predict(queries), model.classes_[winners])
    if n_partitions > 1:
        # Clipping and averaging both mattered.
        assert any(abs(value) > 1 for row in each for values in row for value in values)
        assert any(len({values[0] > 0 for values in row if values}) == 2 for row in each)


@pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_cells_of_one_class_and_absent_classes(n_partitions, n_classes):
    # Bands of one class each, wider than a cell: some cells hold one class, some two.
    X, _ = checkers(N)
    y = (X[:, 0] * n_classes).astype(int)
    model = small_svc(cell_size=30, n_partitions=n_partitions).fit(X, y)
    slow = SlowModel(path_of(model))
    assert {len(cell["classes"]) for cell in slow.cells} == {1, 2}
    scores = model.decision_function(X[:60]).reshape(60, -1)
    for found, row in zip(scores.tolist(), X[:60].tolist(), strict=True):
        assert all(map(is_close, found, np.atleast_1d(slow.scores(row))))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_partitions_are_those_of_a_model_with_fewer(n_classes):
    fewer, more = (model_bits(fit(n, n_classes)) for n in (1, 3))
    of_cells = [name for name in fewer if name.startswith(("tree", "cell"))]
    assert len(of_cells) > 20
    assert [name for name in of_cells if fewer[name] != more[name]] == []
    assert more["n_cells"] > fewer["n_cells"]


def test_partitions_differ_are_full_and_hold_every_row_in_the_cell_that_counted_it(model):
    X, _ = checkers(N)
    slow, report = SlowModel(path_of(model)), model.fit_report_
    cells = [[slow.walk(row, partition) for row in X.tolist()] for partition in range(3)]
    np.testing.assert_array_equal(np.bincount(np.ravel(cells)), report.n_rows)
    assert report.n_rows.max() <= 100
    assert report.partition.tolist() == np.repeat(range(3), N // 100).tolist()
    assert report.leaf.tolist() == list(range(len(report)))
    for one, other in itertools.combinations(cells, 2):
        # What one partition holds together, another one cuts apart.
        assert len(set(zip(one, other, strict=True))) > 1.5 * N // 100


SQUARES = {"kernel": "rbf", "C": 10.0, "gamma": 10.0, "feature_scale": None, "random_state": 0}


# An estimator, its parameters, the shape of the data, and how many partitions these have.
DEFAULTS = [
    (VoronoiSVC, {}, (16_000, 63), 4),
    (VoronoiSVC, {}, (15_999, 62), 1),
    (VoronoiSVC, {"loss": "hinge"}, (16_000, 63), 1),
    (VoronoiSVR, {}, (16_000, 125), 4),
    # Larger cells take longer; smaller ones save nothing that more partitions could use.
    (VoronoiSVC, {"cell_size": 8000}, (40_000, 32), 1),
    (VoronoiSVC, {"cell_size": 300}, (200_000, 32), 2),
    # Of one feature all would be equal.
    (VoronoiSVR, {}, (2_000_000, 1), 1),
    (VoronoiQuantileRegressor, {}, (16_000, 63), 1),
]


@pytest.mark.parametrize(("maker", "params", "shape", "expected"), DEFAULTS)
def test_the_default_follows_from_the_data(maker, params, shape, expected):
    by_default = maker(**{**SQUARES, **params})
    n_targets = 2 if maker is VoronoiSVC else 1
    request = by_default._request().for_data(*shape, n_targets)
    assert request.n_partitions == expected
    # A fit of some of the rows, for probabilities, is of the same kind as the whole.
    assert request.for_data(100, shape[1], n_targets).n_partitions == expected
    # The plan is of the same numbers, and of cells that several partitions have by default.
    given = {"n_partitions": expected, "cell_size": request.cell_size}
    plans = [own.plan(shape) for own in (by_default, clone(by_default).set_params(**given))]
    assert plans[0].n_models == plans[1].n_models
    assert plans[0].exchange == plans[1].exchange
