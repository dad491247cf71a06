"""Ten million rows x 28 features through all stages on two workers of 2 GiB, stage by stage.

The grid is a single point, so that the time of sampling, regrouping and predicting is seen beside
that of training. Writes ``benchmarks/results/out_of_core.md``.

    python benchmarks/out_of_core.py [rows] [folder]
"""

import sys
import tempfile
import time
from pathlib import Path

import dask.array as da
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin
from measure import Cost, machine, measured

from daskls import VoronoiSVC
from daskls.datasets import bayes_accuracy, write

RESULTS = Path(__file__).parent / "results"
CELL_SIZE = 1000


def render(
    n: int,
    model: VoronoiSVC,
    costs: dict[str, Cost],
    n_tasks: dict[str, int],
    accuracy: float,
) -> str:
    """Return the Markdown report."""
    report = model.fit_report_
    lines = [
        "# Rows out of core, stage by stage\n",
        f"{machine()}\n",
        f"noisy28, {n} rows x 28 float32 features; two workers of one thread and 2 GiB; "
        f"cell_size {CELL_SIZE}, one (C, gamma), refit='cell': {len(report)} cells, "
        f"{int(report.n_support.sum())} support rows.\n",
        "| stage | wall s |\n|---|---|",
        f"| sample and check (X read once) | {model.stage_s_['sample']:.1f} |",
        f"| regroup (X read again) | {model.stage_s_['regroup']:.1f} |",
        f"| train | {model.stage_s_['train']:.1f} |",
        f"| predict all rows | {costs['predict'].wall_s:.1f} |\n",
        "| | wall s | CPU s | peak MiB of all processes (before) | tasks |\n|---|---|---|---|---|",
    ]
    for name, cost in costs.items():
        lines.append(
            f"| {name} | {cost.wall_s:.1f} | {cost.cpu_s:.1f} | {cost.peak_nbytes >> 20} "
            f"({cost.baseline_nbytes >> 20}) | {n_tasks[name]} |"
        )
    lines.append(
        f"\nTraining accuracy {accuracy:.2%} (Bayes {bayes_accuracy('noisy28') or 0:.2%})."
    )
    return "\n".join(lines) + "\n"


class TaskCounter(SchedulerPlugin):
    """Counts the tasks that the workers finish."""

    def __init__(self) -> None:
        self.n_done = 0

    def transition(self, key: object, start: str, finish: str, *args: object, **kw: object) -> None:
        self.n_done += start == "processing" and finish == "memory"


def written(folder: Path, n: int, random_state: int = 0) -> Path:
    """Return a data set of n rows; one that was written whole is there already."""
    data = folder / f"noisy28-{n}-{random_state}.zarr"
    if not data.exists():
        part = data.with_suffix(".part")
        write("noisy28", part, n, random_state=random_state, overwrite=True)
        part.rename(data)
    return data


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    data = written(folder, n)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="2GiB") as cluster,
        Client(cluster),
    ):
        counter = TaskCounter()
        cluster.scheduler.add_plugin(counter)
        model = VoronoiSVC(CELL_SIZE, C=1.0, gamma=0.02, refit="cell", random_state=0)
        model.set_params(store=folder / f"model-{n}-{time.time_ns()}.zarr")
        costs, n_tasks = {}, {}
        with measured() as costs["fit"]:
            model.fit(data)
        n_tasks["fit"] = counter.n_done
        with measured() as costs["predict"]:
            labels = model.predict(data / "X")
            codes = da.from_zarr(str(data / "y"), chunks=labels.chunks)
            # The stored labels are codes of the classes -1 and 1.
            accuracy = float((labels == 2 * codes - 1).mean().compute())
        n_tasks["predict"] = counter.n_done - n_tasks["fit"]
    report = render(n, model, costs, n_tasks, accuracy)
    print(report)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "out_of_core.md").write_text(report)


if __name__ == "__main__":
    main()
