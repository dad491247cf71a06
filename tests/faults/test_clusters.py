"""Clusters as people have them: encrypted, by a scheduler's file, with workers that come and go."""

import threading
import time

import numpy as np
import pytest
from distributed import Client
from support import checkers, small_svc, start_cluster

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
