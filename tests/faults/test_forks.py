"""A child forked from a process that has fitted: threads, pools and clients stay behind."""

import os
import subprocess
import sys

import pytest
from support import python_env

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]
# What a child waits for in vain it waits for without end; all of it takes seconds.
ENDS_S = 120

BEGIN = """
import multiprocessing, os, sys, threading, warnings
import dask, dask.array as da, numpy as np
from distributed import Client, LocalCluster
from daskls import VoronoiSVC
from daskls.errors import ClusterError

# Python 3.12 warns of every fork of a process with threads.
warnings.simplefilter("ignore", DeprecationWarning)
X = np.random.default_rng(0).random((400, 2))
y = (X[:, 0] > X[:, 1]).astype(int)
rows = da.from_array(X, chunks=(100, 2))

def fitted():
    return VoronoiSVC(cell_size=100, C=1.0, gamma=2.0, random_state=0).fit(rows, y)

def in_child(task):
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    task()
    # By the interpreter's own end, which joins pools.
    sys.exit(7)
"""

THREADS = """
model = fitted()
lazy = model.predict(rows)
expected = lazy.compute().tolist()

def work():
    assert lazy.compute().tolist() == expected
    assert fitted().predict(X).tolist() == expected
    assert model.predict(X).tolist() == expected

print(in_child(work))
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
print(process.exitcode)
work()
"""

CLIENTS = """
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    client = Client(cluster, set_as_default=False)
    model = fitted().set_params(client=client).fit(rows, y)
    expected = model.predict(X).tolist()

    def refused(words):
        try:
            model.fit(rows, y)
        except ClusterError as error:
            assert words in str(error), error
            os._exit(7)
        os._exit(1)

    print(in_child(lambda: refused("process that this one was forked from")))
    default = Client(cluster)
    model.set_params(client=None)
    print(in_child(lambda: refused("this process has no open client")))

    def alone():
        with dask.config.set(scheduler="threads"):
            assert model.fit(rows, y).predict(X).tolist() == expected
        os._exit(7)

    print(in_child(alone))
    assert model.fit(rows, y).predict(rows).compute().tolist() == expected
    default.close(), client.close(), cluster.close()
"""


@pytest.mark.parametrize(
    ("script", "codes"), [(THREADS, [7, 0]), (CLIENTS, [7] * 3)], ids=["pools", "clients"]
)
def test_a_child_fits_and_answers_or_is_refused(script, codes):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script],
        capture_output=True,
        text=True,
        timeout=ENDS_S,
        env=python_env(),
    )
    assert list(map(int, done.stdout.split())) == codes, done.stderr
