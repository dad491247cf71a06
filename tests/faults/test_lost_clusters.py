"""What ends the work from outside is one ClusterError, and a second fit goes on; nothing hangs."""

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import pytest
import zarr
from distributed import Client, Future, WorkerPlugin
from support import assert_same_model, checkers, few, memory_nbytes, small_svc, start_cluster

import daskls
from daskls import ClusterError, DataError, MemoryPlanError, StoreError

pytestmark = pytest.mark.slow

# Of one wait without progress, where a test waits for the end of it: more than a worker's imports
# take on a busy machine.
PATIENCE_S = 12


def short_patience(seconds=PATIENCE_S):
    return dask.config.set({"daskls.patience": seconds})


@pytest.fixture(autouse=True)
def longest_wait():
    with short_patience(60):
        yield


@contextmanager
def client_of(*cluster):
    with start_cluster(*cluster) as cluster, Client(cluster, set_as_default=False) as client:
        if cluster.worker_spec:
            client.wait_for_workers(len(cluster.worker_spec), timeout=60)
        yield client


@pytest.fixture(scope="module")
def lasting_client():
    with client_of(2) as client:
        yield client


@pytest.fixture
def client():
    with client_of(2) as client:
        yield client


def mark(folder, name):
    (Path(folder) / f"{name}-{os.getpid()}-{time.monotonic_ns()}").touch()


def slow(block, folder, seconds=0.3):
    mark(folder, "block")
    time.sleep(seconds)
    return block


def slow_data(folder, seconds=0.3):
    X, y = checkers(1200)
    return late(X, (100, 2), slow, folder, seconds), da.from_array(y, chunks=100)


def late(X, chunks, function, *args):
    X = da.from_array(X, chunks=chunks)
    return X.map_blocks(function, *map(str, args[:1]), *args[1:], dtype=X.dtype, meta=X._meta)


def wait_until(reached, seconds=300):
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def when_blocks_run(folder, happen):
    def run():
        wait_until(lambda: len(list(Path(folder).glob("block-*"))) >= 3)
        happen()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


EVENTS = {
    "futures cancelled": lambda client: client.cancel(
        [Future(key, client) for key in list(client.futures)], force=True
    ),
    "restarted": lambda client: client.restart(),
    "no workers": lambda client: client.cluster.scale(0),
    "cluster closed": lambda client: client.cluster.close(),
    "client closed": lambda client: client.close(),
}


@pytest.mark.parametrize("event", few(EVENTS))
def test_what_ends_a_fit_from_outside_is_told_and_the_next_fit_goes_on(event, client, tmp_path):
    happening = when_blocks_run(tmp_path, lambda: EVENTS[event](client))
    store = tmp_path / "m"
    kept = r"tasks are kept: call it again, with the same store="
    with short_patience(), pytest.raises(ClusterError, match=kept):
        small_svc(client=client, store=store).fit(*slow_data(tmp_path))
    happening.join()
    with dask.config.set(scheduler="threads"):
        model = small_svc(store=store).fit(*slow_data(tmp_path, 0))
        assert_same_model(small_svc().fit(*slow_data(tmp_path, 0)), model)
    assert not list(store.glob(".*"))


def test_workers_that_do_not_answer_are_told(lasting_client, tmp_path):
    pids = list(lasting_client.run(os.getpid).values())
    happening = when_blocks_run(tmp_path, lambda: [os.kill(pid, signal.SIGSTOP) for pid in pids])
    told = r"nothing for 12 s .*2 worker\(s\), .* do not answer"
    try:
        with short_patience(), pytest.raises(ClusterError, match=told):
            small_svc(client=lasting_client, store=tmp_path / "m").fit(*slow_data(tmp_path))
    finally:
        happening.join()
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.fixture
def heeded_interrupts():
    """Let SIGINT interrupt: where the tests are a shell's background job it would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_passes_and_frees_the_cluster(lasting_client, heeded_interrupts, tmp_path):
    happening = when_blocks_run(tmp_path, _thread.interrupt_main)
    with pytest.raises(KeyboardInterrupt):
        small_svc(client=lasting_client, store=tmp_path / "m").fit(*slow_data(tmp_path))
    happening.join()
    wait_until(lambda: not any(lasting_client.processing().values()))


def hold(share, dask_worker=None):
    limit = dask_worker.memory_manager.memory_limit
    free = int(limit * share) - memory_nbytes("VmRSS")
    dask_worker.held = bytearray(os.urandom(1 << 20)) * (free >> 20)


def test_without_workers_a_fit_waits_for_one_then_refuses(tmp_path):
    X, y = checkers(300)
    with client_of(0) as client:
        none = r"nothing for 1 s .*it has no worker"
        with short_patience(1), pytest.raises(ClusterError, match=none):
            small_svc(client=client).fit(X, y)
        happening = threading.Timer(1.0, lambda: client.cluster.scale(1))
        happening.start()
        model = small_svc(client=client).fit(X, y)
        happening.join()
    assert_same_model(small_svc().fit(X, y), model)


def test_paused_workers_are_told(tmp_path):
    X, y = checkers(300)
    with client_of(1, 1, "400MiB") as client:
        client.run(hold, 0.87)
        paused = r"1 of 1 worker\(s\) are paused.* holds 3\d\d of 400 MiB.*client.restart\(\)"
        with short_patience(4), pytest.raises(ClusterError, match=paused):
            small_svc(client=client).fit(X, y)
        client.restart()
        small_svc(client=client).fit(X, y)


class HideDaskls(WorkerPlugin):
    def setup(self, worker):
        for name in [n for n in sys.modules if n.split(".")[0] == "daskls"]:
            del sys.modules[name]
        sys.modules["daskls"] = None


class OtherVersion(WorkerPlugin):
    def setup(self, worker):
        daskls._version.__version__ = "0.1.0"


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        (HideDaskls, "cannot import daskls .*Install"),
        (OtherVersion, rf"has daskls 0\.1\.0\. Install daskls {daskls.__version__}"),
    ],
)
def test_a_worker_without_this_version_of_daskls_is_told(plugin, told, client):
    X, y = checkers(300)
    model = small_svc().fit(X, y)
    client.register_plugin(plugin())
    told = rf"worker tcp://\S+ {told}"
    with pytest.raises(ClusterError, match=told):
        small_svc(client=client).fit(X, y)
    # Dask would close each such worker, and wait for others.
    lazy = da.from_array(X, chunks=(100, 2))
    with pytest.raises(ClusterError, match=told):
        model.set_params(client=client).predict(lazy)


class HidePath(WorkerPlugin):
    def __init__(self, path):
        self.path = str(path)

    def setup(self, worker):
        exists, lstat = os.path.exists, os.lstat

        def seen(path):
            return "/nowhere" if str(path).startswith(self.path) else path

        os.path.exists = lambda path: exists(seen(path))
        os.lstat = lambda path, **at: lstat(seen(path), **at)


@pytest.mark.parametrize("hidden", few(["m", "X.zarr"]))
def test_workers_that_do_not_share_the_store_or_the_data(hidden, lasting_client, tmp_path):
    X, y = checkers(300)
    zarr.save_array(tmp_path / "X.zarr", X)
    lasting_client.register_plugin(HidePath(tmp_path / hidden))
    shares = rf"2 worker\(s\) cannot see what the client sees: tcp://\S+ .* read \S+{hidden}"
    with pytest.raises(StoreError, match=shares):
        small_svc(client=lasting_client, store=tmp_path / "m").fit(str(tmp_path / "X.zarr"), y)


def fail_once(block, folder, error):
    mark(folder, "try")
    if not (Path(folder) / "failed").exists():
        (Path(folder) / "failed").touch()
        if error is None:
            os.kill(os.getpid(), signal.SIGKILL)
        raise error("out of luck")
    return block


@pytest.mark.parametrize("error", [None, OSError, DataError, StoreError, MemoryPlanError])
def test_a_task_is_tried_again_but_never_after_an_error_of_daskls(error, lasting_client, tmp_path):
    X, y = checkers(300)
    once = late(X, (300, 2), fail_once, tmp_path, error)
    if error in (None, OSError):
        assert_same_model(small_svc().fit(X, y), small_svc(client=lasting_client).fit(once, y))
        return
    with pytest.raises(error, match="out of luck"):
        small_svc(client=lasting_client).fit(once, y)
    assert len(list(tmp_path.glob("try-*"))) == 1


def test_a_client_given_as_text_is_refused():
    with pytest.raises(daskls.ParameterError, match=r"Client\('tcp://nowhere:8786'\)"):
        small_svc(client="tcp://nowhere:8786").fit(*checkers(300))


def test_one_long_task_is_progress(lasting_client, tmp_path):
    X, y = checkers(300)
    with short_patience(6):
        model = small_svc(client=lasting_client).fit(late(X, (300, 2), slow, tmp_path, 9.0), y)
    assert_same_model(small_svc().fit(X, y), model)
