"""Clients and block sizes that the estimator tests share."""

import pytest
from distributed import Client
from small import set_sizes


@pytest.fixture
def client(two_workers):
    with Client(two_workers) as client:
        yield client


@pytest.fixture
def set_block_nbytes(monkeypatch):
    """Return a function that sets the size up to which blocks are merged."""

    def set_nbytes(nbytes):
        set_sizes(monkeypatch, {"daskls.run.rows.BLOCK_NBYTES": nbytes})

    return set_nbytes
