"""One pair of classes at one width: the solutions of several folds along C."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.kernels.hinge import solve_hinge
from daskls.kernels.offset import solve_with_offset
from daskls.kernels.start import set_start
from daskls.kernels.steps import CLIPPED, UNCLIPPED, fill_gradient
from daskls.records import FloatArray, IntArray, SolverSpec
from daskls.solvers.race import is_beaten
from daskls.solvers.sums import total

__all__ = ["Counts", "Line", "Solutions", "WidthPath", "max_steps"]


@dataclass(frozen=True, eq=False)
class Line:
    """What training without one fold gave, C by C.

    Attributes
    ----------
    places : tuple of int. Positions of the C values in the grid, increasing.
    betas : float32 array, shape (n, m). 0 on the fold.
    offsets : float64 array, shape (n,). 0 without offset.
    """

    places: tuple[int, ...]
    betas: FloatArray
    offsets: FloatArray

    def only(self, places: set[int]) -> "Line":
        """Return the line of some C values; those it does not have are left out."""
        rows = [row for row, place in enumerate(self.places) if place in places]
        return Line(tuple(self.places[r] for r in rows), self.betas[rows], self.offsets[rows])


# Of one pair at one width, by fold.
Solutions = dict[int, Line]


@dataclass
class Counts:
    """Pair steps, solves, and solves that ended above the gap's limit."""

    n_steps: int = 0
    n_trained: int = 0
    n_at_limit: int = 0

    def add(self, other: "Counts") -> None:
        """Add what another search counted."""
        self.n_steps += other.n_steps
        self.n_trained += other.n_trained
        self.n_at_limit += other.n_at_limit


def max_steps(n_rows: int) -> int:
    """Return the step limit of one solve: a guard against endless loops, not a setting."""
    return 100_000 + 1000 * n_rows


class WidthPath:
    """Solves one pair at one width, fold by fold.

    Every solve starts from the feasible point of the largest dual value among: the fold's solution
    at the C before, as it is (suits narrow kernels) or scaled with C (suits wide ones); the fold's
    solution at the same C and the width before; for the first C without offset, every beta at its
    bound.

    Parameters
    ----------
    K : float32 array, shape (m, m), C-contiguous. Rows are ordered by fold.
    signs : float32 array, shape (m,). -1 for the pair's first class, +1 for its second.
    weights : float32 array, shape (m,), > 0. Multiply C.
    fold_ptr : int array, shape (n_folds + 1,). Fold f owns rows fold_ptr[f] to fold_ptr[f + 1] - 1.
    spec : SolverSpec
    before : dict of Line. Of the width before; empty at the first.
    """

    def __init__(
        self,
        K: FloatArray,
        signs: FloatArray,
        weights: FloatArray,
        fold_ptr: IntArray,
        spec: SolverSpec,
        before: Solutions,
    ) -> None:
        self.K, self.signs, self.weights, self.fold_ptr = K, signs, weights, fold_ptr
        self.spec, self.before = spec, before
        self.diag = np.ascontiguousarray(np.diagonal(K))
        self._gain = np.empty_like(signs)
        self.counts = Counts()
        self.cap = CLIPPED if spec.clipped_gap else UNCLIPPED
        self._products: dict[int, FloatArray] = {}
        self._bound_products: dict[int, FloatArray] = {}

    def train(
        self, places: list[int], costs: FloatArray, folds: tuple[int, ...], doubt: float = 0.0
    ) -> tuple[Solutions, FloatArray]:
        """Train without each of the folds at each C.

        Parameters
        ----------
        places : list of int, increasing. Positions of the C values in the grid.
        costs : float64 array, of the values at ``places``
        folds : tuple of int
        doubt : float. A fold's line ends at a C whose errors on the held-out rows exceed the best
            ones before by so many standard deviations; that C is out, with those after it, for
            every fold. 0: it does not end.

        Returns
        -------
        solutions : dict of Line, one a fold, all of the same places
        decisions : float32 array, shape (n, m). Values held out; rows of other folds hold NaN.
        """
        self._multiply(folds)
        n_done = len(places)
        solutions: Solutions = {}
        decisions = np.full((n_done, len(self.signs)), np.nan, np.float32)
        for fold in folds:
            n_done, line = self._solve(fold, places[:n_done], costs[:n_done], doubt, decisions)
            solutions[fold] = line
        left = set(places[:n_done])
        return {fold: line.only(left) for fold, line in solutions.items()}, decisions[:n_done]

    def _solve(
        self,
        fold: int,
        places: list[int],
        costs: FloatArray,
        doubt: float,
        decisions: FloatArray,
    ) -> tuple[int, Line]:
        """Solve one fold's line; write its decision values; return (how far it came, the line)."""
        start, stop = self.fold_ptr[fold], self.fold_ptr[fold + 1]
        held_out = slice(start, stop)
        unit = self.signs * self.weights
        unit[held_out] = 0.0
        betas = np.empty((len(places), len(unit)), np.float32)
        offsets = np.zeros(len(places))
        before, products, has_before = self._before(fold, places)
        # The first start is at zero, whose gradient is the labels.
        last, grad = unit, self.signs.copy()
        best: FloatArray | None = None
        for i, cost in enumerate(costs):
            bound = unit * np.float32(cost)
            set_start(
                bound,
                unit,
                self._bound_products[fold],
                last,
                cost / costs[i - 1] if i else 0.0,
                before[i],
                products[i],
                has_before[i],
                0.0 if self.spec.fit_intercept else cost,
                self.signs,
                betas[i],
                grad,
            )
            offsets[i] = self._ascend(bound, betas[i], grad, start, stop)
            last = betas[i]
            values = self.signs[held_out] - grad[held_out] + np.float32(offsets[i])
            decisions[i, held_out] = values
            if doubt:
                is_wrong = (values > 0) != (self.signs[held_out] > 0)
                wrong = self.weights[held_out].astype(np.float64) * is_wrong
                if best is not None and is_beaten(wrong, best, doubt):
                    return i, Line(tuple(places[:i]), betas[:i], offsets[:i])
                best = wrong if best is None or total(wrong) < total(best) else best
        return len(places), Line(tuple(places), betas, offsets)

    def _ascend(
        self, bound: FloatArray, beta: FloatArray, grad: FloatArray, start: int, stop: int
    ) -> float:
        """Solve in place; count; return the offset, 0 where none is fitted."""
        limit = self.spec.tol * float(np.abs(bound).sum(dtype=float))
        n_steps, gap, offset = self._run(bound, beta, grad, start, stop, self.cap, limit)
        self.counts.add(Counts(n_steps, 1, int(gap > limit)))
        return offset

    def ascend(
        self, fold: int, bound: FloatArray, beta: FloatArray, grad: FloatArray, limit: float
    ) -> tuple[int, float, float]:
        """Solve without a fold, in place, to a plain gap of at most ``limit``; count nothing.

        Returns
        -------
        n_steps : int
        gap : float
        offset : float. 0 where none is fitted.
        """
        start, stop = self.fold_ptr[fold], self.fold_ptr[fold + 1]
        return self._run(bound, beta, grad, start, stop, UNCLIPPED, limit)

    def bound_of(self, fold: int, cost: float) -> FloatArray:
        """Return the signed bounds without a fold at one C, float32 (m,)."""
        bound = self.signs * self.weights
        bound[self.fold_ptr[fold] : self.fold_ptr[fold + 1]] = 0.0
        return bound * np.float32(cost)

    def _run(
        self,
        bound: FloatArray,
        beta: FloatArray,
        grad: FloatArray,
        start: int,
        stop: int,
        cap: np.float32,
        limit: float,
    ) -> tuple[int, float, float]:
        """Solve in place; return steps, gap and offset, 0 where none is fitted."""
        method: Callable[..., Any] = solve_with_offset if self.spec.fit_intercept else solve_hinge
        n_steps, gap, *offset = method(
            self.K,
            self.diag,
            self.signs,
            bound,
            beta,
            grad,
            start,
            stop,
            cap,
            limit,
            max_steps(len(beta)),
            self._gain,
        )
        return n_steps, gap, float(offset[0]) if offset else 0.0

    def _before(self, fold: int, places: list[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return a fold's solutions of the width before, their products, and which there are."""
        has_before = np.zeros(len(places), bool)
        before = np.zeros((len(places), len(self.signs)), np.float32)
        products = np.zeros_like(before)
        if fold in self.before:
            line = self.before[fold]
            rows = [i for i, place in enumerate(places) if place in line.places]
            sources = [line.places.index(places[i]) for i in rows]
            has_before[rows] = True
            before[rows] = line.betas[sources]
            products[rows] = self._products[fold][sources]
        return before, products, has_before

    def _multiply(self, folds: tuple[int, ...]) -> None:
        """Note K times each fold's solutions of the width before, and times its bounds at C = 1.

        One GEMM for all: K is read once.
        """
        parts = []
        for fold in folds:
            bounds = self.signs * self.weights
            bounds[self.fold_ptr[fold] : self.fold_ptr[fold + 1]] = 0.0
            parts.append(bounds[None])
            if fold in self.before:
                parts.append(self.before[fold].betas)
        products = np.concatenate(parts) @ self.K
        at = 0
        for fold in folds:
            self._bound_products[fold] = products[at]
            at += 1
            if fold in self.before:
                n = len(self.before[fold].places)
                self._products[fold] = products[at : at + n]
                at += n

    def solve_all(self, start: FloatArray, cost: float) -> tuple[FloatArray, float]:
        """Train on all rows at one C, from a start that is clipped to the bounds.

        Returns
        -------
        beta : float32 array, shape (m,)
        offset : float. 0 without offset.
        """
        bound = self.signs * self.weights * np.float32(cost)
        beta = np.clip(start, np.minimum(bound, 0), np.maximum(bound, 0))
        if self.spec.fit_intercept and abs(beta.sum(dtype=float)) > 1e-6 * np.abs(beta).sum():
            # Clipping has broken the equality constraint.
            beta = np.zeros_like(beta)
        grad = np.empty_like(beta)
        fill_gradient(self.K, beta, self.signs, grad)
        return beta, self._ascend(bound, beta, grad, 0, 0)
