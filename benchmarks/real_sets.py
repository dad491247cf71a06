"""Error, cells, CPU seconds and peak memory of VoronoiSVC on four real sets, as one table.

Run with the folder of the sets in DASKLS_DATA::

    python benchmarks/real_sets.py [covtype ijcnn1 usps letter]

Two workers of one thread; features scaled by the minimum and maximum of the training rows. The
small sets are measured with five seeds, as mean and deviation. The table goes to
``benchmarks/results/real_sets.md``.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from measure import machine, measured

from daskls import VoronoiSVC
from daskls.datasets import covtype_split, load_real
from daskls.store.dataset import DatasetWriter

RESULTS = Path(__file__).parent / "results"
# What the peers of the 2017 paper's engine reached on the same rows, where it is known.
LIQUIDSVM = {"covtype": 4.27, "ijcnn1": 2.05}
SEEDS = {"covtype": 1, "letter": 1}
MANY_SEEDS = 5
HEADER = (
    "| set | train / test rows | seeds | error % | liquidSVM % | cells | cells / (n / cell_size) | "
    "sum m^2 / (n cell_size) | at step limit | fit CPU s | fit wall s | predict CPU s | "
    "peak MiB (before) |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
)


def scaled(name: str) -> tuple[np.ndarray, ...]:
    data = covtype_split() if name == "covtype" else load_real(name)
    X, X_test = to_unit(data.X, data.X_test)
    return X, data.y, X_test, data.y_test


def to_unit(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, ...]:
    """Scale each feature to [0, 1] by its least and largest value among all rows."""
    low = np.minimum(X.min(axis=0), X_test.min(axis=0)).astype(float)
    return shifted(X, X_test, low, np.maximum(X.max(axis=0), X_test.max(axis=0)) - low)


def by_training(name: str) -> tuple[np.ndarray, ...]:
    """Return a set with each feature scaled by its least and largest value in training rows."""
    data = covtype_split() if name == "covtype" else load_real(name)
    low = data.X.min(axis=0).astype(float)
    X, X_test = shifted(data.X, data.X_test, low, data.X.max(axis=0) - low)
    return X, data.y, X_test, data.y_test


def shifted(
    X: np.ndarray, X_test: np.ndarray, low: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return training and test rows less ``low``, by ``width`` where that is not 0."""
    width = np.where(width == 0, 1, width)
    return tuple(((part - low) / width).astype(np.float32) for part in (X, X_test))


def write_set(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    classes, codes = np.unique(y, return_inverse=True)
    with DatasetWriter(path, X.shape[1], "float32", classes=classes.tolist()) as writer:
        writer.append(X, codes)


def run(name: str, folder: Path, cell_size: int = 2000) -> str:
    """Measure one set; return its line of the table."""
    X, y, X_test, y_test = by_training(name)
    write_set(folder / f"{name}-train.zarr", X, y)
    write_set(folder / f"{name}-test.zarr", X_test, y_test)
    n, n_test = len(X), len(X_test)
    del X, X_test
    n_seeds = SEEDS.get(name, MANY_SEEDS)
    runs = [fit_once(name, folder, cell_size, seed, y_test) for seed in range(n_seeds)]
    errors, reports, fits, predictions = zip(*runs, strict=True)
    report = reports[0]
    squares = float((report.n_rows.astype(float) ** 2).sum()) / (n * cell_size)
    line = (
        f"| {name} | {n} / {n_test} | {n_seeds} | {spread(errors, 2)} | {LIQUIDSVM.get(name, '')} "
        f"| {len(report)} | {len(report) / (n / cell_size):.2f} | {squares:.2f} | "
        f"{sum(r.n_at_limit.sum() for r in reports)} | {spread([c.cpu_s for c in fits], 1)} | "
        f"{spread([c.wall_s for c in fits], 1)} | {spread([c.cpu_s for c in predictions], 1)} | "
        f"{max(c.peak_nbytes for c in fits) >> 20} ({fits[0].baseline_nbytes >> 20}) |"
    )
    print(line, flush=True)
    return line


def fit_once(name: str, folder: Path, cell_size: int, seed: int, y_test: np.ndarray) -> Any:
    """Return the error, the report, and what fit and prediction cost."""
    store = folder / f"{name}-{seed}.model"
    model = VoronoiSVC(cell_size=cell_size, random_state=seed, store=store)
    with measured() as fit:
        model.fit(folder / f"{name}-train.zarr")
    with measured() as predict:
        predicted = model.predict(folder / f"{name}-test.zarr" / "X").compute()
    return 100 * np.mean(predicted != y_test), model.fit_report_, fit, predict


def spread(values: Sequence[float], digits: int) -> str:
    """Return a value, or the mean and deviation of several."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} +- {np.std(values, ddof=1):.{digits}f}"


def main() -> None:
    names = sys.argv[1:] or ["ijcnn1", "usps", "letter", "covtype"]
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="2GiB") as cluster,
        Client(cluster),
    ):
        # Compiled kernels are cached on disk; the first fit of a machine fills the cache.
        rng = np.random.default_rng(0)
        X = rng.random((500, 3))
        VoronoiSVC(cell_size=100).fit(X, X[:, 0] > 0.5).predict(X)
        print(HEADER, end="", flush=True)
        lines = [run(name, Path(folder)) for name in names]
    RESULTS.mkdir(exist_ok=True)
    table = RESULTS / "real_sets.md"
    table.write_text(
        f"# VoronoiSVC on real sets\n\n{machine()}\n\n{HEADER}" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
