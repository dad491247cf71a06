"""The search of one cell's grid: which candidates (C, gamma) are trained, and which is best.

``"full"`` trains every candidate on every fold. ``"refine"`` goes from coarse to fine: every other
value of each axis at a tolerance `LOOSE` times as large, then the best candidate and its neighbors
at the requested tolerance. After each fold, candidates that are significantly worse on the rows so
far are pruned.

Two candidates are compared row by row, on the same held-out rows: with d the weighted difference of
their errors on a row, ``sum(d)`` has a variance of about ``sum(d^2)`` if they are equally good.
Source: Maron, Moore, Hoeffding races, NIPS 1993 (the idea); McNemar 1947 (the test).

By default a candidate's error is the weight of the rows that it decides wrongly. With
``"tpr_x_tnr"`` it is 1 - the product of the classes' recalls: where one class is rare, predicting
the other for all rows has a small error by weight, but a product of 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskls.records import F4, F8, Float32, Float64, Int64, Mask, Scoring, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.evaluate import total
from daskls.solvers.grid import Grid, coarse_points, near_points
from daskls.solvers.rows import CellData, Choice, kernel_of
from daskls.solvers.width import ClassPairs, PairSolver, PathSolutions, WarmStart

# The tolerance of the coarse pass, in units of the requested one: errors hardly change by it.
LOOSE = 10.0


@dataclass(frozen=True, eq=False)
class CVResult:
    """A candidate that has run on all folds, by its indices in the grid.

    `wrong` (m,) is a row's weight where it is decided wrongly held out, else 0.
    """

    error: float
    gamma: int
    cost: int
    wrong: Float64
    lines: list[PathSolutions]

    @property
    def rank(self) -> tuple[float, int, int]:
        """The sort key: ties go to the largest width, then to the smallest C."""
        return self.error, self.gamma, self.cost


class GridSearch:
    def __init__(
        self, cell: CellData, spec: SolverSpec, grid: Grid, pair_solver: type[PairSolver]
    ) -> None:
        self.cell, self.spec, self.grid = cell, spec, grid
        self.fold_ptr = cell.fold_ptr(np.arange(len(cell.codes)), spec.cv)
        # Folds without rows are not trained.
        self.folds = [f for f in range(spec.cv) if self.fold_ptr[f] < self.fold_ptr[f + 1]]
        self.weights = cell.weights.astype(np.float64)
        n_held_out = int(self.fold_ptr[-1])
        self.criterion = find_criterion(
            spec.scoring, self.weights, cell.codes, cell.n_classes, n_held_out
        )
        self.pairs = ClassPairs.of(cell, spec.cv)
        self.width = pair_solver(self.pairs, spec, self.folds)
        self.best: CVResult | None = None
        self.seeds = WarmStart(np.zeros((len(self.folds), len(self.pairs.rows)), np.float32), 0.0)
        self.tried: set[tuple[int, int]] = set()
        self.errors: dict[tuple[int, int], float] = {}
        # The fold models of the choice: betas (n_folds, s) and offsets (n_folds, n_pairs).
        self.models = self.seeds.betas, np.zeros((len(self.folds), len(self.pairs)))

    @property
    def held_out_weight(self) -> float:
        return total(self.weights[self.fold_ptr[0] : self.fold_ptr[-1]])

    def run(self) -> CVResult:
        return self._run_full() if self.spec.search == "full" else self._run_refined()

    def choose(self, *, finish: bool) -> Choice:
        """Search, and average the chosen fold models; ``finish`` trains them to the plain gap."""
        return self._choice(self.run(), finish=finish)

    def _run_full(self) -> CVResult:
        for g in range(len(self.grid.gammas)):
            self.visit(g, list(range(len(self.grid.costs))), prune=False)
        return self._best_trained()

    def _run_refined(self) -> CVResult:
        """Search from coarse to fine; a grid of short axes is tried whole."""
        shape = len(self.grid.gammas), len(self.grid.costs)
        gammas, costs = coarse_points(shape)
        is_whole = len(gammas) * len(costs) == shape[0] * shape[1]
        for g in gammas:
            self.visit(g, costs, tol_factor=1.0 if is_whole else LOOSE)
        first = self._best_trained()
        if is_whole:
            return first
        # The point itself is trained again, at the tolerance of its neighbors.
        self.best = None
        near_gammas, near_costs = near_points(shape, (first.gamma, first.cost))
        for g in near_gammas:
            self.visit(g, near_costs)
        return self._best_trained()

    def _best_trained(self) -> CVResult:
        if self.best is None:
            raise AssertionError("the best of a search is never beaten")
        return self.best

    def visit(
        self, g: int, indices: list[int], *, tol_factor: float = 1.0, prune: bool = True
    ) -> None:
        """Train some C values at one width, fold by fold, pruning beaten ones; keep the best."""
        self.tried.update((g, i) for i in indices)
        self.width.move(self.grid.gammas[g], self.seeds)
        alive = list(indices)
        wrong = {i: np.zeros_like(self.weights) for i in alive}
        lines: dict[int, list[PathSolutions]] = {i: [] for i in alive}
        for at, fold in enumerate(self.folds):
            if not alive:
                break
            costs = np.array([self.grid.costs[i] for i in alive])
            line = self.width.solve(at, costs, tol_factor * self.spec.tol)
            held_out = slice(self.fold_ptr[fold], self.fold_ptr[fold + 1])
            mistaken = self._mistaken(line, held_out)
            for row, i in enumerate(alive):
                wrong[i][held_out] = self.weights[held_out] * mistaken[row]
                candidate = slice(row, row + 1)
                lines[i].append(
                    PathSolutions(line.betas[candidate].copy(), line.offsets[candidate].copy())
                )
            if prune:
                alive = self._unbeaten(alive, wrong, int(held_out.stop))
        for i in alive:
            self._offer(CVResult(self.criterion.error(wrong[i]), g, i, wrong[i], lines[i]))

    def lines(self, g: int) -> Iterator[tuple[int, PathSolutions]]:
        self.width.move(self.grid.gammas[g], self.seeds)
        for at, fold in enumerate(self.folds):
            yield fold, self.width.solve(at, np.array(self.grid.costs), self.spec.tol)

    def _mistaken(self, line: PathSolutions, held_out: slice) -> Mask:
        winners = self.width.decide(line, held_out)
        mistaken: Mask = winners != self.cell.codes[held_out]
        return mistaken

    def _unbeaten(self, alive: list[int], wrong: dict[int, Float64], stop: int) -> list[int]:
        so_far = {i: wrong[i][:stop] for i in alive}
        rivals = [*so_far.values(), *([self.best.wrong[:stop]] if self.best else [])]
        if not rivals:
            return alive
        best, losses = min(rivals, key=self.criterion.error), self.criterion.losses
        least = losses(best, best)
        return [i for i in alive if not is_beaten(losses(so_far[i], best), least)]

    def _offer(self, trained: CVResult) -> None:
        self.errors[trained.gamma, trained.cost] = trained.error
        if self.best is None or trained.rank < self.best.rank:
            self.best = trained
            betas = np.concatenate([line.betas for line in trained.lines])
            self.seeds = WarmStart(betas, self.grid.costs[trained.cost])

    def _choice(self, best: CVResult, *, finish: bool) -> Choice:
        kernel = kernel_of(self.spec, self.grid.gammas[best.gamma])
        betas = np.concatenate([line.betas for line in best.lines])
        offsets = np.concatenate([line.offsets for line in best.lines]).astype(np.float64)
        if finish:
            self._finish(best, betas, offsets)
        self.models = betas, offsets
        mean = betas.mean(axis=0, dtype=np.float64)
        return Choice(
            kernel=kernel,
            C=self.grid.costs[best.cost],
            error=best.error / self.criterion.unit,
            coef=self.pairs.coefficients(mean[None])[0],
            intercepts=offsets.mean(axis=0),
            counts=self.width.counts,
            edge=self._edge(best.gamma, best.cost),
            n_tried=len(self.tried),
            errors=self._all_errors(),
        )

    def _all_errors(self) -> Float32:
        """Return the error of each candidate, (n_gammas, n_costs); -1 if it left out a fold."""
        errors = np.full((len(self.grid.gammas), len(self.grid.costs)), -1.0, np.float32)
        for point, error in self.errors.items():
            errors[point] = error / self.criterion.unit
        return errors

    def _finish(self, best: CVResult, betas: Float32, offsets: Float64) -> None:
        gamma = self.grid.gammas[best.gamma]
        kernel, cost = kernel_of(self.spec, gamma), self.grid.costs[best.cost]
        self.width.move(gamma, self.seeds)
        self.width.finish(kernel, cost, betas, offsets)

    def _edge(self, g: int, i: int) -> str:
        axes = {"C": (i, len(self.grid.costs)), "gamma": (g, len(self.grid.gammas))}
        return " ".join(name for name, (at, n) in axes.items() if n > 1 and at in (0, n - 1))


def grid_search_nbytes(sizes: Sizes, n_rows: int) -> int:
    """Return the bytes of a search: solutions of all pairs of classes, and the pairs' votes."""
    spec, m, k = sizes.spec, n_rows, sizes.n_classes
    # Each row is in k - 1 pairs.
    s, cv, n = (k - 1) * m, spec.cv, _n_together(spec)
    # All C values of a width, fold by fold; the best so far, the seeds, and the final models.
    solutions = (n * (cv + 1) + 4 * cv) * s * F4 + n * m * F8
    if k == 2:
        return solutions
    held_out = -(-m // cv)
    votes = 2 * n * s * F4 + n * k * (k - 1) * held_out * F4 + 2 * held_out * m * F4
    return solutions + votes


def _n_together(spec: SolverSpec) -> int:
    if spec.search == "full":
        return spec.n_costs
    _, coarse = coarse_points((1, spec.n_costs))
    # The fine pass trains a point and its two neighbors.
    return max(len(coarse), min(spec.n_costs, 3))


# Standard deviations beyond which a candidate is worse. Between equals one verdict in 44 is wrong,
# which costs little.
PRUNE_DEVIATIONS = 2.0


def is_beaten(wrong: Float64, best: Float64) -> bool:
    """Whether errors exceed the best one's by more than `PRUNE_DEVIATIONS` deviations.

    >>> is_beaten(np.array([1.0] * 5), np.zeros(5)), is_beaten(np.array([1.0] * 4), np.zeros(4))
    (True, False)
    """
    excess = wrong - best
    return float(excess.sum()) > PRUNE_DEVIATIONS * float(np.sqrt((excess**2).sum()))


@dataclass(frozen=True, eq=False)
class ErrorWeight:
    """The weight of the rows that are decided wrongly."""

    unit: float

    def error(self, wrong: Float64) -> float:
        """Return the error that a search minimizes, from the weights of wrong rows, else 0."""
        return total(wrong)

    def losses(self, wrong: Float64, best: Float64) -> Float64:
        """Return each row's share of the error, linearized at the best one, for `is_beaten`."""
        return wrong


@dataclass(frozen=True, eq=False)
class RecallProduct:
    """1 - the product of the classes' recalls, of weighted rows that some fold holds out."""

    weights: Float64
    codes: Int64
    n_classes: int
    unit: float = 1.0

    def recalls(self, wrong: Float64) -> tuple[Float64, Float64]:
        """Return each class's recall among the first rows (1 if it has none), and its weight."""
        codes, weights = self.codes[: len(wrong)], self.weights[: len(wrong)]
        of_class = [codes == c for c in range(self.n_classes)]
        sizes = np.array([total(weights[members]) for members in of_class])
        missed = np.array([total(wrong[: len(codes)][members]) for members in of_class])
        return 1.0 - missed / np.where(sizes > 0, sizes, 1.0), sizes

    def error(self, wrong: Float64) -> float:
        recalls, _ = self.recalls(wrong)
        return 1.0 - float(np.prod(recalls))

    def losses(self, wrong: Float64, best: Float64) -> Float64:
        recalls, sizes = self.recalls(best)
        rest = np.array([np.prod(np.delete(recalls, c)) for c in range(self.n_classes)])
        factors = rest / np.where(sizes > 0, sizes, np.inf)
        scaled: Float64 = wrong[: len(self.codes)] * factors[self.codes[: len(wrong)]]
        return scaled


Criterion = ErrorWeight | RecallProduct


def find_criterion(
    scoring: Scoring | None, weights: Float64, codes: Int64, n_classes: int, n_held_out: int
) -> Criterion:
    """Return the error that a search minimizes, for a cell's rows by fold, the held-out first."""
    if scoring is None:
        return ErrorWeight(total(weights[:n_held_out]))
    return RecallProduct(weights[:n_held_out], codes[:n_held_out], n_classes)
