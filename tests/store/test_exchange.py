"""Rows come back leaf by leaf as they were written, in the order of their numbers."""

from contextlib import suppress

import numpy as np
import pytest
from support import Calls

from daskls.errors import DamageError
from daskls.memory import TaskSizes
from daskls.plan.exchange import plan_exchange
from daskls.records import SolverSpec
from daskls.store.artifact import ArtifactStream, open_artifact, write_artifact
from daskls.store.caches import drop_caches
from daskls.store.exchange import Exchange, Rows, stored_grids
from daskls.store.folder import Folder

N_LEAVES = (4, 3, 5)


def write(folder, sizes, n_partitions, seed=0, group_blocks=1):
    """Write blocks of random rows; return the exchange, all rows and each row's leaves."""
    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum(N_LEAVES[:n_partitions])])
    shape = len(sizes), int(first[-1]), 3, "<f4", n_partitions
    exchange = Exchange(str(folder), *shape, group_blocks=group_blocks)
    n = sum(sizes)
    # Some leaves stay empty.
    leaves = [
        first[p] + rng.integers(0, N_LEAVES[p] - 1, n).astype(np.int32) for p in range(n_partitions)
    ]
    rows = random_rows(rng, n)
    write_blocks(exchange, rows, leaves, sizes)
    return exchange, rows, leaves


def random_rows(rng, n):
    X, targets = rng.random((n, 3), dtype="f4"), rng.integers(0, 5, n).astype("i4")
    return Rows(X, targets, rng.random(n), 10 + np.arange(n))


def write_blocks(exchange, rows, leaves, sizes):
    exchange.create(sizes)
    for block, end in enumerate(np.cumsum(sizes)):
        own = np.arange(end - sizes[block], end)
        exchange.write_block(block, rows.take(own), (of[own] for of in leaves), block)


def put_together(exchange):
    windows = range(exchange.n_windows)
    if exchange.is_merged:
        for group in range(exchange.n_groups):
            for window in windows:
                exchange.merge(group, window)
    return np.concatenate([exchange.write_manifest(window) for window in windows])


def assert_same(found, expected):
    for name in ("X", "targets", "weights", "numbers"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).flags.c_contiguous


def assert_leaves(exchange, rows, leaves):
    for leaf in range(exchange.n_leaves):
        members = np.flatnonzero(np.any([of == leaf for of in leaves], axis=0))
        found, expected = exchange.read_leaf(leaf), rows.take(members)
        assert_same(found, expected)
    for first, last in ((0, exchange.n_leaves - 1), (2, 2)):
        for leaf, found in enumerate(exchange.read_leaves(first, last), start=first):
            assert_same(found, exchange.read_leaf(leaf))


@pytest.mark.parametrize("most_rows", [1, 12, 1000])
@pytest.mark.parametrize("group_blocks", [1, 2, 20])
@pytest.mark.parametrize("n_partitions", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(90,), (1, 0, 60, 29)])
def test_leaves_come_back_in_row_order(
    tmp_path, sizes, n_partitions, group_blocks, most_rows, monkeypatch
):
    # So many rows of leaves are read together.
    monkeypatch.setattr("daskls.store.exchange.LEAVES_NBYTES", most_rows * (3 * 4 + 4 + 8 + 8))
    folder = tmp_path / "exchange-1"
    exchange, rows, leaves = write(folder, sizes, n_partitions, group_blocks=group_blocks)
    counts = put_together(exchange)
    assert counts.tolist() == sum(np.bincount(of, minlength=len(counts)) for of in leaves).tolist()
    assert (counts == 0).sum() == n_partitions
    assert_leaves(exchange, rows, leaves)
    assert [exchange.find_block(b) for b in range(len(sizes))] == list(range(len(sizes)))
    assert stored_grids(tmp_path) == [sizes]
    (tmp_path / "exchange-1" / "grid").write_bytes(b"damaged")
    assert stored_grids(tmp_path) == []


def test_blocks_are_merged_in_ranges_of_leaves_and_large_leaves_block_by_block(
    tmp_path, monkeypatch
):
    # One leaf of all rows but some: larger than any block.
    leaves = np.full(400, 2, np.int32)
    leaves[::40] = np.arange(10) % 5
    exchange = Exchange(str(tmp_path / "x"), 8, 5, 1, "<f8", group_blocks=8)
    numbers = np.arange(400)
    rows = Rows(numbers[:, None] * 0.5, numbers.astype("i4"), numbers + 1.0, numbers)
    write_blocks(exchange, rows, [leaves], [50] * 8)
    pieces = Calls(monkeypatch, ArtifactStream, "write", lambda self, piece: len(piece))
    counts = put_together(exchange)
    assert counts.tolist() == np.bincount(leaves).tolist()
    assert max(pieces.keys) <= 50
    assert_leaves(exchange, rows, [leaves])


def test_requests_are_as_the_plan_says(tmp_path, monkeypatch):
    sizes, n = (TaskSizes(3, 4, 2, 10, SolverSpec()), 4000)
    monkeypatch.setattr("daskls.plan.exchange.MOST_RUNS", 100)
    monkeypatch.setattr("daskls.plan.exchange.GROUP_BLOCKS", 4)
    monkeypatch.setattr("daskls.plan.exchange.block_nbytes", lambda *_: 12 * 400)
    plan = plan_exchange(sizes, n, 12, 1, 1 << 30)
    assert (plan.n_blocks, plan.n_groups, plan.n_windows) == (10, 3, 4)
    rng = np.random.default_rng(0)
    leaves = rng.integers(0, 12, n).astype("i4")
    exchange = Exchange(str(tmp_path / "x"), 10, 12, 3, "<f4", group_blocks=4)
    calls = [Calls(monkeypatch, Folder, name) for name in ("put", "stream", "_read")]
    write_blocks(exchange, random_rows(rng, n), [leaves], [400] * 10)
    put_together(exchange)
    for leaf in range(12):
        exchange.read_leaf(leaf)
    n_requests = sum(map(len, calls))
    # A window that is larger than a block is read in parts.
    assert plan.requests <= n_requests <= 1.1 * plan.requests
    folder = tmp_path / "x"
    # Each file begins with a header of some hundred bytes, and ends with the sums.
    manifests = [file.stat().st_size for file in folder.glob("manifest-*")]
    assert 0 <= max(manifests) - plan.manifest_nbytes <= 1000
    files = [*folder.glob("block-*"), *folder.glob("group-*")]
    stored = sum(file.stat().st_size for file in files)
    assert plan.nbytes == 2 * n * sizes.row_nbytes
    assert 0 <= stored - plan.nbytes <= 1000 * len(files)


def test_a_block_whose_offsets_are_not_those_of_its_leaves(tmp_path):
    exchange, _, _ = write(tmp_path / "x", (90,), 2)
    opened = open_artifact(tmp_path, "x/block-000000")
    arrays = {name: opened.read(name) for name in opened.names}
    offsets = arrays["offsets"]
    assert offsets[-1] == len(arrays["records"]) == 180
    for changed in ({"offsets": offsets[1:]}, {"offsets": offsets.astype("f8")}):
        write_artifact(tmp_path, "x/block-000000", {**arrays, **changed}, replace=True)
        drop_caches()
        with pytest.raises(DamageError, match="block-000000 is damaged"):
            exchange.write_manifest()
    write_artifact(tmp_path, "x/block-000000", arrays, {"checksum": 7}, replace=True)
    drop_caches()
    exchange.write_manifest()
    assert exchange.find_block(0) == 7


@pytest.mark.parametrize("n_dropped", range(5))
@pytest.mark.parametrize("group_blocks", [1, 2])
def test_a_removal_that_is_cut_off_leaves_nothing_stale(
    tmp_path, monkeypatch, group_blocks, n_dropped
):
    exchange, rows, leaves = write(tmp_path / "x", (40, 0, 30, 20), 1, group_blocks=group_blocks)
    put_together(exchange)
    drop, calls = Folder.drop, []

    def cut_off(self, *patterns, **kwargs):
        calls.append(patterns)
        if len(calls) > n_dropped:
            raise KeyboardInterrupt
        drop(self, *patterns, **kwargs)

    monkeypatch.setattr(Folder, "drop", cut_off)
    with suppress(KeyboardInterrupt):
        exchange.drop_block(3)
    monkeypatch.undo()
    own = np.arange(70, 90)
    exchange.write_block(3, rows.take(own), [leaves[0][own]], 3)
    put_together(exchange)
    assert_leaves(exchange, rows, leaves)
