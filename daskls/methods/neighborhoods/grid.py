"""Selection by cross-validation of the whole method: every candidate on every fold of all rows.

Folds are drawn by hashed row number. In each fold and for each k the centers are chosen among the
training rows alone, every candidate is trained around each of them, and evaluated on the held-out
rows that its center predicts. The searches are shared: that of the held-out rows' nearest training
row serves all candidates, that of a center's neighbors all C and widths.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.methods.neighborhoods.cover import (
    center_order,
    check_client,
    run_cover,
    search_positions,
)
from daskls.methods.neighborhoods.plan import plan_batch
from daskls.methods.neighborhoods.spec import NeighborSpec
from daskls.methods.neighborhoods.train import NeighborJob, gather_neighborhoods
from daskls.methods.scores import misses_of, model_scores
from daskls.neighbors.search import metric_of
from daskls.partition.cover import Cover
from daskls.records import Float64, Int64, Keys, RowNumbers, SolverSpec
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.gather import RowsHandle, folds_of
from daskls.seeds import CANDIDATE
from daskls.solvers.base import Neighborhood
from daskls.solvers.grid import count_gammas
from daskls.solvers.registry import find_neighborhood_solver
from daskls.solvers.sums import total, totals
from daskls.store.exchange import Rows
from daskls.targets import Target

__all__ = ["global_errors"]

N_GRID_TASKS = 64


def global_errors(
    begun: Beginning,
    neighbors: NeighborSpec,
    spec: SolverSpec,
    handle: RowsHandle,
    client: Any = None,
) -> Float64:
    """Return the weighted error of every candidate over all rows, each held out once.

    Returns
    -------
    errors : float64 array, shape (n_k, n_gammas, n_costs)
    """
    numbers = handle.open().read_numbers()
    folds = folds_of(numbers, begun.seed, spec.cv)
    used = [fold for fold in range(spec.cv) if (folds == fold).any()]
    if len(used) < 2:
        raise DataError(
            f"All {len(numbers)} rows fell into one of the {spec.cv} folds, so that nothing can be "
            'cross-validated; fit on more rows, or without selection="grid".'
        )
    check_client(len(numbers))
    by_fold = [
        _fold_errors(begun, neighbors, spec, handle, numbers, folds, fold, client) for fold in used
    ]
    evaluated = totals(np.array(by_fold))
    errors: Float64 = evaluated[..., 0] / evaluated[..., 1]
    return errors


def _fold_errors(
    begun: Beginning,
    neighbors: NeighborSpec,
    spec: SolverSpec,
    handle: RowsHandle,
    numbers: RowNumbers,
    folds: Keys,
    fold: int,
    client: Any,
) -> Float64:
    """Return (missed weight, weight) of each candidate on one fold: (n_k, n_gammas, n_costs, 2)."""
    training = replace(handle, fold=(begun.seed, spec.cv, fold))
    metric = metric_of(spec)
    held_out = np.flatnonzero(folds == fold)
    nearest = search_positions(held_out, 1, training, metric, client)[:, 0]
    n_training = int((folds != fold).sum())
    found = []
    for candidate in neighbors.n_neighbors:
        k = min(candidate, n_training)
        inner = min(neighbors.inner(candidate), k)
        order = center_order(begun, numbers, inner)
        cover = Cover(order[folds[order] != fold], inner, len(numbers))
        run_cover(cover, numbers, training, metric, client)
        centers = np.array(cover.centers)
        of_center = centers[cover.resolved_owner()[nearest]]
        batch = plan_batch(begun.sizes, k, begun.sampling.largest_rows, begun.resources)
        job = NeighborJob(training, spec, neighbors, k, begun.seed, batch)
        found.append(_evaluate(of_center, held_out, job, begun.scan.target, client))
    return np.array(found)


def _evaluate(
    centers: Int64,
    held_out: Int64,
    job: NeighborJob,
    target: Target,
    client: Any,
) -> Float64:
    """Train the candidates around the centers that held-out rows have; add up their errors."""
    order = np.argsort(centers, kind="stable")
    positions, starts = np.unique(centers[order], return_index=True)
    queries = np.split(held_out[order], starts[1:])
    parts = np.array_split(np.arange(len(positions)), min(N_GRID_TASKS, len(positions)))
    tasks = [(positions[p], [queries[i] for i in p], job, target) for p in parts]
    # Added up center by center: how tasks share them depends on the slots.
    return totals(np.concatenate(compute_each(evaluate_centers, tasks, client)))


@undisturbed
def evaluate_centers(
    positions: Int64, queries: list[Int64], job: NeighborJob, target: Target
) -> Float64:
    """Return (missed weight, weight) of each candidate on the rows that each center predicts.

    Shape (n_centers, n_gammas, n_costs, 2).
    """
    reader = job.handle.open()
    n_gammas = count_gammas(job.spec, job.neighbors.percentiles)
    counted = np.zeros((len(positions), n_gammas, job.spec.n_costs, 2))
    number = 0
    with one_blas_thread():
        for found, rows in gather_neighborhoods(reader, positions, job):
            for i in range(len(rows.X)):
                asked = reader.read_positions(queries[number])
                seed = CANDIDATE(job.seed, row=int(found.numbers[i, 0]))
                near = job.near(rows, i, job.n_neighbors, seed)
                own_counts = _evaluate_center(near, asked, target)
                counted[number] = own_counts.reshape(counted.shape[1:])
                number += 1
    return counted


def _evaluate_center(near: Neighborhood, asked: Rows, target: Target) -> Float64:
    """Return (missed weight, weight) of one center's candidates, (n_candidates, 2)."""
    weight = total(asked.weights)
    found = []
    for model in find_neighborhood_solver(near.spec).candidate_models(near):
        scores = model_scores(model, asked.X, target.n_classes)
        missed = misses_of(scores, asked.targets, target)
        found.append((total(asked.weights * missed), weight))
    return np.array(found)
