"""Selection of k, C and the width, once for all neighborhoods, in one of three ways.

"local": folds within the neighborhoods of a few drawn rows.

"grid": cross-validation of the whole method on all rows. Folds are drawn by hashed row number. In
each fold, and for each k, centers are chosen among the training rows, every candidate is trained
around each center, and evaluated on the held-out rows that the center predicts. The search for the
held-out rows' nearest training row serves all candidates; the search for a center's neighbors
serves all C and widths.

"left_out", where each query trains an SVM: drawn rows are predicted as queries are, each by the SVM
of its nearest other rows. Folds within neighborhoods misjudge queries: on splice they choose
parameters with an error of 12.0 % on test rows, left-out rows choose 4.6 %.

No way parts copies of a row: they are in one fold, and left out together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.methods.neighborhoods.plan import NeighborSpec, plan_batch
from daskls.methods.neighborhoods.train import (
    NeighborJob,
    center_order,
    check_client,
    evaluate_row,
    gather_neighborhoods,
    run_cover,
    search_positions,
)
from daskls.methods.scores import misses_of, model_scores
from daskls.neighbors.search import metric_of
from daskls.partition.cover import Cover
from daskls.plan.bundles import n_selecting
from daskls.records import Float64, Int64, Keys, Mask, RowNumbers, SolverSpec
from daskls.run.begin import resolved_spec
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import compute_each
from daskls.run.contract import FitState
from daskls.run.regroup import RowsHandle, folds_of
from daskls.seeds import CANDIDATE, EVALUATED, SELECTED_ROWS
from daskls.solvers.base import Neighborhood
from daskls.solvers.evaluate import total, totals
from daskls.solvers.grid import count_gammas
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.leaves import LeafReader
from daskls.store.sorted_rows import Rows
from daskls.targets import Target

# Tasks that train the candidates around the centers of the held-out rows of one fold.
N_GRID_TASKS = 64
# Shares of the drawn rows at which candidates are dropped, and how many go on: an SVM for each row
# and candidate is expensive, and most candidates are far from the best.
ROUNDS = (1 / 8, 1 / 2, 1)
N_RUNNING = (4, 2)
# Tasks of each of these rounds.
N_TASKS = 64


@dataclass(frozen=True)
class Selected:
    """The selected or given parameters."""

    n_neighbors: int
    spec: SolverSpec
    percentiles: tuple[float, ...] | None


def select(state: FitState, neighbors: NeighborSpec, handle: RowsHandle) -> Selected:
    """Return k, C and the width as given, or select them; what is selected is stored."""
    resolved = resolved_spec(state) if neighbors.percentiles is None else state.request.spec
    if neighbors.selection not in ("local", "grid", "left_out"):
        return Selected(neighbors.n_neighbors[0], resolved, neighbors.percentiles)
    stored = state.root.attributes.get("selected")
    if stored is None:
        with state.clock.stage("select", 1, None):
            stored = _best(*_evaluate(state, neighbors, resolved, handle), neighbors, resolved)
        # Before any training, so that a resumed fit does not select again.
        state.root.update(selected=stored)
    gamma, percentile = stored["gamma"], stored["percentile"]
    chosen = replace(resolved, C=(stored["C"],), gamma=None if gamma is None else (gamma,))
    return Selected(
        int(stored["n_neighbors"]), chosen, None if percentile is None else (percentile,)
    )


def _evaluate(
    state: FitState, neighbors: NeighborSpec, spec: SolverSpec, handle: RowsHandle
) -> tuple[Float64, Mask]:
    """Return the errors of candidates and which may be chosen, both (n_k, n_gammas, n_costs)."""
    if neighbors.selection == "left_out":
        drawn = _drawn_positions(state, n_selecting(state.scan.n_kept), handle)
        return left_out_errors(state, neighbors, spec, handle, drawn)
    if neighbors.selection == "grid":
        errors = global_errors(state, neighbors, spec, handle)
    else:
        errors = _local_errors(state, neighbors, spec, handle)
    return errors, np.ones(errors.shape, np.bool_)


def _best(
    errors: Float64, eligible: Mask, neighbors: NeighborSpec, spec: SolverSpec
) -> dict[str, Any]:
    """Return the eligible candidate of the smallest error, with the errors of all, as JSON values.

    Ties go to the smallest k, then to the largest width, then to the smallest C.
    """
    k, g, i = np.unravel_index(int(np.where(eligible, errors, np.inf).argmin()), errors.shape)
    costs = sorted(spec.C or ())
    gammas = sorted(spec.gamma) if spec.gamma is not None else [None]
    percentiles = neighbors.percentiles
    return {
        "n_neighbors": neighbors.n_neighbors[k],
        "C": costs[i],
        "gamma": gammas[g] if percentiles is None else None,
        "percentile": None if percentiles is None else percentiles[g],
        "errors": errors.tolist(),
    }


def _drawn_positions(state: FitState, n_drawn: int, handle: RowsHandle) -> Int64:
    """Return the positions of rows drawn by seed from all row numbers."""
    reader = handle.open()
    rng = SELECTED_ROWS.generator(state.seed, n_rows=reader.n_rows)
    drawn = rng.choice(reader.n_rows, min(n_drawn, reader.n_rows), replace=False)
    # Drawn by row number, as positions depend on how space was cut.
    numbers = reader.read_numbers()
    positions: Int64 = np.argsort(numbers, kind="stable")[drawn]
    return positions


def _local_errors(
    state: FitState, neighbors: NeighborSpec, spec: SolverSpec, handle: RowsHandle
) -> Float64:
    """Return the k'-internal error of every candidate, over the neighborhoods of drawn rows."""
    job = NeighborJob(handle, spec, neighbors, max(neighbors.n_neighbors), state.seed, 1)
    positions = _drawn_positions(state, neighbors.n_selected, handle)
    tasks = [(position, job) for position in positions.tolist()]
    evaluated = totals(np.array(compute_each(evaluate_row, tasks, state.client)))
    errors: Float64 = evaluated[..., 0] / evaluated[..., 1]
    return errors


def global_errors(
    state: FitState,
    neighbors: NeighborSpec,
    spec: SolverSpec,
    handle: RowsHandle,
) -> Float64:
    """Return the weighted error of every candidate over all rows, each held out once.

    Returns
    -------
    errors : float64 array, shape (n_k, n_gammas, n_costs)
    """
    reader = handle.open()
    numbers = reader.read_numbers()
    parts = np.array_split(np.arange(reader.n_leaves), min(N_TASKS, reader.n_leaves))
    calls = [(part, state.seed, spec.cv, handle) for part in parts]
    folds = np.concatenate(compute_each(assign_leaves, calls, state.client))
    used = [fold for fold in range(spec.cv) if (folds == fold).any()]
    if len(used) < 2:
        raise DataError(
            f"All {len(numbers)} rows fell into one of the {spec.cv} folds, which copies of a row "
            "share, so nothing can be cross-validated; fit on more rows, or without "
            'selection="grid".'
        )
    check_client(len(numbers))
    by_fold = [_fold_errors(state, neighbors, spec, handle, numbers, folds, fold) for fold in used]
    evaluated = totals(np.array(by_fold))
    errors: Float64 = evaluated[..., 0] / evaluated[..., 1]
    return errors


def assign_leaves(leaves: Int64, seed: int, n_folds: int, handle: RowsHandle) -> Keys:
    """Return the fold of each row of some leaves; copies of a row are in one fold."""
    reader = handle.open()
    units = [reader.read_units(leaf) for leaf in leaves.tolist()]
    return folds_of(np.concatenate(units), seed, n_folds)


def _fold_errors(
    state: FitState,
    neighbors: NeighborSpec,
    spec: SolverSpec,
    handle: RowsHandle,
    numbers: RowNumbers,
    folds: Keys,
    fold: int,
) -> Float64:
    """Return (missed weight, weight) of each candidate on one fold: (n_k, n_gammas, n_costs, 2)."""
    training = replace(handle, fold=(state.seed, spec.cv, fold))
    metric = metric_of(spec)
    held_out = np.flatnonzero(folds == fold)
    nearest = search_positions(held_out, 1, training, metric, state.client)[:, 0]
    n_training = int((folds != fold).sum())
    found = []
    for candidate in neighbors.n_neighbors:
        k = min(candidate, n_training)
        inner = min(neighbors.inner(candidate), k)
        order = center_order(state, numbers, inner)
        cover = Cover(order[folds[order] != fold], inner, len(numbers))
        run_cover(cover, numbers, training, metric, state.client)
        centers = np.array(cover.centers)
        of_center = centers[cover.resolved_owner()[nearest]]
        batch = plan_batch(state.sizes, k, state.sampling.largest_rows, state.resources)
        job = NeighborJob(training, spec, neighbors, k, state.seed, batch)
        found.append(_held_out_errors(of_center, held_out, job, state.scan.target, state.client))
    return np.array(found)


def _held_out_errors(
    centers: Int64,
    held_out: Int64,
    job: NeighborJob,
    target: Target,
    client: Any,
) -> Float64:
    """Train the candidates around the held-out rows' centers; sum (missed weight, weight)."""
    order = np.argsort(centers, kind="stable")
    positions, starts = np.unique(centers[order], return_index=True)
    queries = np.split(held_out[order], starts[1:])
    parts = np.array_split(np.arange(len(positions)), min(N_GRID_TASKS, len(positions)))
    tasks = [(positions[p], [queries[i] for i in p], job, target) for p in parts]
    # The exact sum over centers, whichever task evaluates them.
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


def left_out_errors(
    state: FitState,
    neighbors: NeighborSpec,
    spec: SolverSpec,
    handle: RowsHandle,
    positions: Int64,
) -> tuple[Float64, Mask]:
    """Return the weighted error of every candidate on rows that are left out one at a time.

    Parameters
    ----------
    neighbors : NeighborSpec, of one k
    spec : SolverSpec. Its C, and gamma where there are no percentiles, are the candidates.
    positions : int array (m,). Of the rows, in a drawn order.

    Returns
    -------
    errors : float64 array, shape (1, n_gammas, n_costs)
    is_last : bool array of that shape. Candidates that were evaluated on all rows, not dropped.
    """
    # One more than the neighbors, as a row finds itself.
    k = min(neighbors.n_neighbors[0] + 1, state.scan.n_kept)
    batch = plan_batch(state.sizes, k, state.sampling.largest_rows, state.resources)
    job = NeighborJob(handle, spec, neighbors, k, state.seed, batch)
    shape = 1, count_gammas(spec, job.neighbors.percentiles), spec.n_costs
    running = np.arange(shape[1] * shape[2])
    ends = [0, *(max(int(len(positions) * share), 1) for share in ROUNDS)]
    found: list[Float64] = []
    for number, (start, stop) in enumerate(pairwise(ends)):
        if start == stop:
            # Of two or three rows the second round has none.
            continue
        if number and len(running) > 1:
            order = np.argsort(_errors(found)[running], kind="stable")
            running = np.sort(running[order[: N_RUNNING[number - 1]]])
        own = positions[start:stop]
        parts = np.array_split(own, min(N_TASKS, len(own)))
        tasks = [(part, running, job, state.scan.target) for part in parts]
        found += compute_each(evaluate_left_out, tasks, state.client)
    is_last = np.isin(np.arange(shape[1] * shape[2]), running)
    return _errors(found).reshape(shape), is_last.reshape(shape)


def _errors(found: list[Float64]) -> Float64:
    evaluated = totals(np.concatenate(found))
    # No row counts where copies fill the neighborhoods of all: no candidate changes an answer.
    errors: Float64 = evaluated[:, 0] / np.where(evaluated[:, 1] > 0, evaluated[:, 1], 1.0)
    return errors


@undisturbed
def evaluate_left_out(
    positions: Int64, running: Int64, job: NeighborJob, target: Target
) -> Float64:
    """Return (missed weight, weight) of each candidate on each row: (m, n_candidates, 2).

    Both are 0 for candidates that are no longer running.
    """
    n_gammas = count_gammas(job.spec, job.neighbors.percentiles)
    counted = np.zeros((len(positions), n_gammas * job.spec.n_costs, 2))
    reader = job.handle.open()
    asked = reader.read_positions(positions)
    row = 0
    with one_blas_thread():
        for _, rows in gather_neighborhoods(reader, positions, job):
            for i in range(len(rows.X)):
                own, weight = asked.take(np.array([row])), asked.weights[row]
                others = _others(_neighborhood(rows, i), own, positions[row], reader, job)
                for candidate, missed in _misses(others, own, running, job, target):
                    counted[row, candidate] = weight * missed, weight
                row += 1
    return counted


def _others(near: Rows, own: Rows, position: int, reader: LeafReader, job: NeighborJob) -> Rows:
    """Return the nearest rows that are no copies of a row, in the order of numbers, as for queries.

    There are none where copies fill its list: no candidate changes the answer there.
    """
    k = job.n_neighbors - 1
    is_other = (near.X != own.X).any(axis=1)
    n_copies = len(is_other) - int(is_other.sum())
    if 1 < n_copies <= k:
        wider = replace(job, n_neighbors=min(k + n_copies, reader.n_rows))
        near = _neighborhood(next(gather_neighborhoods(reader, np.array([position]), wider))[1], 0)
        is_other = (near.X != own.X).any(axis=1)
    others = np.flatnonzero(is_other)[:k]
    return near.take(others[np.argsort(near.numbers[others])])


def _neighborhood(rows: Rows, i: int) -> Rows:
    """Return the rows of neighborhood i, nearest first."""
    return Rows(rows.X[i], rows.targets[i], rows.weights[i], rows.numbers[i])


def _misses(
    rows: Rows, asked: Rows, running: Int64, job: NeighborJob, target: Target
) -> Iterator[tuple[int, float]]:
    """Yield each running candidate and its error on one row; none without rows to train on."""
    if not len(rows.X):
        return
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
