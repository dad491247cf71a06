"""A run of any size from what its parts cost here: a cell by its rows, a row, a byte, a task.

A cell's CPU seconds are its base, its widths and its solves, each by a power of its rows: the
powers are those of one cell of 5000 to 20,000 rows, the solves' level is that of cells fitted
whole, whose starts are better than one fold's alone. Equal tasks are dealt to slots: as many a
machine as it has cores, and as its memory holds.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.suite.figures import Figure, plain_log, plt
from benchmarks.suite.journal import Journal, Record
from daskls.memory import TaskSizes
from daskls.plan.bundles import group_nbytes, plan_sample
from daskls.plan.exchange import plan_exchange
from daskls.records import MIB, SolverSpec

__all__ = ["JOBS", "Job", "draw_projection", "project", "projected"]

GIB = 1 << 30
# Of a machine's memory what tasks may use.
USABLE = 0.9


@dataclass(frozen=True)
class Job:
    """A run to project.

    Attributes
    ----------
    name : str
    rows, d, cell_size : int
    machines, cores, memory_gib : int. How many, and what each has.
    search : "full" or "refine", of ``n_grid`` x ``n_grid`` candidates and 5 folds
    share : float. ``cache_size`` in units of a cell's kernel matrix; 1: all is held.
    paper_h : float, or None. The paper's hours.
    """

    name: str
    rows: int
    d: int
    cell_size: int
    machines: int
    cores: int
    memory_gib: int
    search: str = "full"
    n_grid: int = 20
    share: float = 1.0
    paper_h: float | None = None


Laws = dict[str, tuple[float, float]]
# Two sockets of six cores and 128 GB each; table 5.
PAPER = {"rows": 32_000_000, "d": 631, "cores": 12, "memory_gib": 256}
TABLE_5 = ((10_000, 4.8, 7), (15_000, 7.2, 7), (20_000, 9.3, 7), (50_000, 14.0, 11))
JOBS = (
    *(
        Job("ECBDL'14", cell_size=m, machines=n, paper_h=hours, **PAPER)
        for m, hours, n in (*TABLE_5, (100_000, 32.2, 11))
    ),
    Job("ECBDL'14", cell_size=100_000, machines=11, share=1.1, **PAPER),
    Job("ECBDL'14", cell_size=100_000, machines=11, share=0.25, **PAPER),
    Job("ECBDL'14", cell_size=100_000, machines=11, search="refine", **PAPER),
    Job("ECBDL'14", cell_size=5000, machines=11, **PAPER),
    Job("1B x 28", 10**9, 28, 2000, 200, 1, 4, "refine", 10),
)


def project(journal: Journal, job: Job, ten_million: Record) -> Record:
    """Return what a run takes.

    Parameters
    ----------
    journal : Journal. Of `benchmarks.largest_run`.
    job : Job
    ten_million : record of `benchmarks.ten_million`. What a row of 28 features costs.
    """
    K = job.cell_size**2 * 4 / MIB
    spec = SolverSpec(
        search="full" if job.search == "full" else "refine",
        n_grid=(job.n_grid, job.n_grid),
        cache_size=None if job.share == 1 else job.share * K,
    )
    sizes = TaskSizes(job.d, 4, 2, job.cell_size, spec)
    sampling = plan_sample(job.rows, job.d, job.cell_size)
    task = group_nbytes(sizes, sampling.largest_rows, job.rows)
    slots = job.machines * min(job.cores, int(USABLE * job.memory_gib * GIB / task))
    fill, row_s = _fill(journal, job.search), _regroup_s(journal) * job.d / 631
    n_cells = math.ceil(job.rows / (fill * job.cell_size))
    if job.d == 631:
        cell_s = cell_seconds(journal, job.search, fill * job.cell_size, job.share)
        other_s = row_s * job.rows
    else:
        cell_s = ten_million["fit_cpu_s"] / ten_million["rows"] * job.rows / n_cells
        other_s = 0.0
    n_leaves = math.ceil(job.rows / sampling.leaf_rows)
    task_nbytes = int(USABLE * job.memory_gib * GIB / job.cores)
    exchange = plan_exchange(sizes, job.rows, n_leaves, 1, task_nbytes)
    before_h = other_s / slots / 3600
    by_leaf_s = cell_s * n_cells / n_leaves
    return {
        "rows": job.rows,
        "d": job.d,
        "cell_size": job.cell_size,
        "search": job.search,
        "n_grid": job.n_grid,
        "share": job.share,
        "machines": job.machines,
        "slots": slots,
        "n_cells": n_cells,
        "cell_s": cell_s,
        "cpu_h": (n_cells * cell_s + other_s) / 3600,
        "hours": before_h + _dealt(n_cells, cell_s, slots) / 3600,
        "hours_by_leaf": before_h + _dealt(n_leaves, by_leaf_s, slots) / 3600,
        "task_gib": task / GIB,
        "exchange_gb": job.rows * sizes.row_nbytes / 1e9,
        "n_blocks": exchange.n_blocks,
        "n_leaves": n_leaves,
        "requests": exchange.requests,
        "paper_h": job.paper_h,
    }


def cell_seconds(journal: Journal, search: str, m: float, share: float = 1.0) -> float:
    """Return the CPU seconds of one cell of m rows of 631 features, 20 x 20 candidates, 5 folds."""
    whole = _record(journal, part="cells", method=f"daskls, {search}", rows=20_000)
    n_cells = whole["cells"]
    m_0 = math.sqrt(whole["sum_m2"] / n_cells)
    train_s = whole["fit_cpu_s"] - _regroup_s(journal) * whole["rows"]
    laws, own = _laws(journal, 1.0), _laws(journal, share)
    solves_s = max(train_s / n_cells - _matrices_s(laws, m_0, search), 0.0)
    solves_s *= (m / m_0) ** laws["solve_s"][1]
    dearer = _at(own["solve_s"], m) / _at(laws["solve_s"], m)
    return _matrices_s(own, m, search) + dearer * solves_s


def _matrices_s(laws: Laws, m: float, search: str) -> float:
    """Return the seconds of a cell's base and of all widths: refined, 10 of 20 and 3 more."""
    return _at(laws["begin_s"], m) + (20 if search == "full" else 13) * _at(laws["move_s"], m)


def _laws(journal: Journal, share: float) -> Laws:
    """Return level and power of each part's seconds in a cell's rows."""
    found = journal.ordered("rows", part="one cell", share=share)
    if len(found) < 2:
        raise SystemExit(f"Measure one cell of several sizes with share={share} first.")
    laws = {}
    for part in ("begin_s", "move_s", "solve_s"):
        logs = np.log([[r["rows"], r[part]] for r in found])
        power, level = np.polyfit(logs[:, 0], logs[:, 1], 1)
        laws[part] = float(math.exp(level)), float(power)
    return laws


def _at(law: tuple[float, float], rows: float) -> float:
    return law[0] * rows ** law[1]


def _record(journal: Journal, **key: Any) -> Record:
    found = journal.find(**key)
    if found is None or "failure" in found:
        raise SystemExit(f"Measure {key} first: the projection is made of it.")
    return found


def _fill(journal: Journal, search: str) -> float:
    """Return how full cells are: their rows, as squares count them, over their bound."""
    whole = _record(journal, part="cells", method=f"daskls, {search}", rows=20_000)
    return float(whole["sum_m2"] / whole["rows"] / 5000)


def _regroup_s(journal: Journal) -> float:
    """Return the seconds of a row before it is trained: sampled, assigned, written and read."""
    whole = _record(journal, part="cells", method="daskls, refine", rows=20_000)
    return float((whole["stages"]["sample"] + whole["stages"]["regroup"]) / whole["rows"])


def _dealt(n_tasks: int, task_s: float, slots: int) -> float:
    """Return when the last slot ends, of equal tasks."""
    return math.ceil(n_tasks / slots) * task_s


def projected(journal: Journal) -> list[Record]:
    """Return the projections that were made, in the order of the jobs."""
    return [r for r in journal.latest("part", "job") if r["part"] == "projection"]


def draw_projection(journal: Journal) -> Figure:
    """Draw hours by the size of cells beside the paper's, and what one cell takes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    found = [r for r in projected(journal) if r["paper_h"]]
    if not found:
        # Nothing to project from yet.
        return figure
    size = [r["cell_size"] for r in found]
    left.plot(size, [r["paper_h"] for r in found], "s-", color="C7", label="the paper, measured")
    left.plot(size, [r["hours"] for r in found], "o-", label="projected, a task a cell")
    left.plot(size, [r["hours_by_leaf"] for r in found], "o:", label="projected, a task a leaf")
    told: tuple[int, int] | None = None
    for r in found:
        if told != (told := (r["machines"], r["slots"])):
            text = f"{r['machines']} machines,\n{r['slots']} slots"
            below = {"xytext": (8, -10), "textcoords": "offset points", "va": "top", "ha": "center"}
            left.annotate(text, (r["cell_size"], r["hours"]), fontsize=7, **below)
    left.set(title="32M rows x 631 features", xlabel="cells of up to ... rows", ylabel="hours")
    left.set(xscale="log", yscale="log")
    left.margins(x=0.12, y=0.18)
    left.set_xticks(size, [f"{n:,}" for n in size], fontsize=8)
    left.xaxis.set_minor_formatter("")
    plain_log(left.yaxis)
    left.legend(fontsize=8)
    rows = np.geomspace(4000, 100_000, 50)
    for number, search in enumerate(("full", "refine")):
        seconds = [cell_seconds(journal, search, m) for m in rows]
        right.plot(rows, seconds, color=f"C{number}", label=f"projected, {search}")
        whole = _record(journal, part="cells", method=f"daskls, {search}", rows=20_000)
        m_0 = math.sqrt(whole["sum_m2"] / whole["cells"])
        right.plot([m_0], [whole["fit_cpu_s"] / whole["cells"]], "o", color=f"C{number}",
                   label=f"measured, {search}")  # fmt: skip
    right.axvspan(5000, 20_000, color="C7", alpha=0.15, label="one fold measured")
    right.set(title="One cell, 20 x 20 candidates, 5 folds", xlabel="rows", ylabel="CPU seconds")
    right.set(xscale="log", yscale="log")
    right.xaxis.set_major_formatter("{x:,.0f}")
    plain_log(right.yaxis)
    right.legend(fontsize=8)
    figure.tight_layout()
    return figure
