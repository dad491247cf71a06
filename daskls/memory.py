"""Projected peak bytes of each task: pure arithmetic, tested against measured peaks."""

from dataclasses import dataclass

from daskls.kernels.route import CENTERED_ROWS
from daskls.records import F4, F8, SolverSpec

# Columns of 8 bytes a row while a cut is sought: rows, positions, these sorted, gaps, both sides.
GROWN_COLUMNS = 8


@dataclass(frozen=True)
class TaskSizes:
    """The sizes of a fit that projections of memory use.

    ``n_classes`` counts classes, or the numbers of a row's target.
    """

    n_features: int
    itemsize: int
    n_classes: int
    cell_size: int
    spec: SolverSpec
    n_block_copies: int = 2
    target_nbytes: int = 4
    # Of a chunk of X that is more than a block: while its blocks are regrouped, and while it is
    # unpacked.
    source_nbytes: int = 0
    unpack_nbytes: int = 0
    # Of a row as it was read, where rows become others before they are regrouped; else 0.
    raw_nbytes: int = 0

    @property
    def n_outputs(self) -> int:
        """Functions of a model of one class against the rest, or of numbers."""
        is_one = self.spec.target == "classes" and self.n_classes == 2
        return 1 if is_one else self.n_classes

    @property
    def row_nbytes(self) -> int:
        """One row of the exchange: features, target, weight, global row number."""
        return self.n_features * self.itemsize + self.target_nbytes + 8 + 8


def grow_nbytes(n_rows: int, n_features: int, max_rows: int) -> int:
    """Bytes that growing a tree on ``n_rows`` rows adds to them.

    One float64 copy, in which regions are centered; numbers, positions and sorted positions of
    rows; scatter matrices.
    """
    if n_rows <= max_rows:
        return 2 * n_rows * F8
    return n_rows * (n_features + GROWN_COLUMNS) * F8 + 4 * n_features**2 * F8


def assign_nbytes(sizes: TaskSizes, block_rows: int) -> int:
    """Peak bytes of regrouping one block: the block, its sorted copy, one routing tile.

    Beside them the chunk that the block was cut from, if any, once it is unpacked.
    """
    tile = min(block_rows, CENTERED_ROWS) * sizes.n_features * F8
    # The block, the rows of it that count, and those sorted; without weights the first two are one.
    regrouping = block_rows * (sizes.n_block_copies * sizes.row_nbytes + sizes.raw_nbytes) + tile
    return max(sizes.source_nbytes + regrouping, sizes.unpack_nbytes)


def largest_block(sizes: TaskSizes, nbytes: int) -> int:
    """Return the most rows of a block whose regrouping fits; the inverse of `assign_nbytes`."""
    routed = sizes.n_features * F8
    held = sizes.n_block_copies * sizes.row_nbytes + sizes.raw_nbytes
    rows = nbytes // (held + routed)
    if rows > CENTERED_ROWS:
        rows = (nbytes - CENTERED_ROWS * routed) // held
    return max(rows, 1)


def gather_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Peak bytes of cutting a leaf into cells, measuring and writing it: read, sorted, joined."""
    reading = 3 * n_rows * sizes.row_nbytes
    # Measuring a region takes its rows as float64, and their offsets from the center.
    measuring = 2 * n_rows * sizes.n_features * F8
    return reading + max(grow_nbytes(n_rows, sizes.n_features, sizes.cell_size), measuring)


def neighbor_search_nbytes(
    sizes: TaskSizes, n_queries: int, n_neighbors: int, leaf_rows: int
) -> int:
    """Peak bytes of a search: a leaf and its blocks, a tile's distances, and all lists, sorted."""
    leaf = leaf_rows * (sizes.n_features * (F8 + F4) + 52)
    tile = min(n_queries, 512) * min(leaf_rows, sizes.cell_size) * 2 * F8
    return leaf + tile + n_queries * n_neighbors * 6 * F8 + n_queries * sizes.n_features * 3 * F8
