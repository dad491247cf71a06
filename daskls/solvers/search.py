"""The search of one cell's grid: which combinations of C and gamma are trained, and which is best.

``"full"`` trains every combination on every fold. ``"refine"`` goes from coarse to fine: every
other value of each axis at a tolerance `LOOSE` times as large, then the best point and its
neighbors at the tolerance asked for. Fold by fold, combinations that are significantly worse on the
rows of these folds are pruned. What is worse `daskls.solvers.search` says. The chosen
combination's fold models are brought to the plain gap in the end.

A test whether one combination of C and gamma is significantly worse than another.

Both are evaluated on the same held-out rows, so they are compared row by row: with d the weighted
difference of their errors on a row, ``sum(d)`` has about the variance ``sum(d^2)`` if they are
equally good (McNemar's test).

Source: Maron, Moore, Hoeffding races, NIPS 1993 (the idea); McNemar 1947 (the test).

What the search of a cell's grid minimizes over held-out rows: wrong rows' weight, or a score.

By default a combination's error is the weight of the rows that it decides wrongly. By
``"tpr_x_tnr"`` it is 1 less the product of the classes' recalls, of two classes the true positive
rate times the true negative rate: where one class is rare, deciding all rows for the other one is
hardly wrong by weight, but scores 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskls.records import F4, F8, Float32, Float64, Int64, Mask, Scoring, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.evaluate import total
from daskls.solvers.grid import NO_PASS, Grid, GridPoint, coarse_points, near_points
from daskls.solvers.rows import CellData, Choice, kernel_of
from daskls.solvers.width import ClassPairs, Line, Seeds, Width

# Two standard deviations: one wrong verdict in 44 between equals, on which little is lost.
DOUBT = 2.0


def is_beaten(wrong: Float64, best: Float64, doubt: float = DOUBT) -> bool:
    """Return whether errors stand above the best one's by more than ``doubt`` deviations.

    Parameters
    ----------
    wrong, best : float arrays, shape (m,). A row's weight where it is decided wrongly, else 0.

    Examples
    --------
    >>> is_beaten(np.array([1.0] * 5), np.zeros(5)), is_beaten(np.array([1.0] * 4), np.zeros(4))
    (True, False)
    """
    excess = wrong - best
    return float(excess.sum()) > doubt * float(np.sqrt((excess**2).sum()))


@dataclass(frozen=True, eq=False)
class ErrorWeight:
    """The weight of the rows that are decided wrongly.

    Attributes
    ----------
    unit : float. What an error is divided by where a person reads it: the weight of all rows.
    """

    unit: float

    def error(self, wrong: Float64) -> float:
        """Return what a search minimizes.

        Parameters
        ----------
        wrong : float64 array, shape (h,). The first h rows' weights where they are decided wrongly,
            else 0.
        """
        return total(wrong)

    def losses(self, wrong: Float64, best: Float64) -> Float64:
        """Return each row's share of the error, near the best one's, for a test between both."""
        return wrong


@dataclass(frozen=True, eq=False)
class RecallProduct:
    """One less the product of the classes' recalls, of weighted rows.

    Attributes
    ----------
    weights : float64 array, shape (h,). Of the rows that are held out once.
    codes : int64 array, shape (h,). Their classes, below ``n_classes``.
    n_classes : int
    """

    weights: Float64
    codes: Int64
    n_classes: int
    unit: float = 1.0

    def recalls(self, wrong: Float64) -> tuple[Float64, Float64]:
        """Return each class's recall among the first rows, and its weight; 1 of one without any."""
        codes, weights = self.codes[: len(wrong)], self.weights[: len(wrong)]
        of_class = [codes == c for c in range(self.n_classes)]
        sizes = np.array([total(weights[own]) for own in of_class])
        missed = np.array([total(wrong[: len(codes)][own]) for own in of_class])
        return 1.0 - missed / np.where(sizes > 0, sizes, 1.0), sizes

    def error(self, wrong: Float64) -> float:
        """As of `ErrorWeight`: 1 less the product of the recalls."""
        found, _ = self.recalls(wrong)
        return 1.0 - float(np.prod(found))

    def losses(self, wrong: Float64, best: Float64) -> Float64:
        """As of `ErrorWeight`: by the product's derivative, where the best combination stands."""
        found, sizes = self.recalls(best)
        rest = np.array([np.prod(np.delete(found, c)) for c in range(self.n_classes)])
        factors = rest / np.where(sizes > 0, sizes, np.inf)
        scaled: Float64 = wrong[: len(self.codes)] * factors[self.codes[: len(wrong)]]
        return scaled


Judge = ErrorWeight | RecallProduct


def judge_of(
    scoring: Scoring | None, weights: Float64, codes: Int64, n_classes: int, n_judged: int
) -> Judge:
    """Return what a search minimizes.

    Parameters
    ----------
    scoring : Scoring or None
    weights, codes : arrays of a cell's rows, ordered by fold
    n_classes : int
    n_judged : int. The first so many rows are held out once.
    """
    if scoring is None:
        return ErrorWeight(total(weights[:n_judged]))
    return RecallProduct(weights[:n_judged], codes[:n_judged], n_classes)


# The coarse pass solves to so many times the tolerance: errors hardly change by it.
LOOSE = 10.0


@dataclass(frozen=True, eq=False)
class Trained:
    """A combination that has run on all folds.

    Attributes
    ----------
    error : float. What the search minimizes, in the judge's own unit.
    wrong : float64 array, shape (m,). A row's weight where it is decided wrongly held out, else 0.
    lines : list of Line, of one C each, one a fold
    """

    error: float
    gamma: int
    cost: int
    wrong: Float64
    lines: list[Line]

    @property
    def rank(self) -> tuple[float, int, int]:
        """Ties go to the largest width, then to the smallest C."""
        return self.error, self.gamma, self.cost


class GridSearch:
    """The state of one cell's grid search.

    Parameters
    ----------
    cell : CellData
    spec : SolverSpec. ``search`` says which combinations; see the module.
    grid : Grid
    width : class of the lines of solves: the loss
    """

    def __init__(self, cell: CellData, spec: SolverSpec, grid: Grid, width: type[Width]) -> None:
        self.cell, self.spec, self.grid = cell, spec, grid
        self.fold_ptr = cell.fold_ptr(np.arange(len(cell.codes)), spec.cv)
        # A fold without rows is trained by nobody.
        self.folds = [f for f in range(spec.cv) if self.fold_ptr[f] < self.fold_ptr[f + 1]]
        self.weights = cell.weights.astype(np.float64)
        n_judged = int(self.fold_ptr[-1])
        self.judge = judge_of(spec.scoring, self.weights, cell.codes, cell.n_classes, n_judged)
        self.pairs = ClassPairs.of(cell, spec.cv)
        self.width = width(self.pairs, spec, self.folds)
        self.best: Trained | None = None
        self.seeds = Seeds(np.zeros((len(self.folds), len(self.pairs.rows)), np.float32), 0.0)
        self.tried: set[tuple[int, int]] = set()
        self.errors: dict[tuple[int, int], float] = {}
        # The chosen fold models, of all pairs: betas (n_folds, s) and offsets (n_folds, n_pairs).
        self.models = self.seeds.betas, np.zeros((len(self.folds), len(self.pairs)))

    @property
    def held_out_weight(self) -> float:
        """The weight of all rows that are held out once."""
        return total(self.weights[self.fold_ptr[0] : self.fold_ptr[-1]])

    def run(self) -> tuple[Trained, GridPoint]:
        """Search; return the best combination, and the point that a coarse pass chose."""
        return self._run_full() if self.spec.search == "full" else self._run_refined()

    def choose(self, *, finish: bool) -> Choice:
        """Search; average the chosen fold models, brought to the plain gap if ``finish``."""
        return self._choice(*self.run(), finish=finish)

    def _run_full(self) -> tuple[Trained, GridPoint]:
        for g in range(len(self.grid.gammas)):
            self.visit(g, list(range(len(self.grid.costs))), prune=False)
        return self._found(), NO_PASS

    def _run_refined(self) -> tuple[Trained, GridPoint]:
        """Search from coarse to fine; grids of short axes alone are tried whole."""
        shape = len(self.grid.gammas), len(self.grid.costs)
        gammas, costs = coarse_points(shape)
        is_whole = len(gammas) * len(costs) == shape[0] * shape[1]
        for g in gammas:
            self.visit(g, costs, loose=1.0 if is_whole else LOOSE)
        first = self._found()
        if is_whole:
            return first, NO_PASS
        # The point itself is trained again, to the same tolerance as its neighbors.
        self.best = None
        near_gammas, near_costs = near_points(shape, (first.gamma, first.cost))
        for g in near_gammas:
            self.visit(g, near_costs)
        return self._found(), (first.gamma, first.cost)

    def _found(self) -> Trained:
        if self.best is None:
            raise AssertionError("the best of a search is never beaten")
        return self.best

    def visit(self, g: int, indices: list[int], *, loose: float = 1.0, prune: bool = True) -> None:
        """Train some C values at one width, fold by fold; keep the best.

        Parameters
        ----------
        g : int. The width's index.
        indices : list of int, increasing. Those of the C values.
        loose : float. The tolerance, in units of the one asked for.
        prune : bool. After each fold, leave out the C values that are beaten on the folds so far.
        """
        self.tried.update((g, i) for i in indices)
        self.width.move(self.grid.gammas[g], self.seeds)
        alive = list(indices)
        wrong = {i: np.zeros_like(self.weights) for i in alive}
        lines: dict[int, list[Line]] = {i: [] for i in alive}
        for at, fold in enumerate(self.folds):
            if not alive:
                break
            costs = np.array([self.grid.costs[i] for i in alive])
            line = self.width.solve(at, costs, loose * self.spec.tol)
            held_out = slice(self.fold_ptr[fold], self.fold_ptr[fold + 1])
            mistaken = self._mistaken(line, held_out)
            for row, i in enumerate(alive):
                wrong[i][held_out] = self.weights[held_out] * mistaken[row]
                own = slice(row, row + 1)
                lines[i].append(Line(line.betas[own].copy(), line.offsets[own].copy()))
            if prune:
                alive = self._unbeaten(alive, wrong, int(held_out.stop))
        for i in alive:
            self._offer(Trained(self.judge.error(wrong[i]), g, i, wrong[i], lines[i]))

    def lines(self, g: int) -> Iterator[tuple[int, Line]]:
        """Train every C at one width; yield each fold and its line."""
        self.width.move(self.grid.gammas[g], self.seeds)
        for at, fold in enumerate(self.folds):
            yield fold, self.width.solve(at, np.array(self.grid.costs), self.spec.tol)

    def _mistaken(self, line: Line, held_out: slice) -> Mask:
        """Return which held-out rows each C decides wrongly."""
        winners = self.width.decide(line, held_out)
        mistaken: Mask = winners != self.cell.codes[held_out]
        return mistaken

    def _unbeaten(self, alive: list[int], wrong: dict[int, Float64], stop: int) -> list[int]:
        """Return who is not beaten beyond doubt on the rows of the folds so far."""
        own = {i: wrong[i][:stop] for i in alive}
        rivals = [*own.values(), *([self.best.wrong[:stop]] if self.best else [])]
        if not rivals:
            return alive
        best, losses = min(rivals, key=self.judge.error), self.judge.losses
        least = losses(best, best)
        return [i for i in alive if not is_beaten(losses(own[i], best), least)]

    def _offer(self, trained: Trained) -> None:
        """Note a combination's error; keep it, and start from it, if it is the best."""
        self.errors[trained.gamma, trained.cost] = trained.error
        if self.best is None or trained.rank < self.best.rank:
            self.best = trained
            betas = np.concatenate([line.betas for line in trained.lines])
            self.seeds = Seeds(betas, self.grid.costs[trained.cost])

    def _choice(self, best: Trained, first: GridPoint, *, finish: bool) -> Choice:
        """Average the fold models of the selected combination."""
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
            error=best.error / self.judge.unit,
            coef=self.pairs.coefficients(mean[None])[0],
            intercepts=offsets.mean(axis=0),
            counts=self.width.counts,
            edge=self._edge(best.gamma, best.cost),
            n_tried=len(self.tried),
            first=first,
            errors=self._all_errors(),
        )

    def _all_errors(self) -> Float32:
        """Return the error of each combination that ran on all folds; -1 of the others."""
        found = np.full((len(self.grid.gammas), len(self.grid.costs)), -1.0, np.float32)
        for point, error in self.errors.items():
            found[point] = error / self.judge.unit
        return found

    def _finish(self, best: Trained, betas: Float32, offsets: Float64) -> None:
        """Bring the fold models of one combination to the plain gap, in place."""
        gamma = self.grid.gammas[best.gamma]
        kernel, cost = kernel_of(self.spec, gamma), self.grid.costs[best.cost]
        self.width.move(gamma, self.seeds)
        self.width.finish(kernel, cost, betas, offsets)

    def _edge(self, g: int, i: int) -> str:
        """Name the axes of the grid on whose first or last value the choice lies."""
        axes = {"C": (i, len(self.grid.costs)), "gamma": (g, len(self.grid.gammas))}
        return " ".join(name for name, (at, n) in axes.items() if n > 1 and at in (0, n - 1))


def grid_search_nbytes(sizes: Sizes, n_rows: int) -> int:
    """Return the bytes of a search: solutions of all pairs of classes, and the pairs' votes."""
    spec, m, k = sizes.spec, n_rows, sizes.n_classes
    # Each row is in k - 1 pairs.
    s, cv, n = (k - 1) * m, spec.cv, _n_together(spec)
    # All C values of a width, fold by fold; the best so far, the seeds, and the models at the end.
    solutions = (n * (cv + 1) + 4 * cv) * s * F4 + n * m * F8
    if k == 2:
        return solutions
    held_out = -(-m // cv)
    votes = 2 * n * s * F4 + n * k * (k - 1) * held_out * F4 + 2 * held_out * m * F4
    return solutions + votes


def _n_together(spec: SolverSpec) -> int:
    """Return how many C values are trained at one width, at the most."""
    if spec.search == "full":
        return spec.n_costs
    _, coarse = coarse_points((1, spec.n_costs))
    # Then a point and its neighbors.
    return max(len(coarse), min(spec.n_costs, 3))
