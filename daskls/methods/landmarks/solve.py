"""The tasks of stage 3 of L3-SVMs: solve the cells of a group at given biases; count errors."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from daskls.blas import one_blas_thread
from daskls.errors import StoreError
from daskls.kernels.copies import find_copies
from daskls.kernels.joint import N_STATS, solve_cell
from daskls.kernels.landmarks import FeatureMap, project_rows
from daskls.methods.landmarks.parts import (
    CellStates,
    read_landmarks,
    read_states,
    read_stats,
    write_states,
)
from daskls.methods.landmarks.plan import ROWS_PER_LANDMARK
from daskls.partition.shuffle import MOST_COPIES, row_keys
from daskls.partition.space import VoronoiCells
from daskls.partition.stored import read_as
from daskls.records import Float64, Int64, Mask
from daskls.run.contract import Fit
from daskls.seeds import ROW_FOLDS
from daskls.store.caches import cached
from daskls.store.exchange import Exchange, Rows
from daskls.store.layout import Root, check_fit, root_stamp


@dataclass(frozen=True)
class JointJob:
    fit: Fit
    exchange: Exchange


@dataclass(frozen=True, eq=False)
class ProblemBatch:
    """Problems (positive class, C, fold left out or -1, bias), and their places before."""

    phase: str
    number: int
    problems: Float64
    before: Int64


@dataclass(frozen=True, eq=False)
class Solutions:
    """The round, index in it, and bias (n_costs, n_folds, q) of solved problems to evaluate."""

    phase: str
    rounds: Int64
    indices: Int64
    biases: Float64


def load_landmarks(
    root: str, fingerprint: str
) -> tuple[Float64, Float64, float | None, FeatureMap | None]:
    """Return the arguments of `project_rows` after the rows; read once in a process."""
    return _load_landmarks(root, fingerprint, root_stamp(root))


@cached(maxsize=4)
def _load_landmarks(
    root: str, fingerprint: str, stamp: Hashable
) -> tuple[Float64, Float64, float | None, FeatureMap | None]:
    opened = Root.open(root)
    projection = read_landmarks(opened)
    if projection is None or opened.attributes["fingerprint"] != fingerprint:
        raise _changed(root)
    return stored_cells(opened).center, *projection


def stored_cells(root: Root) -> VoronoiCells:
    part = root.find("partition")
    if part is None:
        raise _changed(root.where())
    return read_as(VoronoiCells, part)


def _changed(root: str) -> StoreError:
    return StoreError(f"The store {root} was changed while a fit used it. Fit again.")


def _read_cells(cells: tuple[int, int], job: JointJob) -> Iterator[tuple[int, Rows, Float64]]:
    """Yield index, rows and projected rows of each cell; one cell in memory at a time."""
    seen_by = load_landmarks(job.fit.root, job.fit.fingerprint)
    for cell in range(cells[0], cells[1] + 1):
        rows = job.exchange.read_leaf(cell)
        yield cell - cells[0], rows, project_rows(rows.X, *seen_by)


def solve_group(cells: tuple[int, int], round: ProblemBatch, job: JointJob) -> Float64:
    """Solve all problems of a round in some cells; return the statistics, (c, p, N_STATS)."""
    task = job.fit.root, round.phase, round.number, cells
    done = read_stats(*task)
    if done is not None:
        return done
    start = _start(cells, round, job)
    stats = np.empty((*start.deltas.shape, N_STATS))
    with one_blas_thread():
        for i, rows, M in _read_cells(cells, job):
            m, n_landmarks = M.shape
            few = m <= ROWS_PER_LANDMARK * n_landmarks
            solve_cell(
                M,
                M @ M.T if few else np.empty((0, 0)),
                rows.codes,
                rows.weights,
                _folds(rows, job),
                round.problems,
                start.theta[i],
                start.deltas[i],
                job.fit.spec.tol / 2,
                stats[i],
            )
    check_fit(job.fit.root, job.fit.fingerprint)
    write_states(*task, start, stats)
    return stats


def _folds(rows: Rows, job: JointJob) -> Int64:
    """Return the fold of each row of a cell; rows of equal features are in that of the first."""
    n_folds = job.fit.spec.cv
    folds = (row_keys(rows.numbers, ROW_FOLDS(job.fit.seed)) % np.uint64(n_folds)).astype(np.int64)
    copies = find_copies(rows.X)
    if copies is None:
        return folds
    first, group = copies
    # Where most rows are equal, one fold would leave no others to train on.
    is_few = np.bincount(group)[group] <= max(len(folds) // (2 * n_folds), MOST_COPIES)
    return np.where(is_few, folds[first[group]], folds)


def _start(cells: tuple[int, int], round: ProblemBatch, job: JointJob) -> CellStates:
    """Return the states in which a round starts: zero, or those the round before ended in."""
    n_cells = cells[1] - cells[0] + 1
    n_problems = len(round.problems)
    biases = round.problems[:, 3]
    if round.number == 0:
        n_landmarks = len(load_landmarks(job.fit.root, job.fit.fingerprint)[1])
        theta = np.zeros((n_cells, n_problems, n_landmarks))
        return CellStates(biases, theta, np.ones((n_cells, n_problems)))
    last = read_states(job.fit.root, round.phase, round.number - 1, cells)
    moved = np.abs(biases - last.biases[round.before])
    # `take` gives rows without gaps, for which the solver is compiled; an index would not.
    theta, deltas = (a.take(round.before, axis=1) for a in (last.theta, last.deltas))
    # Margins have moved as much as the bias: a parabola that wide covers the rows that matter.
    return CellStates(biases, theta, np.minimum(np.maximum(deltas, moved), 1.0))


def evaluate_group(
    cells: tuple[int, int], solutions: Solutions, job: JointJob
) -> tuple[Float64, Float64, Mask]:
    """Sum the weights of the held-out rows that each candidate gets wrong.

    Returns these sums, (cells, n_costs, n_folds), the weights of all held-out rows, (cells,
    n_folds), and which classes were predicted, (n_costs, n_folds, n_classes).
    """
    n_cells = cells[1] - cells[0] + 1
    n_costs, n_folds, n_problems = solutions.rounds.shape
    wrong = np.zeros((n_cells, n_costs, n_folds))
    total = np.zeros((n_cells, n_folds))
    predicted = np.zeros((n_costs, n_folds, max(n_problems, 2)), bool)
    theta = _collect(cells, solutions, job)
    with one_blas_thread():
        for i, rows, M in _read_cells(cells, job):
            folds = _folds(rows, job)
            for fold in range(n_folds):
                held_out = np.flatnonzero(folds == fold)
                weights, codes = rows.weights[held_out], rows.codes[held_out]
                total[i, fold] = weights.sum()
                for cost in range(n_costs):
                    scores = M[held_out] @ theta[i, cost, fold].T + solutions.biases[cost, fold]
                    several = n_problems > 1
                    winners = scores.argmax(axis=1) if several else (scores[:, 0] > 0).astype(int)
                    wrong[i, cost, fold] = weights[winners != codes].sum()
                    predicted[cost, fold, winners] = True
    return wrong, total, predicted


def _collect(cells: tuple[int, int], solutions: Solutions, job: JointJob) -> Float64:
    """Return theta of all solutions, each from its own round: (cells, costs, folds, q, l)."""
    theta: Float64 | None = None
    for number in np.unique(solutions.rounds).tolist():
        states = read_states(job.fit.root, solutions.phase, number, cells)
        if theta is None:
            theta = np.empty((len(states.theta), *solutions.rounds.shape, states.theta.shape[-1]))
        in_round = solutions.rounds == number
        theta[:, in_round] = states.theta[:, solutions.indices[in_round]]
    assert theta is not None
    return theta
