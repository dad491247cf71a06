"""What the campaign fits: every estimator in two sizes, data on disk, a model's digest."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr
from small import CLASSIFIERS, ENTRIES, NOT_BITS, TINY, answers_of, set_sizes, small
from support import checkers, tiny_blocks

from daskls.store.dataset import DatasetWriter

# What is set in a campaign's process stays.
FOR_GOOD = pytest.MonkeyPatch()

# What is changed of `small.small` for a run of seconds on a cluster.
LARGER = {
    "VoronoiSVC": {"cell_size": 150, "C": None, "gamma": None, "cv": 5},
    "RandomChunkSVC": {"chunk_size": 200, "C": None, "gamma": None, "cv": 5},
    "FalkSVC": {"n_neighbors": 100, "C": 1.0, "gamma": None},
    "VoronoiSVR": {"cell_size": 150, "C": None, "gamma": None},
    "VoronoiQuantileRegressor": {"cell_size": 150, "C": None, "gamma": None, "cv": 5},
    "RandomChunkSVR": {"chunk_size": 200, "C": None, "gamma": None},
    "FalkSVR": {"n_neighbors": 100, "C": 1.0, "gamma": None},
    "LandmarkSVC": {"n_cells": 12, "n_landmarks": None, "C": None, "cv": 5, "tol": 1e-2},
}
NAMES = tuple(ENTRIES)
# Rows to predict in some seconds.
N_ASKED = {
    **dict.fromkeys(ENTRIES, 100_000),
    **dict.fromkeys(("VoronoiSVC", "VoronoiSVR", "VoronoiQuantileRegressor"), 400_000),
    **{"RandomChunkSVC": 20_000, "RandomChunkSVR": 20_000, "KNNSVC": 4_000},
    "LandmarkSVC": 800_000,
}
# Rows, and rows of a chunk, of each size.
SIZES = {"small": (600, 100), "large": (3000, 250)}


def many_small_tasks():
    """Let few rows be many bundles, as many rows are; sizes only, in this process."""
    few = (
        *("plan.checks.LEAST_GATHERED", "plan.bundles.N_BUNDLES", "plan.bundles.MIN_BUNDLE_WORK"),
        *("plan.exchange.MOST_RUNS", "plan.exchange.GROUP_BLOCKS"),
    )
    set_sizes(FOR_GOOD, {f"daskls.{name}": TINY[f"daskls.{name}"] for name in few})


def block_a_chunk(data):
    X = zarr.open_array(f"{data}/X", mode="r")
    nbytes = X.chunks[0] * X.shape[1] * X.dtype.itemsize
    set_sizes(FOR_GOOD, {"daskls.run.rows.BLOCK_NBYTES": nbytes})
    tiny_blocks(FOR_GOOD, nbytes)


def write_data(folder, size, name):
    n, chunk = SIZES[size]
    return _write(Path(folder), f"data-{size}", name, n, 1, chunk)


def write_queries(folder, n, name):
    return _write(Path(folder), f"queries-{n}", name, n, 2, max(n // 40, 1))


def _write(folder, start, name, n, seed, chunk):
    X, y = checkers(n, seed=seed, n_classes=3, d=3, noise=0.1)
    y = y if name in CLASSIFIERS else y + X[:, 0]
    path = folder / f"{start}-{y.dtype.kind}.zarr"
    if not path.exists():
        unfinished = path.with_suffix(".begun")
        shutil.rmtree(unfinished, ignore_errors=True)
        with DatasetWriter(unfinished, 3, "f8", y_dtype=y.dtype, chunk_rows=chunk) as writer:
            writer.append(X, y)
        unfinished.rename(path)
    return str(path)


def fit(name, size, data, **params):
    block_a_chunk(data)
    larger = LARGER.get(name, {}) if size == "large" else {}
    return small(name, **larger, **params).fit(data)


def digest(model):
    report = model.fit_report_
    queries = np.random.default_rng(99).random((1500, model.n_features_in_)) * 1.2 - 0.1
    scores = answers_of(model, queries)
    total = hashlib.sha256(np.ascontiguousarray(scores).tobytes())
    total.update(np.ascontiguousarray(getattr(model, "classes_", ())).tobytes())
    for name in report.dtype.names:
        if name not in NOT_BITS:
            total.update(name.encode() + np.ascontiguousarray(report[name]).tobytes())
    return total.hexdigest()[:16]


def digest_of_labels(path):
    labels = np.ascontiguousarray(zarr.open_array(path, mode="r")[...])
    return hashlib.sha256(labels.tobytes()).hexdigest()[:16]
