"""``cv`` above the rows of a cell, of a neighborhood, of a class; data of one to three rows."""

import re
import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.svm import SVC
from small import ENTRIES
from support import checkers, small_svc

import daskls
from daskls import KNNSVC, AdviceWarning, FalkSVC, LandmarkSVC, RandomChunkSVC
from daskls.errors import DataError, ParameterError

NO_GRID = {"C": 10.0, "gamma": 20.0, "random_state": 0}


def small_chunks(**params):
    return RandomChunkSVC(**{"chunk_size": 40, "cv": 2, **NO_GRID, **params})


@pytest.mark.parametrize("remedy", ["raise cell_size", "raise chunk_size"])
def test_cells_of_fewer_rows_than_folds_are_trained_and_counted(remedy):
    X, y = checkers(400, noise=0.0)
    model = small_svc(cell_size=40, cv=41) if "cell" in remedy else small_chunks(cv=41)
    with pytest.warns(UserWarning, match="fewer rows than cv=41") as caught:
        report = model.fit(X, y).fit_report_
    trained = report[report.n_classes > 1]
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith(f"{len(trained)} of {len(report)} cells ")
    assert remedy in message
    # One solve a row: each is held out once.
    assert (trained.n_trained >= trained.n_rows).all()
    assert np.isfinite(trained.validation_error).all()
    assert model.score(X, y) > 0.85


def test_where_folds_are_dealt_in_no_cell_or_nothing_is_chosen_cv_is_not_looked_at():
    # Cells of one class, and of equal rows, need no folds.
    X = np.repeat([[0.0], [1.0], [2.0]], 30, axis=0)
    y = np.repeat([0, 1, 0], 30)
    X_thin, y_thin = checkers(300, noise=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (small_svc(cell_size=30, cv=30).fit(X, y).predict(X) == y).all()
        FalkSVC(20, C=1.0, gamma=20.0, cv=80, random_state=0).fit(X, y)
        LandmarkSVC(4, n_landmarks=1, C=1.0, cv=80, random_state=0).fit(X, y)
        # A class that is thin in one cell alone.
        small_svc(cell_size=40, cv=10).fit(X_thin, np.where(X_thin[:, 0] < 0.05, 2, y_thin))


def each_method(cv):
    """Return estimators that cross-validate."""
    falk = {"n_neighbors": 40, "C": [1.0, 10.0], "gamma": 20.0, "cv": cv, "random_state": 0}
    return [
        small_svc(cv=cv),
        small_chunks(chunk_size=400, cv=cv),
        *(FalkSVC(selection=selection, **falk) for selection in ("local", "each")),
        LandmarkSVC(4, n_landmarks=2, C=[0.1, 1.0], cv=cv, random_state=0),
    ]


@pytest.mark.parametrize("model", each_method(5), ids=repr)
def test_a_class_of_fewer_rows_than_folds_is_named(model):
    X, y = checkers(150, noise=0.0)
    y[:] = np.minimum(y, 1)
    y[[3, 60, 90]] = 7
    expected = r"^1 of 3 classes have fewer rows than cv=5, 7 with 3 the fewest: .* Lower cv, merge"
    with pytest.warns(AdviceWarning, match=expected) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert 7 in model.classes_


@pytest.mark.parametrize("model", each_method(80), ids=repr)
def test_folds_that_no_class_fills_are_refused(model):
    X, y = checkers(120, noise=0.0)
    assert 40 < np.bincount(y).max() < 80
    expected = "cv=80 cannot be greater than the number of members in each class"
    with pytest.raises(ParameterError, match=expected):
        model.fit(X, y)


@pytest.mark.parametrize("selection", ["local", "each"])
def test_neighborhoods_of_fewer_inner_rows_than_folds_are_counted(selection):
    X, y = checkers(100, noise=0.0)
    model = FalkSVC(20, n_assigned=4, selection=selection, C=[1.0, 10.0], random_state=0)
    with pytest.warns(UserWarning, match="have 4 inner rows, fewer than cv=5") as caught:
        model.fit(X, y)
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith("10 " if selection == "local" else f"{model.n_cells_} ")


@pytest.mark.parametrize("labels", [["b", "a"], ["a", "b", "b"], ["a", "b", "a"], ["b", "a", "c"]])
@pytest.mark.parametrize("given", [{}, {"C": [10.0, 100.0]}, {"C": [10.0, 100.0], "gamma": [4, 8]}])
def test_a_choice_on_two_or_three_rows(labels, given):
    X = np.linspace(0, 1, len(labels))[:, None]
    model = KNNSVC(random_state=0, **given).fit(X, labels)
    # A default C may be too small for three rows; every C that is given tells them apart.
    if given or len(labels) == 2:
        assert model.predict(X).tolist() == SVC(C=10, gamma=4).fit(X, labels).predict(X).tolist()
        assert model.predict(X).tolist() == labels
    else:
        assert set(model.predict(X)) <= set(labels)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("labels", [["b", "a"], [1, 0]])
def test_probabilities_of_rows_too_few_to_hold_out(labels, kind):
    X = np.linspace(0, 1, len(labels))[:, None]
    with pytest.raises(DataError, match=r"none of the \d rows can be held out .* Fit on more rows"):
        KNNSVC(C=1.0, gamma=1.0, probability=kind, random_state=0).fit(X, labels)


SMALLEST = [name for name in ENTRIES if "NoiseFilter" not in name]


@pytest.mark.parametrize("name", SMALLEST)
@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")
def test_the_fewest_rows_are_answered_or_refused(name, n_rows):
    X, y = np.linspace(0, 1, n_rows)[:, None], np.arange(n_rows) % 2
    model = getattr(daskls, name)(random_state=0)
    try:
        model.fit(da.from_array(X, chunks=1), da.from_array(y, chunks=1))
    except (DataError, ParameterError) as error:
        refusal = str(error)
    else:
        assert n_rows > 1
        assert np.isfinite(model.predict(X)).all()
        return
    # What, and the limit or the remedy.
    assert re.search(r"\brows?\b|sample\(s\)", refusal)
    assert re.search(r"minimum of 2|at least|Lower|fit on more", refusal)


def test_cells_that_learn_nothing_leave_the_others_alone():
    # A tol that every start satisfies: no alpha moves, so no cell has a support row.
    X, _ = checkers(400)
    y = np.random.default_rng(1).random(len(X)) < 0.6
    flat = small_svc(C=1000.0, gamma=0.01, tol=10.0).fit(X, y)
    assert flat.fit_report_.n_support.sum() == 0
