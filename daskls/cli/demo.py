"""`daskls demo`: a million rows on disk, two workers of 1 GiB, a model, its score and a picture."""

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

import psutil
import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_pairs

# The argument of `compile_ahead`.
TRAIN_FEW = "from daskls.cli.demo import train_few; train_few({name!r})"
# Candidates of C, and of gamma.
N_VALUES = 4
MAX_TEST_ROWS = 200_000
# Seconds between two measurements of memory.
MEASURE_INTERVAL_S = 0.2


class DemoSet(StrEnum):
    """The data sets of the demo: synthetic, of two features, with a known Bayes accuracy."""

    CHECKERBOARD = "checkerboard"
    TWO_SPIRALS = "two_spirals"


# The data set of --task regression, with a known best R2.
REGRESSION_SET = "friedman1"
# The side of the square that holds the rows.
SIDES = {DemoSet.CHECKERBOARD: 1.0, DemoSet.TWO_SPIRALS: 2.4}


@dataclass(frozen=True)
class DemoResult:
    """What the demo measures; ``score`` and ``best`` are accuracies, or R2 of a regression.

    Bytes are those of this process and its children: ``baseline_nbytes`` before the fit.
    """

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
        typer.Option(help="Classes; or numbers: Friedman's first function with noise."),
    ] = "classification",
    dataset: Annotated[
        DemoSet, typer.Option("--set", help="The data set of a classification.")
    ] = DemoSet.TWO_SPIRALS,
    cell_size: Annotated[int, typer.Option(min=100, help="The most rows of a cell.")] = 1000,
    output: Annotated[
        Path,
        typer.Option(
            callback=Path.expanduser, help="Folder of the data, the model and the picture."
        ),
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
        "least squares in a learned scale"
        if name == REGRESSION_SET
        else f"a {N_VALUES} x {N_VALUES} grid of C and gamma, 5 folds"
    )
    typer.echo(
        f"{name}: {rows:,} rows to Zarr, cells of {cell_size}, {how}; {workers} workers of "
        f"{memory_limit}."
    )
    result = run_demo(name, rows, cell_size, output, where, show=not quiet)
    _print_result(result, is_numbers=name == REGRESSION_SET)
    from daskls.cli.picture import draw_cells, draw_predictions

    draw = draw_predictions if name == REGRESSION_SET else draw_cells
    typer.echo(f"Picture: {draw(output)}")


def run_demo(
    name: str, n_rows: int, cell_size: int, output: Path, where: Any, *, show: bool
) -> DemoResult:
    """Write the rows, train, score; return what was measured.

    Parameters
    ----------
    name : str. The value of a `DemoSet`, or `REGRESSION_SET`.
    n_rows : int. Training rows. The test set has a fifth as many, `MAX_TEST_ROWS` at most.
    output : Path. Gets `train.zarr`, `test.zarr` and `model.zarr`; older ones are replaced.
    show : bool. Whether to draw progress bars.

    Raises
    ------
    StoreError : `output` holds something else under these names
    """
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
    """Train and score on few rows in this thread, which compiles and caches what the demo runs."""
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

    r is half the diagonal of a square cell of full size, m the number of rows in its training
    folds. The estimator's own grid is wider and finer, and takes several times as long. Kernels
    narrower than r / 2 gain nothing here, but one cell in ten would choose one by chance, and its
    predictions would show islands of the other class.

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
    """Write the training and the test set, which differ by their seeds."""
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
    """Return the fitted estimator."""
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
        # As in the paper, and what the demo is to show: every cell chooses for itself.
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
    from daskls.estimators.view import progress_bars
    from daskls.run.confusion import Confusion, score_dataset
    from daskls.store.dataset import open_dataset

    with progress_bars(show=show) as listen:
        found = score_dataset(estimator, open_dataset(path), client, listen)
    if not isinstance(found, Confusion):
        return float(found.r2[0]), found.n_rows
    return int(found.counts.trace()) / int(found.counts.sum()), int(found.counts.sum())


def _print_result(result: DemoResult, *, is_numbers: bool) -> None:
    """Print the result."""
    from dask.utils import format_bytes

    peak, baseline = format_bytes(result.peak_nbytes), format_bytes(result.baseline_nbytes)
    what, best, as_text = "accuracy", "Bayes accuracy", format_share
    if is_numbers:
        what, best, as_text = "R2", "R2 without noise", "{:.4f}".format
    print_pairs(
        "Result",
        [
            (what, f"{as_text(result.score)} on {result.n_test_rows:,} other rows"),
            (best, f"{as_text(result.best)}, the best possible"),
            ("cells", format_number(result.n_cells)),
            ("support rows", format_number(result.n_support)),
            ("seconds to train", f"{result.fit_s:.1f} (regrouping on disk included)"),
            ("seconds to score", f"{result.score_s:.1f}"),
            ("peak memory", f"{peak} PSS of client and workers; {baseline} of it when idle"),
        ],
    )


# Compilation


def is_compiled() -> bool:
    """Whether numba's cache holds the SVM solver; also True where no cache can be written."""
    from daskls.kernels.line import line_solver

    solver: Any = line_solver(unit=True, with_offset=False)
    kernel = getattr(solver, "func", solver)
    folder = getattr(getattr(kernel, "stats", None), "cache_path", None)
    return folder is None or any(Path(folder).glob(f"*.{kernel.__name__}-*.nbi"))


def compile_ahead(call: str) -> None:
    """Run Python code that compiles in a process of its own, unless this machine has a cache.

    Then it is compiled once, not in each worker. A process that compiles keeps some 200 MiB, which
    one that reads the cache never needs.
    """
    if is_compiled():
        return
    typer.echo("Compiling, once on this machine.")
    # What fails here fails in the workers too, which report it.
    subprocess.run([sys.executable, "-c", call], capture_output=True, check=False)


# Memory


def tree_nbytes() -> int:
    """Return the memory of this process and its children: the sum of their PSS, else of their RSS.

    The proportional set size (PSS) divides a shared page by the number of processes that share it,
    so that the sum counts each page once.
    """
    me = psutil.Process()
    return sum(_nbytes(process) for process in [me, *me.children(recursive=True)])


def _nbytes(process: psutil.Process) -> int:
    """Return one process's share; 0 if it has just ended."""
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


class PeakMemory:
    """A context that samples `tree_nbytes`.

    Attributes
    ----------
    start_nbytes, peak_nbytes : int. The first and the largest sample.
    sampling_cpu_s : float. CPU seconds that the sampling itself has taken so far.
    """

    def __enter__(self) -> Self:
        self.start_nbytes = self.peak_nbytes = tree_nbytes()
        self.sampling_cpu_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="daskls-memory", daemon=True)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._stopped.wait(MEASURE_INTERVAL_S):
            self.peak_nbytes = max(self.peak_nbytes, tree_nbytes())
            self.sampling_cpu_s = time.thread_time()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
