"""Advice of a fit, once and only where there is need; folds and data of few rows."""

import re
import warnings

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import clone
from sklearn.svm import SVC
from small import ENTRIES
from support import PAPERS, checkers, few, small_svc

import daskls
from daskls import KNNSVC, AdviceWarning, FalkSVC, LandmarkSVC, RandomChunkSVC, VoronoiSVR
from daskls.errors import DataError, ParameterError
from daskls.estimators.advice import EDGE_SHARE, ONE_CLASS_SHARE
from daskls.plan.bundles import Resources
from daskls.run.blocks import BlockRows
from daskls.run.scan import warn_of_chunks

X, Y = checkers(900, noise=0.05)


def told_by(model, X=X, y=Y):
    """Return the warnings of a fit: of the category, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(issubclass(warning.category, AdviceWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


EDGES = [
    ({"gamma": [0.01, 0.1, 1.0]}, 0.05, "largest gamma that was given, 1:", "larger ones", "100]"),
    # Of noisy labels large C are the worst.
    ({"C": [1e3, 1e4, 1e5]}, 0.2, "smallest C that was given, 1000:", "smaller and", "C=[100, 10"),
]


@pytest.mark.parametrize(("given", "noise", "found", "how", "remedy"), EDGES)
def test_many_cells_on_an_edge_say_which_way_to_widen(given, noise, found, how, remedy):
    model = small_svc(cell_size=100, cv=3, **given)
    (message,) = told_by(model, *checkers(900, noise=noise))
    ((axis, values),), report = given.items(), model.fit_report_
    n = int((report[axis] == (values[-1] if "largest" in found else values[0])).sum())
    assert n >= EDGE_SHARE * len(report)
    assert message.startswith(
        f"{n} of {len(report)} cells that had a choice of C and gamma took the {found}"
    )
    assert remedy in message
    assert f"Give {how}" in message


SELECTED = {
    "FalkSVC, local": FalkSVC(40, selection="local", random_state=0),
    "LocalSamplingSVC": daskls.LocalSamplingSVC(0.3, random_state=0),
    "KNNSVC": KNNSVC(40, random_state=0),
}


@pytest.mark.parametrize("name", few(SELECTED, 2))
def test_one_choice_at_an_end_of_what_was_given_says_so(name):
    model = clone(SELECTED[name]).set_params(C=1.0, gamma=[0.1, 1.0, 10.0])
    (message,) = told_by(model)
    assert model.selected_["gamma"] == 10.0
    assert message.startswith("The one choice for all ")
    assert "took the largest gamma that was given, 10:" in message
    assert "gamma=[0.1, 1, 10, 100, 1000]" in message


def test_the_own_grid_of_cells_names_what_to_change():
    # No kernel is narrow enough for the feature that matters.
    rows = np.random.default_rng(0).random((900, 2)) * [1.0, 1e-3]
    model = daskls.VoronoiSVC(cell_size=100, cv=3, random_state=0, **PAPERS)
    told = told_by(model, rows, (rows[:, 1] > 5e-4).astype(int))
    (message,) = [text for text in told if "of their own grid" in text]
    assert re.match(r"\d of \d+ cells .* took the largest C of their own grid", message)
    assert 'feature_scale="spread"' in message


def one_sided(n_cells):
    """Return rows in cells of 100, all but a few of them of one class."""
    rows = np.linspace(0, 1, 100 * n_cells)[:, None]
    labels = np.zeros(len(rows), int)
    labels[:60] = np.arange(60) % 2
    return rows, labels


NOISY = checkers(900, noise=0.2)
# Nearly always 0, as pixels at the margin: a small spread, but no unit of its own.
RARE = np.where(np.arange(len(X)) % 450 == 7, 1e-2, 0.0)
ROWS_16, LABELS_16 = one_sided(16)
QUIET = {
    "inside the grid": (small_svc(cell_size=150, cv=3, gamma=[0.1, 20.0, 4000.0]), *NOISY),
    # One row in twenty is of the other class, anywhere: nothing is better than the majority.
    "a tie in the corner": (
        small_svc(cell_size=100, cv=3, C=[0.01, 0.1, 1.0], gamma=[0.1, 1.0, 10.0]),
        X,
        (np.random.default_rng(3).random(len(X)) < 0.05).astype(int),
    ),
    "a rare feature": (small_svc(), np.c_[X, RARE], Y),
    "half of the cells on an edge": (small_svc(cv=3, C=[30.0, 300.0, 3000.0]), X, Y),
    "some cells of one class": (small_svc(), ROWS_16, np.r_[LABELS_16[:800], np.arange(800) % 2]),
    "few labels": (small_svc(cell_size=900, cv=5, loss="squared_error"), X, np.arange(900) // 45),
}


@pytest.mark.always
@pytest.mark.parametrize("case", QUIET)
def test_where_there_is_no_need_nothing_is_said(case):
    assert told_by(*QUIET[case]) == []


def test_units_far_apart_are_told_at_the_line_of_fit():
    with pytest.warns(
        AdviceWarning, match=r"feature [01] is 1e\+05 times that of feature 2, "
    ) as told:
        small_svc().fit(np.c_[X, 1e-5 * X[:, 0]], Y)
    assert 'Pass feature_scale="learned" or "spread"' in str(told[0].message)
    assert [own.filename for own in told] == [__file__]


def test_cells_of_one_class_say_how_many():
    rows, labels = one_sided(8)
    model = small_svc(cell_size=100)
    (message,) = told_by(model, rows, labels)
    n = int((model.fit_report_.n_classes == 1).sum())
    assert n / model.n_cells_ >= ONE_CLASS_SHARE
    share = model.fit_report_.n_rows[model.fit_report_.n_classes == 1].sum() / len(rows)
    assert message.startswith(f"{n} of {model.n_cells_} cells ({share:.0%} of the rows)")
    assert f"Raise cell_size above {model.fit_report_.n_rows.max()}" in message


def test_cells_that_do_not_shrink_are_told():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1200, 90)).astype(np.float32)
    labels = (rows[:, :20].sum(axis=1) > 0).astype(int)
    params = {"kernel": "rbf", "feature_scale": None, "C": 1.0, "gamma": 0.01}
    params |= {"loss": "squared_error"}
    (message,) = told_by(daskls.VoronoiSVC(cell_size=150, random_state=0, **params), rows, labels)
    assert message.startswith("Within the 8 cells, 9")
    assert "dimensions" in message
    assert message.endswith(
        'Let a scale be learned (feature_scale="learned"), raise cell_size, or take RandomChunkSVC.'
    )
    # Chunks at random have no place in space.
    chunked = RandomChunkSVC(chunk_size=150, random_state=0, **params)
    assert told_by(chunked, rows, labels) == []
    (message,) = told_by(VoronoiSVR(150, random_state=0, **params), rows, rows[:, 0])
    assert message.endswith("or take RandomChunkSVR.")


@pytest.mark.slow
def test_small_chunks_say_how_many_and_how_large_they_should_be(tmp_path):
    rows, labels = checkers(1000)
    zarr.create_array(tmp_path / "X", data=rows, chunks=(1, 2))
    for given in (da.from_array(rows, chunks=(1, 2)), tmp_path / "X"):
        (message,) = told_by(small_svc(), given, labels)
        assert message.startswith("X lies in 1,000 chunks of 0.0 KiB on average")
        assert "chunks of about 1,048,576 rows (16 MiB)" in message
    assert told_by(small_svc(), da.from_array(rows, chunks=(10, 2)), labels) == []


def test_labels_that_are_numbers_are_told():
    labels = np.arange(900) // 3
    model = small_svc(cell_size=900, cv=5, loss="squared_error")
    (message,) = told_by(model, X, da.from_array(labels, chunks=100))
    assert message.startswith("y holds 300 different labels in 900 rows, 3.0 rows per class")
    assert "VoronoiSVR" in message


def test_large_chunks_say_what_they_take():
    rows = BlockRows(da.ones((100, 2)), da.ones((100, 1)), source_nbytes=300 << 20)
    with pytest.warns(AdviceWarning, match=r"300 MiB of the 1000 MiB .* about 1,048,576 rows"):
        warn_of_chunks(rows, Resources(2, 1000 << 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_chunks(rows, Resources(2, 2000 << 20))


def small_chunks(**params):
    given = {"chunk_size": 40, "C": 10.0, "gamma": 20.0, "random_state": 0}
    return RandomChunkSVC(**{**given, **params})


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


@pytest.mark.parametrize("which", range(5))
def test_a_class_of_fewer_rows_than_folds_is_named_and_of_too_few_refused(which):
    X, y = checkers(150, noise=0.0)
    expected = "cv=80 cannot be greater than the number of members in each class"
    assert 40 < np.bincount(y[:120]).max() < 80
    with pytest.raises(ParameterError, match=expected):
        each_method(80)[which].fit(X[:120], y[:120])
    y[:] = np.minimum(y, 1)
    y[[3, 60, 90]] = 7
    expected = r"^1 of 3 classes have fewer rows than cv=5, 7 with 3 the fewest: .* Lower cv, merge"
    with pytest.warns(AdviceWarning, match=expected) as caught:
        model = each_method(5)[which].fit(X, y)
    assert len(caught) == 1
    assert 7 in model.classes_


@pytest.mark.parametrize("selection", ["local", "each"])
def test_neighborhoods_of_fewer_inner_rows_than_folds_are_counted(selection):
    X, y = checkers(100, noise=0.0)
    model = FalkSVC(20, n_assigned=4, selection=selection, C=[1.0, 10.0], random_state=0)
    with pytest.warns(UserWarning, match="have 4 inner rows, fewer than cv=5") as caught:
        model.fit(X, y)
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith("10 " if selection == "local" else f"{model.n_cells_} ")


@pytest.mark.always
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
