"""Tasks that look at regions stay within what is planned for them."""

from dataclasses import replace

import numpy as np
import pytest
from peaks import assert_projected
from support import few

from daskls import MemoryPlanError
from daskls.memory import TaskSizes
from daskls.plan.bundles import Resources
from daskls.records import SolverSpec
from daskls.run.sample import Sample
from daskls.scaling.candidates import evaluate_candidate, learn_scale
from daskls.scaling.coding import find_bases
from daskls.scaling.grid import (
    WIDTHS,
    Trial,
    TrialGrid,
    check_race,
    check_regions,
    region_rows,
    rung_nbytes,
    trial_nbytes,
    tuning_cells,
)
from daskls.scaling.regions import RegionJob, _region_key
from daskls.scaling.splits import (
    SampleJob,
    draw_cells,
    draw_rows,
    held_out,
    plan_of_regions,
    plan_of_sample,
    race_rows,
    write_rows,
)
from daskls.solvers.squares.target_coding import ClassCoding
from daskls.store.artifact import write_artifact

# Rows of many even dimensions, which cells are not for, take the memory that is measured.
pytestmark = pytest.mark.filterwarnings("ignore::daskls.AdviceWarning")


SIZES = [(54, 2), (300, 2), (12, 26)]


@pytest.fixture
def job(shape, tmp_path):
    d, k = shape
    n = region_rows(d)
    rng = np.random.default_rng(0)
    X = rng.random((n, d), dtype="f4")
    codes = (X[:, 0] * k).astype("i4")
    columns = {"X": X, "codes": codes, "weights": np.ones(n), "numbers": np.arange(n)}
    job = RegionJob(
        str(tmp_path), "", None, "a", None, None, np.array([0]), n, 50, ClassCoding(k), 0
    )
    write_artifact(tmp_path, _region_key(job, 0), columns)
    return job


# Each shape, size of cells and ridge, with some of the others.
@pytest.mark.parametrize(
    ("shape", "cell_rows", "ridge"),
    few(
        [
            *(((54, 2), 2000, 1e-4), ((12, 26), 4000, 1e-4), ((300, 2), 4000, 1e-1)),
            *(((12, 26), 2000, 1e-1), ((300, 2), 1000, 1e-4), ((54, 2), 1000, 1e-1)),
        ]
    ),
)
def test_cells_that_choose_width_and_ridge(job, shape, cell_rows, ridge):
    d, k = shape
    grid = TrialGrid(WIDTHS[8:10], (ridge,))
    sheet = plan_of_regions(job, 1000, cell_rows).final
    call = 0, np.ones(d), grid.at((0, 0), "rbf"), sheet, grid, job
    given = region_rows(d), d, k if k > 2 else 1, cell_rows
    planned = trial_nbytes(*given, tuning_cells(cell_rows))
    assert_projected(lambda: evaluate_candidate(*call), planned, 4)


@pytest.mark.parametrize("shape", [SIZES[2], pytest.param(SIZES[1], marks=pytest.mark.slow)])
def test_slopes_and_held_out_errors(job, shape):
    d, k = shape
    planned = trial_nbytes(region_rows(d), d, k if k > 2 else 1, 1000)
    trial, grid = Trial("exponential", 1.0, 1e-4), TrialGrid()
    sheets = plan_of_regions(job, 1000, 1000)
    for task in (
        lambda: learn_scale(0, np.ones(d), trial, sheets.learning, job),
        lambda: evaluate_candidate(0, np.ones(d), trial, sheets.deciding, grid, job),
    ):
        assert_projected(task, planned, 4)


def test_what_no_task_could_look_at_is_refused():
    sizes = TaskSizes(5000, 8, 2, 2000, SolverSpec())
    check_regions(sizes, 100, 2000, Resources(1, 4 << 30))
    with pytest.raises(MemoryPlanError, match=r"on a region of 4000 rows x 5000 features"):
        check_regions(sizes, 100, 2000, Resources(1, 300 << 20))
    sizes, told = TaskSizes(1500, 8, 2, 2000, SolverSpec()), r"on 3500 rows x 1500 .*coding=.none"
    check_race([(2000, 1500)], 1500, sizes, Resources(1, 1 << 30))
    with pytest.raises(MemoryPlanError, match=f"Comparing candidates {told}"):
        check_race([(2000, 1500)], 1500, sizes, Resources(1, 150 << 20))


@pytest.mark.parametrize(("d", "k"), few(SIZES), ids=str)
def test_a_rung_of_a_race(d, k, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((8000, d), dtype="f4")
    codes = (X[:, 0] * k).astype("i4")
    drawn, held = draw_rows(len(X), *race_rows(len(X)), 0), held_out(len(X), 0)
    drawn = replace(drawn, cells=draw_cells(X, codes, 1000, 0, held, ClassCoding(k)))
    final, job = plan_of_sample(drawn, 4000).final, SampleJob(str(tmp_path), ClassCoding(k))
    (base,) = find_bases(X, ("none",), 0)
    write_rows(job, Sample(np.arange(len(X)), X, codes, np.ones(len(X)), 0), drawn, [base])
    planned = rung_nbytes([part.sizes for part in final.splits], d, k if k > 2 else 1)
    grid = TrialGrid.of(SolverSpec())
    for kernel in ("rbf", "laplacian"):
        start = replace(grid.of_kernel(kernel).start(kernel), ridge=1e-2)
        call = 0, np.ones(d), start, replace(final, most_trials=2), grid, job
        assert_projected(lambda call=call: evaluate_candidate(*call), planned, 4)
