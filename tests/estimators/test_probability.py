"""Probabilities of classes: maps of scores of rows that were held out.

By default of values without these rows, which least squares know: the oracle trains each cell anew
without a row, in plain float64.
"""

from itertools import product

import dask
import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss
from small import CLASSIFIERS, assert_same_bits, set_sizes, small
from support import few

import daskls
from daskls import DasklsError, FalkSVC, VoronoiSVC
from daskls.methods import calibrate, held_out
from daskls.methods.held_out import HeldOutRows
from daskls.methods.probability import fit_maps, maps_of, probabilities
from daskls.solvers.evaluate import fit_sigmoid, sigmoid

N_OVERLAPPING = 300
C, GAMMA = 4.0, 6.0
# A scale is neither learned nor compared: maps are of scores, in any scale.
UNSCALED = {"feature_scale": None, "kernel": "rbf", "random_state": 0}
ONE = {"C": C, "gamma": GAMMA, **UNSCALED}


def overlapping(n_classes=2, n=N_OVERLAPPING, seed=0):
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
    X, y = overlapping(n_classes)
    X = X.astype("f4").astype(float)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, N_OVERLAPPING)
    model = squares(n_partitions=n_partitions).fit(X, y, weights)
    expected = refitted(model, X, y, weights, n_classes)
    held = held_of(model)
    # Copies, rows of equal features and label, are held out as one: the first, of all weight.
    rows = np.column_stack([X, y])
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    weights = np.bincount(group.ravel(), weights)
    of_first = np.full(N_OVERLAPPING, -1)
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


@pytest.mark.parametrize("make", [squares, nested])
def test_the_model_is_the_same_without_them(make):
    X, y = overlapping(3)
    plain, model = make(probability=False).fit(X, y), make().fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))
    assert "probability" not in plain._reader.meta
    names = [name for bundle in plain._reader.bundles for name in bundle.part.names]
    assert not [name for name in names if name.startswith("held")]


def test_of_many_rows_some_are_drawn_the_same_in_every_partition(monkeypatch):
    sizes = {"ALL_ROWS": 10, "CELL_DRAWN": 20, "CLASS_DRAWN": 20, "LEAST_DRAWN": 60}
    set_sizes(monkeypatch, {f"daskls.methods.held_out.{k}": n for k, n in sizes.items()})
    X, y = overlapping(2, n=2000)
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


ABSENT = [
    (VoronoiSVC(probability=False), r'probability=False\. Pass probability="auto"'),
    (VoronoiSVC(loss="hinge", **UNSCALED), r"loss='hinge' has none\. Pass probability=True"),
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


N = 500
# Those first that are tried at every change: maps of cells, and of one model.
FAMILIES = sorted(CLASSIFIERS, key=lambda name: name not in ("VoronoiSVC", "LocalSamplingSVC"))


def noisy(n_classes=2, seed=0, n=N):
    """Return rows, labels drawn from known probabilities, and these."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    logits = 3 * np.sin(4 * X @ rng.standard_normal((2, n_classes)) + np.arange(n_classes))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return X, y, p


def scores_of(k, n=400, seed=3):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n).astype(np.int32)
    scores = rng.standard_normal((n, k)) + 1.5 * np.eye(k)[codes]
    return (scores[:, 1] - scores[:, 0] if k == 2 else scores), codes


def falling(n=200, seed=0, n_positive=None):
    """Return scores that are higher for negatives, labels, and weights."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3 if n_positive is None else np.arange(n) < n_positive
    return rng.standard_normal(n) - 0.5 * positive, positive, rng.uniform(0.5, 3.0, n)


@pytest.mark.always
@pytest.mark.parametrize(
    ("scores", "positive", "weights"),
    [
        falling(),
        falling(2000, 1, n_positive=1),
        falling(50, 2, n_positive=49),
        # Hardly falling, and hardly rising.
        (np.r_[-1.0, 1.0, -1.0, 1.0], np.arange(4) < 2, np.r_[1.01, 1.0, 1.0, 1.0]),
        (np.r_[-1.0, 1.0, -1.0, 1.0], np.arange(4) < 2, np.r_[1.0, 1.01, 1.0, 1.0]),
        (np.r_[np.full(9, 2.0), 1e6], np.arange(10) < 3, np.ones(10)),
        # So large that rounding ends the steps.
        (-1e8 * falling(seed=1)[0], *falling(seed=1)[1:]),
    ],
)  # fmt: skip
def test_a_sigmoid_never_falls_and_is_then_the_likeliest(scores, positive, weights):
    a, b = fit_sigmoid(scores, positive, weights)
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    unit = np.abs(scores).max()

    def loss(params):
        z = params[0] * scores / unit + params[1]
        return weights @ (targets * z + np.logaddexp(0, -z)) / weights.sum()

    bounds = [(None, 0), (None, None)]
    best = minimize(loss, [-0.1, 0.0], bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
    assert a <= 0
    assert loss((a * unit, b)) == pytest.approx(best.fun, abs=1e-7)
    if best.x[0] > -1e-9:
        assert a == 0
        rate = np.average(targets, weights=weights)
        assert sigmoid(scores, a, b) == pytest.approx(np.full(len(scores), rate))


def steps(scores, positive, weights, queries):
    least = 1 / (weights.sum() + 2)
    found = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip")
    return found.fit(scores, positive, weights).predict(queries)


def brute_margins(scores):
    return np.array([[row[c] - max(np.delete(row, c)) for c in range(len(row))] for row in scores])


def test_isotonic_maps_are_scikit_learns():
    scores, codes = scores_of(2)
    weights = np.random.default_rng(0).random(len(codes)) + 0.1
    found = probabilities(fit_maps("isotonic", scores, codes, weights, 2), scores * 1.5)
    expected = steps(scores, codes == 1, weights, scores * 1.5)
    np.testing.assert_allclose(found, np.stack([1 - expected, expected], axis=1), atol=1e-12)


def test_classes_of_few_rows_share_a_map_of_steps():
    scores, codes = scores_of(4, n=3000)
    codes[codes == 3] = 0
    assert (codes == 0).sum() >= 1000 > (codes == 1).sum()
    margins, expected = brute_margins(scores), np.empty_like(scores)
    for classes in ([0], [1, 2, 3]):
        positive = codes[:, None] == np.array(classes)
        flat = margins[:, classes].ravel()
        found = steps(flat, positive.ravel(), np.ones(len(flat)), flat)
        expected[:, classes] = found.reshape(-1, len(classes))
    maps = fit_maps("isotonic", scores, codes, np.ones(len(codes)), 4, of_margins=True)
    found = probabilities(maps, scores)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)


def test_sigmoids_of_more_classes_are_of_scores_or_margins():
    scores, codes = scores_of(3)
    margins = brute_margins(scores)
    weights = np.ones(len(codes))
    for own, of_margins in ((margins, True), (scores, False)):
        maps = fit_maps("sigmoid", scores, codes, weights, 3, of_margins=of_margins)
        pairs = [fit_sigmoid(own[:, c], codes == c) for c in range(3)]
        expected = np.stack([sigmoid(own[:, c], *pairs[c]) for c in range(3)], axis=1)
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(probabilities(maps, scores), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_maps_are_of_what_makes_the_rows_likelier(kind):
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, 3, 900), rng.random(900) + 0.5
    # Noise that all classes of a row share says nothing of them: margins are free of it.
    scores = np.eye(3)[codes] + 0.4 * rng.normal(size=(900, 3))
    shared = scores + 3 * rng.normal(size=(900, 1))
    assert fit_maps(kind, shared, codes, weights, 3).of_margins
    # Scores that are probabilities.
    p = rng.dirichlet(np.ones(3), 900)
    codes = (p.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1)
    found = {m: fit_maps(kind, p, codes, weights, 3, of_margins=m) for m in (None, False, True)}
    losses = {
        m: log_loss(codes, probabilities(maps, p), sample_weight=weights)
        for m, maps in found.items()
    }
    assert losses[None] == min(losses[False], losses[True]) < max(losses[False], losses[True])
    assert not fit_maps(kind, p[:, 0], codes > 0, weights, 2).of_margins


@pytest.mark.parametrize(("kind", "k"), few(product(("sigmoid", "isotonic"), (4, 2))))
def test_probabilities_are_near_the_true_ones(kind, k):
    X, y, _ = noisy(k, n=4000)
    X_test, y_test, p = noisy(k, seed=0, n=4000)
    rng = np.random.default_rng(7)
    y_test = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)
    model = VoronoiSVC(cell_size=1000, probability=kind, **UNSCALED).fit(X, y)
    found = model.predict_proba(X_test)
    # 0.05 nats above the best that can be; the classes' shares are 0.3 above it or more.
    best, prior = log_loss(y_test, p), log_loss(y_test, np.tile(np.bincount(y) / len(y), (4000, 1)))
    assert log_loss(y_test, found) < best + 0.05 < prior - 0.2


@pytest.mark.filterwarnings("ignore:1 of 3 classes have fewer rows than cv")
def test_a_class_of_one_row_is_absent_from_a_fold_and_improbable():
    X = np.random.default_rng(0).random((300, 2))
    y = np.where(np.arange(300) == 0, 2, X[:, 0] > 0.5)
    model = daskls.RandomChunkSVC(100, probability=True, loss="hinge", C=10.0, cv=2, **UNSCALED)
    found = model.set_params(gamma=20.0).fit(X, y).predict_proba(X)
    assert found[:, 2].max() < 0.05
    # In the fold without it, too, scores had their classes.
    assert np.median(found[np.arange(300), y]) > 0.95


@pytest.mark.parametrize(("name", "kind"), few(product(FAMILIES, ["sigmoid", "isotonic"]), 4))
def test_every_method_has_probabilities(name, kind):
    X, y, _ = noisy()
    labels = np.array(["no", "yes"])[y]
    params = {"probability": kind} if name != "KernelKNNClassifier" else {"n_neighbors": 30}
    model = small(name, **params).fit(X, labels)
    found = model.predict_proba(X)
    assert found.shape == (N, 2)
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), 1)
    # Of neighbors alone a class may have none.
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), found, rtol=1e-12)
    # Better than the classes' shares, on the rows at hand.
    prior = np.tile(np.bincount(y) / N, (N, 1))
    assert log_loss(y, found.clip(1e-6, 1 - 1e-6)) < log_loss(y, prior)
    # A map that rises does not change the order of rows.
    order = np.argsort(model.decision_function(X), kind="stable")
    assert (np.diff(found[order, 1]) >= 0).all()


def test_a_model_that_was_fitted_without_probabilities_has_none():
    model = squares(probability=False).fit(*overlapping()).set_params(probability="auto")
    with pytest.raises(AttributeError, match=r"its model was fitted without\. Fit it again"):
        model.predict_proba(np.zeros((1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["VoronoiSVC", "LandmarkSVC"])
def test_a_fit_that_was_stopped_between_folds_goes_on(name, tmp_path, monkeypatch):
    X, y, _ = noisy()
    store, score, folds, stamps = tmp_path / "model", calibrate.score_held_out, [], []
    model, marker = small(name, probability=True, store=store), store / "held-out-000" / "index"

    def noted(X, handle):
        folds.append(handle.location)
        if len(set(folds)) == 3 and not stopped:
            raise KeyboardInterrupt
        stamps.append(marker.stat().st_mtime_ns)
        return score(X, handle)

    stopped = []
    with dask.config.set(scheduler="synchronous"), monkeypatch.context() as patch:
        patch.setattr(calibrate, "score_held_out", noted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        with pytest.raises(DasklsError, match="not finished"):
            daskls.load(store)
        # The models of the folds that were done are there, and are not trained again.
        stopped.append(marker.stat().st_mtime_ns)
        model.fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=77))
    assert set(stamps) == set(stopped)
    assert not [path for path in store.iterdir() if "held-out" in path.name]
    assert_same_bits(small(name, probability=True).fit(X, y), model)
