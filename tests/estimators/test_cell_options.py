"""What cells search, hold and choose by: n_grid, cache_size and scoring."""

import re

import naive
import numpy as np
import pytest
from small import task_memory
from support import PAPERS, checkers

from daskls import (
    MemoryPlanError,
    RandomChunkSVC,
    VoronoiSVC,
)
from daskls.records import MIB

X, Y = checkers(400)
PAPER = {**PAPERS, "random_state": 0, "cv": 3}
OPTIONS = {"n_grid": [3, 5], "cache_size": 0.5, "scoring": "tpr_x_tnr"}
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


NO_SHAPE = r"n_grid.*(at least 2|range \[2, inf\)|flat list)"
REFUSED = [
    *(({"n_grid": wrong}, NO_SHAPE) for wrong in ([], [3, 4, 5], [20, 1], True, "20", [[3, 4]])),
    *(({"n_grid": 5, "C": 1.0, **own}, r"n_grid=5 has no effect: C is given.*Leave")
      for own in ({"gamma": 1.0}, {"kernel": "linear"})),
    *(({name: value, "loss": "squared_error"}, f"{name}=.* has no effect with loss='squared_error'")
      for name, value in OPTIONS.items()),
    ({"cache_size": 1.0, "fit_intercept": True}, r"cache_size=1\.0 is for SVMs without offset"),
    ({"cache_size": 0}, "'cache_size' parameter"),
    ({"scoring": "roc_auc"}, r"'scoring' parameter .*'tpr_x_tnr'"),
]  # fmt: skip


@pytest.mark.parametrize(("params", "message"), REFUSED, ids=str)
def test_what_cannot_be_is_one_error(params, message):
    own = {} if "loss" in params else PAPER
    with pytest.raises(ValueError, match=message):
        VoronoiSVC(**{**own, **params}).fit(X, Y)


def test_a_given_C_is_searched_with_a_grid_of_widths():
    model = VoronoiSVC(120, search="full", n_grid=5, C=1.0, **PAPER).fit(X, Y)
    assert (model.fit_report_.n_tried == 5).all()


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
