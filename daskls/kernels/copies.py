"""Equal rows: hashes of their values, and the groups of copies among some rows.

A row that is repeated is one observation with a weight: with copies on both sides of a split,
training would know what it is tested on.
"""

import numpy as np

from daskls.kernels._jit import exact_jit
from daskls.kernels.checksum import column_factors, mix_bits, mix_word
from daskls.records import AnyArray, Int64, Keys


def row_hashes(*columns: AnyArray, seed: int = 0) -> Keys:
    """Return a hash of the values of each row, (m,), of all columns, whatever their dtype.

    >>> rows = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0]])
    >>> h = row_hashes(rows)
    >>> bool(h[0] == h[2] != h[1]), bool(row_hashes(rows.astype("f4"))[1] == h[1])
    (True, True)
    """
    tables = [column.reshape(len(column), -1) for column in columns]
    hashes = np.full(len(tables[0]), seed % 2**63, np.uint64)
    factors = column_factors(sum(table.shape[1] for table in tables))
    first = 0
    for table in tables:
        last = first + table.shape[1]
        _add_hashes(table, factors[first:last], hashes)
        first = last
    return mix_bits(hashes)


_TILE_ROWS = 4096


def _add_hashes(table: AnyArray, factors: Keys, hashes: Keys) -> None:
    for start in range(0, len(table), _TILE_ROWS):
        tile = slice(start, start + _TILE_ROWS)
        # In float64, so that equal values of two dtypes agree; adding 0 turns -0 into 0.
        values = np.add(table[tile], 0.0, dtype=np.float64, order="C")
        _hash_words(values.view(np.uint64), factors, hashes[tile])


@exact_jit
def _hash_words(words, factors, hashes):
    """Add a hash of each value to that of its row, modulo 2^64."""
    for i in range(words.shape[0]):
        for j in range(words.shape[1]):
            # Each value is scrambled with its column's factor: floats of whole numbers differ in
            # their highest bits alone, and exchanged values are another row.
            hashes[i] += mix_word(words[i, j] ^ factors[j])


def find_copies(*columns: AnyArray) -> tuple[Int64, Int64] | None:
    """Return the first row of each group of equal rows, and the group of each row, or None.

    >>> find_copies(np.array([3, 1, 3, 2]))
    (array([0, 1, 3]), array([0, 1, 0, 2]))
    >>> find_copies(np.array([3, 1, 2])) is None
    True
    """
    return _groups(row_hashes(*columns), columns)


def _groups(hashes: Keys, columns: tuple[AnyArray, ...]) -> tuple[Int64, Int64] | None:
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) == len(hashes):
        return None
    others = np.flatnonzero(first[group] != np.arange(len(group)))
    if any((column[others] != column[first[group[others]]]).any() for column in columns):
        # Two rows of one hash, once in 10^19 pairs: compared as they are.
        tables = [column.reshape(len(column), -1) for column in columns]
        values = np.hstack([np.add(table, 0.0, dtype=np.float64) for table in tables])
        _, first, group = np.unique(values, axis=0, return_index=True, return_inverse=True)
        group = group.reshape(-1)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group]
