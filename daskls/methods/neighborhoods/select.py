"""Selection of k, C and the width, once for all neighborhoods, in one of two ways.

"local": folds within the neighborhoods of a few drawn rows. "left_out", where each query trains an
SVM: drawn rows are predicted as queries are. Folds within neighborhoods misjudge queries: on splice
they choose parameters with an error of 12.0 % on test rows, left-out rows choose 4.6 %.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskls.blas import one_blas_thread
from daskls.cluster import compute_each
from daskls.methods.neighborhoods.plan import N_SELECTED, NeighborSpec, plan_batch
from daskls.methods.neighborhoods.train import NeighborJob, evaluate_row, gather_neighborhoods
from daskls.methods.scores import misses_of, model_scores
from daskls.plan.bundles import n_selecting
from daskls.records import Float64, Int64, Mask
from daskls.run.contract import Fit, FitState
from daskls.seeds import EVALUATED, SELECTED_ROWS
from daskls.solvers.base import Neighborhood
from daskls.solvers.evaluate import totals
from daskls.solvers.grid import count_gammas
from daskls.solvers.registry import find_neighborhood_solver
from daskls.store.exchange import Rows
from daskls.store.leaves import LeafReader
from daskls.targets import Target

# Shares of the drawn rows at which candidates are dropped, and how many go on: an SVM for each row
# and candidate is expensive, and most candidates are far from the best.
ROUNDS = (1 / 8, 1 / 2, 1)
N_RUNNING = (4, 2)
# Tasks of each of these rounds.
N_TASKS = 64


def select(state: FitState, neighbors: NeighborSpec) -> tuple[Fit, int]:
    resolved = state.resolved_spec if neighbors.percentiles is None else state.request.spec
    fit = replace(state.fit, method=neighbors, spec=resolved)
    if not neighbors.selects_once:
        return fit, neighbors.n_neighbors[0]
    stored = state.root.attributes.get("selected")
    if stored is None:
        with state.clock.stage("select", 1, None):
            stored = _best(*_evaluate(state, fit), fit)
        # Before any training, so that a resumed fit does not select again.
        state.root.update(selected=stored)
    gamma, percentile = stored["gamma"], stored["percentile"]
    chosen = replace(resolved, C=(stored["C"],), gamma=None if gamma is None else (gamma,))
    method = replace(neighbors, percentiles=None if percentile is None else (percentile,))
    return replace(fit, method=method, spec=chosen), int(stored["n_neighbors"])


def _evaluate(state: FitState, fit: Fit) -> tuple[Float64, Mask]:
    """Return the errors of candidates and which may be chosen, both (n_k, n_gammas, n_costs)."""
    if fit.method.selection == "left_out":
        drawn = _drawn_positions(state, n_selecting(state.scan.n_kept), fit)
        return left_out_errors(state, fit, drawn)
    errors = _local_errors(state, fit)
    return errors, np.ones(errors.shape, np.bool_)


def _best(errors: Float64, eligible: Mask, fit: Fit) -> dict[str, Any]:
    """Return the best candidate: of equal ones the smallest k, the widest, the smallest C."""
    k, g, i = np.unravel_index(int(np.where(eligible, errors, np.inf).argmin()), errors.shape)
    costs = sorted(fit.spec.C or ())
    gammas = sorted(fit.spec.gamma) if fit.spec.gamma is not None else [None]
    percentiles = fit.method.percentiles
    return {
        "n_neighbors": fit.method.n_neighbors[k],
        "C": costs[i],
        "gamma": gammas[g] if percentiles is None else None,
        "percentile": None if percentiles is None else percentiles[g],
        "errors": errors.tolist(),
    }


def _drawn_positions(state: FitState, n_drawn: int, fit: Fit) -> Int64:
    reader = fit.open_rows()
    rng = SELECTED_ROWS.generator(state.seed, n_rows=reader.n_rows)
    drawn = rng.choice(reader.n_rows, min(n_drawn, reader.n_rows), replace=False)
    # Drawn by row number, as positions depend on how space was cut.
    numbers = reader.read_numbers()
    positions: Int64 = np.argsort(numbers, kind="stable")[drawn]
    return positions


def _local_errors(state: FitState, fit: Fit) -> Float64:
    job = NeighborJob(fit, max(fit.method.n_neighbors), 1)
    positions = _drawn_positions(state, N_SELECTED, fit)
    tasks = [(position, job) for position in positions.tolist()]
    evaluated = totals(np.array(compute_each(evaluate_row, tasks, state.client)))
    errors: Float64 = evaluated[..., 0] / evaluated[..., 1]
    return errors


def left_out_errors(state: FitState, fit: Fit, positions: Int64) -> tuple[Float64, Mask]:
    """Return the weighted error of every candidate on rows that are left out one at a time.

    The method has one k. Errors are (1, n_gammas, n_costs); so is which were evaluated on all
    rows.
    """
    # One more than the neighbors, as a row finds itself.
    method, n_rows = fit.method, state.scan.n_kept
    k, largest = min(method.n_neighbors[0] + 1, n_rows), state.sampling.largest_rows
    batch = plan_batch(state.sizes, k, largest, n_rows, state.resources, method.n_groups)
    job = NeighborJob(fit, k, batch)
    shape = 1, count_gammas(fit.spec, method.percentiles), fit.spec.n_costs
    running = np.arange(shape[1] * shape[2])
    ends = [0, *(max(int(len(positions) * share), 1) for share in ROUNDS)]
    misses: list[Float64] = []
    for number, (start, stop) in enumerate(pairwise(ends)):
        if start == stop:
            # Of two or three rows the second round has none.
            continue
        if number and len(running) > 1:
            order = np.argsort(_errors(misses)[running], kind="stable")
            running = np.sort(running[order[: N_RUNNING[number - 1]]])
        in_round = positions[start:stop]
        parts = np.array_split(in_round, min(N_TASKS, len(in_round)))
        tasks = [(part, running, job, state.scan.target) for part in parts]
        misses += compute_each(evaluate_left_out, tasks, state.client)
    is_last = np.isin(np.arange(shape[1] * shape[2]), running)
    return _errors(misses).reshape(shape), is_last.reshape(shape)


def _errors(misses: list[Float64]) -> Float64:
    evaluated = totals(np.concatenate(misses))
    # No row counts where copies fill the neighborhoods of all: no candidate changes an answer.
    errors: Float64 = evaluated[:, 0] / np.where(evaluated[:, 1] > 0, evaluated[:, 1], 1.0)
    return errors


def evaluate_left_out(
    positions: Int64, running: Int64, job: NeighborJob, target: Target
) -> Float64:
    """Return (missed weight, weight), 0 if not running, on each row: (m, n_candidates, 2)."""
    n_gammas = count_gammas(job.fit.spec, job.fit.method.percentiles)
    counted = np.zeros((len(positions), n_gammas * job.fit.spec.n_costs, 2))
    reader = job.fit.open_rows()
    queries = reader.read_positions(positions)
    row = 0
    with one_blas_thread():
        for _, rows in gather_neighborhoods(reader, positions, job):
            for i in range(len(rows.X)):
                query, weight = queries.take(np.array([row])), queries.weights[row]
                others = _others(_neighborhood(rows, i), query, positions[row], reader, job)
                for candidate, missed in _misses(others, query, running, job, target):
                    counted[row, candidate] = weight * missed, weight
                row += 1
    return counted


def _others(near: Rows, query: Rows, position: int, reader: LeafReader, job: NeighborJob) -> Rows:
    """Return the nearest rows that are no copies of a row; none where copies fill its list."""
    k = job.n_neighbors - 1
    is_other = (near.X != query.X).any(axis=1)
    n_copies = len(is_other) - int(is_other.sum())
    if 1 < n_copies <= k:
        wider = replace(job, n_neighbors=min(k + n_copies, reader.n_rows))
        near = _neighborhood(next(gather_neighborhoods(reader, np.array([position]), wider))[1], 0)
        is_other = (near.X != query.X).any(axis=1)
    others = np.flatnonzero(is_other)[:k]
    return near.take(others[np.argsort(near.numbers[others])])


def _neighborhood(rows: Rows, i: int) -> Rows:
    """Return the rows of neighborhood i, nearest first."""
    return Rows(rows.X[i], rows.targets[i], rows.weights[i], rows.numbers[i])


def _misses(
    rows: Rows, query: Rows, running: Int64, job: NeighborJob, target: Target
) -> Iterator[tuple[int, float]]:
    if not len(rows.X):
        return
    costs = sorted(job.fit.spec.C or ())
    seed = EVALUATED(job.fit.seed, row=int(query.numbers[0]), n_neighbors=job.n_neighbors)
    for g in np.unique(running // len(costs)).tolist():
        candidates = running[running // len(costs) == g]
        spec = replace(job.fit.spec, C=tuple(costs[c] for c in candidates % len(costs)))
        percentiles = job.fit.method.percentiles
        if percentiles is not None:
            percentiles = (percentiles[g],)
        elif spec.gamma is not None:
            spec = replace(spec, gamma=(sorted(spec.gamma)[g],))
        k = len(rows.X)
        near = Neighborhood(rows.X, rows.targets, rows.weights, k, spec, percentiles, seed)
        models = find_neighborhood_solver(spec).candidate_models(near)
        for candidate, model in zip(candidates.tolist(), models, strict=True):
            scores = model_scores(model, query.X, target.n_classes)
            yield candidate, float(misses_of(scores, query.targets, target)[0])
