"""`daskls demo`: a million rows on disk, two workers of 1 GiB, a model, its score and a picture."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_table

DATA_SET, CELL_SIZE = "two_spirals", 1000


def demo(
    *,
    rows: Annotated[int, typer.Option(min=1000)] = 1_000_000,
    output: Annotated[Path, typer.Option(callback=Path.expanduser)] = Path("demo"),
    workers: Annotated[int, typer.Option(min=1)] = 2,
    memory_limit: str = "1GiB",
    quiet: cluster.Quiet = False,
) -> None:
    """Train on a million synthetic rows here, compare with the best possible, draw the result.

    Parameters
    ----------
    rows : Rows to train on.
    output : Folder of the data, the model and the picture.
    workers : Processes of the local cluster.
    memory_limit : Memory of each local worker, such as 2GiB; auto: its share of the machine.
    """
    where = cluster.ClusterOptions(workers=workers, memory_limit=memory_limit)
    import daskls
    from daskls.datasets import bayes_accuracy, write
    from daskls.estimators.view import progress_bars, rows_done
    from daskls.store.layout import Root

    train, test, model = (output / f"{name}.zarr" for name in ("train", "test", "model"))
    n_test = min(rows // 5, 200_000)
    for path, n, seed in ((train, rows, 0), (test, n_test, 1)):
        with progress_bars(show=not quiet) as listen:
            progress = rows_done("write", listen)
            write(DATA_SET, path, n, random_state=seed, overwrite=True, progress=progress)
    if model.exists():
        # Refuses what is no model.
        Root.open(model).store.drop("", strict=True)
    with cluster.open_client(where) as client, watch_memory() as seen:
        started = time.perf_counter()
        estimator = _estimator(rows, store=model, client=client, verbose=int(not quiet)).fit(train)
        fit_s = time.perf_counter() - started
        accuracy = float(estimator.score(test))
        score_s = time.perf_counter() - started - fit_s
    peak, idle = (f"{nbytes >> 20} MiB" for nbytes, _ in (max(seen), seen[0]))
    pairs = {
        "accuracy": f"{format_share(accuracy)} on {n_test:,} other rows",
        "Bayes accuracy": f"{format_share(bayes_accuracy(DATA_SET))}, the best possible",
        "cells": format_number(estimator.n_cells_),
        "support rows": format_number(estimator.fit_report_.n_support.sum()),
        "seconds to train": f"{fit_s:.1f} (regrouping on disk included)",
        "seconds to score": f"{score_s:.1f}",
        "peak memory": f"{peak} PSS of client and workers; {idle} of it when idle",
    }
    print_table(f"{DATA_SET}: {rows:,} rows", pairs.items())
    typer.echo(f"Picture: {_draw(daskls.load(model), test, output / 'demo.png')}")


def _estimator(n_rows: int, **run: Any) -> Any:
    """Every cell chooses from 4 x 4 values, of widths from 2 r to r / 2.

    Narrower kernels gain nothing here, but some cells would choose one by chance.
    """
    import numpy as np

    import daskls

    # The spirals lie in a square of this side.
    radius = 2.4 * (CELL_SIZE / n_rows / 2) ** 0.5
    C = np.geomspace(0.0625, 50, 4).tolist()
    gamma = (np.geomspace(0.25, 4, 4) / radius**2).tolist()
    own: Any = {"feature_scale": None, "random_state": 0, **run}
    return daskls.VoronoiSVC(CELL_SIZE, loss="hinge", kernel="rbf", C=C, gamma=gamma, **own)


def _draw(estimator: Any, test: Path, path: Path) -> Path:
    import numpy as np

    from daskls.plotting import PartitionDisplay
    from daskls.plotting.plane import import_matplotlib
    from daskls.store.dataset import open_dataset

    figure = import_matplotlib("figure").Figure(figsize=(11, 5.2), layout="constrained")
    data: Any = open_dataset(test)
    X, y = data.X[:100_000], estimator.classes_[data.y[:100_000]]
    whole, magnified = figure.subplots(1, 2)
    PartitionDisplay.from_estimator(estimator, X=X).plot(ax=whole, show_rows=False)
    whole.set_title(f"{estimator.n_cells_} cells")
    # A quarter of each axis.
    low, high = X.min(axis=0), X.max(axis=0)
    center, half = low + 0.525 * (high - low), 0.125 * (high - low)
    rows = np.flatnonzero((np.abs(X - center) < half).all(axis=1))[:1500]
    window = np.stack([center - half, center + half], axis=1)
    display = PartitionDisplay.from_estimator(estimator, X=X[rows], y=y[rows], limits=window)
    display.plot(ax=magnified)
    magnified.set_title("magnified, with test rows")
    figure.savefig(path, dpi=100)
    return path


@contextmanager
def watch_memory() -> Iterator[list[tuple[int, float]]]:
    """Yield PSS bytes of this process and its children, five a second, and CPU seconds so far."""
    import psutil

    def measure() -> int:
        nbytes, me = 0, psutil.Process()
        for process in (me, *me.children(recursive=True)):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                nbytes += process.memory_full_info().pss
        return nbytes

    def repeat() -> None:
        while not stopped.wait(0.2):
            seen.append((measure(), time.thread_time()))

    seen, stopped = [(measure(), 0.0)], threading.Event()
    thread = threading.Thread(target=repeat, name="daskls-memory", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stopped.set()
        thread.join()
