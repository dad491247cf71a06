"""Two hosts that share nothing but a bucket: the fit of one machine, whoever is killed.

They are namespaces of this machine, with disks of their own.
"""

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
import s3
from small import answers_of, queries, small
from support import checkers, python_env

from daskls.store.bucket import Bucket
from daskls.store.dataset import DatasetWriter

pytestmark = pytest.mark.slow

SUBNET = "10.77.0"
NAMES = ("daskls-1", "daskls-2")
# The machine itself, on the hosts' network.
ABOVE = f"{SUBNET}.254"
SCHEDULER = f"tcp://{SUBNET}.1:8786"
# What a host has of its own in place of the machine's: nothing of a test's files is seen there.
INSIDE = "mount -t tmpfs none /tmp && mount -t tmpfs none /dev/shm && cd /tmp"
# No process of one host is seen by the other, as on two machines.
SPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
# How long a fit of a blink may take where every host starts Python first.
PATIENCE_S = 240
# Fits rows, if any are named, then answers.
SESSION = """
import sys
import daskls
from distributed import Client
from small import answers_of, queries, small
store, scheduler, *rows = sys.argv[1:]
if rows:
    with Client(scheduler) as client:
        client.wait_for_workers(1, timeout=120)
        small("VoronoiSVC", store=store, client=client).fit(*rows)
print(answers_of(daskls.load(store), queries()).tolist(), flush=True)
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def start(number, *command, **env):
    return subprocess.Popen(
        [
            *("ip", "netns", "exec", NAMES[number], *SPACES, "sh", "-c", f'{INSIDE} && exec "$@"'),
            *("sh", sys.executable, *command),
        ],
        **{"env": python_env(**env), "text": True},
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
    )


@contextmanager
def hosts():
    with ExitStack() as stack:
        # Of a run that was killed.
        for old in (("link", "del", "daskls-net"), *(("netns", "del", name) for name in NAMES)):
            subprocess.run(["ip", *old], check=False, capture_output=True)
        ip("link", "add", "daskls-net", "type", "bridge")
        stack.callback(ip, "link", "del", "daskls-net")
        ip("addr", "add", f"{ABOVE}/24", "dev", "daskls-net")
        ip("link", "set", "daskls-net", "up")
        for number, name in enumerate(NAMES, start=1):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            ip("link", "add", f"{name}-a", "type", "veth", "peer", "name", f"{name}-b")
            ip("link", "set", f"{name}-a", "master", "daskls-net", "up")
            ip("link", "set", f"{name}-b", "netns", name)
            ip("-n", name, "addr", "add", f"{SUBNET}.{number}/24", "dev", f"{name}-b")
            ip("-n", name, "link", "set", f"{name}-b", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield


@pytest.fixture(scope="module")
def env():
    """The settings that lead two hosts, and this process, to their bucket."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("namespaces need root, ip and unshare")
    try:
        with hosts():
            out, told = start(0, "-c", "print('here')").communicate(timeout=60)
    except subprocess.CalledProcessError as error:
        out, told = "", error.stderr.decode()
    if out.strip() != "here":
        pytest.skip(f"no process runs in a namespace here: {told.strip()}")
    with hosts(), s3.serving(ABOVE) as endpoint, pytest.MonkeyPatch.context() as patch:
        for name, value in (env := s3.settings(endpoint)).items():
            patch.setenv(name, value)
        yield env


@contextmanager
def cluster(env):
    scheduler = ("-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port", "8786")
    worker = ("-m", "distributed.cli.dask_worker", SCHEDULER, "--no-dashboard", "--nthreads", "1")
    started = [start(0, *scheduler, **env)]
    try:
        started += [start(host, *worker, "--memory-limit", "1GiB", **env) for host in (0, 1)]
        yield started[1:]
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.communicate()


def until_written(store, pattern):
    end = time.monotonic() + PATIENCE_S
    while not Bucket(store).find(pattern):
        assert time.monotonic() < end, f"nothing of {pattern} in {PATIENCE_S} s"
        time.sleep(0.02)


def test_workers_and_clients_are_killed(env):
    rows, store = f"s3://{s3.BUCKET}/rows", f"s3://{s3.BUCKET}/killed"
    X, y = checkers(900)
    with DatasetWriter(rows, 2, "f8", chunk_rows=225) as writer:
        writer.append(X, y.astype("i4"))
    expected = answers_of(small("VoronoiSVC").fit(X, y), queries()).tolist()
    session = partial(start, **env)
    with cluster(env) as workers:
        first = session(0, "-c", SESSION, store, SCHEDULER, rows)
        until_written(store, "exchange-*/*")
        workers[1].kill()
        until_written(store, "bundles/*")
        first.kill()
        first.communicate()
        # Another host's client: it sees no process of the first, only that its sign grows old.
        end, err = time.monotonic() + PATIENCE_S, "Another fit is writing the store"
        while "Another fit is writing the store" in err:
            assert time.monotonic() < end, err
            second = session(1, "-c", SESSION, store, SCHEDULER, rows)
            out, err = second.communicate(timeout=PATIENCE_S)
            time.sleep(5 * (second.returncode != 0))
        assert second.returncode == 0, err
        assert out.strip() == str(expected)
    out, err = session(0, "-c", SESSION, store, SCHEDULER).communicate(timeout=PATIENCE_S)
    assert out.strip() == str(expected), err
    assert not Bucket(store).find(".owner*", "exchange-*", "input-*", ".probe-*")
