"""Clusters as people have them: encrypted, by a scheduler's file, with workers that come and go."""

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from distributed import Client
from distributed.security import Security
from support import checkers, python_env, small_svc, start_cluster

import daskls
from daskls.store.dataset import DatasetWriter

pytestmark = pytest.mark.slow
X, Y = checkers(1200)


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
    contents = {"CA_FILE": security.tls_ca_file}
    for role in ("scheduler", "worker", "client"):
        for part in ("cert", "key"):
            name = f"{role}__{part}".upper()
            contents[name] = getattr(security, f"tls_{role}_{part}")
    for name, content in contents.items():
        path = tmp_path / f"{name}.pem"
        path.write_text(content)
        found[f"DASK_DISTRIBUTED__COMM__TLS__{name}"] = str(path)
    return found


@contextmanager
def by_hand(env, folder):
    """Yield the file of a scheduler, started with a worker from the command line."""
    file = folder / "scheduler.json"
    told = ("--scheduler-file", file, "--no-dashboard", "--protocol", "tls")
    scheduler = ("distributed.cli.dask_scheduler", "--port", "0", *told)
    worker = ("distributed.cli.dask_worker", "--nthreads", "1", *told)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env, "cwd": folder}
    started = [
        subprocess.Popen([sys.executable, "-m", *map(str, words)], **quiet)
        for words in (scheduler, worker)
    ]
    try:
        end = time.monotonic() + 60
        # The scheduler opens its file before it writes it.
        while not file.exists() or not file.read_text().endswith("}"):
            assert time.monotonic() < end
            time.sleep(0.1)
        yield file
    finally:
        for process in started:
            process.kill()
            process.wait()


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
        acts = (watch, (cluster, seen, ended)), (come_and_go, (cluster, ended))
        threads = [threading.Thread(target=act, args=args) for act, args in acts]
        for thread in threads:
            thread.start()
        try:
            # Of so few rows a fit may end before a process has started.
            while len(seen) < 3:
                assert time.monotonic() < deadline, seen
                check(small_svc(client=client).fit(rows), expected)
        finally:
            ended.set()
            for thread in threads:
                thread.join()


def watch(cluster, seen, ended):
    while not ended.wait(0.05):
        seen.update(cluster.scheduler_info["workers"])


def come_and_go(cluster, ended):
    n = 1
    while not ended.wait(1.5):
        n = 3 - n
        cluster.scale(n)
