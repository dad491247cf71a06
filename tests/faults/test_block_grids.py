"""The blocks of a begun exchange are kept, whatever chunks and memory the next fit has."""

import dask
import dask.array as da
import pytest
from support import Calls, checkers, model_bits, small_svc
from writes import stop_fit

from daskls.store import exchange
from daskls.store.exchange import stored_grids

N = 1200
X, Y = checkers(N)


def rows(*chunks):
    return da.from_array(X, (chunks, (2,))), da.from_array(Y, (chunks,))


def stop_at(store, part, at):
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
