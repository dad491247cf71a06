"""Fits every estimator in every way on real sets and keeps a digest of each one's answers.

A change of structure must not move a bit: record before it, compare after it. To record some cases
leaves the others as they are.

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
from tempfile import TemporaryDirectory

import dask
import dask.array as da
import numpy as np
import pandas as pd
import zarr
from support import load_real

import daskls

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
}
FALK = {
    "plain": {"n_neighbors": 250},
    "weights": {"n_neighbors": 250, **ONE, **WEIGHTS},
    "poly": {"n_neighbors": 250, **ONE_POLY},
    "center": {"n_neighbors": 250, **ONE, "assign": "center"},
    "k_centers": {"n_neighbors": 250, **ONE, "assign": "k_centers"},
    "local": {"n_neighbors": [125, 250], "selection": "local"},
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
    ("KNNSVC", FEW, {"plain": {"C": 1.0}, "weights": {**ONE, **WEIGHTS}, "poly": ONE_POLY}),
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
# What the papers do not have: the defaults, least squares, choices for all cells, and rows as users
# bring them. Digests are then of the fitted scale and of the report, too.
LEARNED = {"feature_scale": "learned"}
SQUARES = {"loss": "squared_error"}
# More than the grid's own ridges, whose first look is at some of them.
COSTS = {"C": [10.0**i for i in range(-4, 8)]}
FORMS = ("dask", "zarr", "csv", "frame")
WIDER = (
    (
        "VoronoiSVC",
        SOME,
        {
            "defaults": {},
            "exponential": {"kernel": "exponential"},
            "laplacian": {"kernel": "laplacian"},
            "coded": {"feature_coding": "both", "kernel": "rbf", "feature_scale": "spread"},
            "spread": {"feature_scale": "spread", "kernel": "rbf"},
            "squares_linear": {"kernel": "linear", "C": 1.0, "gamma": 1.0, "feature_scale": None},
            "squares_poly": {**ONE_POLY, "feature_scale": None},
            "squares_intercept": {"fit_intercept": True, "feature_scale": None},
            "squares_weights": {**WEIGHTS, "feature_scale": None},
            "squares_costs": {**COSTS, "kernel": "rbf", "feature_scale": None},
            "squares_one": {**ONE, "kernel": "exponential", "feature_scale": None},
            "squares_n_partitions": {"n_partitions": 2, "feature_scale": None},
            "large_cells": {"cell_size": 3000, "feature_scale": None},
            "hinge_learned": {"loss": "hinge", "kernel": "auto", **LISTS},
            "hinge_exponential": {**PAPERS, "kernel": "exponential"},
            "probability": {"probability": True, "feature_scale": None},
            "isotonic": {"probability": "isotonic", **PAPERS, **ONE},
            "offset": {"offset": 1e6},
            "float64": {"offset": 0.0},
            **{form: {"form": form, "feature_scale": None} for form in FORMS},
        },
    ),
    (
        "RandomChunkSVC",
        FEW,
        {
            "squares": SQUARES,
            "squares_learned": {**SQUARES, **LEARNED, "kernel": "auto"},
            "probability": {**ONE, "probability": True},
        },
    ),
    (
        "FalkSVC",
        FEW,
        {
            "defaults": {},
            "learned": {**LEARNED, "n_neighbors": 250},
            "linear": {"kernel": "linear", "C": 1.0, "n_neighbors": 60},
            "probability": {**ONE, "n_neighbors": 60, "probability": True},
            "offset": {**ONE, "n_neighbors": 60, "offset": 1e6},
        },
    ),
    ("KNNSVC", FEW, {"defaults": {}, "learned": {**LEARNED, **ONE}}),
    ("KernelKNNClassifier", FEW, {"learned": LEARNED, "linear": {"kernel": "linear"}}),
    ("LandmarkSVC", FEW, {"probability": {"C": 1.0, "probability": True}, "csv": {"form": "csv"}}),
    ("LocalSamplingSVC", FEW, {"linear": {"kernel": "linear", "C": 1.0}}),
    ("NeighborSamplingSVC", FEW, {"probability": {**ONE, "probability": True}}),
    ("FalkNoiseFilter", FEW, {"linear": {"kernel": "linear", "n_neighbors": 60, "C": 1.0}}),
)
WIDER_SETS = ("ijcnn1", "letter", "german.numer")
# Numbers as targets.
NUMBERS = (
    (
        "VoronoiSVR",
        FEW,
        {
            "plain": {},
            "weights": {"sample_weight": True},
            "epsilon": {"loss": "epsilon_insensitive", "kernel": "rbf"},
            "interval": {"interval": 0.9, "feature_scale": None},
        },
    ),
    ("RandomChunkSVR", FEW, {"plain": {}}),
    ("FalkSVR", FEW, {"plain": {"n_neighbors": 250}}),
    ("KernelKNNRegressor", FEW, {"plain": {}}),
    (
        "VoronoiQuantileRegressor",
        FEW,
        {"plain": {"quantile": [0.1, 0.9]}, "expectile": {"quantile": 0.9, "loss": "expectile"}},
    ),
)
NUMBER_SETS = ("houses", "fried")
CASES = {
    f"{name}-{way}-{data}": (name, params, data, n_rows)
    for table, sets in ((METHODS, SETS), (WIDER, WIDER_SETS), (NUMBERS, NUMBER_SETS))
    for name, n_rows, ways in table
    for way, params in ways.items()
    for data in sets
}
WIDER_CASES = {f"{name}-{way}" for name, _, ways in (*WIDER, *NUMBERS) for way in ways}
# Of a report: seconds, and what depends on what ran beside a task.
NOT_BITS = ("seconds", "n_read")


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


def in_form(form, X, y, folder):
    """Return rows and labels as a user may bring them."""
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    if form == "frame":
        return frame, y
    if form == "dask":
        return da.from_array(X, chunks=(997, X.shape[1])), da.from_array(y, chunks=997)
    if form == "csv":
        frame.assign(label=y).to_csv(folder / "rows.csv", index=False)
        return folder / "rows.csv", "label"
    zarr.save(str(folder / "X.zarr"), X)
    zarr.save(str(folder / "y.zarr"), y)
    return zarr.open(folder / "X.zarr"), zarr.open(folder / "y.zarr")


def fitted(name, params, X, y, weighted):
    """Return a model; `form` and `offset` say what becomes of the rows before."""
    form, offset = params.pop("form", None), params.pop("offset", None)
    if offset is not None:
        X = X.astype("f8") + offset
    with TemporaryDirectory() as folder:
        rows = in_form(form, X, y, Path(folder)) if form else (X, y)
        return getattr(daskls, name)(**params).fit(*rows, **weighted)


def kept_of(model, queries):
    """Return the arrays that a model is compared by: answers, and what a fit tells of itself."""
    if hasattr(model, "keep_"):
        return [model.keep_]
    report = model.fit_report_
    told = [report[name] for name in report.dtype.names if name not in NOT_BITS]
    answers = [getattr(model, "decision_function", model.predict)(queries)]
    if hasattr(model, "predict_proba"):
        answers.append(model.predict_proba(queries))
    if hasattr(model, "predict_interval"):
        answers.append(model.predict_interval(queries))
    return [*answers, model.feature_scale_ if hasattr(model, "feature_scale_") else [], *told]


def digest(case):
    """Return a digest of the answers of one case."""
    name, params, data, n_rows = CASES[case]
    X, y, weights, queries = load(data, n_rows)
    params = {"random_state": 0, **params}
    weighted = {"sample_weight": weights} if params.pop("sample_weight", False) else {}
    if name in ("KNNSVC", "KNNSVMNoiseFilter"):
        queries = queries[:100]
    queries = queries + params.get("offset", 0.0)
    with warnings.catch_warnings(), dask.config.set(scheduler="synchronous"):
        warnings.simplefilter("ignore")
        model = fitted(name, params, X, y, weighted)
        kept = kept_of(model, queries)
    if case.rpartition("-")[0] not in WIDER_CASES:
        # As they were recorded first: answers alone.
        kept = kept[:1]
    found = hashlib.sha256()
    for values in kept:
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()[:16]


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
    record = json.loads(given.file.read_text()) if given.file.exists() else {}
    if given.what == "record":
        before = record["digests"] if record.get("machine") == machine() else {}
        record = {"machine": machine(), "digests": {**before, **run(cases, given.jobs)}}
        given.file.write_text(json.dumps(record, indent=1) + "\n")
        return
    if record.get("machine") != machine():
        sys.exit(f"Recorded on {record.get('machine')}, this is {machine()}: record here first.")
    found = run(cases, given.jobs)
    differ = [case for case in cases if found[case] != record["digests"].get(case)]
    print(*differ, sep="\n")
    print(f"{len(differ)} of {len(cases)} cases differ.")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
