"""``cv`` above the rows of a cell, of a neighborhood, of a class; data of one to three rows."""

import re

import dask.array as da
import numpy as np
import pytest
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


def test_probabilities_of_rows_too_few_to_hold_out():
    X = np.array([[0.0], [1.0]])
    with pytest.raises(DataError, match=r"none of the \d rows can be held out .* Fit on more rows"):
        KNNSVC(C=1.0, gamma=1.0, probability="sigmoid", random_state=0).fit(X, ["b", "a"])


SMALLEST = [name for name in ENTRIES if "NoiseFilter" not in name]


@pytest.mark.parametrize("name", SMALLEST)
@pytest.mark.parametrize("n_rows", [1, 3])
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
