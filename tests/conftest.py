"""What all tests share: helpers, and clusters that are started once."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support import start_cluster


@pytest.fixture(scope="session")
def one_worker():
    with start_cluster(1, 1, "1GiB") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def two_workers():
    with start_cluster(2, 2, "1GiB") as cluster:
        yield cluster
