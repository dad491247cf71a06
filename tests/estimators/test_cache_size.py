"""MiB of kernel values that a cell may hold: estimators, the plan, the command line."""

import re

import numpy as np
import pytest
from small import task_memory
from support import checkers, run_cli

from daskls import MemoryPlanError, ParameterError, RandomChunkSVC, StoreError, VoronoiSVC, load
from daskls.datasets import write
from daskls.memory import TaskSizes
from daskls.methods.cells.method import check_cells
from daskls.plan import Extent, Resources
from daskls.records import MIB, SolverSpec

X, Y = checkers(400)
PAPER = {"loss": "hinge", "kernel": "rbf", "feature_scale": None, "random_state": 0, "cv": 3}
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
    with pytest.raises(ParameterError, match=r"cache_size=1\.0 has no effect with loss='squared"):
        VoronoiSVC(cache_size=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="'cache_size' parameter"):
        VoronoiSVC(cache_size=0, **PAPER).fit(X, Y)


def test_a_plan_that_refuses_names_a_size_that_fits():
    rows = np.random.default_rng(0).random((2600, 2)).astype(np.float32)
    labels = (rows[:, 0] > 0.5).astype(int)
    params = {**PAPER, "C": 1.0, "gamma": 1.0, "cv": 2}
    with task_memory(40 * MIB):
        with pytest.raises(MemoryPlanError, match="give cache_size=") as caught:
            VoronoiSVC(2600, **params).fit(rows, labels)
        size = float(re.search(r"give cache_size=([\d.]+), or give each", str(caught.value))[1])
        VoronoiSVC(2600, cache_size=size, **params).fit(rows, labels)
        with pytest.raises(MemoryPlanError):
            VoronoiSVC(2600, cache_size=4 * size, **params).fit(rows, labels)


def test_cells_of_the_papers_largest_size_are_refused_with_the_number():
    def check(gib, cache_size=None):
        spec = SolverSpec(n_grid=(20, 20), search="full", cache_size=cache_size)
        sizes = TaskSizes(631, 4, 2, 100_000, spec)
        extent = Extent(sizes, 32_000_000, 100_000, 10_000)
        check_cells(extent, Resources(1, gib * 1024 * MIB))

    with pytest.raises(
        MemoryPlanError, match=r"100000 rows.* needs 77\.3 GiB .*give cache_size=9536\.7"
    ):
        check(16)
    # A quarter of K, 9.3 GiB, as the message says; or both matrices where there is the memory.
    check(16, 9536.7)
    check(128)
    with pytest.raises(MemoryPlanError, match=r"use 2048 MiB; lower cell_size to about \d+, or"):
        check(2)


def test_a_model_keeps_it_and_the_command_line_takes_it(tmp_path):
    write("checkerboard", tmp_path / "data.zarr", 300)
    fit = ["fit", tmp_path / "data.zarr", tmp_path / "model", "--loss", "hinge", "--kernel", "rbf"]
    run_cli(*fit, "--feature-scale", "none", "--cv", "2", "--C", "1", "--cache-size", "0.5")
    assert load(tmp_path / "model").get_params()["cache_size"] == 0.5
    plain = VoronoiSVC(200, store=tmp_path / "plain", **PAPER, **GIVEN).fit(X, Y)
    assert "cache_size" not in plain._reader.meta["spec"]
    with pytest.raises(StoreError, match=r"cache_size was None, is 0\.5"):
        plain.set_params(cache_size=0.5).fit(X, Y)
