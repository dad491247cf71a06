"""Memory of the tasks that train the cells of a leaf: their own part, and the solver's."""

from daskls.memory import TaskSizes, grow_nbytes
from daskls.solvers.registry import find_solver

__all__ = ["cell_nbytes", "group_nbytes", "leaf_nbytes", "model_nbytes", "usual_cells"]

# Rows of a cell, where nobody says: a linear system of more costs more than it gains. Time is in
# proportion to rows x cell_size^2: of more rows of data than these, smaller cells keep it.
LARGE_CELL, SMALL_CELL, MANY_ROWS = 4000, 2000, 60_000


def usual_cells(n_rows: int) -> int:
    """Return the number of cells of linear systems, where nobody says how large they are.

    >>> [usual_cells(n) for n in (100, 4000, 10_000, 60_000, 240_000)]
    [1, 1, 3, 15, 120]
    """
    return -(-n_rows // (LARGE_CELL if n_rows <= MANY_ROWS else SMALL_CELL))


def cell_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Bytes that the training of one cell of ``n_rows`` rows adds to the task that holds it."""
    return find_solver(sizes.spec).nbytes(sizes, n_rows)


def model_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Bytes of the models of ``n_rows`` rows if every row is a support row."""
    return find_solver(sizes.spec).model_nbytes(sizes, n_rows)


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
