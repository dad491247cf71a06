"""Advice of a fit: each names what, how much and what to do, once, and only where there is need."""

import warnings

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.base import clone
from support import checkers, few, small_svc

from daskls import (
    KNNSVC,
    AdviceWarning,
    FalkSVC,
    LocalSamplingSVC,
    RandomChunkSVC,
    VoronoiSVC,
    VoronoiSVR,
)
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


EDGES = {
    "gamma larger": (
        {"gamma": [0.01, 0.1, 1.0]},
        "largest gamma that was given, 1:",
        "1, 10, 100]",
    ),
    "C smaller": ({"C": [1e3, 1e4, 1e5]}, "smallest C that was given, 1000:", "C=[100, 1000, "),
}


@pytest.mark.parametrize("which", EDGES)
def test_many_cells_on_an_edge_say_which_way_to_widen(which):
    given, found, remedy = EDGES[which]
    model = small_svc(cell_size=100, cv=3, **given)
    # Of noisy labels large C are the worst.
    rows, labels = checkers(900, noise=0.2 if which == "C smaller" else 0.05)
    (message,) = told_by(model, rows, labels)
    report = model.fit_report_
    (axis,) = given
    end = max(given[axis]) if "larger" in which else min(given[axis])
    n = int((report[axis] == end).sum())
    assert n >= EDGE_SHARE * len(report)
    assert message.startswith(
        f"{n} of {len(report)} cells that had a choice of C and gamma took the {found}"
    )
    assert remedy in message
    assert ("Give larger ones" if "larger" in which else "Give smaller and larger") in message


SELECTED = {
    "FalkSVC, local": FalkSVC(40, selection="local", random_state=0),
    "LocalSamplingSVC": LocalSamplingSVC(0.3, random_state=0),
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
    params["loss"] = "squared_error"
    (message,) = told_by(VoronoiSVC(cell_size=150, random_state=0, **params), rows, labels)
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
