"""Comparison of scales on rows that took no part in learning them, or in any choice.

Between rounds leave-one-out errors move by a point because the cells change, so that scales are
compared on the same rows, each with cells, width and ridge of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskls.partition.tree import route_rows
from daskls.records import Float32, Float64, Int64
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.scaling.grid import Trial
from daskls.scaling.plan import LOOK_ROWS
from daskls.scaling.regions import RegionJob, RegionRows, read_region
from daskls.scaling.solve import TrialCell
from daskls.scaling.steps import Steps
from daskls.scaling.trial import cut_rows, in_scale, own_center

__all__ = ["HeldOutErrors", "compare", "evaluate_region", "evaluate_scales", "widest"]

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
