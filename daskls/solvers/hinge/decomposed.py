"""The hinge loss by decomposition: solves that hold only some rows of the kernel matrix.

A working set consists of the rows that gain most, and of the free rows of the set before. It is
solved on its own square by the solver of whole matrices; then the gradient of all rows is updated.
Where K does not fit into memory, its rows are computed when they are needed, in tiles of a matrix
product, and the last used are kept.

Source: Joachims, Making large-scale SVM learning practical, 1999 (working sets of many rows);
Wen, Shi, Li, He, Chen, ThunderSVM, JMLR 2018 (half of the set is kept). Differences: no offset, so
that no equality constraint ties the rows; sets are chosen by gain.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.hinge import solve_hinge
from daskls.kernels.kernel import find_kernel
from daskls.kernels.path import gather_square, row_gaps, score_rows, set_start, subtract_rows
from daskls.records import F4, F8, MIB, Float32, Float64, Int64, KernelSpec, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.rows import max_steps

# The most rows of a working set: whole tiles of the product that computes their values.
MOST_WORKING = 4 * GRAM_TILE_ROWS


def holds_matrix(spec: SolverSpec, n_rows: int, n_classes: int) -> bool:
    """Whether a cell's matrices are held whole; its size and the parameters alone decide it.

    >>> holds_matrix(SolverSpec(), 10**6, 2), holds_matrix(SolverSpec(cache_size=100.0), 5000, 2)
    (True, False)
    """
    if spec.cache_size is None:
        return True
    # The base and the kernel matrix; with more than two classes, also those of pairs.
    n_matrices = 2 + (min(3, n_classes - 1) if n_classes > 2 else 0)
    return n_matrices * n_rows * n_rows * F4 <= spec.cache_size * MIB


class KernelRowCache:
    """A kernel matrix, at one width after the other, whose rows are computed on demand and cached.

    A row has the same bits whenever it is computed, so the cache's size changes only the time.
    """

    def __init__(self, rows: Float32, name: str, cache_nbytes: int) -> None:
        self.A = rows.astype(np.float64)
        self.kernel = find_kernel(name)
        m = len(rows)
        n_slots = min(max(cache_nbytes // (m * F4), MOST_WORKING), m)
        self.values = np.empty((n_slots, m), np.float32)
        self.slot_of = np.full(m, -1)
        self.row_in = np.full(n_slots, -1)
        self.used = np.zeros(n_slots, np.int64)
        self.clock = 0
        self.spec = KernelSpec(name)

    def move(self, spec: KernelSpec) -> None:
        """Move to a kernel; unless it is the current one, the cache is emptied."""
        if spec != self.spec:
            self.slot_of[:] = self.row_in[:] = -1
            self.used[:] = 0
        self.spec = spec

    def fetch(self, rows: Int64) -> Int64:
        self.clock += 1
        missing = rows[self.slot_of[rows] < 0]
        self.used[self.slot_of[rows[self.slot_of[rows] >= 0]]] = self.clock
        # Evict the least recently used; of equal ones the first.
        free = np.argsort(self.used, kind="stable")[: len(missing)]
        evicted = self.row_in[free]
        self.slot_of[evicted[evicted >= 0]] = -1
        self.slot_of[missing], self.row_in[free], self.used[free] = free, missing, self.clock
        for first in range(0, len(missing), GRAM_TILE_ROWS):
            at = slice(first, first + GRAM_TILE_ROWS)
            self.values[free[at]] = self._compute(missing[at])
        slots: Int64 = self.slot_of[rows]
        return slots

    def tiles(self) -> Iterator[tuple[slice, Float32]]:
        """Yield all rows of K, tile by tile; rows for which the cache has free slots are kept."""
        m = len(self.A)
        for first in range(0, m, GRAM_TILE_ROWS):
            rows = slice(first, min(first + GRAM_TILE_ROWS, m))
            slots = self.slot_of[rows]
            if (slots >= 0).all():
                yield rows, self.values[slots]
                continue
            tile = self._compute(np.arange(rows.start, rows.stop))
            new = np.flatnonzero(slots < 0)
            free = np.flatnonzero(self.row_in < 0)[: len(new)]
            new = new[: len(free)]
            self.slot_of[first + new], self.row_in[free] = free, first + new
            self.values[free] = tile[new]
            yield rows, tile

    def _compute(self, rows: Int64) -> Float32:
        """Return rows of K; the bits of a row do not depend on the others."""
        base = self.kernel.block(self.A[rows], self.A).astype(np.float32)
        if self.kernel.has_width:
            base[np.arange(len(rows)), rows] = 0.0
        return self.kernel.apply(base, self.spec, base)


def kernel_row_cache_nbytes(sizes: Sizes, n_rows: int) -> int:
    cache = int((sizes.spec.cache_size or 0.0) * MIB)
    cached = min(max(cache, MOST_WORKING * n_rows * F4), n_rows * n_rows * F4)
    tile = GRAM_TILE_ROWS * (n_rows * (2 * F8 + 2 * F4) + 2 * sizes.n_features * F8)
    return n_rows * sizes.n_features * F8 + cached + tile + MOST_WORKING**2 * F4


# A working set is solved until its gap is this share of its initial one: more gains little before
# the gradient of the other rows is updated.
INNER_SHARE = 0.1
# The most steps of a working set, per row.
INNER_STEPS = 10


@dataclass(eq=False)
class DualAscent:
    """One solve of the dual by working sets, updated in place.

    `bound` is 0 of rows that do not train; ``grad = signs - K beta``, of all rows.
    """

    rows: KernelRowCache
    diag: Float32
    signs: Float32
    bound: Float32
    beta: Float32
    grad: Float32

    def run(self, cap: np.float32, limit: float) -> tuple[int, float]:
        """Ascend until the duality gap is at most ``limit``; return the steps taken and the gap."""
        gain = np.empty_like(self.grad)
        previous = np.empty(0, np.int64)
        n_steps, most, refreshed = 0, max_steps(len(self.beta)), False
        while True:
            gap = score_rows(self.grad, self.beta, self.bound, self.diag, cap, gain)
            if gap <= limit or n_steps >= most:
                break
            working = self._working_set(gain, previous)
            taken = self._solve(working, cap) if len(working) else 0
            n_steps += taken
            previous = working
            if taken:
                refreshed = False
            elif refreshed:
                break
            else:
                # Rounding errors that float32 has gathered in the gradient may prevent a step.
                self.refresh()
                refreshed, previous = True, np.empty(0, np.int64)
        return n_steps, gap

    def _working_set(self, gain: Float32, previous: Int64) -> Int64:
        """Return the rows to solve for, increasing; up to half are free rows of the set before."""
        beta, bound = self.beta[previous], self.bound[previous]
        free = previous[(beta != 0) & (beta != bound)][: MOST_WORKING // 2]
        candidates = np.flatnonzero(gain > 0)
        n_new = MOST_WORKING - len(free)
        if len(candidates) > n_new:
            best = np.argsort(-gain[candidates], kind="stable")[:n_new]
            candidates = candidates[best]
        return np.union1d(candidates, free)

    def _solve(self, working: Int64, cap: np.float32) -> int:
        """Solve for a working set and update the gradient of all rows; return the steps taken."""
        slots = self.rows.fetch(working)
        q = len(working)
        square, signs = np.empty((q, q), np.float32), np.empty(q, np.float32)
        beta, grad, bound = self.beta[working], self.grad[working], self.bound[working]
        gather_square(self.rows.values, slots, working, beta, grad, square, signs)
        limit = INNER_SHARE * max(row_gaps(grad, beta, bound, cap), 0.0)
        scratch = np.empty(q, np.float32)
        n_steps, _ = solve_hinge(
            square, self.diag[working], signs, bound, beta, grad, 0, 0, cap, limit, INNER_STEPS * q,
            scratch,
        )  # fmt: skip
        change = beta - self.beta[working]
        moved = np.flatnonzero(change)
        self.beta[working] = beta
        subtract_rows(self.rows.values, slots[moved], change[moved], self.grad)
        return int(n_steps) if len(moved) else 0

    def refresh(self) -> None:
        self.grad[:] = self.signs
        support = np.flatnonzero(self.beta)
        for first in range(0, len(support), MOST_WORKING):
            rows = support[first : first + MOST_WORKING]
            subtract_rows(self.rows.values, self.rows.fetch(rows), self.beta[rows], self.grad)


def start_at(
    i: int,
    costs: Float64,
    bounds: Float32,
    products: tuple[Float32, Float32, Float32],
    seed_cost: float,
    before: Float32,
    ascent: DualAscent,
) -> None:
    """Put an ascent at the best start for the i-th C: zero, the seed, or the last C's solution."""
    bounds_product, seed, seed_product = products
    set_start(
        i, costs, bounds, bounds_product, seed, seed_product, seed_cost, before,
        np.empty_like(bounds), ascent.signs, ascent.bound, ascent.beta, ascent.grad,
    )  # fmt: skip
