"""Selection for queries that train an SVM each: drawn rows are answered as queries are.

Each row is predicted by the SVM of its nearest other rows. Folds within neighborhoods, by which the
SVMs of centers are selected, misjudge queries: on splice they choose what errs on 12.0 % of test
rows, these rows what errs on 4.6.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskls.methods.neighborhoods.plan import plan_batch
from daskls.methods.neighborhoods.spec import NeighborSpec
from daskls.methods.neighborhoods.train import NeighborJob, gather_neighborhoods
from daskls.methods.scores import misses_of, model_scores
from daskls.records import Float64, Int64, Mask, SolverSpec
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.gather import RowsHandle
from daskls.seeds import EVALUATED
from daskls.solvers.base import Neighborhood
from daskls.solvers.grid import count_gammas
from daskls.solvers.registry import find_neighborhood_solver
from daskls.solvers.sums import totals
from daskls.store.exchange import Rows
from daskls.targets import Target

__all__ = ["left_out_errors"]

# The shares of the drawn rows by whose end candidates are dropped, and how many go on: an SVM a
# row and candidate is dear, and most candidates are far from the best.
ROUNDS = (1 / 8, 1 / 2, 1)
N_RUNNING = (4, 2)
N_TASKS = 64


def left_out_errors(
    begun: Beginning,
    neighbors: NeighborSpec,
    spec: SolverSpec,
    handle: RowsHandle,
    positions: Int64,
    client: Any = None,
) -> tuple[Float64, Mask]:
    """Return the weighted error of every candidate on rows that are left out, one at a time.

    Parameters
    ----------
    begun : Beginning
    neighbors : NeighborSpec, of one k
    spec : SolverSpec. Its C, and gamma where there are no percentiles, are the candidates.
    handle : RowsHandle
    positions : int array (m,). Of the rows, in a drawn order.
    client : distributed client, or None for the current scheduler

    Returns
    -------
    errors : float64 array, shape (1, n_gammas, n_costs)
    is_last : bool array of that shape. Which candidates were evaluated on all rows, not dropped.
    """
    # One more than the neighbors: a row finds itself.
    k = min(neighbors.n_neighbors[0] + 1, begun.scan.n_kept)
    batch = plan_batch(begun.sizes, k, begun.sampling.largest_rows, begun.resources)
    job = NeighborJob(handle, spec, neighbors, k, begun.seed, batch)
    shape = 1, count_gammas(spec, job.neighbors.percentiles), spec.n_costs
    running = np.arange(shape[1] * shape[2])
    ends = [0, *(max(int(len(positions) * share), 1) for share in ROUNDS)]
    found: list[Float64] = []
    for number, (start, stop) in enumerate(pairwise(ends)):
        if number and len(running) > 1:
            order = np.argsort(_errors(found)[running], kind="stable")
            running = np.sort(running[order[: N_RUNNING[number - 1]]])
        own = positions[start:stop]
        parts = np.array_split(own, max(min(N_TASKS, len(own)), 1))
        tasks = [(part, running, job, begun.scan.target) for part in parts]
        found += compute_each(evaluate_left_out, tasks, client)
    is_last = np.isin(np.arange(shape[1] * shape[2]), running)
    return _errors(found).reshape(shape), is_last.reshape(shape)


def _errors(found: list[Float64]) -> Float64:
    evaluated = totals(np.concatenate(found))
    errors: Float64 = evaluated[:, 0] / evaluated[:, 1]
    return errors


@undisturbed
def evaluate_left_out(
    positions: Int64, running: Int64, job: NeighborJob, target: Target
) -> Float64:
    """Return (missed weight, weight) of each candidate on each row: (m, n_candidates, 2).

    0 of candidates that are no longer running.
    """
    n_gammas = count_gammas(job.spec, job.neighbors.percentiles)
    counted = np.zeros((len(positions), n_gammas * job.spec.n_costs, 2))
    reader = job.handle.open()
    asked = reader.read_positions(positions)
    row = 0
    with one_blas_thread():
        for _, rows in gather_neighborhoods(reader, positions, job):
            for i in range(len(rows.X)):
                others = _without(rows, i, int(asked.numbers[row]))
                own, weight = asked.take(np.array([row])), asked.weights[row]
                for candidate, missed in _misses(others, own, running, job, target):
                    counted[row, candidate] = weight * missed, weight
                row += 1
    return counted


def _without(rows: Rows, i: int, number: int) -> Rows:
    """Return one neighborhood without a row, by row number as queries have it."""
    numbers = rows.numbers[i]
    others = np.flatnonzero(numbers != number)
    # Among more equal rows than neighbors a row may not be in its own list.
    others = others[: len(numbers) - 1]
    others = others[np.argsort(numbers[others])]
    return Rows(
        rows.X[i, others], rows.targets[i, others], rows.weights[i, others], numbers[others]
    )


def _misses(
    rows: Rows, asked: Rows, running: Int64, job: NeighborJob, target: Target
) -> Iterator[tuple[int, float]]:
    """Yield each running candidate and what it misses the target of one row by."""
    costs = sorted(job.spec.C or ())
    seed = EVALUATED(job.seed, row=int(asked.numbers[0]), n_neighbors=job.n_neighbors)
    for g in np.unique(running // len(costs)).tolist():
        own = running[running // len(costs) == g]
        spec = replace(job.spec, C=tuple(costs[c] for c in own % len(costs)))
        percentiles = job.neighbors.percentiles
        if percentiles is not None:
            percentiles = (percentiles[g],)
        elif spec.gamma is not None:
            spec = replace(spec, gamma=(sorted(spec.gamma)[g],))
        k = len(rows.X)
        near = Neighborhood(rows.X, rows.targets, rows.weights, k, spec, percentiles, seed)
        models = find_neighborhood_solver(spec).candidate_models(near)
        for candidate, model in zip(own.tolist(), models, strict=True):
            scores = model_scores(model, asked.X, target.n_classes)
            yield candidate, float(misses_of(scores, asked.targets, target)[0])
