"""What cells search, hold and choose by: n_grid, cache_size and scoring."""

import re

import naive
import numpy as np
import pytest
from small import task_memory
from support import PAPERS, checkers

from daskls import (
    MemoryPlanError,
    ParameterError,
    RandomChunkSVC,
    StoreError,
    VoronoiSVC,
    load,
)
from daskls.records import MIB

X, Y = checkers(400)
PAPER = {**PAPERS, "random_state": 0, "cv": 3}
# A value of each, as it is kept, and what is said of a fit that was without.
OPTIONS = {
    "n_grid": ([3, 5], r"n_grid was None, is \[3, 5\]"),
    "cache_size": (0.5, r"cache_size was None, is 0\.5"),
    "scoring": ("tpr_x_tnr", "scoring was None, is 'tpr_x_tnr'"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_model_keeps_it_and_another_value_is_another_fit(name, tmp_path):
    value, told = OPTIONS[name]
    VoronoiSVC(200, store=tmp_path / "model", **{name: value}, **PAPER).fit(X, Y)
    assert load(tmp_path / "model").get_params()[name] == value
    plain = VoronoiSVC(200, store=tmp_path / "plain", **PAPER).fit(X, Y)
    with pytest.raises(StoreError, match=told):
        plain.set_params(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("name", OPTIONS)
def test_it_has_no_effect_on_squares(name):
    with pytest.raises(ParameterError, match=f"{name}=.* has no effect with loss='squared_error'"):
        VoronoiSVC(**{name: OPTIONS[name][0]}).fit(X, Y)


# Values of a grid

OWN = {VoronoiSVC: {"cell_size": 120}, RandomChunkSVC: {"chunk_size": 120}}


@pytest.mark.parametrize("kind", OWN)
def test_each_cell_searches_a_grid_of_so_many_values(kind):
    model = kind(n_grid=(3, 4), search="full", **OWN[kind], **PAPER).fit(X, Y)
    report = model.fit_report_
    assert (report.n_tried == 12).all()
    # Of these a cell's choice is one, scaled by its own rows and radius.
    for row in report:
        gammas, costs, _ = naive.grid_values(row.radius, row.n_rows, 2, 3, (3, 4))
        assert np.isclose(gammas, row.gamma, rtol=1e-9).sum() == 1
        assert np.isclose(costs, row.C, rtol=1e-9).sum() == 1


def test_one_number_stands_for_both_axes_and_ten_for_none():
    def values(n_grid):
        return VoronoiSVC(n_grid=n_grid, **OWN[VoronoiSVC], **PAPER).fit(X, Y).decision_function(X)

    np.testing.assert_array_equal(values(10), values(None))
    np.testing.assert_array_equal(values(4), values([4, 4]))
    assert (values(4) != values(None)).any()


@pytest.mark.parametrize("wrong", [[], [3, 4, 5], 20.5, [20, 1], True, "20", [[3, 4]], [3, None]])
def test_what_is_no_shape_is_refused(wrong):
    # Of a number out of range scikit-learn says so.
    with pytest.raises(ValueError, match=r"n_grid.*(at least 2|range \[2, inf\)|flat list)"):
        VoronoiSVC(n_grid=wrong, **OWN[VoronoiSVC], **PAPER).fit(X, Y)


def test_a_grid_that_nobody_searches_is_refused():
    given = {**OWN[VoronoiSVC], **PAPER, "n_grid": 5, "C": 1.0}
    for params in ({"gamma": 1.0}, {"kernel": "linear"}):
        with pytest.raises(ParameterError, match=r"n_grid=5 has no effect: C is given.*Leave"):
            VoronoiSVC(**{**given, **params}).fit(X, Y)
    assert (VoronoiSVC(search="full", **given).fit(X, Y).fit_report_.n_tried == 5).all()


# Memory of kernel values

GIVEN = {"C": [1.0, 30.0], "gamma": [5.0, 50.0], "tol": 1e-6}


@pytest.mark.parametrize("kind", [VoronoiSVC, RandomChunkSVC])
def test_decisions_are_those_of_whole_matrices(kind):
    whole = kind(200, **PAPER, **GIVEN).fit(X, Y).decision_function(X)
    some = kind(200, cache_size=0.01, **PAPER, **GIVEN).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(some, whole, atol=5e-3)
    # Room for both matrices of every cell: the same solver, and the same bits.
    roomy = kind(200, cache_size=1.0, **PAPER, **GIVEN).fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(roomy, whole)
    assert (some != whole).any()


def test_what_holds_matrices_whole_refuses_it():
    with pytest.raises(ParameterError, match=r"cache_size=1\.0 is for SVMs without offset; with"):
        VoronoiSVC(cache_size=1.0, fit_intercept=True, **PAPER).fit(X, Y)
    with pytest.raises(ValueError, match="'cache_size' parameter"):
        VoronoiSVC(cache_size=0, **PAPER).fit(X, Y)


def test_a_plan_that_refuses_names_a_size_that_fits():
    rows = np.random.default_rng(0).random((2600, 2)).astype(np.float32)
    labels = (rows[:, 0] > 0.5).astype(int)
    params = {**PAPER, "C": 1.0, "gamma": 1.0, "cv": 2}
    with task_memory(48 * MIB):
        with pytest.raises(MemoryPlanError, match="give cache_size=") as caught:
            VoronoiSVC(2600, **params).fit(rows, labels)
        size = float(re.search(r"give cache_size=([\d.]+), or give each", str(caught.value))[1])
        VoronoiSVC(2600, cache_size=size, **params).fit(rows, labels)
        with pytest.raises(MemoryPlanError):
            VoronoiSVC(2600, cache_size=4 * size, **params).fit(rows, labels)


# Rates of a rare class


def rare(n, seed):
    """Return rows of which an eighth are positive, nowhere likelier than not."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2)).astype(np.float32)
    return X, (rng.random(n) < np.where(X[:, 0] > 0.7, 0.4, 0.01)).astype(int)


RARE = rare(600, 0)


def product(model, X, y):
    predicted = model.predict(X)
    return np.prod([(predicted[y == c] == c).mean() for c in (0, 1)])


@pytest.mark.parametrize("kind", [VoronoiSVC, RandomChunkSVC])
def test_cells_that_choose_by_recalls_find_the_rare_class(kind):
    new, labels = rare(2000, 1)
    size = {"cell_size" if kind is VoronoiSVC else "chunk_size": 300}
    plain = kind(**PAPER, **size).fit(*RARE)
    scored = kind(scoring="tpr_x_tnr", **PAPER, **size).fit(*RARE)
    assert product(scored, new, labels) > product(plain, new, labels) + 0.05
    assert (plain.fit_report_.validation_error < 0.35).all()
    assert (scored.fit_report_.validation_error[scored.fit_report_.n_classes > 1] > 0.35).all()


def test_a_cell_of_one_class_has_nothing_to_choose():
    X, y = RARE
    far = np.r_[X, X + 100]
    labels = np.r_[y, np.zeros(len(X), int)]
    model = VoronoiSVC(300, scoring="tpr_x_tnr", **PAPER).fit(far, labels)
    alone = model.fit_report_[model.fit_report_.n_classes == 1]
    assert len(alone) > 0
    assert (alone.n_trained == 0).all()
    assert (model.predict(X + 100) == 0).all()


def test_what_is_no_scoring_is_refused():
    with pytest.raises(ValueError, match=r"'scoring' parameter .*'tpr_x_tnr'"):
        VoronoiSVC(scoring="roc_auc", **PAPER).fit(X, Y)
