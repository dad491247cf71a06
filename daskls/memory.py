"""Projected peak bytes of each task: pure arithmetic, tested against measured peaks."""

from dataclasses import dataclass

from daskls.kernels.route import CENTERED_ROWS
from daskls.records import F4, F8, SolverSpec

# Columns of 8 bytes per row in the search for a cut: rows, positions, both sorted, gaps, sides.
GROWN_COLUMNS = 8
# Queries that a search treats together: `daskls.neighbors.search.TILE_QUERIES`, which modules of
# this level may not import.
SEARCHED_QUERIES = 512


@dataclass(frozen=True)
class TaskSizes:
    """The sizes of a fit that memory projections need.

    `n_classes` counts numbers per row in a regression; `n_block_copies` of a block exist at once
    while it is regrouped. A chunk of X larger than a block stays in memory for its blocks
    (`source_nbytes`), and takes more to unpack. `raw_nbytes` are of a row before it is coded or
    scaled. `leaf_rows` of the largest leaf are "expected", or "found" once rows are regrouped.
    """

    n_features: int
    itemsize: int
    n_classes: int
    cell_size: int
    spec: SolverSpec
    n_block_copies: int = 2
    target_nbytes: int = 4
    source_nbytes: int = 0
    unpack_nbytes: int = 0
    raw_nbytes: int = 0
    n_rows: int = 0
    leaf_rows: int = 0
    block_rows: int = 0
    at: str = "expected"

    @property
    def n_outputs(self) -> int:
        """Decision functions of a one-vs-rest model, or functions of a regression."""
        is_one = self.spec.target == "classes" and self.n_classes == 2
        return 1 if is_one else self.n_classes

    @property
    def row_nbytes(self) -> int:
        """Bytes of a row in the exchange: features, target, weight, global row number."""
        return self.n_features * self.itemsize + self.target_nbytes + 8 + 8


def grow_nbytes(n_rows: int, n_features: int, max_rows: int) -> int:
    """A float64 copy, in which regions are centered, `GROWN_COLUMNS` and scatter matrices."""
    if n_rows <= max_rows:
        return 2 * n_rows * F8
    return n_rows * (n_features + GROWN_COLUMNS) * F8 + 4 * n_features**2 * F8


def assign_nbytes(sizes: TaskSizes, block_rows: int) -> int:
    """Return the peak bytes of regrouping a block: its copies, one routing tile, and its chunk."""
    tile = min(block_rows, CENTERED_ROWS) * sizes.n_features * F8
    # Copies: the block, its rows of positive weight, and these sorted. Without weights the first
    # two are the same array.
    regrouping = block_rows * (sizes.n_block_copies * sizes.row_nbytes + sizes.raw_nbytes) + tile
    return max(sizes.source_nbytes + regrouping, sizes.unpack_nbytes)


def largest_block(sizes: TaskSizes, nbytes: int) -> int:
    """Return the most rows of a block that ``nbytes`` can regroup; inverts `assign_nbytes`."""
    routed = sizes.n_features * F8
    held = sizes.n_block_copies * sizes.row_nbytes + sizes.raw_nbytes
    rows = nbytes // (held + routed)
    if rows > CENTERED_ROWS:
        rows = (nbytes - CENTERED_ROWS * routed) // held
    return max(rows, 1)


def gather_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Return the peak bytes of gathering a leaf: reading, cutting, measuring and writing it."""
    # The rows as they were read, sorted, and joined for writing.
    reading = 3 * n_rows * sizes.row_nbytes
    # Measuring a region takes its rows as float64 and their offsets from the center.
    measuring = 2 * n_rows * sizes.n_features * F8
    return reading + max(grow_nbytes(n_rows, sizes.n_features, sizes.cell_size), measuring)


def neighbor_search_nbytes(
    sizes: TaskSizes, n_queries: int, n_neighbors: int, leaf_rows: int
) -> int:
    """A leaf with its blocks, the distances of one tile, and all lists of neighbors, sorted."""
    leaf = leaf_rows * (sizes.n_features * (F8 + F4) + 52)
    tile = min(n_queries, SEARCHED_QUERIES) * min(leaf_rows, sizes.cell_size) * 2 * F8
    return leaf + tile + n_queries * n_neighbors * 6 * F8 + n_queries * sizes.n_features * 3 * F8
