"""Approximate neighbors beside exact ones: what they miss, and what they cost.

Votes of k neighbors, on MNIST's pixels and on ten blobs whose rows lie near planes of 8 dimensions
in 100 features.
"""

from dataclasses import replace

import numpy as np

from benchmarks.peers import Data
from benchmarks.suite import Experiment, Record, Run, cpu_of, grid, page
from benchmarks.suite.data import loaded
from benchmarks.suite.estimators import model_nbytes
from daskls import KernelKNNClassifier
from daskls.methods.base import method_of
from daskls.methods.neighborhoods.groups import nearest_rows
from daskls.neighbors.search import EUCLIDEAN
from daskls.store.leaves import open_leaves

N_QUERIES = 10_000
N_BLOBS, N_ROWS, N_FEATURES, N_LOCAL = 10, 200_000, 100, 8
# Groups that a query asks; None: exact.
ASKED = (None, 1, 3, 6)
# Queries that the share of found neighbors is of.
N_COMPARED = 1000
COLUMNS = f"""
set = set | k = k | groups = 'exact' if n_groups is None else n_groups
recall = recall:.4f | error, % = 100 * error:.2f | fit, CPU s = fit_s:.1f
{N_QUERIES:,} queries, CPU s = predict_s:.1f | model, MiB = nbytes / 2**20:.0f
"""
TEXT = (
    f"{{machine}}\n\nOne thread; MNIST's 60,000 training rows x 784, and {N_ROWS:,} x {N_FEATURES} "
    f"of {N_BLOBS} blobs; recall of {N_COMPARED:,} queries. After a small fit "
    "and prediction, which import and compile: pynndescent takes some 40 CPU s for it in each "
    "process that builds a graph.\n\n## All settings"
)


def blobs() -> Data:
    rng = np.random.default_rng(0)
    centers, planes = (
        rng.normal(size=(N_BLOBS, N_FEATURES)),
        rng.normal(size=(N_BLOBS, N_LOCAL, N_FEATURES)),
    )
    y = rng.integers(0, N_BLOBS, N_ROWS + N_QUERIES)
    X = np.empty((len(y), N_FEATURES), np.float32)
    for blob in range(N_BLOBS):
        own = np.flatnonzero(y == blob)
        X[own] = centers[blob] + rng.normal(size=(len(own), N_LOCAL)) @ planes[blob]
    X += rng.normal(0, 0.1, X.shape).astype(np.float32)
    # A tenth of the labels is noise, so that votes have an error.
    y = np.where(rng.random(len(y)) < 0.1, rng.integers(0, N_BLOBS, len(y)), y)
    return Data(X[:N_ROWS], y[:N_ROWS], X[N_ROWS:], y[N_ROWS:])


def estimator(k: int, n_groups: int | None) -> KernelKNNClassifier:
    given = {} if n_groups is None else {"neighbors": "approximate", "n_groups": n_groups}
    return KernelKNNClassifier(k, random_state=0, **given)


def measure(run: Run, set: str, k: int, n_groups: int | None) -> Record:
    data = blobs() if set == "blobs" else loaded(set)
    few, queries = data.X[:1000].astype(np.float32), data.X_test.astype(np.float32)
    estimator(k, n_groups).fit(few, data.y[:1000]).predict(few)
    model, fit_s = cpu_of(lambda: estimator(k, n_groups).fit(data.X, data.y))
    predicted, predict_s = cpu_of(lambda: model.predict(queries))
    return {
        "recall": recall(model, queries[:N_COMPARED], k),
        "error": float(np.mean(predicted != data.y_test)),
        "fit_s": fit_s,
        "predict_s": predict_s,
        "nbytes": model_nbytes(model),
    }


def recall(model: KernelKNNClassifier, queries: np.ndarray, k: int) -> float:
    """Return the share of the exact neighbors that the model's are."""
    leaves = open_leaves(model._reader.root.where(), model._reader.fingerprint)
    method = method_of(model._reader.method)
    exact = nearest_rows(replace(method, n_groups=None), leaves, queries, k, EUCLIDEAN).numbers
    found = nearest_rows(method, leaves, queries, k, EUCLIDEAN).numbers
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]))


EXPERIMENT = Experiment(
    grid(set=("blobs", "mnist"), k=(10, 100), n_groups=ASKED),
    measure,
    page("Approximate neighbors", TEXT, COLUMNS, "set k n_groups"),
)
