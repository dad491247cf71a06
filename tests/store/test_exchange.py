"""Rows come back leaf by leaf as they were written, in the order of their numbers."""

import numpy as np
import pytest

from daskls.errors import StoreError
from daskls.store.exchange import Exchange, Rows

N_LEAVES = (4, 3, 5)


def write(folder, sizes, n_partitions, seed=0):
    """Write blocks of random rows; return the exchange, all rows and each row's leaves."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(N_LEAVES[:n_partitions])])
    exchange = Exchange(str(folder), len(sizes), int(first[-1]), 3, "<f4", n_partitions)
    exchange.create()
    n = sum(sizes)
    # Some leaves stay empty.
    leaves = [
        first[p] + rng.integers(0, N_LEAVES[p] - 1, n).astype(np.int32) for p in range(n_partitions)
    ]
    rows = Rows(
        rng.random((n, 3), dtype="f4"),
        rng.integers(0, 5, n).astype("i4"),
        rng.random(n),
        10 + np.arange(n),
    )
    start = 0
    for block, size in enumerate(sizes):
        own = np.arange(start, start + size)
        exchange.write_block(block, rows.take(own), (of[own] for of in leaves), block)
        start += size
    return exchange, rows, leaves


@pytest.mark.parametrize("n_partitions", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(90,), (1, 0, 60, 29)])
def test_leaves_come_back_in_row_order(tmp_path, sizes, n_partitions):
    exchange, rows, leaves = write(tmp_path / "x", sizes, n_partitions)
    counts = exchange.stack_manifest()
    assert counts.sum() == 90 * n_partitions
    for leaf in range(exchange.n_leaves):
        members = np.flatnonzero(np.any([of == leaf for of in leaves], axis=0))
        assert counts[leaf] == len(members)
        found, expected = exchange.read_leaf(leaf), rows.take(members)
        for name in ("X", "codes", "weights", "numbers"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (counts == 0).sum() == n_partitions
    assert [exchange.find_block(b) for b in range(len(sizes))] == list(range(len(sizes)))


def test_a_truncated_file_is_told(tmp_path):
    exchange, _, _ = write(tmp_path / "x", (90,), 2)
    exchange.stack_manifest()
    file = tmp_path / "x" / "block-000000.rows"
    file.write_bytes(file.read_bytes()[:-600])
    # The last section of the second partition's last leaf of any row.
    with pytest.raises(StoreError, match="expected 180 rows"):
        exchange.read_leaf(exchange.n_leaves - 2)
