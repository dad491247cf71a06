"""What all tests share: helpers, clusters that are started once, and what runs in one process."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support import start_cluster

# Of tests that run in two processes, those that share a cluster, or that start their own and
# measure what processes hold, run in one: else each process would start all of them.
CLUSTERS = {"one_worker", "two_workers", "client", "cluster", "lasting_client", "fresh_client"}
MEASURED = ("memory/", "faults/", "test_memory.py")
# Files so long that their tests are dealt out one by one.
DEALT = ("test_check_estimator.py", "test_cell.py", "test_finish.py", "test_methods.py")


@pytest.fixture(scope="session")
def one_worker():
    with start_cluster(1, 1, "1GiB") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def two_workers():
    with start_cluster(2, 2, "1GiB") as cluster:
        yield cluster


@pytest.fixture
def no_cluster(monkeypatch):
    """Fail where a cluster is started."""

    def fail(*args, **kwargs):
        raise AssertionError("a cluster was started")

    monkeypatch.setattr("distributed.LocalCluster.__init__", fail)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Name what runs in one process: the tests on clusters, and each other file for itself."""
    for item in items:
        group = group_of(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


def group_of(item):
    """Return the group of a test; none where it may run anywhere."""
    file = item.path.relative_to(item.config.rootpath).as_posix()
    if CLUSTERS & set(item.fixturenames) or any(part in file for part in MEASURED):
        return "clusters"
    return None if file.endswith(DEALT) else file
