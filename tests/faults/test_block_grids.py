"""The blocks of a begun exchange are kept, whatever chunks and memory the next fit has."""

import dask
import dask.array as da
import numpy as np
import pytest
from small import task_memory, tiny_tasks
from support import Calls, checkers, model_bits, small_svc
from writes import stop_fit

from daskls.run.blocks import BlockRows
from daskls.store import exchange
from daskls.store.exchange import stored_grids
from daskls.store.objects import Scratch

N = 1200
X, Y = checkers(N)


def rows(*chunks):
    return da.from_array(X, (chunks, (2,))), da.from_array(Y, (chunks,))


def stop_at(store, part, at):
    """Begin a fit in blocks of 100 rows that stops before it has written so many of a part."""
    stop_fit(
        lambda: small_svc(store=store).fit(*rows(*[100] * 12)), store, f"exchange-.*/{part}", at
    )


@pytest.mark.parametrize("n_blocks", [1, 7])
@pytest.mark.parametrize("chunks", [(1200,), (350, 1, 849), (40,) * 30])
def test_a_fit_on_other_chunks_goes_on_in_the_blocks_of_the_first(
    tmp_path, undisturbed, monkeypatch, chunks, n_blocks
):
    store = tmp_path / "m"
    with dask.config.set(scheduler="sync"):
        stop_at(store, "block-", n_blocks)
        assert stored_grids(store) == [(100,) * 12]
        written = Calls(monkeypatch, exchange.Exchange, "write_block", lambda *args: args[1])
        assert model_bits(small_svc(store=store).fit(*rows(*chunks))) == undisturbed
    # What was written stays, whichever blocks it were.
    assert len(written.keys) == len(set(written.keys)) == 12 - n_blocks


@pytest.mark.parametrize("part", ["grid", "group-", "manifest-"])
def test_a_fit_that_is_stopped_while_blocks_are_put_together(tmp_path, undisturbed, part):
    store = tmp_path / "m"
    stop_at(store, part, 0)
    assert model_bits(small_svc(store=store).fit(*rows(300, 300, 600))) == undisturbed


def test_blocks_that_are_too_large_for_less_memory_are_given_up(tmp_path, undisturbed, monkeypatch):
    store = tmp_path / "m"
    with tiny_tasks(BLOCK_NBYTES=16 * 600):
        stop_at(store, "block-", 1)
    assert stored_grids(store) == [(600, 600)]
    planned = BlockRows.planned
    monkeypatch.setattr(
        BlockRows, "planned", lambda self, _, grids: planned(self, 16 * 2000, grids)
    )
    assert model_bits(small_svc(store=store).fit(*rows(*[100] * 12))) == undisturbed


@pytest.mark.slow
def test_rows_that_tasks_read_are_read_in_the_blocks_of_the_first(tmp_path, monkeypatch):
    # As NumPy rows are: nothing is put together from other blocks.
    from daskls.run.rows import open_rows

    with (
        tiny_tasks(BLOCK_NBYTES=1600),
        open_rows(X, Y, None, Scratch.at(tmp_path / "in")) as opened,
    ):
        assert opened.X.chunks[0] == (100,) * 12
        for grid in ((700, 500), (1,) * 1200, (1199, 1)):
            again = opened.planned(1 << 30, [(3, 4), grid])
            assert [own.chunks[0] for own in (again.X, again.y)] == [grid, grid]
            np.testing.assert_array_equal(again.X.compute(), X)
            np.testing.assert_array_equal(again.y.compute()[:, 0], Y)
            assert len(dict(again.X.dask)) <= 2 * len(grid) + 2


@pytest.mark.slow
def test_blocks_grow_with_the_rows_and_the_memory_and_the_model_is_the_same(tmp_path, undisturbed):
    from daskls.run.rows import open_rows

    # Rows of 16 bytes, in blocks of 10 at the least: a 32nd of the rows are 37, of the memory 25.
    with tiny_tasks(BLOCK_NBYTES=160):
        with open_rows(X, Y, None, Scratch.at(tmp_path / "in")) as opened:
            assert set(opened.X.chunks[0]) == {10}
            for memory, n_rows in ((1 << 30, 30), (32 * 16 * 25, 20), (32 * 16, 10)):
                again = opened.planned(memory)
                assert set(again.X.chunks[0]) == {n_rows}
                assert again.y.chunks[0] == again.X.chunks[0]
                np.testing.assert_array_equal(again.X.compute(), X)
        with task_memory(1 << 30):
            assert model_bits(small_svc().fit(*rows(*[10] * 120))) == undisturbed
