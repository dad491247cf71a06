"""Rows of a kernel matrix that is not held: computed when they are needed, the last used kept."""

from collections.abc import Iterator

import numpy as np

from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.registry import find_kernel
from daskls.records import F4, F8, MIB, Float32, Int64, KernelSpec, SolverSpec
from daskls.solvers.base import Sizes

__all__ = ["MOST_WORKING", "SomeRows", "holds_matrix", "some_rows_nbytes"]

# Rows of a working set at the most: whole tiles of the product that computes their values.
MOST_WORKING = 4 * GRAM_TILE_ROWS


def holds_matrix(spec: SolverSpec, n_rows: int, n_classes: int) -> bool:
    """Whether a cell's matrices are held whole: by its size and the parameters alone.

    >>> holds_matrix(SolverSpec(), 10**6, 2), holds_matrix(SolverSpec(cache_size=100.0), 5000, 2)
    (True, False)
    """
    if spec.cache_size is None:
        return True
    # The base and the kernel matrix; of more classes those of pairs.
    n_matrices = 2 + (min(3, n_classes - 1) if n_classes > 2 else 0)
    return n_matrices * n_rows * n_rows * F4 <= spec.cache_size * MIB


class SomeRows:
    """Rows of the kernel matrix of some rows with themselves, at one width after the other.

    A row has the same bits whenever it is computed, so that the room changes the time alone.

    Parameters
    ----------
    rows : float32 array, shape (m, d)
    name : str. The kernel's.
    cache_nbytes : int. Of the rows that are held, a working set's at the least.

    Attributes
    ----------
    A : float64 array, shape (m, d)
    values : float32 array, shape (n_slots, m). The rows of K that are held.
    n_computed : int. Rows computed so far, those of passes over all rows included.
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
        self.n_computed = 0
        self.spec = KernelSpec(name)

    def move(self, spec: KernelSpec) -> None:
        """Go to another kernel: nothing of the one before is held."""
        if spec != self.spec:
            self.slot_of[:] = self.row_in[:] = -1
            self.used[:] = 0
        self.spec = spec

    def fetch(self, own: Int64) -> Int64:
        """Return the slots of at most `MOST_WORKING` rows; compute those that are not held."""
        self.clock += 1
        missing = own[self.slot_of[own] < 0]
        self.used[self.slot_of[own[self.slot_of[own] >= 0]]] = self.clock
        # The least recently used go first; of equal ones the first.
        free = np.argsort(self.used, kind="stable")[: len(missing)]
        evicted = self.row_in[free]
        self.slot_of[evicted[evicted >= 0]] = -1
        self.slot_of[missing], self.row_in[free], self.used[free] = free, missing, self.clock
        for first in range(0, len(missing), GRAM_TILE_ROWS):
            at = slice(first, first + GRAM_TILE_ROWS)
            self.values[free[at]] = self._compute(missing[at])
        slots: Int64 = self.slot_of[own]
        return slots

    def tiles(self) -> Iterator[tuple[slice, Float32]]:
        """Yield all rows of K, tile by tile; those for which there is still room are kept."""
        m = len(self.A)
        for first in range(0, m, GRAM_TILE_ROWS):
            own = slice(first, min(first + GRAM_TILE_ROWS, m))
            slots = self.slot_of[own]
            if (slots >= 0).all():
                yield own, self.values[slots]
                continue
            tile = self._compute(np.arange(own.start, own.stop))
            new = np.flatnonzero(slots < 0)
            free = np.flatnonzero(self.row_in < 0)[: len(new)]
            new = new[: len(free)]
            self.slot_of[first + new], self.row_in[free] = free, first + new
            self.values[free] = tile[new]
            yield own, tile

    def _compute(self, own: Int64) -> Float32:
        """Return rows of K, each with the same bits regardless of the others."""
        base = self.kernel.block(self.A[own], self.A).astype(np.float32)
        if self.kernel.has_width:
            base[np.arange(len(own)), own] = 0.0
        self.n_computed += len(own)
        return self.kernel.apply(base, self.spec, base)


def some_rows_nbytes(sizes: Sizes, n_rows: int) -> int:
    """Return the bytes of rows in float64, of the cache, a tile and a working set's matrix."""
    cache = int((sizes.spec.cache_size or 0.0) * MIB)
    held = min(max(cache, MOST_WORKING * n_rows * F4), n_rows * n_rows * F4)
    tile = GRAM_TILE_ROWS * (n_rows * (2 * F8 + 2 * F4) + 2 * sizes.n_features * F8)
    return n_rows * sizes.n_features * F8 + held + tile + MOST_WORKING**2 * F4
