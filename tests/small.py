"""Small estimators of every registered method, small tasks, and a model as the bits users see.

A new method is fitted with what its signature names; where that is not small, or not allowed, its
class may say so in ``OWN``.
"""

import json
import os
from contextlib import contextmanager
from inspect import signature

import numpy as np
import pytest
from distributed import Client
from support import few

from daskls.registry import METHODS, load_object

# By the name of a parameter, of whatever method has it.
SMALL = {
    "cell_size": 60,
    "chunk_size": 80,
    "n_neighbors": 20,
    "n_cells": 4,
    "n_landmarks": 3,
    "sample_fraction": 0.2,
    "n_subsamples": 4,
    "C": 10.0,
    "gamma": 20.0,
    "cv": 2,
    "random_state": 0,
    # The paper's, of VoronoiSVC too.
    "loss": "hinge",
    "kernel": "rbf",
    "feature_scale": None,
    "selection": None,
}
# Of one class: what differs from the above.
OWN = {
    "VoronoiSVC": {"C": [1.0, 10.0], "gamma": [5.0, 20.0]},
    "VoronoiSVR": {"loss": "squared_error", "cv": 5, "C": [1.0, 10.0], "gamma": [5.0, 20.0]},
    "VoronoiQuantileRegressor": {
        **{"loss": "pinball", "quantile": [0.9, 0.1, 0.5], "C": [1.0, 10.0], "gamma": 5.0}
    },
    "RandomChunkSVR": {"loss": "squared_error", "cv": 5},
    "LandmarkSVC": {"C": [0.01, 0.1], "gamma": None, "tol": 0.1},
    "NeighborSamplingSVC": {"sample_fraction": 0.1, "n_neighbors": 3},
}
# More ways to fit a class, beyond the one that all have.
WAYS = {
    "VoronoiSVC": [
        {"n_partitions": 3},
        {"feature_scale": "learned"},
        {"loss": "squared_error", "cv": 5, "C": 5.0, "n_partitions": 2, "fit_intercept": True},
        {
            **{"loss": "squared_error", "cv": 5, "C": None, "gamma": None, "kernel": "auto"},
            "feature_scale": "learned",
        },
        # Named, so that it stays one where a variant has a loss without a search.
        {
            **{"C": None, "gamma": None, "search": "full", "fit_intercept": True},
            **{"loss": "hinge", "cv": 2},
        },
    ],
    "VoronoiSVR": [
        {"C": None, "gamma": None, "kernel": "auto", "feature_scale": "learned"},
        {"n_partitions": 2, "fit_intercept": False},
        {"loss": "epsilon_insensitive", "cv": 2, "gamma": 5.0},
        {"interval": 0.8, "n_partitions": 2},
    ],
    "VoronoiQuantileRegressor": [
        {"n_partitions": 3, "quantile": 0.3},
        {"loss": "expectile", "cv": 5, "n_partitions": 2},
        {"C": None, "gamma": None, "kernel": "auto", "feature_scale": "learned"},
    ],
    "RandomChunkSVR": [{"C": None, "gamma": None, "kernel": "auto"}],
    "RandomChunkSVC": [
        {"fit_intercept": True},
        {"loss": "squared_error", "cv": 5, "C": None, "gamma": None, "kernel": "auto"},
    ],
    "KNNSVC": [
        {"selection": "each", "n_inner": 10, "C": [1, 10], "gamma": None, "probability": "each"},
        {"feature_scale": "spread"},
        {"C": None, "gamma": None},
    ],
    "FalkSVC": [
        {"feature_scale": [2.0, 0.5]},
        {"selection": "local", "C": [1, 10], "gamma": None},
        {"kernel": "poly", "gamma": 1.0, "assign": "center"},
    ],
    "FalkSVR": [
        {"selection": "local", "C": [1, 10], "gamma": None},
        {"selection": "each", "C": [1, 10], "assign": "k_centers"},
        {"kernel": "poly", "gamma": 1.0, "assign": "center"},
    ],
    "LandmarkSVC": [
        {"projection": "rbf", "C": 1.0},
        {"kernel": "rbf", "n_landmarks": 30},
        {
            "kernel": "poly",
            "landmarks": "pca",
            "n_landmarks": 2,
            "degree": 2,
            "coef0": 1.0,
            "C": 1.0,
        },
    ],
    "LocalSamplingSVC": [
        {"kernel": "poly", "gamma": 2.0, "radius_scale": 0.5},
        {"C": None, "gamma": None},
        {"loss": "squared_hinge"},
    ],
    "NeighborSamplingSVC": [{"loss": "squared_hinge"}],
}
# A variant to run the contract on, instead of every method: JSON such as
# {"VoronoiSVC": {"loss": "hinge"}}.
VARIANT = json.loads(os.environ.get("DASKLS_CONTRACT", "{}"))
PLACES = {path.partition(":")[2]: path for entry in METHODS for path in entry.estimators}
ENTRIES = [name for name in PLACES if not VARIANT or name in VARIANT]
CLASSIFIERS = [name for entry in METHODS if (name := entry.estimator.partition(":")[2]) in ENTRIES]
# Cases that keep a method's promises as well: a class with other parameters, by a name of its own.
NEARLY = {
    f"{name} approximate": (name, {"neighbors": "approximate"})
    for name in ("KernelKNNClassifier", "FalkSVC")
}
CASES = [*ENTRIES, *(NEARLY if not VARIANT else ())]
# For `make test-all`: all but what solves is that of a classifier, and of VoronoiSVR, which every
# change is tried with. KNNSVC finds neighbors by the same code, LocalSamplingSVC keeps samples so.
LATE = (
    *("RandomChunkSVR", "FalkSVR", "KernelKNNRegressor", "VoronoiQuantileRegressor"),
    *("KernelKNNClassifier", "NeighborSamplingSVC"),
    *NEARLY,
)
# Fields that tell how a fit went, and not what came of it.
NOT_BITS = ("seconds", "n_read")
N_QUERIES = 400


def small(name, **params):
    """Return an estimator of a registered class, or of a case, that trains in a blink."""
    name, extra = NEARLY.get(name, (name, {}))
    estimator = load_object(PLACES[name])
    known = signature(estimator).parameters
    chosen = {key: value for key, value in SMALL.items() if key in known}
    return estimator(**{**chosen, **OWN.get(name, {}), **VARIANT.get(name, {}), **extra, **params})


def ways(names=ENTRIES):
    """Return (class name, further parameters) of every way to fit every method."""
    # Of each class two at every change.
    by_class = {name: [(name, way) for way in ({}, *WAYS.get(name, ()))] for name in names}
    return [way for name, cases in by_class.items() for way in few(cases, 2 * (name not in LATE))]


def late_marked(names):
    """Return names as parameters, those of `LATE` for `make test-all`."""
    return [pytest.param(n, marks=pytest.mark.slow if n in LATE else ()) for n in names]


def queries(n_features=2):
    """Return rows that visit all cells, some outside of the training rows' cube."""
    return np.random.default_rng(99).random((N_QUERIES, n_features)) * 1.2 - 0.1


def answers_of(model, X):
    """Return decision values of classes, or numbers."""
    return getattr(model, "decision_function", model.predict)(X)


def bits_of(model, offset=0.0):
    """Return all that users see of a fitted model, name by name; not the seconds."""
    bits = {"scores": _bytes(answers_of(model, queries(model.n_features_in_) + offset))}
    if hasattr(model, "predict_proba"):
        proba = model.predict_proba(queries(model.n_features_in_) + offset)
        bits["probabilities"] = _bytes(proba)
    if hasattr(model, "predict_interval"):
        bits["intervals"] = _bytes(model.predict_interval(queries(model.n_features_in_) + offset))
    public = (name for name in dir(model) if name.endswith("_") and name[0] != "_")
    public = (name for name in public if hasattr(model, name))
    for name in sorted(set(public) - {"stage_s_"}):
        value = getattr(model, name)
        fields = getattr(getattr(value, "dtype", None), "names", None)
        if fields:
            bits |= {f"{name}.{f}": _bytes(value[f]) for f in fields if f not in NOT_BITS}
        else:
            bits[name] = _bytes(value) if isinstance(value, np.ndarray) else repr(value)
    return bits


def _bytes(array):
    array = np.asarray(array)
    # Text in a report may be objects.
    data = array.tolist() if array.dtype.hasobject else np.ascontiguousarray(array).tobytes()
    return array.dtype.str, array.shape, data


def assert_same_bits(expected, actual):
    """Fail unless two models, or bits of models, are equal; name what differs."""
    a, b = (m if isinstance(m, dict) else bits_of(m) for m in (expected, actual))
    assert a.keys() == b.keys()
    assert [name for name in a if a[name] != b[name]] == []


# Sizes below which few rows would be one block, one bundle, one leaf.
TINY = {
    "daskls.run.rows.BLOCK_NBYTES": 1,
    # Many blocks are merged, a few are not.
    "daskls.plan.exchange.MOST_RUNS": 40,
    "daskls.plan.exchange.GROUP_BLOCKS": 3,
    "daskls.plan.bundles.N_BUNDLES": 10_000,
    "daskls.plan.bundles.MIN_BUNDLE_WORK": 0.0,
    "daskls.plan.checks.LEAST_GATHERED": 1,
    "daskls.plan.checks.N_GATHERS": 1000,
    "daskls.methods.neighborhoods.train.MIN_SEARCHED": 16,
    "daskls.methods.sampling.search.N_SEARCH_TASKS": 8,
    "daskls.methods.sampling.balls.MIN_BALLS": 1,
}


@contextmanager
def tiny_tasks(**sizes):
    """Let few rows be many tasks, as many rows are; sizes only, in this process and its threads.

    A size of another value is given by the last part of its name.
    """
    chosen = {name: sizes.pop(name.rpartition(".")[2], value) for name, value in TINY.items()}
    assert not sizes, f"no sizes of these names: {sizes}"
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, chosen)
        yield


def set_sizes(patch, sizes):
    """Set constants by their dotted names; one that is gone is an error."""
    for name, value in sizes.items():
        patch.setattr(name, value)


def small_sample(patch, n_rows):
    """Let space be cut by a sample of so many rows, or few a leaf, as of many rows it is."""
    set_sizes(
        patch,
        {"daskls.plan.bundles.MIN_SAMPLE": n_rows, "daskls.plan.bundles.SAMPLED_PER_LEAF": 16},
    )


def few_draws(patch, n_pairs):
    """Let a task draw so few rows from the balls, as of balls that hold many."""
    set_sizes(patch, {"daskls.methods.sampling.balls.most_pairs": lambda *_: n_pairs})


def small_leaves(patch, n_rows=100):
    """Let searches look at leaves, and groups of them, of so few rows: part of what a model is."""
    sizes = {
        "daskls.estimators.base.SEARCH_REGION_ROWS": n_rows,
        "daskls.neighbors.approximate.GRAPH_ROWS": 5 * n_rows + 50,
    }
    set_sizes(patch, sizes)


# Where work is cut into tiles, rounds or samples of pairs: of any size, with the same result.
TILES = (
    "daskls.methods.sampling.balls.WAITING_PAIRS",
    "daskls.neighbors.balls.MARKED_PAIRS",
    "daskls.neighbors.balls.TILE_BALLS",
    "daskls.neighbors.search.TILE_QUERIES",
    "daskls.kernels.gram.TILE_COLUMNS",
    "daskls.partition.cover.FIRST_ROUND",
    "daskls.partition.cover.MAX_ROUND",
    "daskls.solvers.percentiles.MAX_PAIRS",
    "daskls.solvers.width.BLOCKS_SHARE",
    "daskls.store.artifact.SUMMED_NBYTES",
)


def tiny_tiles(patch, **sizes):
    """Cut what so many rows fill but once into tiles, each size by the last part of its name."""
    names = {name.rpartition(".")[2]: name for name in TILES}
    set_sizes(patch, {names[short]: size for short, size in sizes.items()})


def small_working_sets(patch, n_rows):
    """Let solves that hold some rows of a kernel matrix take so few of them at once."""
    set_sizes(patch, {"daskls.solvers.hinge.decomposed.MOST_WORKING": n_rows})


def few_steps(patch, n_steps):
    """Let solves end after so few steps, however many rows they have."""
    sizes = {
        "daskls.solvers.hinge.large.MAX_LARGE_STEPS": n_steps,
        "daskls.solvers.hinge.large.STEPS_PER_ROW": 0,
        "daskls.solvers.hinge.problem.max_steps": lambda _: n_steps,
        "daskls.solvers.hinge.width.max_steps": lambda _: n_steps,
        "daskls.solvers.hinge.decomposed.max_steps": lambda _: n_steps,
    }
    set_sizes(patch, sizes)


@contextmanager
def task_memory(nbytes, n_slots=1):
    """Let fits of this process plan with so many bytes a task, as on a machine of little memory."""
    from daskls.plan.bundles import Resources

    with pytest.MonkeyPatch.context() as patch:
        # Of a fit, and of its plan.
        for name in ("daskls.pipeline.find_resources", "daskls.estimators.plan.find_resources"):
            patch.setattr(name, lambda _: Resources(n_slots, nbytes))
        yield


@contextmanager
def connected(cluster):
    """Give a client of a cluster, which is nobody's default; None where there is no cluster."""
    if cluster is None:
        yield None
        return
    with Client(cluster, set_as_default=False) as client:
        yield client
