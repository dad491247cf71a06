"""The methods beyond cells and neighborhoods on 3 million rows: two workers of one thread, 2 GiB.

A checkerboard of two features, as in ``falk_scale.py``, which has `FalkSVC` on the same rows. The
sampling methods take small samples: their last SVM is one on all that was drawn.
"""

from contextlib import nullcontext
from typing import Any

import dask.array as da
import numpy as np
import zarr

import daskls
from benchmarks.suite import PEAK, Experiment, Record, Run, fit_predict, page
from benchmarks.suite.data import labels, written
from benchmarks.suite.measure import nbytes_of
from benchmarks.suite.papers import PAPERS
from benchmarks.suite.places import cluster
from daskls.datasets import bayes_accuracy

N_TEST = 100_000
SETTINGS: dict[str, dict[str, Any]] = {
    "LandmarkSVC": {"n_cells": 400},
    "LocalSamplingSVC": {
        "sample_fraction": 0.001, "n_subsamples": 4, "radius_scale": 0.1, "C": 10.0, "gamma": 64.0,
    },
    "NeighborSamplingSVC": {"sample_fraction": 0.001, "n_neighbors": 5, "C": 10.0, "gamma": 64.0},
    "RandomChunkSVC": {"chunk_size": 2000},
    "VoronoiSVC": {"cell_size": 2000},
}  # fmt: skip
# A query of random chunks asks every support row of all rows.
N_QUERIES = {"RandomChunkSVC": 10_000}
BLOCK_ROWS = 5000
COLUMNS = f"""
method = method | rows = rows:, | accuracy % = accuracy:.2f | fit, CPU s = fit_cpu_s:.0f
fit, wall s = fit_wall_s:.0f | us a query = predict_us:.0f | {PEAK} | models = cells:,
support rows = support:, | model, KiB = model_kib:,.0f | failure = failure
"""
TOLD = [f"{m}({', '.join(f'{k}={v}' for k, v in given.items())})" for m, given in SETTINGS.items()]
TEXT = (
    "`benchmarks/three_million.py`, checkerboard, two workers of one thread and 2 GiB, {machine}. "
    f"Best possible accuracy {100 * bayes_accuracy('checkerboard'):.2f} %. {N_TEST:,} test rows; "
    f"{N_QUERIES['RandomChunkSVC']:,} for RandomChunkSVC. {'; '.join(TOLD)}. "
    "Peaks are sums over all processes; before: idle."
)


def measure(run: Run, method: str, rows: int) -> Record:
    # Workers anew for each: what one method left in them is not another's.
    with cluster():
        try:
            return fit_and_predict(run, method, rows)
        except daskls.DasklsError as error:
            return {"failure": str(error)}


def fit_and_predict(run: Run, method: str, rows: int) -> Record:
    train = written("checkerboard", run.folder, rows)
    test = written("checkerboard", run.folder, N_TEST, 1)
    papers = PAPERS if method == "VoronoiSVC" else {}
    model = getattr(daskls, method)(**papers, **SETTINGS[method], random_state=0)
    queries = zarr.open_array(test / "X")[: N_QUERIES.get(method, N_TEST)]
    blocks = da.from_array(queries, chunks=(BLOCK_ROWS, -1))
    predicted, cost = fit_predict(model, train, blocks)
    model.save(run.folder / f"{method}.zarr")
    return {
        **cost,
        "predict_us": cost["predict_cpu_s"] / len(queries) * 1e6,
        "accuracy": 100 * float(np.mean(predicted == labels(test, len(queries)))),
        "cells": model.n_cells_,
        "support": int(model.fit_report_.n_support.sum()),
        "model_kib": nbytes_of(run.folder / f"{method}.zarr") / 1024,
        "stages": model.stage_s_,
    }


EXPERIMENT = Experiment(
    lambda run: [{"method": method, "rows": run.settings["rows"]} for method in SETTINGS],
    measure,
    page("Three million rows", TEXT, COLUMNS, "method rows"),
    place=nullcontext,
    settings={"rows": 3_000_000},
)
