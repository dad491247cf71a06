"""A scale learned in rounds: each feature is weighted by the derivatives of the decision functions.

Source: Radhakrishnan, Beaglehole, Pandit, Belkin, Mechanism for feature learning in neural networks
and backpropagation-free machine learning models, Science 2024: the average gradient outer product.
Differences: its diagonal alone, of least-squares cells of full density, cut anew in each round.

Kernel, width and ridge for all cells: the least squared error of leave-one-out values.

From a coarse grid to the nearest better neighbor, until there is none: a valley in logarithms of
width and ridge, on all sets that it was looked at.

Comparison of scales on rows that took no part in learning them, or in any choice.

Between rounds leave-one-out errors move by a point because the cells change, so that scales are
compared on the same rows, each with cells, width and ridge of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from daskls.partition.tree import route_rows
from daskls.records import Float32, Float64, Int64, Targets
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.scaling.grid import LOOK_ROWS, Steps, Trial, TrialCell, TrialGrid, sum_in_order
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


# Held-out rows near each other err together: so many count as one observation, fewer where a region
# has few; and of fewer clusters than this nothing is said.
CLUSTER_ROWS, LEAST_CLUSTER_ROWS, REGION_CLUSTERS, LEAST_CLUSTERS = 50, 5, 20, 10
# Of the features by which rows are clustered.
CLUSTER_FEATURES = 128


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Errors on held-out rows in one scale, in the order of rows.

    Attributes
    ----------
    squared, wrong : float64 arrays, shape (m,)
    weights : float64 array, shape (m,)
    cluster : int64 array, shape (m,). Rows that lie together.
    """

    squared: Float64
    wrong: Float64
    weights: Float64
    cluster: Int64

    @property
    def error(self) -> float:
        """The weighted share of wrong rows."""
        return _mean(self.wrong, self.weights)

    @property
    def squared_error(self) -> float:
        """The weighted mean of squared errors."""
        return _mean(self.squared, self.weights)


def _mean(values: Float64, weights: Float64) -> float:
    """Return a weighted mean; 0 of no rows, so few were there that none was held out."""
    return float(np.average(values, weights=weights)) if len(values) else 0.0


@undisturbed
def evaluate_region(region: int, factors: Float64, trial: Trial, job: RegionJob) -> Float64:
    """Return squared error, error, weight and cluster of a region's held-out rows, (4, m)."""
    rows = read_region(region, job)
    training, held = rows.take(np.flatnonzero(~rows.held)), rows.take(np.flatnonzero(rows.held))
    if not len(training.X) or not len(held.X):
        return np.empty((4, 0))
    with one_blas_thread():
        # Clusters are the same in every scale: comparisons are of pairs.
        size = min(max(len(held.X) // REGION_CLUSTERS, LEAST_CLUSTER_ROWS), CLUSTER_ROWS)
        near = widest(held.X)
        tree, _ = cut_rows(near, size)
        clusters = route_rows(tree, near)
        errors = _held_errors(training, held, factors, trial, job)
    return np.stack([*errors, held.weights, clusters.astype(np.float64)])


def widest(X: Float32) -> Float32:
    """Return the features of the largest variance, in their order: clusters need no more.

    A tree's cut along a component of thousands of features takes seconds.
    """
    if X.shape[1] <= CLUSTER_FEATURES:
        return X
    widest = np.argsort(-X.var(axis=0, dtype=np.float64), kind="stable")[:CLUSTER_FEATURES]
    return np.ascontiguousarray(X[:, np.sort(widest)])


def _held_errors(
    training: RegionRows, held: RegionRows, factors: Float64, trial: Trial, job: RegionJob
) -> tuple[Float64, Float64]:
    Z, queries = in_scale(training, factors), in_scale(held, factors)
    tree, cells = cut_rows(Z, LOOK_ROWS)
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


def evaluate_scales(steps: Steps, scales: Sequence[tuple[Float64, Trial]]) -> list[HeldOutErrors]:
    """Return the errors of each scale, with its own trial, on the held-out rows of all regions."""
    found = []
    for factors, trial in scales:
        calls = [(region, factors, trial) for region in range(steps.job.n_regions)]
        joined = steps.run(evaluate_region, calls, _join)["rows"]
        squared, wrong, weights, cluster = joined
        found.append(HeldOutErrors(squared, wrong, weights, cluster.astype(np.int64)))
    return found


def _join(parts: Sequence[Float64]) -> dict[str, Float64]:
    """Return the rows of all regions; clusters are numbered through."""
    first = 0
    joined = []
    for part in parts:
        part = part.copy()
        part[3] += first
        first = int(part[3].max(initial=first - 1)) + 1
        joined.append(part)
    return {"rows": np.concatenate(joined, axis=1)}


def compare(old: HeldOutErrors, new: HeldOutErrors) -> float:
    """Return the paired difference of squared errors over its standard error, by clusters.

    Positive values favor the new scale. 0 where there are too few clusters to tell.
    """
    gain = old.weights * (old.squared - new.squared)
    sums = np.bincount(old.cluster, weights=gain)
    if len(sums) < LEAST_CLUSTERS:
        return 0.0
    spread = np.sqrt(((sums - sums.mean()) ** 2).sum())
    return float(sums.sum() / spread) if spread > 0 else 0.0


# One round gains nothing on Covertype, six almost all that eight do.
N_LEARNING_ROUNDS = 6
N_GRADIENT_CELLS = 12
# While rounds run no factor falls below this share of the largest: what is 0 cannot come back.
LEAST_SHARE = 1e-3
GRADIENT_DRAW = 100


@undisturbed
def region_gradients(
    region: int, n_cells: int, factors: Float64, trial: Trial, draw: int, job: RegionJob
) -> Float64:
    """Return sums of squared derivatives along each feature, and the rows that they are of.

    Returns
    -------
    sums : float64 array, shape (2, d). Of the cells in which a feature varies.
    """
    sums = np.zeros((2, len(factors)))
    with one_blas_thread():
        for A, rows in cells_of(region, factors, job, n_cells, LOOK_ROWS, draw):
            sums += _gradients(A, rows.targets, rows.weights, trial, job.aim)
    return sums


def _gradients(A: Float32, targets: Targets, weights: Float64, trial: Trial, aim: Aim) -> Float64:
    """Return what `region_gradients` sums up, of one cell."""
    varies = (A[0] != A).any(axis=0)
    own = TrialCell(A, targets, weights, aim).gradients(trial)
    return np.stack([varies * own, varies * float(len(A))])


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
    start : float64 array, shape (d,). The scale to begin with.
    trial : Trial
    n_rounds : int
    aim : Aim
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
    """Return the factors of the next round: the root of each feature's share of the derivatives.

    Parameters
    ----------
    sums : float64 array, shape (2, d). Squared derivatives in the scaled space, and rows.
    factors : float64 array, shape (d,). The scale they were taken in.

    Returns
    -------
    factors : float64 array, shape (d,). The largest is 1; a feature that varied nowhere keeps its
        own.

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


def learn_factors(steps: Steps, start: Float64, trial: Trial) -> Float64:
    """Return factors learned in rounds; those that end below `LEAST_SHARE` are 0.

    Parameters
    ----------
    steps : Steps
    start : float64 array, shape (d,)
    trial : Trial. What cells are solved with in all rounds.
    """
    job, factors = steps.job, np.ones(len(start))
    for _ in range(N_LEARNING_ROUNDS):
        # The same draw in all rounds: the cells differ by the scale alone.
        calls = [
            (region, n, start * factors, trial, GRADIENT_DRAW)
            for region, n in draw_cells(job, N_GRADIENT_CELLS, GRADIENT_DRAW).items()
        ]
        sums = steps.run(region_gradients, calls, _total)["sums"]
        factors = next_factors(sums, factors)
    return _without_the_least(start, factors)


def _without_the_least(start: Float64, factors: Float64) -> Float64:
    learned: Float64 = np.where(factors > LEAST_SHARE, start * factors, 0.0)
    return learned
