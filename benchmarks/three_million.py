"""The methods beyond cells and neighborhoods on 3 million rows: two workers of one thread, 2 GiB.

A checkerboard of two features, as in ``falk_scale.py``, which has `FalkSVC` on the same rows. The
sampling methods take small samples: their last SVM is one on all that was drawn. Rows that are
done are kept in ``benchmarks/results/three_million.jsonl``.

    python benchmarks/three_million.py [--methods LandmarkSVC ...] [--rows 3000000]
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from distributed import Client, LocalCluster
from falk_scale import N_TEST, classes
from journal import Column, Journal, Record, table
from measure import MIB, machine, measured

import daskls
from daskls.datasets import bayes_accuracy, write

RESULTS = Path(__file__).parent / "results"
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


def measure(name: str, n: int, folder: Path) -> Record:
    train, test = folder / f"train-{n}.zarr", folder / "test.zarr"
    for path, rows, seed in ((train, n, 0), (test, N_TEST, 1)):
        if not path.exists():
            write("checkerboard", path, rows, random_state=seed)
    model = getattr(daskls, name)(**SETTINGS[name], random_state=0)
    with measured() as fit:
        model.fit(train)
    queries = zarr.open_array(test / "X")[: N_QUERIES.get(name, N_TEST)]
    expected = classes(test)[zarr.open_array(test / "y")[: len(queries)]]
    with measured() as predict:
        labels = model.predict(da.from_array(queries, chunks=(BLOCK_ROWS, -1))).compute()
    model.save(folder / f"{name}.zarr")
    files = (folder / f"{name}.zarr").rglob("*")
    return {
        "method": name,
        "rows": n,
        "fit_cpu_s": fit.cpu_s,
        "fit_wall_s": fit.wall_s,
        "predict_us": predict.cpu_s / len(queries) * 1e6,
        "peak_mib": max(fit.peak_nbytes, predict.peak_nbytes) / MIB,
        "before_mib": fit.baseline_nbytes / MIB,
        "accuracy": 100 * float(np.mean(labels == expected)),
        "cells": model.n_cells_,
        "support": int(model.fit_report_.n_support.sum()),
        "model_kib": sum(path.stat().st_size for path in files if path.is_file()) / 1024,
        "stages": model.stage_s_,
    }


def report(journal: Journal) -> str:
    columns: list[Column] = [
        ("method", lambda r: r["method"]),
        ("rows", lambda r: f"{r['rows']:,}"),
        ("accuracy %", lambda r: f"{r['accuracy']:.2f}"),
        ("fit, CPU s", lambda r: f"{r['fit_cpu_s']:.0f}"),
        ("fit, wall s", lambda r: f"{r['fit_wall_s']:.0f}"),
        ("us a query", lambda r: f"{r['predict_us']:.0f}"),
        ("peak MiB (before)", lambda r: f"{r['peak_mib']:.0f} ({r['before_mib']:.0f})"),
        ("models", lambda r: f"{r['cells']:,}"),
        ("support rows", lambda r: f"{r['support']:,}"),
        ("model, KiB", lambda r: f"{r['model_kib']:,.0f}"),
        ("failure", lambda r: r["failure"]),
    ]
    best = 100 * bayes_accuracy("checkerboard")
    settings = "; ".join(
        f"{name}({', '.join(f'{k}={v}' for k, v in values.items())})"
        for name, values in SETTINGS.items()
    )
    return (
        "# Three million rows\n\n"
        f"`benchmarks/three_million.py`, checkerboard, two workers of one thread and 2 GiB, "
        f"{machine()}. Best possible accuracy {best:.2f} %. {N_TEST:,} test rows; "
        f"{N_QUERIES['RandomChunkSVC']:,} for RandomChunkSVC. {settings}. "
        "Peaks are sums over all processes; before: idle.\n\n" + table(columns, journal.records)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="*", default=list(SETTINGS))
    parser.add_argument("--rows", type=int, default=3_000_000)
    chosen = parser.parse_args()
    journal = Journal(RESULTS / "three_million.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.methods:
            if journal.is_done(method=name, rows=chosen.rows):
                continue
            # Workers anew for each: what one method left in them is not another's.
            with (
                LocalCluster(
                    n_workers=2, threads_per_worker=1, memory_limit="2GiB", dashboard_address=":0"
                ) as cluster,
                Client(cluster),
            ):
                try:
                    record = measure(name, chosen.rows, Path(folder))
                except daskls.DasklsError as error:
                    record = {"method": name, "rows": chosen.rows, "failure": str(error)}
            journal.add(record)
            (RESULTS / "three_million.md").write_text(report(journal))


if __name__ == "__main__":
    main()
