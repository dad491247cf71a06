"""Fits every estimator in every way on real sets and keeps a digest of each one's answers.

A change of structure must not move a bit: record before it, compare after it.

    PYTHONPATH=tests DASKLS_DATA=... python -m bits compare [CASE ...]
    PYTHONPATH=tests DASKLS_DATA=... python -m bits record

Bits hold for one kind of processor and one set of library versions: on another machine record on
the state before first, into a file of your own (``--file``).
"""

import argparse
import hashlib
import json
import platform
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import dask
import numpy as np

import daskls
from daskls.datasets.real import load_real

RECORD = Path(__file__).with_suffix(".json")
LIBRARIES = ("numpy", "numba", "scikit-learn", "scipy")
N_QUERIES = 500
# Rows by which a set is represented where a method is dear.
MANY, SOME, FEW = 20_000, 6000, 1500
SETS = ("ijcnn1", "letter", "a9a", "german.numer", "covtype")

PAPERS = {"loss": "hinge", "kernel": "rbf", "feature_scale": None}
WEIGHTS = {"class_weight": "balanced", "sample_weight": True}
LISTS = {"C": [0.5, 5.0, 50.0, 500.0], "gamma": [0.3, 1.0, 3.0, 10.0]}
POLY = {"kernel": "poly", "degree": 2, "coef0": 1.0, "C": [0.1, 1.0], "gamma": [0.5, 1.0]}
ONE = {"C": 4.0, "gamma": 1.0}
ONE_POLY = {**POLY, "C": 1.0, "gamma": 0.5}
CELLS = {
    "plain": {},
    "full": {"search": "full", **LISTS},
    "weights": WEIGHTS,
    "poly": POLY,
    "linear": {"kernel": "linear", "C": [0.1, 1.0]},
    "fit_intercept": {"fit_intercept": True, **LISTS},
    "refit": {"refit": "cell", **LISTS},
}
FALK = {
    "plain": {"n_neighbors": 250},
    "weights": {"n_neighbors": 250, **ONE, **WEIGHTS},
    "poly": {"n_neighbors": 250, **ONE_POLY},
    "center": {"n_neighbors": 250, **ONE, "assign": "center"},
    "k_centers": {"n_neighbors": 250, **ONE, "assign": "k_centers"},
    "local": {"n_neighbors": [125, 250], "selection": "local"},
    "grid": {"n_neighbors": [60, 125], "selection": "grid", **ONE, "cv": 3},
    "each": {"n_neighbors": 250, "selection": "each", "C": [1.0, 10.0]},
}
# (estimator, rows, ways)
METHODS = (
    (
        "VoronoiSVC",
        MANY,
        {
            way: {**PAPERS, **params}
            for way, params in {**CELLS, "n_partitions": {"n_partitions": 2, **LISTS}}.items()
        },
    ),
    ("RandomChunkSVC", SOME, CELLS),
    ("FalkSVC", SOME, {way: {"selection": None, **params} for way, params in FALK.items()}),
    (
        "KNNSVC",
        FEW,
        {"plain": {"C": 1.0}, "weights": {**ONE, **WEIGHTS}, "poly": ONE_POLY},
    ),
    ("KernelKNNClassifier", SOME, {"plain": {}, "poly": {"kernel": "poly", "gamma": 0.5}}),
    (
        "LandmarkSVC",
        SOME,
        {
            "plain": {},
            "weights": {**WEIGHTS, "C": 1.0},
            "rbf": {"projection": "rbf", "C": [0.1, 1.0], "cv": 3},
            "pca": {"landmarks": "pca", "C": 1.0},
        },
    ),
    (
        "LocalSamplingSVC",
        FEW,
        {
            "plain": {"C": 1.0},
            "weights": {**ONE, **WEIGHTS},
            "poly": {**ONE_POLY, "radius_scale": 1.0},
        },
    ),
    (
        "NeighborSamplingSVC",
        FEW,
        {"plain": {"C": 1.0}, "weights": {**ONE, **WEIGHTS}, "poly": ONE_POLY},
    ),
    (
        "FalkNoiseFilter",
        FEW,
        {"plain": {"n_neighbors": 100}, "local": {"n_neighbors": [50, 100], "selection": "local"}},
    ),
    ("KNNSVMNoiseFilter", FEW // 2, {"plain": {}, "poly": ONE_POLY}),
)
CASES = {
    f"{name}-{way}-{data}": (name, params, data, n_rows)
    for name, n_rows, ways in METHODS
    for way, params in ways.items()
    for data in SETS
}


def machine():
    """Return what bits depend on."""
    features = np._core._multiarray_umath.__cpu_features__
    simd = [name for name in ("AVX2", "FMA3", "AVX512F", "AVX512_SKX") if features.get(name)]
    return {"machine": platform.machine(), "simd": simd, **{n: version(n) for n in LIBRARIES}}


def load(name, n_rows):
    """Return rows in [0, 1], their labels, weights, and queries: rows that are not among them."""
    data = load_real(name)
    rng = np.random.default_rng(0)
    n_rows = min(n_rows, len(data.X) * 3 // 4)
    rows = rng.permutation(len(data.X))[: n_rows + N_QUERIES]
    X = data.X[rows].astype("f4")
    low, high = X.min(axis=0), X.max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1)
    weights = rng.integers(1, 5, n_rows) / 2
    return X[:n_rows], data.y[rows][:n_rows], weights, X[n_rows:]


def digest(case):
    """Return a digest of the answers of one case."""
    name, params, data, n_rows = CASES[case]
    X, y, weights, queries = load(data, n_rows)
    params = {"random_state": 0, **params}
    weighted = {"sample_weight": weights} if params.pop("sample_weight", False) else {}
    if name in ("KNNSVC", "KNNSVMNoiseFilter"):
        queries = queries[:100]
    with warnings.catch_warnings(), dask.config.set(scheduler="synchronous"):
        warnings.simplefilter("ignore")
        model = getattr(daskls, name)(**params).fit(X, y, **weighted)
        answers = model.keep_ if name.endswith("Filter") else model.decision_function(queries)
    found = np.ascontiguousarray(answers)
    return hashlib.sha256(found.tobytes()).hexdigest()[:16]


def timed_digest(case):
    """Return a case, the digest of its answers, and its seconds."""
    start = time.perf_counter()
    return case, digest(case), time.perf_counter() - start


def run(cases, jobs):
    """Return the digest of each case."""
    found = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for case, value, seconds in pool.map(timed_digest, cases):
            found[case] = value
            print(f"{value}  {case}  {seconds:.1f} s", flush=True)
    return found


def main():
    """Record digests, or compare with those recorded; the exit code says whether all are equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("cases", nargs="*", help="beginnings of names; all if none is given")
    parser.add_argument("--file", type=Path, default=RECORD)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    starts = tuple(given.cases) or ("",)
    cases = [case for case in CASES if case.startswith(starts)]
    if given.what == "record":
        record = {"machine": machine(), "digests": run(cases, given.jobs)}
        given.file.write_text(json.dumps(record, indent=1) + "\n")
        return
    record = json.loads(given.file.read_text())
    if record["machine"] != machine():
        sys.exit(f"Recorded on {record['machine']}, this is {machine()}: record here first.")
    found = run(cases, given.jobs)
    differ = [case for case in cases if found[case] != record["digests"].get(case)]
    print(*differ, sep="\n")
    print(f"{len(differ)} of {len(cases)} cases differ.")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
