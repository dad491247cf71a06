"""NumPy arrays are read where they are by threads, and from disk by workers, with the same bits."""

import numpy as np
import pytest
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small
from support import assert_same_model, checkers

from daskls import StoreError, pipeline
from daskls.run import rows
from daskls.run.blocks import HeldArray

X, Y = checkers(700)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "reversed": lambda X: np.ascontiguousarray(X[::-1])[::-1],
    "every second": lambda X: np.repeat(X, 2, axis=0)[::2],
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}


@pytest.fixture(scope="module")
def from_disk():
    """Return a function that fits on rows that a worker reads from disk."""
    with Client(processes=False, n_workers=1, dashboard_address=":0", set_as_default=False) as own:
        yield lambda name, X, y: small(name, client=own).fit(X, y)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_is_read_as_from_disk(layout, from_disk, monkeypatch):
    given = LAYOUTS[layout](X)
    np.testing.assert_array_equal(given, X)
    before = given.copy()
    with monkeypatch.context() as patch:
        patch.setattr(rows, "save_array", None)
        ours = small("VoronoiSVC").fit(given, Y)
    assert_same_model(from_disk("VoronoiSVC", X, Y), ours)
    np.testing.assert_array_equal(given, before)


@settings(max_examples=60)
@given(
    st.sampled_from(["f2", "f4", "f8", "i1", "u2", "i8", "?", ">f4"]),
    st.integers(1, 50),
    st.integers(1, 20),
    st.data(),
)
def test_rows_are_copies(dtype, n, chunk_rows, data):
    values = np.arange(2 * n).reshape(n, 2).astype(dtype)
    held = HeldArray.of(values, "X", chunk_rows)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    found = held.read(start, stop)
    np.testing.assert_array_equal(found, values[start:stop])
    assert found.flags.c_contiguous
    assert found.dtype.isnative
    assert held.chunk_rows == min(n, chunk_rows)
    assert not np.shares_memory(found, values)


def test_an_array_that_changes_during_a_fit_is_told(monkeypatch):
    changing, regroup_rows = X.copy(), pipeline.regroup_rows

    def change(*given):
        changing[3] += 1
        return regroup_rows(*given)

    monkeypatch.setattr(pipeline, "regroup_rows", change)
    with pytest.raises(StoreError, match="other values at the second reading"):
        small("VoronoiSVC").fit(changing, Y)
