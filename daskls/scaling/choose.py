"""Kernel, width and ridge for all cells: the least squared error of leave-one-out values.

From a coarse grid to the nearest better neighbor, until there is none: a valley in logarithms of
width and ridge, on all sets that it was looked at.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from daskls.records import Float64
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.scaling.grid import Trial, TrialGrid
from daskls.scaling.plan import LOOK_ROWS
from daskls.scaling.regions import RegionJob
from daskls.scaling.solve import TrialCell
from daskls.scaling.steps import Steps, sum_in_order
from daskls.scaling.trial import cells_of, draw_cells

__all__ = ["Chosen", "choose", "choose_coarsely", "region_errors"]

# Cells whose errors decide. By two of them the error of Covertype moved by 0.3 points; of larger
# cells as many as have the rows of eight of 2000, as a solve takes time by the cube of its rows.
N_ERROR_CELLS, N_COARSE_CELLS, ERROR_ROWS = 8, 3, 16_000
ERROR_DRAW = 200


@dataclass
class Chosen:
    """The best trial, its errors, and all that were looked at."""

    trial: Trial
    squared_error: float
    error: float
    n_tried: int = 0


@undisturbed
def region_errors(
    region: int,
    n_cells: int,
    factors: Float64,
    trials: Sequence[Trial],
    cell_size: int,
    job: RegionJob,
) -> Float64:
    """Return leave-one-out errors of trials: squared, wrong rows, and weights; (n_trials, 3)."""
    sums = np.zeros((len(trials), 3))
    with one_blas_thread():
        for A, rows in cells_of(region, factors, job, n_cells, cell_size, ERROR_DRAW):
            sums += TrialCell(A, rows.targets, rows.weights, job.aim).errors(trials)
    return sums


class Errors:
    """Errors of trials in one scale, each computed once."""

    def __init__(self, steps: Steps, factors: Float64, n_cells: int, cell_size: int) -> None:
        self._steps, self._factors = steps, factors
        self._n_cells, self._cell_size = n_cells, cell_size
        self.found: dict[Trial, tuple[float, float]] = {}

    def look(self, trials: Iterable[Trial]) -> None:
        """Find the errors of trials that are not known yet, all at once."""
        new = [trial for trial in dict.fromkeys(trials) if trial not in self.found]
        if not new:
            return
        drawn = draw_cells(self._steps.job, self._n_cells, ERROR_DRAW)
        calls = [(region, n, self._factors, new, self._cell_size) for region, n in drawn.items()]
        sums = self._steps.run(region_errors, calls, _total)["sums"]
        for trial, (squared, wrong, weight) in zip(new, sums.tolist(), strict=True):
            # Cells of one class alone say nothing: every trial is as good.
            weight = weight or 1.0
            self.found[trial] = squared / weight, wrong / weight

    def best(self) -> Chosen:
        """Return the trial of the least squared error; of equal ones the first."""
        trial = min(self.found, key=lambda own: self.found[own][0])
        return Chosen(trial, *self.found[trial], len(self.found))


def _total(parts: Sequence[Float64]) -> dict[str, Float64]:
    """Return the sum over regions, in their order: its bits depend on it."""
    return {"sums": sum_in_order(parts)}


def choose_coarsely(
    steps: Steps, factors: Float64, kernel: str, grid: TrialGrid, cell_size: int = LOOK_ROWS
) -> Chosen:
    """Return the best of a coarse grid, by few cells: where to begin."""
    errors = Errors(steps, factors, N_COARSE_CELLS, cell_size)
    errors.look(grid.of_kernel(kernel).coarse(kernel))
    return errors.best()


def choose(
    steps: Steps, factors: Float64, start: Trial, grid: TrialGrid, cell_size: int = LOOK_ROWS
) -> Chosen:
    """Return the best trial that is found from a start, by neighbors two places away, then one."""
    grid = grid.of_kernel(start.kernel)
    errors = Errors(steps, factors, min(N_ERROR_CELLS, ERROR_ROWS // cell_size), cell_size)
    errors.look([start])
    place, reach = start, 2
    while reach:
        errors.look(_neighbors(place, reach, grid))
        best = errors.best().trial
        # At once where nothing better is farther away; a new best place is looked around at.
        reach -= best == place
        place = best
    return errors.best()


def _neighbors(trial: Trial, reach: int, grid: TrialGrid) -> list[Trial]:
    """Return the trials so many places beside one, on the grid."""
    width, ridge = grid.widths.index(trial.width), grid.ridges.index(trial.ridge)
    widths = [width + step for step in (-reach, reach) if 0 <= width + step < len(grid.widths)]
    ridges = [ridge + step for step in (-reach, reach) if 0 <= ridge + step < len(grid.ridges)]
    return [replace(trial, width=grid.widths[i]) for i in widths] + [
        replace(trial, ridge=grid.ridges[i]) for i in ridges
    ]
