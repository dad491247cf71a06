"""Which leaf each row belongs to, whatever space, or the rows, were cut by."""

from collections.abc import Iterator

import numpy as np

from daskls.kernels.route import nearest_point
from daskls.partition.shuffle import shuffle_numbers
from daskls.partition.tree import route_rows
from daskls.records import Chunks, FloatArray, IntArray, Partition, VoronoiCells
from daskls.seeds import CHUNKS

__all__ = ["assign_rows", "find_cells"]


def find_cells(cells: VoronoiCells, X: FloatArray) -> IntArray:
    """Return the region of each row, int32 (m,); training and prediction share this function."""
    return nearest_point(X, cells.center, cells.points)


def assign_rows(partition: Partition, X: FloatArray, numbers: IntArray) -> Iterator[IntArray]:
    """Yield the leaf of each row, int array (m,), once for each time that space is cut.

    Parameters
    ----------
    partition : Partition
    X : real array, shape (m, d)
    numbers : int array, shape (m,). Global row numbers.
    """
    if isinstance(partition, Chunks):
        # Chunk sizes differ by one row at most.
        places = shuffle_numbers(numbers, partition.n_rows, CHUNKS(partition.seed))
        yield places * partition.n_leaves // partition.n_rows
    elif isinstance(partition, VoronoiCells):
        yield find_cells(partition, X)
    else:
        for tree, first in zip(partition.trees, partition.first_leaves, strict=False):
            leaves: IntArray = np.add(route_rows(tree, X), first)
            yield leaves
