"""Dask tasks, bytes read and written, and CPU seconds of small fits and predictions, by commit.

Every method fits and predicts a checkerboard in Zarr, in one process and one thread, within two
minutes; the journal gets a line a commit, of the code that is imported: an older state is measured
from its folder, with this one in PYTHONPATH. Tasks and bytes are the same in every run but for a
few bytes; CPU seconds are the least of three. Bytes are those of the system calls (Linux).
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from dask.callbacks import Callback

import daskls
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite.data import written
from benchmarks.suite.figures import Figure, plt
from benchmarks.suite.papers import PaperSVC

GIVEN = {"C": 4.0, "gamma": 2.0, "random_state": 0}
# A model, and its training rows.
CASES: dict[str, tuple[Callable[[], Any], int]] = {
    "VoronoiSVC": (lambda: PaperSVC(1000, random_state=0), 30_000),
    "RandomChunkSVC": (lambda: daskls.RandomChunkSVC(1000, random_state=0), 10_000),
    "FalkSVC": (lambda: daskls.FalkSVC(250, selection="local", random_state=0), 10_000),
    "KNNSVC": (lambda: daskls.KNNSVC(50, **GIVEN), 10_000),
    "KernelKNNClassifier": (lambda: daskls.KernelKNNClassifier(5, random_state=0), 10_000),
    "LandmarkSVC": (lambda: daskls.LandmarkSVC(20, random_state=0), 20_000),
    "LocalSamplingSVC": (lambda: daskls.LocalSamplingSVC(**GIVEN), 10_000),
    "NeighborSamplingSVC": (lambda: daskls.NeighborSamplingSVC(**GIVEN), 10_000),
}
N_QUERIES = 5000
CHUNK_ROWS = 2500
N_RUNS = 3
# What is tracked: its title, and how its numbers are shown.
QUANTITIES = {
    "tasks": ("Dask tasks", "{:,}"),
    "read": ("KiB read", "{:,.0f}"),
    "written": ("KiB written", "{:,.0f}"),
    "cpu_s": ("CPU seconds", "{:.2f}"),
}
# Commits that a table shows, the last ones.
N_SHOWN = 8


class Tasks(Callback):
    """Counts the tasks that a scheduler of this process finishes."""

    n_done = 0

    def _posttask(self, *args: object) -> None:
        self.n_done += 1


def git(*command: str) -> str:
    """Ask git about the code that is imported."""
    folder = Path(daskls.__file__).parent
    done = subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def keys(run: Run) -> Iterator[Record]:
    yield {"commit": git("describe", "--always", "--dirty", "--abbrev=9", "--exclude=*")}


def measure(run: Run, commit: str) -> Record:
    record: Record = {"date": git("log", "-1", "--format=%cI")}
    for method, (make, n) in CASES.items():
        train, test = rows_of(run.folder, n), rows_of(run.folder, N_QUERIES, 1)
        fits, predictions = [], []
        for _ in range(N_RUNS):
            model = make()
            fits.append(cost(lambda model=model, train=train: model.fit(train)))
            predictions.append(
                cost(lambda model=model, test=test: model.predict(test / "X").compute())
            )
        record[f"{method}, fit"], record[f"{method}, predict"] = least(fits), least(predictions)
    return record


def rows_of(folder: Path, n: int, seed: int = 0) -> Path:
    return written("checkerboard", folder, n, seed, chunk_rows=CHUNK_ROWS)


def cost(work: Callable[[], Any]) -> Record:
    """Return what some work takes."""
    process, tasks = psutil.Process(), Tasks()
    before = process.io_counters()
    with tasks:
        _, seconds = cpu_of(work)
    after = process.io_counters()
    return {
        "tasks": tasks.n_done,
        "read": (after.read_chars - before.read_chars) / 1024,
        "written": (after.write_chars - before.write_chars) / 1024,
        "cpu_s": seconds,
    }


def least(costs: list[Record]) -> Record:
    """Return the least of each quantity: the first run also compiles."""
    return {name: min(found[name] for found in costs) for name in QUANTITIES}


CASE_NAMES = [f"{method}, {part}" for part in ("fit", "predict") for method in CASES]


def report(journal: Journal) -> str:
    shown = journal.ordered("date", "commit")[-N_SHOWN:]
    parts = [
        f"# Cost by commit\n\n{journal.machine}; one process, one thread. A checkerboard of 10,000 "
        f"to 30,000 rows, {N_QUERIES:,} queries.\n"
    ]
    for name, (title, form) in QUANTITIES.items():
        rows = [
            {"case": case} | {r["commit"]: form.format(r[case][name]) for r in shown if case in r}
            for case in CASE_NAMES
        ]
        headers = [f"{r['commit']} ({r['date'][:10]}) = r['{r['commit']}']" for r in shown]
        parts.append(f"## {title}\n\n{table(' | '.join(['case = case', *headers]), rows)}")
    return "\n".join([*parts, "![Cost by commit](track.png)\n"])


def draw(journal: Journal) -> Figure:
    """Draw each cost by that of the first commit, a panel a quantity, a line a case."""
    records = journal.ordered("date", "commit")
    figure, axes = plt.subplots(2, 2, figsize=(12, 8), sharex=True, layout="constrained")
    for ax, (name, (title, _)) in zip(axes.flat, QUANTITIES.items(), strict=True):
        for i, case in enumerate(CASE_NAMES):
            own = [(at, r[case][name]) for at, r in enumerate(records) if r.get(case, {}).get(name)]
            if own:
                style = "o-" if case.endswith("fit") else "s:"
                at, values = zip(*own, strict=True)
                relative = [value / values[0] for value in values]
                color = f"C{i % len(CASES)}"
                ax.plot(at, relative, style, color=color, ms=4, lw=1, label=case)
        ax.set(title=f"{title}, relative to the first commit", yscale="log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("{x:g}")
        ax.set_xticks(range(len(records)), [r["commit"] for r in records], rotation=60, fontsize=8)
        ax.grid(alpha=0.3)
    figure.legend(*axes[1, 1].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    return figure


EXPERIMENT = Experiment(keys, measure, report, draw)
