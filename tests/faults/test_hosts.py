"""Two hosts that share nothing but a bucket: the fit of one machine, whoever is killed."""

import subprocess
import time
from contextlib import contextmanager

import hosts
import numpy as np
import pytest
import s3
from host_session import digest_of
from small import small

from daskls.store.bucket import Bucket
from daskls.store.dataset import DatasetWriter

pytestmark = pytest.mark.slow
SESSION = hosts.__file__.replace("hosts.py", "host_session.py")
PORT = 8786
# How long a fit of a blink may take where every host starts Python first.
PATIENCE_S = 240
N = 900


@pytest.fixture(scope="module")
def network():
    """Two hosts, the settings that lead to their bucket, and the URL of rows in it."""
    reason = hosts.why_not()
    if reason:
        pytest.skip(reason)
    with hosts.hosts() as found, s3.serving(hosts.ABOVE) as endpoint:
        env = s3.settings(endpoint)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            rows = f"s3://{s3.BUCKET}/rows"
            with DatasetWriter(rows, 2, "f8", chunk_rows=N // 4) as writer:
                writer.append(*data())
            yield found, env, rows


def data():
    rng = np.random.default_rng(0)
    X = rng.random((N, 2))
    return X, ((X * 3).astype(int).sum(axis=1) % 2).astype("i4")


@contextmanager
def cluster(found, env):
    quiet = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = (*("-m", "distributed.cli.dask_scheduler"), "--no-dashboard", "--port", str(PORT))
    worker = (
        *("-m", "distributed.cli.dask_worker", address(found)),
        *("--no-dashboard", "--nthreads", "1", "--memory-limit", "1GiB"),
    )
    started = [found[0].start(*scheduler, **quiet)]
    try:
        started += [host.start(*worker, **quiet) for host in found]
        yield started[1:]
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


def address(found):
    return f"tcp://{found[0].address}:{PORT}"


def answer(process):
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out.strip()


def fit_on(host, found, env, name, rows, store):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return host.start(SESSION, "fit", name, rows, store, address(found), env=env, **pipes)


def predict_on(host, env, store):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return answer(host.start(SESSION, "predict", store, env=env, **pipes))


def until_written(store, pattern):
    """Wait until something of a store is there."""
    end = time.monotonic() + PATIENCE_S
    while not Bucket(store).find(pattern):
        assert time.monotonic() < end, f"nothing of {pattern} in {PATIENCE_S} s"
        time.sleep(0.02)


def test_workers_and_clients_are_killed(network):
    found, env, rows = network
    store = f"s3://{s3.BUCKET}/killed"
    X, y = data()
    expected = digest_of(small("VoronoiSVC").fit(X, y))
    with cluster(found, env) as workers:
        first = fit_on(found[0], found, env, "VoronoiSVC", rows, store)
        until_written(store, "exchange-*/*")
        workers[1].kill()
        until_written(store, "bundles/*")
        first.kill()
        first.communicate()
        # Another host's client: it sees no process of the first, only that its sign grows old.
        second = fit_on(found[1], found, env, "VoronoiSVC", rows, store)
        out, err = second.communicate(timeout=PATIENCE_S)
        end = time.monotonic() + PATIENCE_S
        while second.returncode and "Another fit is writing the store" in err:
            assert time.monotonic() < end, err
            time.sleep(5)
            second = fit_on(found[1], found, env, "VoronoiSVC", rows, store)
            out, err = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 0, err
        assert out.strip() == expected
    assert predict_on(found[0], env, store) == expected
    assert not Bucket(store).find(".owner*", "exchange-*", "input-*", ".probe-*")
