"""The grid search of one cell: every (C, gamma) on every fold, the best by validation error."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from daskls.kernels.gram import apply_kernel
from daskls.kernels.votes import Ballot, pairs_of
from daskls.records import FloatArray, IntArray, KernelSpec, SolverSpec
from daskls.solvers.finish import finish_folds
from daskls.solvers.grid import Grid
from daskls.solvers.path import Counts, Line, Solutions, WidthPath
from daskls.solvers.race import DOUBT, Race

__all__ = ["CellData", "Choice", "refit_cell", "search_grid"]


@dataclass
class CellData:
    """One cell's rows, ordered by fold, as the solvers see them.

    Attributes
    ----------
    rows : float32 array, shape (m, d). Centered, in the cell's unit of length.
    base : float32 array, shape (m, m). What the kernel is a function of.
    codes : int array, shape (m,). Position of each row's class among the classes present.
    folds : int array, shape (m,), increasing
    weights : float32 array, shape (m,), > 0
    n_classes : int
    """

    rows: FloatArray
    base: FloatArray
    codes: IntArray
    folds: IntArray
    weights: FloatArray
    n_classes: int

    def pairs(self) -> Iterator[tuple[int, int, IntArray, FloatArray]]:
        """Yield each pair (a, b) with its rows and their signs, -1 for a and +1 for b."""
        for a, b in pairs_of(self.n_classes):
            rows = np.flatnonzero((self.codes == a) | (self.codes == b))
            yield a, b, rows, np.where(self.codes[rows] == b, np.float32(1), np.float32(-1))

    def fold_ptr(self, rows: IntArray, n_folds: int) -> IntArray:
        """Return where each fold begins among some rows, and the number of rows last."""
        return np.searchsorted(self.folds[rows], np.arange(n_folds + 1))


@dataclass
class Choice:
    """The selected combination and the coefficients of its fold models' mean.

    ``coef`` is float32 (k - 1, m) as scikit-learn's ``dual_coef_``; ``intercepts`` float64, one a
    pair of classes.
    """

    kernel: KernelSpec
    C: float
    error: float
    coef: FloatArray
    intercepts: FloatArray
    counts: Counts
    edge: str = ""


# The solutions of every pair, by gamma.
PairSolutions = list[Solutions]


class Search:
    """The state of one cell's grid search."""

    def __init__(self, cell: CellData, spec: SolverSpec, grid: Grid) -> None:
        self.cell, self.spec, self.grid = cell, spec, grid
        everyone = np.arange(len(cell.codes))
        self.race = Race(
            cell.weights,
            cell.fold_ptr(everyone, spec.cv),
            len(grid.gammas),
            len(grid.costs),
            on=spec.search == "race",
        )
        self.kept: list[PairSolutions] = [self._no_solutions() for _ in grid.gammas]
        self.counts = Counts()

    def _no_solutions(self) -> PairSolutions:
        return [{} for _ in pairs_of(self.cell.n_classes)]

    def run(self, *, finish: bool = False) -> Choice:
        """Train round by round; return the combination that decides the least weight wrongly.

        Parameters
        ----------
        finish : bool. Bring its fold models to the plain duality gap before they are averaged.

        Notes
        -----
        Ties go to the largest width, then to the smallest C: candidates come in that order, and a
        later one must be strictly better.
        """
        K = np.empty_like(self.cell.base)
        best: tuple[float, int, int] | None = None
        rounds = self.race.rounds
        for number, folds in enumerate(rounds):
            before = self._no_solutions()
            for g, gamma in enumerate(self.grid.gammas):
                if not self.race.costs_of(g):
                    continue
                apply_kernel(self.cell.base, kernel_of(self.spec, gamma), K)
                before = self._train(K, g, folds, before)
                if number == len(rounds) - 1:
                    best = self._keep_best(g, best)
            if number < len(rounds) - 1:
                self.race.drop_beaten()
                for g in range(len(self.grid.gammas)):
                    self._keep(g, set(self.race.costs_of(g)))
        if best is None:
            raise AssertionError("a race has at least one winner")
        return self._choice(*best, K if finish else None)

    def _train(
        self,
        K: FloatArray,
        g: int,
        folds: tuple[int, ...],
        before: PairSolutions,
    ) -> PairSolutions:
        """Train every pair at one gamma; tell the race; return and keep the solutions."""
        if self.cell.n_classes == 2:
            solutions = [self._train_binary(K, g, folds, before[0])]
        else:
            solutions = self._train_pairs(K, g, folds, before)
        for kept, own in zip(self.kept[g], solutions, strict=True):
            kept.update(own)
        return solutions

    def _path(
        self, K: FloatArray, rows: IntArray, signs: FloatArray, before: Solutions
    ) -> WidthPath:
        cell = self.cell
        fold_ptr = cell.fold_ptr(rows, self.spec.cv)
        return WidthPath(K, signs, cell.weights[rows], fold_ptr, self.spec, before)

    def _costs(self, places: list[int]) -> FloatArray:
        return np.array([self.grid.costs[i] for i in places])

    def _train_binary(
        self, K: FloatArray, g: int, folds: tuple[int, ...], before: Solutions
    ) -> Solutions:
        """Train the C values still in, until the validation error has worsened beyond doubt."""
        _, _, rows, signs = next(self.cell.pairs())
        path = self._path(K, rows, signs, before)
        places = self.race.costs_of(g)
        doubt = DOUBT if self.race.is_open else 0.0
        solutions, decisions = path.train(places, self._costs(places), folds, doubt)
        self.race.end_line(g, places[len(decisions) :])
        for i, values in zip(places, decisions, strict=False):
            self.race.add(g, i, folds, (values > 0) != (signs > 0))
        self.counts.add(path.counts)
        return solutions

    def _train_pairs(
        self, K: FloatArray, g: int, folds: tuple[int, ...], before: PairSolutions
    ) -> PairSolutions:
        """Train pair by pair; collect the votes on the held-out rows, a ballot a C."""
        cell = self.cell
        places = self.race.costs_of(g)
        ballots = [Ballot(len(cell.codes), cell.n_classes) for _ in places]
        all_solutions = []
        for (a, b, rows, signs), own_before in zip(cell.pairs(), before, strict=True):
            path = self._path(K[np.ix_(rows, rows)], rows, signs, own_before)
            solutions, _ = path.train(places, self._costs(places), folds)
            decisions = _held_out_decisions(K, solutions, cell, rows)
            for ballot, values in zip(ballots, decisions, strict=True):
                ballot.add(a, b, values)
            self.counts.add(path.counts)
            all_solutions.append(solutions)
        for i, ballot in zip(places, ballots, strict=True):
            self.race.add(g, i, folds, ballot.scores().argmax(axis=1) != cell.codes)
        return all_solutions

    def _keep_best(
        self, g: int, best: tuple[float, int, int] | None
    ) -> tuple[float, int, int] | None:
        """Return the best combination up to this gamma; forget the solutions of the others."""
        for i in self.race.costs_of(g):
            wrong = self.race.wrong_weight(g, i)
            if best is None or wrong < best[0]:
                best = wrong, g, i
        for gamma in range(g + 1):
            self._keep(gamma, {best[2]} if best and gamma == best[1] else set())
        return best

    def _keep(self, g: int, places: set[int]) -> None:
        """Forget all solutions at one gamma but those of some C values."""
        for kept in self.kept[g]:
            for fold in kept:
                kept[fold] = kept[fold].only(places)

    def _choice(self, wrong: float, g: int, i: int, K: FloatArray | None) -> Choice:
        """Average the fold models of the selected combination; finish them if there is a K."""
        betas: list[FloatArray] = []
        offsets = []
        if K is not None:
            self._finish(g, i, K)
        for kept in self.kept[g]:
            own = [kept[fold].only({i}) for fold in sorted(kept)]
            betas.append(np.concatenate([line.betas for line in own]).mean(axis=0, dtype=float))
            offsets.append(np.concatenate([line.offsets for line in own]).mean())
        return Choice(
            kernel=kernel_of(self.spec, self.grid.gammas[g]),
            C=self.grid.costs[i],
            error=wrong / self.race.held_out_weight,
            coef=_coefficients(self.cell, betas),
            intercepts=np.array(offsets),
            counts=self.counts,
            edge=self._edge(g, i),
        )

    def _finish(self, g: int, i: int, K: FloatArray) -> None:
        """Bring the fold models of one combination to the plain gap; ``K`` is overwritten."""
        cell, cost = self.cell, self.grid.costs[i]
        kernel = kernel_of(self.spec, self.grid.gammas[g])
        apply_kernel(cell.base, kernel, K)
        for (_, _, rows, signs), kept in zip(cell.pairs(), self.kept[g], strict=True):
            own = K if cell.n_classes == 2 else K[np.ix_(rows, rows)]
            path = self._path(own, rows, signs, {})
            chosen = {fold: kept[fold].only({i}) for fold in kept}
            betas, offsets = finish_folds(path, cell.rows[rows], kernel, cost, chosen)
            for at, fold in enumerate(sorted(kept)):
                kept[fold] = Line((i,), betas[at : at + 1], offsets[at : at + 1])
            self.counts.add(path.counts)

    def _edge(self, g: int, i: int) -> str:
        """Name the axes of the grid on whose first or last value the choice lies."""
        places = {"C": (i, len(self.grid.costs)), "gamma": (g, len(self.grid.gammas))}
        return " ".join(name for name, (at, n) in places.items() if n > 1 and at in (0, n - 1))


def search_grid(cell: CellData, spec: SolverSpec, grid: Grid) -> Choice:
    """Train the combinations on the folds; select by the weight of held-out rows decided wrongly.

    Parameters
    ----------
    cell : CellData
    spec : SolverSpec. ``search="race"``: all combinations run on two folds, those not beaten beyond
        doubt on the others; a C line ends where its error has worsened beyond doubt (two classes).
    grid : Grid

    Returns
    -------
    choice : Choice. ``coef`` (k - 1, m) is the mean of the selected combination's fold models. With
        ``refit="folds"`` these are trained to the plain gap.
    """
    return Search(cell, spec, grid).run(finish=spec.refit == "folds")


def refit_cell(cell: CellData, choice: Choice, spec: SolverSpec, grid: Grid) -> Choice:
    """Replace the mean of the fold models by one model of all rows, at the same lambda.

    To the plain duality gap: this is the one solve whose optimum counts, not its error's rank.
    """
    spec = replace(spec, clipped_gap=False)
    K = apply_kernel(cell.base, choice.kernel, np.empty_like(cell.base))
    cost = choice.C * grid.refit_scale
    betas, offsets = [], []
    for (_, _, rows, signs), coef in zip(
        cell.pairs(), _pair_coefficients(cell, choice.coef), strict=True
    ):
        own = K if cell.n_classes == 2 else K[np.ix_(rows, rows)]
        fold_ptr = cell.fold_ptr(rows, spec.cv)
        path = WidthPath(own, signs, cell.weights[rows], fold_ptr, spec, {})
        beta, offset = path.solve_all(coef * np.float32(grid.refit_scale), cost)
        betas.append(beta)
        offsets.append(offset)
        choice.counts.add(path.counts)
    return replace(choice, C=cost, coef=_coefficients(cell, betas), intercepts=np.array(offsets))


def kernel_of(spec: SolverSpec, gamma: float) -> KernelSpec:
    """Return the kernel at one candidate gamma."""
    return KernelSpec(spec.kernel, gamma, spec.degree, spec.coef0)


def _held_out_decisions(
    K: FloatArray, solutions: Solutions, cell: CellData, rows: IntArray
) -> FloatArray:
    """Return one pair's decision values on the rows of all classes, without their own fold."""
    n_costs = len(next(iter(solutions.values())).places)
    decisions = np.zeros((n_costs, len(cell.codes)), np.float32)
    for fold, line in solutions.items():
        held_out = np.flatnonzero(cell.folds == fold)
        values = line.betas @ K[np.ix_(held_out, rows)].T
        decisions[:, held_out] = values + line.offsets[:, None].astype(np.float32)
    return decisions


def _coefficients(cell: CellData, betas: list[FloatArray]) -> FloatArray:
    """Lay the betas of all pairs out as scikit-learn's ``dual_coef_``, shape (k - 1, m)."""
    coef = np.zeros((cell.n_classes - 1, len(cell.codes)), np.float32)
    for (a, b, rows, _), beta in zip(cell.pairs(), betas, strict=True):
        first = cell.codes[rows] == a
        coef[b - 1, rows[first]] = beta[first]
        coef[a, rows[~first]] = beta[~first]
    return coef


def _pair_coefficients(cell: CellData, coef: FloatArray) -> Iterator[FloatArray]:
    """Undo `_coefficients`: yield the betas of each pair."""
    for a, b, rows, _ in cell.pairs():
        yield np.where(cell.codes[rows] == a, coef[b - 1, rows], coef[a, rows])
