"""Rows come back leaf by leaf as they were written, in the order of their numbers."""

import shutil

import numpy as np
import pytest
from damages import DAMAGES, files_of

from daskls.errors import DamageError
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
        for name in ("X", "targets", "weights", "numbers"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (counts == 0).sum() == n_partitions
    assert [exchange.find_block(b) for b in range(len(sizes))] == list(range(len(sizes)))


def read_all(exchange, rebuild):
    """Return the rows of all leaves, as bytes; the manifest is made anew, or is what it was."""
    if rebuild:
        exchange.stack_manifest()
    leaves = [exchange.read_leaf(leaf) for leaf in range(exchange.n_leaves)]
    return [[column.tobytes() for column in vars(rows).values()] for rows in leaves]


def error_of(exchange, rebuild, expected):
    """Return what reading raises, or None if it gives what was written."""
    try:
        assert read_all(exchange, rebuild) == expected
    except DamageError as error:
        return error
    return None


@pytest.mark.parametrize("rebuild", [False, True])
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_every_damage_is_noticed(tmp_path, damage, rebuild):
    (tmp_path / "m").mkdir()
    exchange, _, _ = write(tmp_path / "m" / "x", (40, 0, 30, 20), 2)
    exchange.stack_manifest()
    expected = read_all(exchange, rebuild)
    rng, n_noticed = np.random.default_rng(0), 0
    shutil.copytree(tmp_path / "m", tmp_path / "kept")
    for _ in range(4):
        for file in files_of(tmp_path / "m"):
            before = file.read_bytes()
            DAMAGES[damage](file, rng, tmp_path / "m")
            changed = not file.exists() or file.read_bytes() != before
            error = error_of(exchange, rebuild, expected)
            if error is not None:
                n_noticed += 1
                assert "/m/x/" in error.path
            # Once there is a manifest, markers are not read, nor what is behind the last row.
            elif file.suffix == ".rows" and rebuild:
                assert not changed
            shutil.rmtree(tmp_path / "m")
            shutil.copytree(tmp_path / "kept", tmp_path / "m")
    assert n_noticed >= (12 if rebuild or damage != "extended" else 0)


def test_a_block_that_is_longer_or_shorter_than_its_marker_says(tmp_path):
    exchange, _, _ = write(tmp_path / "x", (90,), 2)
    (file,) = (tmp_path / "x").glob("block-000000.*.rows")
    whole = file.read_bytes()
    for content in (whole[:-600], whole + b"more"):
        file.write_bytes(content)
        with pytest.raises(DamageError, match=rf"{file} is damaged: it has {len(content)} bytes"):
            exchange.stack_manifest()
    file.write_bytes(whole)
    exchange.stack_manifest()
    exchange.check_block(0)
    file.write_bytes(bytes(len(whole)))
    with pytest.raises(DamageError, match=f"{file} is damaged: its checksum"):
        exchange.check_block(0)
