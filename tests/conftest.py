"""What all tests share: helpers, clusters that are started once, and what runs in one process."""

import gc
import os
import shutil
import sys
import tempfile
import uuid
import zlib
from collections import defaultdict
from pathlib import Path

import dask
import hypothesis
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import s3
from support import start_cluster

# Of tests that run in two processes those that share a cluster run in one, else each process would
# start it; of every other file, too, all tests do, for what they share.
SHARED = {"one_worker", "two_workers"}
STARTED = {*SHARED, "s3_endpoint"}
ON_SHARED = (
    *("estimators/test_models.py", "estimators/test_to_zarr.py::test_with_a_client"),
    "test_newcomers.py::test_a_lost_worker",
    "tables/test_columns.py::test_a_client_is_warned",
    *("::test_workers_leave_no_trace", "::test_a_killed_worker_costs"),
)
# How many cases of a test `make test` runs, by the first part of its name that is here: one of
# whole fits, which all others are.
CASES = {
    **{"contract/": 2, "datasets/": 3, "kernels/": 3, "neighbors/": 3},
    **{"partition/": 3, "solvers/test_tube.py": 1, "solvers/": 3},
}
# Files so long that their tests are dealt out one by one.
DEALT = (
    *("test_check_estimator.py", "test_cell.py", "test_finish.py", "test_methods.py"),
    *("test_pages.py", "test_worked_examples.py", "test_mutations.py", "test_lost_clusters.py"),
)


@pytest.fixture(scope="session")
def one_worker():
    with start_cluster(1, 1, "1GiB") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def two_workers():
    with start_cluster(2, 2, "1GiB") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def s3_endpoint():
    """The endpoint of an S3 server, which the process's own settings lead to."""
    with s3.serving() as endpoint, pytest.MonkeyPatch.context() as patch:
        for name, value in s3.settings(endpoint).items():
            patch.setenv(name, value)
        yield endpoint


@pytest.fixture
def bucket_url(s3_endpoint):
    """The URL of a store in which nothing is yet."""
    return f"s3://{s3.BUCKET}/{uuid.uuid4().hex}/m"


@pytest.fixture(autouse=True)
def own_draws(request):
    """Let what a test draws from its module's RNG not depend on the tests before it."""
    if (drawn := getattr(getattr(request.node, "module", None), "RNG", None)) is not None:
        drawn.bit_generator.state = np.random.default_rng(1).bit_generator.state


@pytest.fixture
def no_cluster(monkeypatch):
    """Fail where a cluster is started."""

    def fail(*args, **kwargs):
        raise AssertionError("a cluster was started")

    monkeypatch.setattr("distributed.LocalCluster.__init__", fail)


def pytest_configure(config):
    """Let a busy machine start lost workers anew, and `make test` write into memory.

    A LocalCluster gives up a worker that is not back in 15 s, and hypothesis a test that draws
    slowly. Fits make and remove many files.
    """
    dask.config.set({"distributed.deploy.lost-worker-timeout": "180s"})
    patient = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
    hypothesis.settings.register_profile("patient", **patient)
    hypothesis.settings.load_profile("patient")
    memory = Path("/dev/shm")
    is_quick = config.option.markexpr == "not slow" and memory.is_dir()
    if is_quick and shutil.disk_usage(memory).free > 4 << 30:
        os.environ["TMPDIR"] = tempfile.tempdir = str(memory)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave to `make test-all` what starts a cluster or a server, and most cases of a test.

    Which stay is drawn by the test's name: together they try every method, loss and container.
    Fail where a test shares a cluster and its group does not say so.
    """
    cases = defaultdict(list)
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if SHARED & fixtures and group_of(item.nodeid) != "shared":
            raise pytest.UsageError(f"name {item.nodeid} in conftest.ON_SHARED")
        if item.get_closest_marker("always"):
            continue
        if STARTED & fixtures:
            item.add_marker("slow")
        elif hasattr(item, "callspec") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for name, of_one_test in cases.items():
        n, first = len(of_one_test), zlib.crc32(name.encode())
        n_kept = next((kept for folder, kept in CASES.items() if folder in name), 1)
        few = {(first + n * i // n_kept) % n for i in range(n_kept)}
        for number, item in enumerate(of_one_test):
            if number not in few:
                item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let later collections of garbage pass over what is there before the first test.

    It is nearly all there is; fits, and tests of what goes with an estimator, collect often.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deal groups of tests: by their names, which every version of pytest gives alike."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        """Tests of one group go to one process."""

        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return Groups(config, log)


def group_of(nodeid):
    """Return the group of a test; its own name where it may run anywhere."""
    file = nodeid.partition("::")[0]
    if any(part in nodeid for part in ON_SHARED):
        return "shared"
    # Each process compiles for half a minute what searches approximately.
    if "approximate" in nodeid:
        return "approximate"
    return nodeid if file.endswith(DEALT) else file
