"""Choices on regions: width and ridge, the comparison of scales, and scales learned in rounds.

Width and ridge have the least leave-one-out squared error. The search starts at the best of a
coarse grid and goes to the best neighbor until there is no better one: on all data sets examined
the error is a single valley in the logarithms of width and ridge.

Scales are compared on held-out rows, which took no part in learning or in any choice, each with
its own cells, width and ridge. Leave-one-out errors would not do: between rounds they change by a
percentage point because the cells change.

A learned scale weights each feature by the derivatives of the decision functions. Source:
Radhakrishnan, Beaglehole, Pandit, Belkin, Mechanism for feature learning in neural networks and
backpropagation-free machine learning models, Science 2024: the average gradient outer product.
Differences: only its diagonal, of least-squares cells of full density, which are cut again in each
round.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from daskls.partition.tree import route_rows
from daskls.records import Float32, Float64, Targets
from daskls.run.blas import one_blas_thread, undisturbed
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
# One round gains nothing on Covertype; six gain almost as much as eight.
N_LEARNING_ROUNDS = 6
N_GRADIENT_CELLS = 12
# The least factor during the rounds, as a share of the largest: a factor of 0 would stay 0.
LEAST_SHARE = 1e-3
GRADIENT_DRAW = 100


@dataclass(frozen=True)
class Chosen:
    """The best trial, its squared error, and the number of trials."""

    trial: Trial
    squared_error: float
    n_tried: int


def choose(
    steps: Steps, factors: Float64, start: Trial, grid: TrialGrid, cell_size: int = TRIAL_ROWS
) -> Chosen:
    """Return the best trial found from a start, by steps of two places, then of one."""
    grid = grid.of_kernel(start.kernel)
    errors = Errors(steps, factors, min(N_ERROR_CELLS, ERROR_ROWS // cell_size), cell_size)
    errors.compute([start])
    place, reach = start, 2
    while reach:
        errors.compute(_neighbors(place, reach, grid))
        best = errors.best().trial
        # Smaller steps only once no neighbor at this reach is better.
        reach -= best == place
        place = best
    return errors.best()


def choose_coarsely(steps: Steps, factors: Float64, kernel: str, grid: TrialGrid) -> Chosen:
    """Return the best trial of the coarse grid on a few cells, for `choose` to start from."""
    errors = Errors(steps, factors, N_COARSE_CELLS, TRIAL_ROWS)
    errors.compute(grid.of_kernel(kernel).coarse(kernel))
    return errors.best()


def _neighbors(trial: Trial, reach: int, grid: TrialGrid) -> list[Trial]:
    """Return the trials on the grid that are ``reach`` places away in width or in ridge."""
    i, j = grid.place(trial)
    places = (i - reach, j), (i + reach, j), (i, j - reach), (i, j + reach)
    return [near for own in places if (near := grid.at(own, trial.kernel)) is not None]


class Errors:
    """Squared errors of trials in one scale, each computed once."""

    def __init__(self, steps: Steps, factors: Float64, n_cells: int, cell_size: int) -> None:
        self._steps, self._factors = steps, factors
        self._n_cells, self._cell_size = n_cells, cell_size
        self.found: dict[Trial, float] = {}

    def compute(self, trials: Iterable[Trial]) -> None:
        """Compute the errors of all trials that are not known yet, in one step."""
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
        """Return the trial of the least squared error, the first one in a tie."""
        trial = min(self.found, key=lambda own: self.found[own])
        return Chosen(trial, self.found[trial], len(self.found))


@undisturbed
def region_errors(
    region: int,
    n_cells: int,
    factors: Float64,
    trials: Sequence[Trial],
    cell_size: int,
    job: RegionJob,
) -> Float64:
    """Return sums of leave-one-out errors on a region, (n_trials, 3), as `TrialCell.errors`."""
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
    """Return the errors of a scale and a trial on the held-out rows of all regions."""
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


@undisturbed
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
    """Return the `CLUSTER_FEATURES` features of the largest variance, in their order.

    Clusters need no more, and cutting a tree by thousands of features takes seconds.
    """
    if X.shape[1] <= CLUSTER_FEATURES:
        return X
    widest = np.argsort(-X.var(axis=0, dtype=np.float64), kind="stable")[:CLUSTER_FEATURES]
    return np.ascontiguousarray(X[:, np.sort(widest)])


def learn_factors(steps: Steps, start: Float64, trial: Trial) -> Float64:
    """Return factors, float64 (d,), learned in rounds on cells of regions.

    Factors that end at `LEAST_SHARE` become 0. Cells are solved under the same trial in all rounds.
    """
    job, factors = steps.job, np.ones(len(start))
    for _ in range(N_LEARNING_ROUNDS):
        # The same draw in all rounds, so that cells only differ by the scale.
        drawn = draw_cells(job, N_GRADIENT_CELLS, GRADIENT_DRAW)
        calls = [(region, n, start * factors, trial) for region, n in drawn.items()]
        sums = steps.run(region_gradients, calls, _total)["sums"]
        factors = next_factors(sums, factors)
    return _without_the_least(start, factors)


def learn_on(
    cells: Sequence[tuple[Float32, Targets, Float64]],
    start: Float64,
    trial: Trial,
    n_rounds: int,
    aim: Aim,
) -> Float64:
    """Return factors learned in rounds on some cells, see `learn_factors`.

    Parameters
    ----------
    cells : sequence of (X, targets, weights): float32 (m, d), codes (m,) or numbers (m, t), float64
        (m,)
    start : float64 array, shape (d,). The scale to start from.
    """
    factors = np.ones(len(start))
    for _ in range(n_rounds):
        sums = np.zeros((2, len(start)))
        for X, targets, weights in cells:
            Z = X * (start * factors).astype(np.float32)
            sums += _gradients(Z - own_center(Z), targets, weights, trial, aim)
        factors = next_factors(sums, factors)
    return _without_the_least(start, factors)


def next_factors(sums: Float64, factors: Float64) -> Float64:
    """Return the next round's factors, from the root mean square derivative of each feature.

    Parameters
    ----------
    sums : float64 array, shape (2, d). Squared derivatives in the scaled space, and rows.
    factors : float64 array, shape (d,). The scale in which derivatives were taken.

    Returns
    -------
    factors : float64 array, shape (d,). The largest is 1; a feature that varies in no cell keeps
        its factor.

    Examples
    --------
    >>> next_factors(np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0]]), np.ones(3))
    array([1. , 0.5, 1. ])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = factors * np.sqrt(sums[0] / sums[1])
    varied = sums[1] > 0
    largest = found[varied].max(initial=0.0)
    if not largest:
        return factors
    found = np.where(varied, found / largest, factors)
    following: Float64 = np.maximum(found / found.max(), LEAST_SHARE)
    return following


def _without_the_least(start: Float64, factors: Float64) -> Float64:
    learned: Float64 = np.where(factors > LEAST_SHARE, start * factors, 0.0)
    return learned


@undisturbed
def region_gradients(
    region: int, n_cells: int, factors: Float64, trial: Trial, job: RegionJob
) -> Float64:
    """Return sums of squared derivatives along each feature, and of rows, float64 (2, d).

    Only cells in which a feature varies count for it.
    """
    sums = np.zeros((2, len(factors)))
    with one_blas_thread():
        for A, rows in cells_of(region, factors, job, n_cells, TRIAL_ROWS, GRADIENT_DRAW):
            sums += _gradients(A, rows.targets, rows.weights, trial, job.aim)
    return sums


def _gradients(A: Float32, targets: Targets, weights: Float64, trial: Trial, aim: Aim) -> Float64:
    """Return the terms of one cell in the sums of `region_gradients`."""
    varies = (A[0] != A).any(axis=0)
    own = TrialCell(A, targets, weights, aim).gradients(trial)
    return np.stack([varies * own, varies * float(len(A))])
