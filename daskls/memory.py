"""Projected peak bytes of each task: pure arithmetic, tested against measured peaks."""

from dataclasses import dataclass

from daskls.records import SolverSpec

__all__ = [
    "TaskSizes",
    "assign_nbytes",
    "cell_nbytes",
    "gather_nbytes",
    "group_nbytes",
    "grow_nbytes",
    "largest_block",
    "leaf_nbytes",
    "model_nbytes",
    "search_nbytes",
]

F4, F8 = 4, 8
# Rows of a routing tile and of a kernel matrix's panel, as in kernels/route.py and kernels/gram.py.
ROUTE_ROWS = 4096
GEMM_ROWS = 240
# The matrices of pairs of classes that are gathered together, in units of the cell's own one, and
# what a row of a pair holds beside, as in solvers/pairs.py.
BLOCKS_SHARE = 3
PAIR_ROW_NBYTES = 2 * F8 + 2 * F4
# Small vectors of one value a row, of all the functions that are active at the peak.
ROW_TEMPORARIES = 128


@dataclass(frozen=True)
class TaskSizes:
    """What the projections need to know of a fit."""

    n_features: int
    itemsize: int
    n_classes: int
    cell_size: int
    spec: SolverSpec
    n_block_copies: int = 2
    # Of a chunk of X that is more than a block: while its blocks are regrouped, and while it is
    # unpacked.
    source_nbytes: int = 0
    unpack_nbytes: int = 0

    @property
    def row_nbytes(self) -> int:
        """One row of the exchange: features, class code, weight, global row number."""
        return self.n_features * self.itemsize + 4 + 8 + 8


def cell_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Bytes that the training of one cell of ``n_rows`` rows adds to the task that holds it."""
    m, d, k = n_rows, sizes.n_features, sizes.n_classes
    copies = m * d * (3 * F8 + 2 * F4) + m * ROW_TEMPORARIES
    panel = GEMM_ROWS * (2 * m + d) * F8
    matrices = 2 * m * m * F4
    return copies + panel + matrices + _pairs_nbytes(sizes.spec, m, k)


def _pairs_nbytes(spec: SolverSpec, m: int, k: int) -> int:
    """Bytes of the pairs of classes of a cell: their matrices, solutions, and votes."""
    # Each row is in k - 1 pairs.
    s, cv, n = (k - 1) * m, spec.cv, _n_together(spec)
    layout = 2 * s * PAIR_ROW_NBYTES
    # What starts are made of, and its products with the kernel matrices.
    sources = 2 * 2 * cv * s * F4
    # All C values of a width, fold by fold; the best so far, the seeds, and the models at the end.
    solutions = (n * (cv + 1) + 4 * cv) * s * F4 + n * m * F8
    if k == 2:
        return layout + sources + solutions
    held_out = -(-m // cv)
    blocks = min(BLOCKS_SHARE, k - 1) * m * m * F4
    votes = 2 * n * s * F4 + n * k * (k - 1) * held_out * F4 + 2 * held_out * m * F4
    return layout + sources + solutions + blocks + votes


def _n_together(spec: SolverSpec) -> int:
    """Return how many C values are trained at one width, at the most."""
    if spec.search == "full":
        return spec.n_costs
    # Every other place of an axis longer than three, then a place and its neighbors.
    return min(spec.n_costs, max(spec.n_costs // 2, 3))


def model_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Bytes of the models of ``n_rows`` rows if every row is a support row."""
    return n_rows * (sizes.n_features + sizes.n_classes - 1) * F4


def grow_nbytes(n_rows: int, n_features: int, max_rows: int) -> int:
    """Bytes that growing a tree on ``n_rows`` rows adds: float64 copies, and their scatter."""
    if n_rows <= max_rows:
        return n_rows * n_features * F8
    return 3 * n_rows * n_features * F8 + 4 * n_features**2 * F8


def leaf_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Peak bytes of reading a leaf, cutting it into cells and training one of them."""
    reading = 2 * n_rows * sizes.row_nbytes
    cutting = n_rows * sizes.row_nbytes + grow_nbytes(n_rows, sizes.n_features, sizes.cell_size)
    training = n_rows * sizes.row_nbytes + cell_nbytes(sizes, min(n_rows, sizes.cell_size))
    return max(reading, cutting, training)


def group_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Peak bytes of a task that trains one leaf: the leaf, and the models until they are written.

    Models are copied once more as they are written, when the leaf is no longer in memory.
    """
    models = model_nbytes(sizes, n_rows)
    return models + max(models, leaf_nbytes(sizes, n_rows))


def assign_nbytes(sizes: TaskSizes, block_rows: int) -> int:
    """Peak bytes of regrouping one block: the block, its sorted copy, one routing tile.

    Beside them the chunk that the block was cut from, if any, once it is unpacked.
    """
    tile = min(block_rows, ROUTE_ROWS) * sizes.n_features * F8
    # The block, the rows of it that count, and those sorted; without weights the first two are one.
    regrouping = sizes.n_block_copies * block_rows * sizes.row_nbytes + tile
    return max(sizes.source_nbytes + regrouping, sizes.unpack_nbytes)


def largest_block(sizes: TaskSizes, nbytes: int) -> int:
    """Return the most rows of a block whose regrouping fits; the inverse of `assign_nbytes`."""
    routed = sizes.n_features * F8
    rows = nbytes // (sizes.n_block_copies * sizes.row_nbytes + routed)
    if rows > ROUTE_ROWS:
        rows = (nbytes - ROUTE_ROWS * routed) // (sizes.n_block_copies * sizes.row_nbytes)
    return max(rows, 1)


def gather_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Peak bytes of cutting a leaf into cells, measuring and writing it: read, sorted, joined."""
    reading = 3 * n_rows * sizes.row_nbytes
    # Measuring a region takes its rows as float64, and their offsets from the center.
    measuring = 2 * n_rows * sizes.n_features * F8
    return reading + max(grow_nbytes(n_rows, sizes.n_features, sizes.cell_size), measuring)


def search_nbytes(sizes: TaskSizes, n_queries: int, n_neighbors: int, leaf_rows: int) -> int:
    """Peak bytes of a search: a leaf and its blocks, a tile's distances, and all lists, sorted."""
    leaf = leaf_rows * (sizes.n_features * (F8 + F4) + 52)
    tile = min(n_queries, 512) * min(leaf_rows, sizes.cell_size) * 2 * F8
    return leaf + tile + n_queries * n_neighbors * 6 * F8 + n_queries * sizes.n_features * 3 * F8
