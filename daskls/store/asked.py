"""The bundles of a model that hold the cells of a query, so that no other file is opened."""

from collections.abc import Iterator, Sequence

import numpy as np

from daskls.records import Int64, Ints

__all__ = ["READ_NBYTES", "adjacent_runs", "asked_bundles"]

# Support rows read at once: enough to make a read worth its overhead, few enough for any worker.
READ_NBYTES = 8 << 20


def asked_bundles(cells: Ints, first_cells: Sequence[int]) -> Iterator[tuple[int, Ints]]:
    """Yield each bundle that holds an asked cell, and these cells, counted from its first one.

    Parameters
    ----------
    cells : int array, increasing
    first_cells : the first cell of each bundle, and the number of cells last

    Examples
    --------
    >>> [(i, own.tolist()) for i, own in asked_bundles(np.array([1, 7, 8]), [0, 3, 7, 9])]
    [(0, [1]), (2, [0, 1])]
    """
    bounds = np.searchsorted(cells, first_cells)
    for bundle in np.flatnonzero(np.diff(bounds)).tolist():
        yield bundle, cells[bounds[bundle] : bounds[bundle + 1]] - first_cells[bundle]


def adjacent_runs(cells: Ints, row_ptr: Int64, max_rows: int) -> Iterator[list[int]]:
    """Cut increasing cells into runs of adjacent cells with few support rows in all."""
    run: list[int] = []
    for cell in cells.tolist():
        adjacent = run and cell == run[-1] + 1
        if run and not (adjacent and row_ptr[cell + 1] - row_ptr[run[0]] <= max_rows):
            yield run
            run = []
        run.append(cell)
    if run:
        yield run
