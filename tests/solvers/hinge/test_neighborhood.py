"""Models of neighborhoods and the errors of their candidates against scikit-learn's SVC."""

import naive
import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.calibration import _sigmoid_calibration
from sklearn.svm import SVC
from small import tiny_tiles
from support import few

from daskls.kernels.frame import decide_pairs
from daskls.records import CellReport, SolverSpec
from daskls.solvers.base import Neighborhood
from daskls.solvers.evaluate import cell_scores
from daskls.solvers.grid import assign_folds
from daskls.solvers.hinge.neighborhood import HingeNeighborhoods, fit_label, label_probability
from daskls.solvers.percentiles import sampled_strides, width_gammas

SOLVER = HingeNeighborhoods()
SEED = (7, 3, 3)
REPORT = CellReport(5, 2, 0, 0, 0.0, n_read=9)
TIGHT = 1e-7
OVO = {"decision_function_shape": "ovo"}
POWERS = {"degree": 2, "coef0": 1.0}


def neighborhood_of(n_classes, seed=0, m=48, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    X = X[np.argsort(np.linalg.norm(X - X[0], axis=1))]
    angle = np.arctan2(X[:, 1], X[:, 0]) + 0.5 * rng.normal(size=m)
    codes = np.floor(angle / (2 * np.pi) * n_classes).astype(int) % n_classes
    return X + 3.0, 2 * codes + 1


def near_of(X, codes, weights=None, n_inner=None, percentiles=None, **options):
    own = {"tol": TIGHT, "cv": 3, "search": "full", "fit_intercept": True, "clipped_gap": False}
    weights = np.ones(len(X)) if weights is None else weights
    n_inner = len(X) // 2 if n_inner is None else n_inner
    spec = SolverSpec(**{**own, **options})
    return Neighborhood(X, codes, weights, n_inner, spec, percentiles, SEED)


def fit(*args, **options):
    return SOLVER.fit_neighborhood(near_of(*args, **options), REPORT)


def errors_of(*args, judged_weight=None, **options):
    near = near_of(*args, **options)
    judged = SOLVER.grid_errors(near)
    weight = near.weights[: near.n_inner].sum() if judged_weight is None else judged_weight
    np.testing.assert_allclose(judged[..., 1], weight, rtol=1e-6)
    return judged[..., 0] / judged[..., 1]


def queries_around(X, n=20):
    return X.mean(axis=0) + 1.5 * np.random.default_rng(99).normal(size=(n, X.shape[1]))


def decisions_of(peer, X_query):
    values = peer.decision_function(X_query)
    # scikit-learn's binary decision speaks for the second class, its one-vs-one ones for the first.
    return values[:, None] if values.ndim == 1 else -values


def check_decisions(model, peer, X_query):
    expected = decisions_of(peer, X_query)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(decide_pairs(model, X_query), expected, atol=1e-3)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", few(["rbf", "poly", "linear"], 2))
def test_one_candidate_equals_svc(kernel, n_classes, weighted):
    X, codes = neighborhood_of(n_classes)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else None
    parameters = {"kernel": kernel, **POWERS}
    C, gamma = (0.5, 0.1) if kernel == "poly" else (2.0, 0.4)
    model = fit(X, codes, weights, C=(C,), gamma=(gamma,), **parameters)
    peer = SVC(C=C, gamma=gamma, tol=1e-9, **OVO, **parameters)
    check_decisions(model, peer.fit(X, codes, weights), queries_around(X))
    assert np.abs(model.intercepts).max() > 1e-2
    if weighted:
        with pytest.raises(AssertionError):
            check_decisions(model, peer.fit(X, codes), queries_around(X))
    # Only "poly" depends on the origin.
    assert model.center.any() == (kernel != "poly")


@pytest.mark.parametrize("percentiles", [None, (90.0, 10.0)])
def test_unanimous_rows_give_a_constant(percentiles):
    X, _ = neighborhood_of(2)
    codes = np.full(len(X), 5)
    model = fit(X, codes, percentiles=percentiles, C=(1.0, 4.0), gamma=(0.4,))
    assert model.classes.tolist() == [5]
    assert (len(model.rows), model.report.n_trained, model.report.n_rows) == (0, 0, len(X))
    errors = errors_of(X, codes, percentiles=percentiles, C=(1.0, 4.0), gamma=(0.4,))
    np.testing.assert_array_equal(errors, np.zeros((2 if percentiles else 1, 2)))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_equal_rows_answer_the_class_of_the_largest_weight(kernel):
    X = np.full((9, 3), 0.1)
    codes = np.array([1, 1, 4, 4, 4, 4, 8, 8, 8])
    options = {"kernel": kernel, "C": (1.0,), "gamma": (0.4,)}
    assert answers(fit(X, codes, **options), X) == {4}
    weights = np.array([4, 5, 1, 1, 1, 1, 1, 1, 1.0])
    assert answers(fit(X, codes, weights, **options), X) == {1}


def answers(model, X):
    if len(model.classes) == 1:
        return set(model.classes.tolist())
    scores = cell_scores(model, X)
    places = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return set(model.classes[places].tolist())


def errors_in_turn(X, codes, weights, n_inner, gammas, costs, cv=3, **parameters):
    """Train an SVC on all rows but one inner fold's, candidate by candidate; judge that fold.

    Return errors (n_gammas, n_costs), and the smallest absolute decision that they rest on.
    """
    folds = np.full(len(X), -1)
    folds[:n_inner] = assign_folds(codes[:n_inner], cv, SEED)
    errors, closest = np.zeros((len(gammas), len(costs))), np.inf
    for g, i in np.ndindex(errors.shape):
        peer = SVC(C=costs[i], gamma=gammas[g], tol=1e-8, **OVO, **parameters)
        for fold in np.unique(folds[folds >= 0]):
            held, kept = folds == fold, folds != fold
            answered = codes[kept][0]
            if len(np.unique(codes[kept])) > 1:
                values = decisions_of(peer.fit(X[kept], codes[kept], weights[kept]), X[held])
                closest = min(closest, np.abs(values).min())
                n_classes = len(peer.classes_)
                places = [naive.one_vs_one_winner(row, n_classes) for row in values]
                answered = peer.classes_[places]
            errors[g, i] += weights[held][answered != codes[held]].sum()
    return errors / weights[:n_inner].sum(), closest


def check_errors(X, codes, weights, n_inner, gammas, costs, percentiles=None, **parameters):
    """Every candidate's error is that of training SVCs in turn; return them."""
    weights = np.ones(len(X)) if weights is None else weights
    expected, closest = errors_in_turn(X, codes, weights, n_inner, gammas, costs, **parameters)
    # The data is such that no error rests on a decision that rounding could turn.
    assert closest > 1e-4
    options = {"gamma": tuple(gammas)} if percentiles is None else {"percentiles": percentiles}
    errors = errors_of(X, codes, weights, n_inner, C=tuple(costs), **options, **parameters)
    assert errors.shape == expected.shape
    np.testing.assert_allclose(errors, expected, rtol=1e-6, atol=1e-12)
    return errors


GRIDS = {
    **{f"{n} classes": (n, 10, (0.05, 1.0), (0.3, 3.0, 20.0), {}) for n in (2, 3)},
    "linear": (2, 4, (0.1,), (0.01, 2.0), {"kernel": "linear"}),
    "poly": (2, 4, (0.1,), (0.01, 2.0), {"kernel": "poly", **POWERS}),
    "widths": (2, 5, (), (0.5, 4.0), {"percentiles": (90.0, 50.0, 1.0)}),
}


@pytest.mark.always
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("name", GRIDS)
def test_errors_of_a_grid(name, weighted):
    n_classes, seed, gammas, costs, options = GRIDS[name]
    X, codes = neighborhood_of(n_classes, seed)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, len(X)) if weighted else None
    if name == "widths":
        gammas = np.percentile(pdist(X), options["percentiles"]) ** -2.0
    n_inner = 24 if name == "widths" else 20
    errors = check_errors(X, codes, weights, n_inner, gammas, costs, **options)
    assert len(set(errors.ravel().tolist())) > 1


@pytest.mark.parametrize("row", [3, 30], ids=["inner", "outer"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_of_one_row(n_classes, row):
    X, codes = neighborhood_of(max(n_classes - 1, 1), seed=2)
    codes[row] = 9
    errors = check_errors(X, codes, None, 20, (0.4, 3.0), (1.0, 10.0))
    # Where the one row is held out, nothing speaks for its class.
    assert n_classes > 2 or (errors.min() > 0) == (row < 20)
    model = fit(X, codes, n_inner=20, C=(1.0, 10.0), gamma=(0.4, 3.0))
    assert len(model.classes) == n_classes
    assert model.classes[-1] == 9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_best_candidate_is_trained_on_all_rows(n_classes):
    X, codes = neighborhood_of(n_classes, seed=6)
    percentiles, costs = (90.0, 30.0, 5.0), (0.1, 1.0, 10.0)
    errors = errors_of(X, codes, percentiles=percentiles, C=costs)
    g, i = np.unravel_index(errors.argmin(), errors.shape)
    model = fit(X, codes, percentiles=percentiles, C=costs)
    gamma = np.percentile(pdist(X), percentiles[g]) ** -2.0
    assert (model.report.C, model.report.gamma) == (costs[i], pytest.approx(gamma, rel=1e-5))
    assert model.report.validation_error == errors[g, i] < errors.max()
    peer = SVC(C=costs[i], gamma=gamma, tol=1e-9, **OVO).fit(X, codes)
    check_decisions(model, peer, queries_around(X))


# Copies: rows of equal features and class


def repeated(X, codes, seed=3):
    often = np.random.default_rng(seed).integers(1, 9, len(X))
    rows = np.repeat(np.arange(len(X)), often)
    return X[rows], codes[rows], often


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_copies_equal_an_svc_of_all_of_them(kernel, n_classes):
    X, codes = neighborhood_of(n_classes)
    # Three rows of another class where there is a row already.
    X, codes = np.r_[X, X[:3]], np.r_[codes, np.where(codes[:3] == 1, 3, 1)]
    many_X, many_codes, _ = repeated(X, codes)
    model = fit(many_X, many_codes, C=(0.5,), gamma=(0.1,), kernel=kernel, **POWERS)
    peer = SVC(C=0.5, gamma=0.1, tol=1e-10, kernel=kernel, **OVO, **POWERS)
    expected = decisions_of(peer.fit(many_X, many_codes), queries_around(X))
    found = decide_pairs(model, queries_around(X))
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    assert len(model.rows) <= len(X) < len(many_X) == model.report.n_rows


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_of_copies_are_those_of_weighted_rows(n_classes):
    X, codes = neighborhood_of(n_classes)
    many_X, many_codes, often = repeated(X, codes)
    options = {"C": (0.5, 4.0), "gamma": (0.4, 10.0)}
    # The inner rows end between two copies: the row is an inner one, with all its copies.
    n_inner = int(often[:20].sum()) - int(often[19]) + 1
    found = errors_of(many_X, many_codes, None, n_inner, judged_weight=often[:20].sum(), **options)
    expected = errors_of(X, codes, often.astype(float), 20, **options)
    np.testing.assert_array_equal(found, expected)
    assert (expected > 0).all()


@pytest.mark.parametrize("times", [2, 3, 10])
def test_no_row_is_judged_by_a_model_that_knows_its_copy(times):
    rng = np.random.default_rng(1)
    X, codes = rng.random((60, 3)), rng.integers(2, size=60)
    options = {"gamma": (1000.0,), "C": (100.0,), "n_inner": 60 * times}
    errors = errors_of(np.tile(X, (times, 1)), np.tile(codes, times), **options)
    assert errors[0, 0] > 0.3
    # Rows of equal features are left out together, also where their classes differ.
    both = errors_of(np.r_[X, X], np.r_[codes, 1 - codes], gamma=(1000.0,), C=(100.0,), n_inner=120)
    assert both[0, 0] == 0.5


def test_the_probability_of_a_label_counts_copies():
    X, codes = neighborhood_of(2)
    many_X, many_codes, often = repeated(X, codes)
    near = near_of(many_X, many_codes, n_inner=len(many_X), C=(2.0,), gamma=(0.4,))
    found = label_probability(fit_label(near, 1), X[4] + 0.1)
    mine = (codes == 1).astype(int)
    folds = assign_folds(mine, 3, SEED)
    values, peer = np.empty(len(X)), SVC(C=2.0, gamma=0.4, tol=1e-10)
    for fold in range(3):
        rest = folds != fold
        peer.fit(X[rest], mine[rest], often[rest])
        values[~rest] = peer.decision_function(X[~rest])
    a, b = _sigmoid_calibration(np.repeat(values, often), np.repeat(mine, often))
    value = peer.fit(X, mine, often).decision_function(X[4:5] + 0.1)[0]
    assert found == pytest.approx(1 / (1 + np.exp(a * value + b)), abs=1e-3)


@pytest.mark.parametrize("d", [5, 54, 300])
def test_equal_rows_of_two_classes_do_not_make_a_width_of_rounding_error(d):
    """Equal rows are at a distance of 0, also where it comes from expanded squares."""
    X = np.tile(np.random.default_rng(2).normal(size=(12, d)), (2, 1))
    codes = np.repeat([1, 3], 12)
    distances = pdist(X)
    assert np.percentile(distances, 1.0) == 0
    report = fit(X, codes, percentiles=(1.0,), C=(1.0,)).report
    smallest = distances[distances > 1e-6].min()
    assert report.gamma == pytest.approx(smallest**-2.0, rel=1e-4)


@pytest.mark.slow
def test_the_same_pairs_are_sampled_whether_candidates_are_judged_or_not(monkeypatch):
    """Folds put the rows in another order; the widths must not depend on it."""
    tiny_tiles(monkeypatch, MAX_PAIRS=120)
    X, codes = neighborhood_of(2, seed=7, m=40)
    squared = squareform(pdist(X)) ** 2
    assert len(sampled_strides(40, SEED)) == 3
    expected = width_gammas(squared, (60.0,), SEED)
    for costs in ((1.0,), (1.0, 2.0)):
        report = fit(X, codes, percentiles=(60.0,), C=costs).report
        assert report.gamma == pytest.approx(expected[0], rel=1e-5)
