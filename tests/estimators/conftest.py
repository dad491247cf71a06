"""Clients and block sizes that the estimator tests share."""

import pytest
from distributed import Client

from daskls.run import rows


@pytest.fixture
def client(two_workers):
    with Client(two_workers) as client:
        yield client


@pytest.fixture
def set_block_nbytes(monkeypatch):
    """Return a function that sets the size up to which blocks are merged."""

    def set_nbytes(nbytes):
        monkeypatch.setattr(rows, "BLOCK_NBYTES", nbytes)
        # The default of open_blocks was bound when the module was read.
        monkeypatch.setattr(rows.open_blocks, "__defaults__", (nbytes,))

    return set_nbytes
