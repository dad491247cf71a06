"""Clusters as people have them: encrypted, by a scheduler's file, with workers that come and go."""

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from distributed import Client, wait
from distributed.security import Security
from support import checkers, model_bits, python_env, small_svc, start_cluster

import daskls
from daskls import ClusterError
from daskls.store.dataset import DatasetWriter

pytestmark = pytest.mark.slow
X, Y = checkers(1200)
PARTS = ("cert", "key")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("clusters") / "rows.zarr")
    with DatasetWriter(path, 2, "f8", y_dtype=Y.dtype, chunk_rows=300) as writer:
        writer.append(X, Y)
    return path


@pytest.fixture(scope="module")
def expected():
    return small_svc().fit(X, Y).decision_function(X)


def check(model, expected):
    np.testing.assert_array_equal(model.decision_function(X), expected)


@pytest.fixture
def certificates(tmp_path):
    """Settings of Dask, as in the environment, that encrypt what processes say to each other."""
    security = Security.temporary()
    found = {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    names = [f"{role}_{part}" for role in ("scheduler", "worker", "client") for part in PARTS]
    for name in ("ca_file", *names):
        path = tmp_path / f"{name}.pem"
        path.write_text(getattr(security, f"tls_{name}"))
        setting = name.upper() if name == "ca_file" else name.replace("_", "__").upper()
        found[f"DASK_DISTRIBUTED__COMM__TLS__{setting}"] = str(path)
    return found


@contextmanager
def started(*words, **options):
    command = [sys.executable, *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def by_hand(env, folder):
    """Yield the file of a scheduler, started with a worker from the command line."""
    file = folder / "scheduler.json"
    told = ("--scheduler-file", file, "--no-dashboard", "--protocol", "tls")
    scheduler = ("distributed.cli.dask_scheduler", "--port", "0", *told)
    worker = ("distributed.cli.dask_worker", "--nthreads", "1", *told)
    options = {"stdout": subprocess.DEVNULL, "env": env, "cwd": folder}
    with started("-m", *scheduler, **options), started("-m", *worker, **options):
        end = time.monotonic() + 60
        # The scheduler opens its file before it writes it.
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < end
            time.sleep(0.1)
        yield file


def test_an_encrypted_cluster_from_the_command_line(certificates, rows, expected, tmp_path):
    env = python_env(**certificates)
    with by_hand(env, tmp_path) as file:
        address = json.loads(file.read_text())["address"]
        assert address.startswith("tls://")
        code = (
            "import sys; from distributed import Client; from support import small_svc\n"
            "with Client(scheduler_file=sys.argv[1]) as client:\n"
            "    small_svc(store=sys.argv[2], client=client).fit(sys.argv[3])"
        )
        arguments = map(str, (file, tmp_path / "m", rows))
        subprocess.run([sys.executable, "-c", code, *arguments], env=env, check=True, timeout=300)
        command = [sys.executable, "-m", "daskls", "fit", rows, tmp_path / "cli", "--quiet"]
        options = ["--scheduler", address, "--cell-size", "100", "--random-state", "0"]
        subprocess.run([*map(str, command), *options], env=env, check=True, timeout=300)
    check(daskls.load(tmp_path / "m"), expected)
    assert daskls.load(tmp_path / "cli").n_cells_ > 1


def test_workers_that_come_and_go(rows, expected):
    with start_cluster() as cluster, Client(cluster) as client:
        ended, seen, deadline = threading.Event(), set(), time.monotonic() + 120
        thread = threading.Thread(target=come_and_go, args=(cluster, seen, ended))
        thread.start()
        try:
            # Of so few rows a fit may end before a process has started.
            while len(seen) < 3:
                assert time.monotonic() < deadline, seen
                check(small_svc(client=client).fit(rows), expected)
        finally:
            ended.set()
            thread.join()


def come_and_go(cluster, seen, ended):
    n = 0
    while not ended.wait(0.05):
        seen.update(cluster.scheduler_info["workers"])
        n += 1
        if n % 30 == 0:
            cluster.scale(1 + n // 30 % 2)


# A fit here takes a blink: what has not ended by then waits for itself.
ENDS_S = 60


def fit_one(seed):
    X, y = checkers(300, seed=seed)
    model = small_svc().fit(X, y)
    return model_bits(model), model.predict(X).tolist(), model.score(X, y)


def test_more_fits_in_tasks_than_slots_end():
    # A fit inside a task leaves its slot while it waits.
    with start_cluster(2, 1, "1GiB") as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        futures = client.map(fit_one, range(4), pure=False)
        with client.as_current():
            assert not wait(futures, timeout=ENDS_S).not_done
        assert client.gather(futures) == [*map(fit_one, range(4))]


# A process that cannot import daskls, and the scheduler that runs in it.
BARE = """
import asyncio, sys
sys.modules["daskls"] = None
from distributed import Scheduler

async def main():
    async with Scheduler(port=0, dashboard_address=":0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""


def test_a_scheduler_without_daskls_is_named():
    with started("-c", BARE, stdout=subprocess.PIPE, env=python_env()) as bare:
        address = bare.stdout.readline().strip()
        worker = ("-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard")
        told = rf"^The scheduler {address} cannot read the tasks .*\(.*daskls.*\).*Install daskls"
        with (
            started(*worker, "--nthreads", "1", env=python_env()),
            Client(address, set_as_default=False) as client,
        ):
            client.wait_for_workers(1, timeout=60)
            with pytest.raises(ClusterError, match=told):
                small_svc(client=client).fit(*checkers(300))
