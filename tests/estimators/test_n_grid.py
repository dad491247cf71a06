"""How many values a cell's own grid has: what is trained, what is refused, what is told."""

import json

import naive
import numpy as np
import pytest
from support import checkers, run_cli

from daskls import ParameterError, RandomChunkSVC, VoronoiSVC, load
from daskls.datasets import write
from daskls.memory import TaskSizes
from daskls.plotting import GridDisplay
from daskls.records import SolverSpec
from daskls.solvers.hinge.solver import HINGE

X, Y = checkers(240)
PAPER = {"loss": "hinge", "kernel": "rbf", "random_state": 0, "cv": 3}
OWN = {VoronoiSVC: {"cell_size": 120, "feature_scale": None}, RandomChunkSVC: {"chunk_size": 120}}


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


def test_a_model_keeps_its_grid(tmp_path):
    model = VoronoiSVC(n_grid=(3, 5), store=tmp_path / "model", **OWN[VoronoiSVC], **PAPER)
    model.fit(X, Y)
    again = load(tmp_path / "model")
    assert list(again.get_params()["n_grid"]) == [3, 5]
    assert GridDisplay.from_estimator(again).counts.shape == (5, 3)
    # Other values are another fit; the usual ones leave stores as they were.
    with pytest.raises(Exception, match=r"n_grid was \[3, 5\], is \[4, 4\]"):
        model.set_params(n_grid=4).fit(X, Y)
    plain = VoronoiSVC(store=tmp_path / "plain", **OWN[VoronoiSVC], **PAPER).fit(X, Y)
    assert "n_grid" not in plain._reader.meta["spec"]


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
    with pytest.raises(ParameterError, match=r"n_grid=5 has no effect with loss='squared_error'"):
        VoronoiSVC(n_grid=5).fit(X, Y)
    assert (VoronoiSVC(search="full", **given).fit(X, Y).fit_report_.n_tried == 5).all()


def test_more_values_of_C_take_more_memory():
    def nbytes(n_grid):
        spec = SolverSpec(search="full", n_grid=n_grid)
        return HINGE.nbytes(TaskSizes(631, 4, 2, 5000, spec), 5000)

    # A solution a fold, a C and a row in float32, and its errors.
    assert nbytes((20, 20)) - nbytes(None) >= 10 * 5 * 5000 * 4
    assert nbytes((10, 20)) == nbytes(None)


def test_the_command_line_takes_one_or_two(tmp_path):
    write("checkerboard", tmp_path / "data.zarr", 300)
    fit = ["fit", tmp_path / "data.zarr", tmp_path / "model", "--loss", "hinge", "--search", "full"]
    run_cli(*fit, "--kernel", "rbf", "--feature-scale", "none", "--cv", "2", "--n-grid", "3,2")
    assert (load(tmp_path / "model").fit_report_.n_tried == 6).all()
    refused = run_cli(*fit, "--n-grid", "1", code=2)
    assert "--n-grid holds 1, but must be at least 2" in refused.stderr


def test_parameters_are_saved_as_json(tmp_path):
    VoronoiSVC(n_grid=(3, 2), **OWN[VoronoiSVC], **PAPER).fit(X, Y).save(tmp_path / "model")
    meta = load(tmp_path / "model")._reader.meta
    assert json.loads(json.dumps(meta["spec"]))["n_grid"] == [3, 2]
