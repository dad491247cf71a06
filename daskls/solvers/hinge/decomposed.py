"""The hinge loss by decomposition: solves that hold some rows of the kernel matrix.

A working set, the rows that gain most and those of the set before that are free, is solved by the
solver of whole matrices on its own square; the gradient of all rows follows. Where K does not fit
into memory its rows are computed when they are needed, in tiles of a matrix product.

Source: Joachims, Making large-scale SVM learning practical, 1999 (working sets of many rows);
Wen, Shi, Li, He, Chen, ThunderSVM, JMLR 2018 (half of the set is kept). Differences: no offset, so
that no equality constraint ties the rows; sets are chosen by gain.
"""

from dataclasses import dataclass

import numpy as np

from daskls.kernels.decompose import (
    gather_square,
    row_gaps,
    score_rows,
    set_start,
    subtract_rows,
)
from daskls.kernels.hinge import solve_hinge
from daskls.records import Float32, Float64, Int64
from daskls.solvers.data import max_steps
from daskls.solvers.hinge.some_rows import MOST_WORKING, SomeRows

__all__ = ["Climb", "start_at"]

# A working set is solved until its gap is this share of what it was: more gains little before the
# other rows have followed.
INNER_SHARE = 0.1
# Steps of a set, in units of its rows.
INNER_STEPS = 10


@dataclass(eq=False)
class Climb:
    """One solve: where it stands, updated in place.

    Attributes
    ----------
    rows : SomeRows. At the solve's kernel.
    diag : float32 array, shape (m,). The diagonal of K.
    signs, bound : float32 arrays, shape (m,). Rows that do not train have bound 0.
    beta, grad : float32 arrays, shape (m,). ``grad = signs - K beta``, of all rows.
    """

    rows: SomeRows
    diag: Float32
    signs: Float32
    bound: Float32
    beta: Float32
    grad: Float32

    def run(self, cap: np.float32, limit: float) -> tuple[int, float]:
        """Climb until the duality gap is at most ``limit``; return the steps and the gap."""
        gain = np.empty_like(self.grad)
        kept = np.empty(0, np.int64)
        n_steps, most, refreshed = 0, max_steps(len(self.beta)), False
        while True:
            gap = score_rows(self.grad, self.beta, self.bound, self.diag, cap, gain)
            if gap <= limit or n_steps >= most:
                break
            own = self._working_set(gain, kept)
            taken = self._solve(own, cap) if len(own) else 0
            n_steps += taken
            kept = own
            if taken:
                refreshed = False
            elif refreshed:
                break
            else:
                # What float32 has lost on the way may be what keeps it from a step.
                self.refresh()
                refreshed, kept = True, np.empty(0, np.int64)
        return n_steps, gap

    def _working_set(self, gain: Float32, kept: Int64) -> Int64:
        """Return the rows to solve for, increasing: half of them may be free ones of before."""
        beta, bound = self.beta[kept], self.bound[kept]
        free = kept[(beta != 0) & (beta != bound)][: MOST_WORKING // 2]
        candidates = np.flatnonzero(gain > 0)
        n_new = MOST_WORKING - len(free)
        if len(candidates) > n_new:
            best = np.argsort(-gain[candidates], kind="stable")[:n_new]
            candidates = candidates[best]
        return np.union1d(candidates, free)

    def _solve(self, own: Int64, cap: np.float32) -> int:
        """Solve for a working set, and bring the gradient of all rows after it; return steps."""
        slots = self.rows.fetch(own)
        q = len(own)
        square, signs = np.empty((q, q), np.float32), np.empty(q, np.float32)
        beta, grad, bound = self.beta[own], self.grad[own], self.bound[own]
        gather_square(self.rows.values, slots, own, beta, grad, square, signs)
        limit = INNER_SHARE * max(row_gaps(grad, beta, bound, cap), 0.0)
        scratch = np.empty(q, np.float32)
        n_steps, _ = solve_hinge(
            square, self.diag[own], signs, bound, beta, grad, 0, 0, cap, limit, INNER_STEPS * q,
            scratch,
        )  # fmt: skip
        change = beta - self.beta[own]
        moved = np.flatnonzero(change)
        self.beta[own] = beta
        subtract_rows(self.rows.values, slots[moved], change[moved], self.grad)
        return int(n_steps) if len(moved) else 0

    def refresh(self) -> None:
        """Compute the gradient anew, from the rows of K whose beta is not 0."""
        self.grad[:] = self.signs
        support = np.flatnonzero(self.beta)
        for first in range(0, len(support), MOST_WORKING):
            own = support[first : first + MOST_WORKING]
            subtract_rows(self.rows.values, self.rows.fetch(own), self.beta[own], self.grad)


def start_at(
    i: int,
    costs: Float64,
    own: Float32,
    products: tuple[Float32, Float32, Float32],
    seed_cost: float,
    before: Float32,
    climb: Climb,
) -> None:
    """Put a climb at the start of the largest dual value for the i-th C.

    Parameters
    ----------
    i : int
    costs : float64 array, increasing
    own : float32 array, shape (m,). Bounds at C = 1, 0 on held-out rows.
    products : K times ``own``; a seed; K times the seed
    seed_cost : float. The seed's C; 0 if there is none.
    before : float32 array, shape (m,). The solution at the C before, whose gradient ``climb`` has.
    climb : Climb. Overwritten.
    """
    own_product, seed, seed_product = products
    set_start(
        i, costs, own, own_product, seed, seed_product, seed_cost, before,
        np.empty_like(own), climb.signs, climb.bound, climb.beta, climb.grad,
    )  # fmt: skip
