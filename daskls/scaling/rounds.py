"""Choices on regions: width and ridge, the comparison of scales, and scales learned in rounds.

Width and ridge have the least leave-one-out squared error, found from neighbor to neighbor: on all
data sets examined it is a single valley in their logarithms. Scales are compared on held-out rows:
leave-one-out errors change by a percentage point because the cells change.

A learned scale descends along the slopes of the leave-one-out error by the factors of features.
Source: Chapelle, Vapnik, Bousquet, Mukherjee, Choosing multiple parameters for support vector
machines, Machine Learning 2002. Differences: least squares, whose leave-one-out error is exact; few
rounds, of which the best counts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from daskls.blas import one_blas_thread
from daskls.partition.tree import route_rows
from daskls.records import Float32, Float64, Targets
from daskls.scaling.grid import TRIAL_ROWS, Steps, Trial, TrialCell, TrialGrid
from daskls.scaling.paired import RowErrors
from daskls.scaling.regions import (
    RegionJob,
    RegionRows,
    cells_of,
    cut_rows,
    draw_cells,
    in_scale,
    own_center,
    read_region,
)
from daskls.solvers.squares.aims import Aim

# Cells whose errors decide, and those of the coarse grid. With two, the error on Covertype varied
# by 0.3 percentage points. Larger cells are fewer, with at most this many rows in all: the time of
# a solve is cubic in its rows.
N_ERROR_CELLS, N_COARSE_CELLS, ERROR_ROWS = 8, 3, 16_000
ERROR_DRAW = 200
# Errors of nearby held-out rows are correlated, so that a cluster of rows counts as one
# observation. Its most rows, and the fewest where a region has few rows; and the clusters that a
# region should have.
CLUSTER_ROWS, LEAST_CLUSTER_ROWS, REGION_CLUSTERS = 50, 5, 20
# Most features by which rows are clustered.
CLUSTER_FEATURES = 128
N_LEARNING_ROUNDS, N_LEARNING_CELLS, LEARNING_DRAW = 7, 12, 100
# Of a round: the length of a usual step in logarithms, the most of these in one round, the share of
# the step before that it keeps; and the most that a logarithm grows in all rounds.
STEP, MOST_STEPS, MOMENTUM, MOST_GROWTH = 0.4, 2.0, 0.5, 3.0
# The share of a scale's logarithms that is kept where a race learned it, on at most 1000 rows of a
# cell: the more rows, the less unequal are the factors of the best scale. On letter all of it
# leaves 3.3 % of errors, seven tenths 2.8 %.
KEPT_SHARE = 0.7


@dataclass(frozen=True)
class Chosen:
    trial: Trial
    squared_error: float
    n_tried: int


def choose(
    steps: Steps, factors: Float64, start: Trial, grid: TrialGrid, cell_size: int = TRIAL_ROWS
) -> Chosen:
    """Return the best trial found from a start, by steps of one place."""
    grid = grid.of_kernel(start.kernel)
    errors = Errors(steps, factors, min(N_ERROR_CELLS, ERROR_ROWS // cell_size), cell_size)
    place, best = None, start
    while best != place:
        place = best
        errors.compute([place, *_neighbors(place, grid)])
        best = errors.best().trial
    return errors.best()


def choose_coarsely(steps: Steps, factors: Float64, kernel: str, grid: TrialGrid) -> Chosen:
    errors = Errors(steps, factors, N_COARSE_CELLS, TRIAL_ROWS)
    errors.compute(grid.of_kernel(kernel).coarse(kernel))
    return errors.best()


def _neighbors(trial: Trial, grid: TrialGrid) -> list[Trial]:
    i, j = grid.place(trial)
    places = (i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)
    return [near for own in places if (near := grid.at(own, trial.kernel)) is not None]


class Errors:
    """Squared errors of trials in one scale, each computed once."""

    def __init__(self, steps: Steps, factors: Float64, n_cells: int, cell_size: int) -> None:
        self._steps, self._factors = steps, factors
        self._n_cells, self._cell_size = n_cells, cell_size
        self.found: dict[Trial, float] = {}

    def compute(self, trials: Iterable[Trial]) -> None:
        new = [trial for trial in dict.fromkeys(trials) if trial not in self.found]
        if not new:
            return
        drawn = draw_cells(self._steps.job, self._n_cells, ERROR_DRAW)
        calls = [(region, n, self._factors, new, self._cell_size) for region, n in drawn.items()]
        sums = self._steps.run(region_errors, calls, _total)["sums"]
        for trial, (squared, _, weight) in zip(new, sums.tolist(), strict=True):
            # A weight of 0 means that all cells are constant: all trials are equally good.
            self.found[trial] = squared / (weight or 1.0)

    def best(self) -> Chosen:
        trial = min(self.found, key=lambda own: self.found[own])
        return Chosen(trial, self.found[trial], len(self.found))


def region_errors(
    region: int,
    n_cells: int,
    factors: Float64,
    trials: Sequence[Trial],
    cell_size: int,
    job: RegionJob,
) -> Float64:
    sums = np.zeros((len(trials), 3))
    with one_blas_thread():
        for A, rows in cells_of(region, factors, job, n_cells, cell_size, ERROR_DRAW):
            sums += TrialCell(A, rows.targets, rows.weights, job.aim).errors(trials)
    return sums


def _total(parts: Sequence[Float64]) -> dict[str, Float64]:
    """Return the sum over regions, first to last, as its bits depend on the order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return {"sums": total}


def evaluate_scale(steps: Steps, factors: Float64, trial: Trial) -> RowErrors:
    calls = [(region, factors, trial) for region in range(steps.job.n_regions)]
    squared, wrong, weights, cluster = steps.run(evaluate_region, calls, _join)["rows"]
    return RowErrors(squared, wrong, weights, cluster.astype(np.int64))


def _join(parts: Sequence[Float64]) -> dict[str, Float64]:
    """Return the rows of all regions, with clusters numbered consecutively."""
    first = 0
    joined = []
    for part in parts:
        part = part.copy()
        part[3] += first
        first = int(part[3].max(initial=first - 1)) + 1
        joined.append(part)
    return {"rows": np.concatenate(joined, axis=1)}


def evaluate_region(region: int, factors: Float64, trial: Trial, job: RegionJob) -> Float64:
    """Return squared error, error, weight and cluster of a region's held-out rows, (4, m)."""
    rows = read_region(region, job)
    training, held = rows.take(np.flatnonzero(~rows.held)), rows.take(np.flatnonzero(rows.held))
    if not len(training.X) or not len(held.X):
        return np.empty((4, 0))
    with one_blas_thread():
        # Clusters do not depend on the scale, as comparisons are paired.
        size = min(max(len(held.X) // REGION_CLUSTERS, LEAST_CLUSTER_ROWS), CLUSTER_ROWS)
        near = widest(held.X)
        tree, _ = cut_rows(near, size)
        clusters = route_rows(tree, near)
        errors = _held_errors(training, held, factors, trial, job)
    return np.stack([*errors, held.weights, clusters.astype(np.float64)])


def _held_errors(
    training: RegionRows, held: RegionRows, factors: Float64, trial: Trial, job: RegionJob
) -> tuple[Float64, Float64]:
    Z, queries = in_scale(training, factors), in_scale(held, factors)
    tree, cells = cut_rows(Z, TRIAL_ROWS)
    asked = route_rows(tree, queries)
    squared, wrong = np.zeros(len(queries)), np.zeros(len(queries))
    for number, own in enumerate(cells):
        at = np.flatnonzero(asked == number)
        if len(at):
            center = own_center(Z[own])
            targets, weights = training.targets[own], training.weights[own]
            cell = TrialCell(Z[own] - center, targets, weights, job.aim)
            values = cell.values(queries[at] - center, trial)
            squared[at], wrong[at] = job.aim.losses(values, job.aim.columns(held.targets[at]))
    return squared, wrong


def widest(X: Float32) -> Float32:
    """Return the features of the largest variance: to cut a tree by thousands takes seconds."""
    if X.shape[1] <= CLUSTER_FEATURES:
        return X
    widest = np.argsort(-X.var(axis=0, dtype=np.float64), kind="stable")[:CLUSTER_FEATURES]
    return np.ascontiguousarray(X[:, np.sort(widest)])


def learn_factors(steps: Steps, start: Float64, trial: Trial) -> Float64:
    # The same draw in all rounds, so that cells only differ by the scale.
    drawn = draw_cells(steps.job, N_LEARNING_CELLS, LEARNING_DRAW)

    def slopes_at(factors: Float64, trial: Trial) -> Float64:
        calls = [(region, n, factors, trial) for region, n in drawn.items()]
        return steps.run(region_slopes, calls, _total)["sums"]

    return descend_slopes(slopes_at, start, trial)[0]


def learn_on(
    cells: Sequence[tuple[Float32, Targets, Float64]],
    start: Float64,
    trial: Trial,
    aim: Aim,
) -> tuple[Float64, Trial]:
    """Return factors learned on cells (X, targets, weights), and the trial they led to."""

    def slopes_at(factors: Float64, trial: Trial) -> Float64:
        sums = np.zeros(3 + len(start))
        for X, targets, weights in cells:
            Z = X * factors.astype(np.float32)
            sums += TrialCell(Z - own_center(Z), targets, weights, aim).error_slopes(trial)
        return sums

    learned, trial = descend_slopes(slopes_at, start, trial)
    return start ** (1 - KEPT_SHARE) * learned**KEPT_SHARE, trial


def descend_slopes(
    slopes_at: Callable[[Float64, Trial], Float64], start: Float64, trial: Trial
) -> tuple[Float64, Trial]:
    """Return the factors and the width of the least leave-one-out error in some rounds.

    Each round moves their logarithms against the slopes, in units of their root mean square, and
    some of the way of the round before.

    >>> def slopes_at(factors, trial):
    ...     left = np.log(np.append(trial.width, factors)) - np.log([1.0, 2.0, 0.5])
    ...     return np.concatenate([[1.0, left @ left], 2 * left])
    >>> factors, trial = descend_slopes(slopes_at, np.ones(2), Trial("rbf", 1.0, 0.1))
    >>> bool((np.abs(np.log(factors / [2.0, 0.5])) < 0.2).all()), trial.ridge
    (True, 0.1)
    """
    place, step = np.zeros(1 + len(start)), np.zeros(1 + len(start))
    least, best = np.inf, place
    for _ in range(N_LEARNING_ROUNDS):
        width = float(trial.width * np.exp(place[0]))
        weight, error, *found = slopes_at(start * np.exp(place[1:]), replace(trial, width=width))
        slopes = np.array(found)
        size = np.sqrt(np.mean(slopes**2))
        if not 0 < size < np.inf:
            break
        if error / weight < least:
            least, best = error / weight, place
        step = MOMENTUM * step - slopes / size
        moved = place + STEP * np.clip(step, -MOST_STEPS, MOST_STEPS)
        place = np.minimum(moved, MOST_GROWTH)
    width = float(trial.width * np.exp(best[0]))
    return start * np.exp(best[1:]), replace(trial, width=width)


def region_slopes(
    region: int, n_cells: int, factors: Float64, trial: Trial, job: RegionJob
) -> Float64:
    sums = np.zeros(3 + len(factors))
    with one_blas_thread():
        for A, rows in cells_of(region, factors, job, n_cells, TRIAL_ROWS, LEARNING_DRAW):
            sums += TrialCell(A, rows.targets, rows.weights, job.aim).error_slopes(trial)
    return sums
