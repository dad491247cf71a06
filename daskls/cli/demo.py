"""`daskls demo`: a million rows on disk, two workers of 1 GiB, a model, its score and a picture."""

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from daskls.cli import cluster
from daskls.cli.ahead import compile_ahead
from daskls.cli.inputs import expand_folder
from daskls.cli.tables import format_nbytes, format_number, format_share, print_pairs

__all__ = ["DemoResult", "DemoSet", "demo", "run_demo", "train_few"]

# Runs in a process of its own, which then holds what compiling takes.
TRAIN_FEW = "from daskls.cli.demo import train_few; train_few({name!r})"
N_VALUES = 4
MAX_TEST_ROWS = 200_000


class DemoSet(StrEnum):
    """The sets of the demo: synthetic, planar, with a known Bayes accuracy."""

    CHECKERBOARD = "checkerboard"
    TWO_SPIRALS = "two_spirals"


# With --task regression: numbers of a known best R2.
REGRESSION_SET = "friedman1"
# Side of the square that holds the rows.
SIDES = {DemoSet.CHECKERBOARD: 1.0, DemoSet.TWO_SPIRALS: 2.4}


@dataclass(frozen=True)
class DemoResult:
    """Results that the demo prints: accuracy or R2, and the best possible; seconds and bytes."""

    score: float
    best: float
    n_rows: int
    n_test_rows: int
    n_cells: int
    n_support: int
    fit_s: float
    score_s: float
    baseline_nbytes: int
    peak_nbytes: int


def demo(
    rows: Annotated[int, typer.Option(min=1000, help="Rows to train on.")] = 1_000_000,
    task: Annotated[
        Literal["classification", "regression"],
        typer.Option(help="Classes; or numbers, of Friedman's first function with noise."),
    ] = "classification",
    dataset: Annotated[
        DemoSet, typer.Option("--set", help="Which rows of classes.")
    ] = DemoSet.TWO_SPIRALS,
    cell_size: Annotated[int, typer.Option(min=100, help="Rows of a cell at the most.")] = 1000,
    output: Annotated[
        Path,
        typer.Option(callback=expand_folder, help="Folder of the data, the model and the picture."),
    ] = Path("demo"),
    workers: Annotated[int, typer.Option(min=1, help="Processes of the local cluster.")] = 2,
    memory_limit: cluster.MemoryLimit = "1GiB",
    quiet: cluster.Quiet = False,
) -> None:
    """Train on a million synthetic rows here, compare with the best possible, draw the result."""
    where = cluster.Where(None, workers, 1, memory_limit)
    where.check()
    name = REGRESSION_SET if task == "regression" else dataset.value
    how = (
        "least squares in a scale that is learned"
        if name == REGRESSION_SET
        else f"a {N_VALUES} x {N_VALUES} grid of C and gamma, 5 folds"
    )
    typer.echo(
        f"{name}: {rows:,} rows to Zarr, cells of {cell_size}, {how}; {workers} workers of "
        f"{memory_limit}."
    )
    result = run_demo(name, rows, cell_size, output, where, show=not quiet)
    _print_result(result, is_numbers=name == REGRESSION_SET)
    from daskls.cli.picture import draw_demo, draw_numbers

    draw = draw_numbers if name == REGRESSION_SET else draw_demo
    typer.echo(f"Picture: {draw(output)}")


def run_demo(
    name: str, n_rows: int, cell_size: int, output: Path, where: Any, *, show: bool
) -> DemoResult:
    """Write the rows, train, score; return what was measured.

    Parameters
    ----------
    name : str. Of a `DemoSet`, or `REGRESSION_SET`.
    n_rows : int. Training rows; a fifth as many, 200,000 at the most, are drawn for the test.
    cell_size : int
    output : Path. Gets `train.zarr`, `test.zarr` and `model.zarr`; older ones are replaced.
    where : cluster.Where
    show : bool. Draw progress bars.

    Raises
    ------
    StoreError : when `output` holds something else under these names
    """
    from daskls.cli.memory import PeakMemory
    from daskls.datasets import bayes_accuracy, best_r2

    best = best_r2(name) if name == REGRESSION_SET else bayes_accuracy(name)
    _write_rows(name, n_rows, output, show=show)
    _remove_model(output / "model.zarr")
    compile_ahead(TRAIN_FEW.format(name=name))
    with cluster.open_client(where) as client, PeakMemory() as memory:
        started = time.perf_counter()
        estimator = _fit(name, n_rows, cell_size, output, client, show=show)
        fit_s = time.perf_counter() - started
        score, n_test = _score(estimator, output / "test.zarr", client, show=show)
        score_s = time.perf_counter() - started - fit_s
    return DemoResult(
        score=score,
        best=float(best or 1.0),
        n_rows=n_rows,
        n_test_rows=n_test,
        n_cells=estimator.n_cells_,
        n_support=int(estimator.fit_report_.n_support.sum()),
        fit_s=fit_s,
        score_s=score_s,
        baseline_nbytes=memory.start_nbytes,
        peak_nbytes=memory.peak_nbytes,
    )


def train_few(name: str) -> None:
    """Train and score on few rows in this thread, so that the cache holds what the demo runs."""
    import tempfile

    import dask

    n_rows, cell_size = 2000, 1000
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        output = Path(folder)
        _write_rows(name, n_rows, output, show=False)
        estimator = _fit(name, n_rows, cell_size, output, None, show=False)
        _score(estimator, output / "test.zarr", None, show=False)


def demo_grid(dataset: DemoSet, n_rows: int, cell_size: int) -> dict[str, list[float]]:
    """Return the 4 x 4 grid: C from 50 / m to 50, widths from 2 r to r / 2.

    r is half the diagonal of a square cell of full size, m the rows in its training folds. The
    estimator's own grid is wider and finer; it takes several times as long. Narrower kernels than
    r / 2 gain nothing here, and a cell in ten that chooses one by chance has islands of the other
    class.

    Examples
    --------
    >>> grid = demo_grid(DemoSet.CHECKERBOARD, 1_000_000, 1000)
    >>> [round(C, 4) for C in grid["C"]]
    [0.0625, 0.5802, 5.3861, 50.0]
    """
    import numpy as np

    m = 4 * cell_size / 5
    radius = SIDES[dataset] * (cell_size / n_rows / 2) ** 0.5
    return {
        "C": np.geomspace(50 / m, 50, N_VALUES).tolist(),
        "gamma": (np.geomspace(0.25, 4, N_VALUES) / radius**2).tolist(),
    }


def _write_rows(dataset: str, n_rows: int, output: Path, *, show: bool) -> None:
    """Write training and test rows; other seeds give other rows."""
    from daskls.cli.convert import rows_progress
    from daskls.datasets import write

    n_test = min(max(n_rows // 5, 1), MAX_TEST_ROWS)
    for name, n, seed in (("train", n_rows, 0), ("test", n_test, 1)):
        with rows_progress("write", show=show) as progress:
            write(
                dataset,
                output / f"{name}.zarr",
                n,
                random_state=seed,
                overwrite=True,
                progress=progress,
            )


def _remove_model(path: Path) -> None:
    """Remove an earlier demo's model; refuse anything else."""
    if path.exists():
        from daskls.store.layout import Root

        Root.open(path).store.drop("", strict=True)


def _fit(name: str, n_rows: int, cell_size: int, output: Path, client: Any, *, show: bool) -> Any:
    """Train."""
    import daskls

    shared = {
        "store": output / "model.zarr",
        "client": client,
        "random_state": 0,
        "verbose": int(show),
    }
    if name == REGRESSION_SET:
        return daskls.VoronoiSVR(cell_size, **shared).fit(output / "train.zarr")
    grid = demo_grid(DemoSet(name), n_rows, cell_size)
    estimator = daskls.VoronoiSVC(
        cell_size,
        # As in the paper: every cell chooses for itself, which is what the demo is to show.
        loss="hinge",
        kernel="rbf",
        feature_scale=None,
        C=grid["C"],
        gamma=grid["gamma"],
        **shared,
    )
    return estimator.fit(output / "train.zarr")


def _score(estimator: Any, path: Path, client: Any, *, show: bool) -> tuple[float, int]:
    """Return accuracy or R2 on the test rows, and their number."""
    from daskls.estimators.console import progress_bars
    from daskls.run.confusion import count_confusion
    from daskls.run.misses import count_misses
    from daskls.store.dataset import open_dataset

    with progress_bars(show=show) as listen:
        if estimator._kind == "numbers":
            misses = count_misses(estimator, open_dataset(path), client, listen)
            return float(misses.r2[0]), misses.n_rows
        counts = count_confusion(estimator, open_dataset(path), client, listen).counts
    return int(counts.trace()) / int(counts.sum()), int(counts.sum())


def _print_result(result: DemoResult, *, is_numbers: bool) -> None:
    """Print the figures."""
    peak, baseline = format_nbytes(result.peak_nbytes), format_nbytes(result.baseline_nbytes)
    what, best, tell = "accuracy", "Bayes accuracy", format_share
    if is_numbers:
        what, best, tell = "R2", "R2 without noise", "{:.4f}".format
    print_pairs(
        "Result",
        [
            (what, f"{tell(result.score)} on {result.n_test_rows:,} other rows"),
            (best, f"{tell(result.best)}, the best possible"),
            ("cells", format_number(result.n_cells)),
            ("support rows", format_number(result.n_support)),
            ("seconds to train", f"{result.fit_s:.1f} (regrouping on disk included)"),
            ("seconds to score", f"{result.score_s:.1f}"),
            ("peak memory", f"{peak} PSS of client and workers; {baseline} of it when idle"),
        ],
    )
