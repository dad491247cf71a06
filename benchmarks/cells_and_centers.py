"""VoronoiSVC and FalkSVC with local selection on all of covtype, in one process and one thread.

Run with the folder of the sets in DASKLS_DATA::

    python benchmarks/cells_and_centers.py

Features are scaled by the minimum and maximum of the training rows. The table goes to
``benchmarks/results/cells_and_centers.md``.
"""

import tempfile
from pathlib import Path
from typing import Any

import dask
import numpy as np
from measure import machine, measured
from real_sets import by_training, write_set

from daskls import FalkSVC, VoronoiSVC

RESULTS = Path(__file__).parent / "results"
METHODS: dict[str, tuple[Any, dict[str, Any]]] = {
    "VoronoiSVC(cell_size=2000)": (VoronoiSVC, {"cell_size": 2000}),
    'FalkSVC(n_neighbors=1000, selection="local")': (
        FalkSVC,
        {"n_neighbors": 1000, "selection": "local"},
    ),
}
HEADER = (
    "| method | error % | fit CPU s | predict CPU s | microseconds a row | model MB |\n"
    "|---|---|---|---|---|---|\n"
)


def run(name: str, folder: Path, y_test: np.ndarray) -> str:
    """Measure one method; return its line of the table."""
    kind, params = METHODS[name]
    store = folder / f"{kind.__name__}.model"
    model = kind(**params, random_state=0, store=store)
    with measured() as fit:
        model.fit(folder / "train.zarr")
    with measured() as predict:
        predicted = model.predict(folder / "test.zarr" / "X").compute()
    nbytes = sum(p.stat().st_size for p in store.rglob("*") if p.is_file())
    line = (
        f"| {name} | {100 * np.mean(predicted != y_test):.2f} | {fit.cpu_s:.0f} | "
        f"{predict.cpu_s:.1f} | {1e6 * predict.cpu_s / len(y_test):.0f} | {nbytes / 1e6:.0f} |"
    )
    print(line, flush=True)
    return line


def main() -> None:
    with tempfile.TemporaryDirectory() as name, dask.config.set(scheduler="sync"):
        folder = Path(name)
        X, y, X_test, y_test = by_training("covtype")
        write_set(folder / "train.zarr", X, y)
        write_set(folder / "test.zarr", X_test, y_test)
        # Compiled kernels are cached on disk; the first fits of a machine fill the cache.
        for kind, params in METHODS.values():
            kind(**params).fit(X[:3000], y[:3000]).predict(X_test[:100])
        del X, X_test
        print(HEADER, end="", flush=True)
        lines = [run(name, folder, y_test) for name in METHODS]
    table = RESULTS / "cells_and_centers.md"
    table.write_text(
        f"# Cells and centers on all of covtype\n\n{machine()}; one process, one thread. "
        f"Features by the minimum and maximum of the training rows.\n\n{HEADER}"
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
