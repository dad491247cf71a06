"""Fits estimators on the scheduler that the command line names and prints a digest of each one.

    python digests.py SCHEDULER ESTIMATOR [ESTIMATOR ...]

A process of its own: what the environment says of threads is read once, when BLAS is loaded.
"""

import hashlib
import json
import sys
import threading
from contextlib import ExitStack, contextmanager

import dask
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import daskls

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0], "cv": 2}
ONE = {"C": 1.0, "gamma": 0.5}
# Cells, chunks and samples of a thousand rows: their products are shared out where they may be.
PARAMS = {
    "VoronoiSVC": {"cell_size": 1000},
    "RandomChunkSVC": {"chunk_size": 1000, **GRID},
    "FalkSVC": {"n_neighbors": 1000, **ONE},
    "KNNSVC": {"n_neighbors": 300, **ONE},
    "KernelKNNClassifier": {"n_neighbors": 5},
    "LandmarkSVC": {"n_cells": 3, "n_landmarks": 200, "cv": 2, "C": [0.01, 0.1]},
    "LocalSamplingSVC": {"sample_fraction": 0.5, "n_subsamples": 2, "radius_scale": 1.0, **ONE},
    "NeighborSamplingSVC": {"sample_fraction": 0.3, **ONE},
}


def noisy_rows(n, n_features=5, seed=0):
    """Return rows of which many lie near a boundary, and labels of which many are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features))
    return X, (X[:, 0] * X[:, 1] + 0.8 * rng.standard_normal(n) > 0).astype(int)


@contextmanager
def running(scheduler):
    if scheduler in ("client", "client-threads"):
        from distributed import Client

        one = {"n_workers": 2, "threads_per_worker": 1}
        many = {"n_workers": 1, "threads_per_worker": 4, "processes": False}
        options = one if scheduler == "client" else many
        with Client(dashboard_address=":0", **options):
            yield
        return
    # A pool of processes loads all of the library for each of its computes.
    with dask.config.set(scheduler=scheduler, num_workers=2 if scheduler == "processes" else 4):
        yield


@contextmanager
def limited_elsewhere(n_threads):
    """Let another thread, alive until the end, hold BLAS to a number of threads."""
    started, done = threading.Event(), threading.Event()

    def hold():
        with threadpool_limits(n_threads, user_api="blas"):
            started.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def blas_threads():
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]


def digest(name):
    X, y = noisy_rows(1500 if name == "KNNSVC" else 3000)
    queries, _ = noisy_rows(50 if name == "KNNSVC" else 1000, seed=1)
    model = getattr(daskls, name)(random_state=0, **PARAMS[name]).fit(X, y)
    return hashlib.sha256(model.decision_function(queries).tobytes()).hexdigest()


def main(scheduler, *names):
    with ExitStack() as stack:
        if scheduler.startswith("limited-"):
            stack.enter_context(limited_elsewhere(2))
            scheduler = scheduler.removeprefix("limited-")
        before = blas_threads()
        with running(scheduler):
            found = {name: digest(name) for name in names}
        print(json.dumps({"digests": found, "threads": [before, blas_threads()]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
