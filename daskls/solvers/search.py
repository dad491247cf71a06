"""The grid search of one cell: every (C, gamma) on every fold, the best by validation error."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from daskls.kernels.gram import apply_kernel
from daskls.kernels.votes import Ballot, pairs_of
from daskls.records import FloatArray, IntArray, KernelSpec, SolverSpec
from daskls.solvers.folds import deal_folds
from daskls.solvers.grid import Grid
from daskls.solvers.path import Path, solve_once, solve_path

__all__ = ["CellData", "Choice", "refit_cell", "search_grid"]


@dataclass
class CellData:
    """One cell's rows, grouped by class, as the solvers see them.

    Attributes
    ----------
    base : float32 array, shape (m, m). What the kernel is a function of.
    codes : int array, shape (m,). Position of each row's class among the classes present.
    class_ptr : int64 array, shape (k + 1,)
    weights : float32 array, shape (m,), > 0
    """

    base: FloatArray
    codes: IntArray
    class_ptr: IntArray
    weights: FloatArray

    @property
    def n_classes(self) -> int:
        """The number of classes present."""
        return len(self.class_ptr) - 1

    def pairs(self) -> Iterator[tuple[int, int, IntArray, FloatArray]]:
        """Yield each pair (a, b) with its rows and their signs, -1 for a and +1 for b."""
        ptr = self.class_ptr
        for a, b in pairs_of(self.n_classes):
            rows = np.r_[ptr[a] : ptr[a + 1], ptr[b] : ptr[b + 1]]
            yield a, b, rows, np.where(self.codes[rows] == b, np.float32(1), np.float32(-1))


@dataclass
class Choice:
    """The selected combination and the coefficients of its fold models' mean."""

    kernel: KernelSpec
    C: float
    error: float
    coef: FloatArray
    n_steps: int = 0
    n_at_limit: int = 0
    n_trained: int = 0
    edge: str = ""


def search_grid(cell: CellData, spec: SolverSpec, grid: Grid, seed: tuple[int, ...]) -> Choice:
    """Train every combination on every fold; select by the validation error averaged over folds.

    Ties go to the largest width, then to the smallest C: candidates come in that order, and a
    later one must be strictly better.

    Parameters
    ----------
    cell : CellData
    spec : SolverSpec
    grid : Grid
    seed : tuple of int. For the folds.

    Returns
    -------
    choice : Choice. ``coef`` (k - 1, m) is the mean of the selected combination's fold models.
    """
    folds = deal_folds(cell.codes, spec.cv, seed)
    K = np.empty_like(cell.base)
    best: Choice | None = None
    n_steps = n_at_limit = n_trained = 0
    for gamma in grid.gammas:
        kernel = _kernel(spec, gamma)
        apply_kernel(cell.base, kernel, K)
        paths, ballots = _train_pairs(K, cell, folds, spec, grid)
        n_steps += sum(path.n_steps for path in paths)
        n_at_limit += sum(path.n_at_limit for path in paths)
        n_trained += sum(path.alphas.shape[0] * path.alphas.shape[1] for path in paths)
        for i, ballot in enumerate(ballots):
            error = _mean_error(ballot, cell, folds, spec.cv)
            if best is None or error < best.error:
                alphas = [path.alphas[:, i].mean(axis=0, dtype=np.float64) for path in paths]
                best = Choice(kernel, grid.costs[i], error, _coefficients(cell, alphas))
        # Else these would stand beside those of the next gamma.
        del paths, ballots
    if best is None:
        raise AssertionError("a grid has at least one candidate")
    edge = _edge(best, grid)
    return replace(best, n_steps=n_steps, n_at_limit=n_at_limit, n_trained=n_trained, edge=edge)


def refit_cell(cell: CellData, choice: Choice, grid: Grid, tol: float) -> Choice:
    """Replace the mean of the fold models by one model of all rows, at the same lambda."""
    K = apply_kernel(cell.base, choice.kernel, np.empty_like(cell.base))
    counts = Path(np.empty(0), np.empty(0))
    cost = choice.C * grid.refit_scale
    alphas = []
    for (a, b, rows, signs), coef in zip(
        cell.pairs(), _pair_coefficients(cell, choice.coef), strict=True
    ):
        Q = _signed(K, rows, signs, whole=(a, b) == (0, 1) and cell.n_classes == 2)
        start = np.abs(coef) * np.float32(grid.refit_scale)
        alphas.append(solve_once(Q, cell.weights[rows], start, cost, tol, counts))
    return replace(
        choice,
        C=cost,
        coef=_coefficients(cell, alphas),
        n_steps=choice.n_steps + counts.n_steps,
        n_at_limit=choice.n_at_limit + counts.n_at_limit,
        n_trained=choice.n_trained + len(alphas),
    )


def _kernel(spec: SolverSpec, gamma: float) -> KernelSpec:
    """Return the kernel at one candidate gamma."""
    return KernelSpec(spec.kernel, gamma, spec.degree, spec.coef0)


def _signed(K: FloatArray, rows: IntArray, signs: FloatArray, *, whole: bool) -> FloatArray:
    """Return y_i y_j K[i, j] over ``rows``; in place where they are all rows of a binary cell."""
    Q = K if whole else K[np.ix_(rows, rows)]
    Q *= signs[:, None]
    Q *= signs
    return Q


def _train_pairs(
    K: FloatArray, cell: CellData, folds: IntArray, spec: SolverSpec, grid: Grid
) -> tuple[list[Path], list[Ballot]]:
    """Train every pair on every fold and C; collect the votes on the held-out rows, one a C.

    In a binary cell ``K`` is overwritten: its memory becomes Q.
    """
    ballots = [Ballot(len(cell.codes), cell.n_classes) for _ in grid.costs]
    paths = []
    for a, b, rows, signs in cell.pairs():
        binary = cell.n_classes == 2
        Q = _signed(K, rows, signs, whole=binary)
        path = solve_path(Q, cell.weights[rows], folds[rows], grid.costs, spec.cv, spec.tol)
        if binary:
            decisions = path.margins * signs
        else:
            decisions = _held_out_decisions(K, path, folds, rows, signs)
        for ballot, values in zip(ballots, decisions, strict=True):
            ballot.add(a, b, values)
        paths.append(path)
    return paths, ballots


def _held_out_decisions(
    K: FloatArray, path: Path, folds: IntArray, rows: IntArray, signs: FloatArray
) -> FloatArray:
    """Return one pair's decision values on all rows, each from the model without its fold."""
    n_folds, n_costs, _ = path.alphas.shape
    decisions = np.empty((n_costs, len(folds)), np.float32)
    for fold in range(n_folds):
        held_out = np.flatnonzero(folds == fold)
        coef = path.alphas[fold] * signs
        decisions[:, held_out] = coef @ K[np.ix_(held_out, rows)].T
    return decisions


def _mean_error(ballot: Ballot, cell: CellData, folds: IntArray, n_folds: int) -> float:
    """Return the weighted error averaged over the folds that hold rows."""
    wrong = cell.weights * (ballot.scores().argmax(axis=1) != cell.codes)
    totals = np.bincount(folds, cell.weights, n_folds)
    held = totals > 0
    return float(np.mean(np.bincount(folds, wrong, n_folds)[held] / totals[held]))


def _coefficients(cell: CellData, alphas: list[FloatArray]) -> FloatArray:
    """Lay signed alphas of all pairs out as scikit-learn's ``dual_coef_``, shape (k - 1, m)."""
    coef = np.zeros((cell.n_classes - 1, len(cell.codes)), np.float32)
    for (a, b, rows, signs), alpha in zip(cell.pairs(), alphas, strict=True):
        first = cell.codes[rows] == a
        coef[b - 1, rows[first]] = (alpha * signs)[first]
        coef[a, rows[~first]] = (alpha * signs)[~first]
    return coef


def _pair_coefficients(cell: CellData, coef: FloatArray) -> Iterator[FloatArray]:
    """Undo `_coefficients`: yield the signed alphas of each pair."""
    for a, b, rows, _ in cell.pairs():
        yield np.where(cell.codes[rows] == a, coef[b - 1, rows], coef[a, rows])


def _edge(choice: Choice, grid: Grid) -> str:
    """Name the axes of the grid on whose first or last value the choice lies."""
    axes = {"C": (choice.C, grid.costs), "gamma": (choice.kernel.gamma, grid.gammas)}
    on_edge = [
        name
        for name, (value, values) in axes.items()
        if len(values) > 1 and value in (values[0], values[-1])
    ]
    return " ".join(on_edge)
