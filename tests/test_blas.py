"""BLAS runs on one thread in every task, whoever runs it, and gives the user's number back."""

import functools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import dask
import digests
import numpy as np
import pytest
from support import few
from threadpoolctl import ThreadpoolController, threadpool_limits

from daskls import blas
from daskls.blas import one_blas_thread, undisturbed
from daskls.cluster import compute_each
from daskls.errors import DasklsError

ALL = tuple(digests.PARAMS)
# At every change a method a family.
SOME = ("VoronoiSVC", "FalkSVC", "LandmarkSVC", "LocalSamplingSVC")
SCRIPT = Path(digests.__file__)
N_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
shares = pytest.mark.skipif(N_CORES < 2, reason="on one core BLAS has one thread anyway")


@functools.cache
def run_digests(scheduler, names, path=""):
    """Return what `digests.py` prints in a process of which nothing limits the threads."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    places = [path, environment.get("PYTHONPATH", ""), str(SCRIPT.parents[1])]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    command = [sys.executable, str(SCRIPT), scheduler, *names]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@shares
@pytest.mark.parametrize(
    ("scheduler", "names"),
    few(
        [
            ("threads", SOME),
            *((name, ALL) for name in ("threads", "limited-threads", "client", "client-threads")),
        ]
    ),
)
def test_every_scheduler_gives_the_bits_of_one_thread(scheduler, names):
    assert run_digests(scheduler, names)["digests"] == run_digests("sync", names)["digests"]


def numpy_threads():
    """Return the number of threads of NumPy's BLAS, set with `set_threads`."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return [found.num_threads for found in ThreadpoolController().lib_controllers if is_blas(found)]


def is_blas(found):
    return found.user_api == "blas"


def set_threads(number):
    """Set every library's number from a thread of its own, as a user's code may."""
    for library in blas._limit.libraries():
        blas.set_threads(library, number)


@pytest.fixture(autouse=True)
def restored():
    before = {library: library.num_threads for library in blas._limit.libraries()}
    yield
    for library, number in before.items():
        blas.set_threads(library, number)


def test_the_limit_is_held_in_any_thread_and_lifted_by_the_last():
    set_threads(3)
    inside, restored, done = threading.Barrier(3), threading.Barrier(3), threading.Event()
    seen = []

    def work(is_last):
        with one_blas_thread():
            inside.wait()
            restored.wait()
            seen.extend(numpy_threads())
            if is_last:
                done.wait()

    first, last = (threading.Thread(target=work, args=(is_last,)) for is_last in (False, True))
    first.start()
    last.start()
    inside.wait()
    # A limit that comes and goes meanwhile gives back what it found: one thread.
    with threadpool_limits(2, user_api="blas"):
        pass
    restored.wait()
    first.join()
    still = numpy_threads()
    done.set()
    last.join()
    assert set(seen) == set(still) == {1}
    assert set(numpy_threads()) == {3}


def test_work_that_was_disturbed_is_done_again():
    set_threads(2)
    runs = []

    @undisturbed
    def work():
        with one_blas_thread():
            runs.append(numpy_threads())
            if len(runs) < 3:
                set_threads(4)
        return len(runs)

    assert work() == 3
    assert all(set(seen) == {1} for seen in runs)
    # What somebody set meanwhile is theirs, and stays.
    assert set(numpy_threads()) == {4}


def test_a_task_that_was_disturbed_is_done_again():
    set_threads(2)
    runs = []

    def task(item):
        with one_blas_thread():
            runs.append(item)
            if len(runs) < 3:
                set_threads(4)
        return item

    with dask.config.set(scheduler="synchronous"):
        assert compute_each(task, [(7,)]) == (7,)
    assert runs == [7, 7, 7]


def test_work_that_is_always_disturbed_ends_with_one_error():
    runs = []

    @undisturbed
    def work():
        with one_blas_thread():
            runs.append(0)
            set_threads(2)

    with pytest.raises(DasklsError, match=r"Another thread.*call again: what is finished is kept"):
        work()
    assert len(runs) == blas.MAX_TRIES


def test_a_library_that_does_not_do_as_it_is_told_is_refused(monkeypatch):
    stubborn = SimpleNamespace(filepath="lib", num_threads=8, set_num_threads=lambda _: None)
    monkeypatch.setattr(blas._limit, "libraries", lambda: [stubborn])
    with pytest.raises(DasklsError, match=r"lib still uses 8 threads.*Set OPENBLAS_NUM_THREADS"):
        one_blas_thread().__enter__()
