"""Clusters and block sizes that the estimator tests share."""

import pytest
from distributed import Client
from support import start_cluster

from daskls.run import rows


@pytest.fixture(scope="session")
def one_worker():
    with start_cluster(1, 1, "1GiB") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def two_workers():
    with start_cluster(2, 2, "1GiB") as cluster:
        yield cluster


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
