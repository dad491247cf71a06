"""The paper's largest run, ECBDL'14, scaled: 631 features, 2 % positive rows, a 20 x 20 grid.

Section 5.1 of the spatial decomposition paper trains 32 million rows on 11 machines in 32.2 hours.
Here a set of the same features and the same rare class is drawn, `Rare`: cells of 5000 rows
are trained whole, and one cell of up to 20,000 rows on one fold, with and without its matrix in
memory. What one row, one byte and one task cost is then carried over to the paper's sizes.
"""

import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benchmarks.peers import Data
from benchmarks.suite import Experiment, Journal, Record, Run, fit_predict, table
from benchmarks.suite.apart import run_peer
from benchmarks.suite.data import labels, written
from benchmarks.suite.measure import MIB, nbytes_of
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.projection import JOBS, draw_projection, project, projected
from benchmarks.suite.runner import RESULTS
from benchmarks.suite.sets import RARE_BEST_PRODUCT, Rare
from daskls.memory import TaskSizes, grow_nbytes
from daskls.plan.bundles import cell_nbytes, group_nbytes, plan_sample
from daskls.records import SolverSpec
from daskls.solvers.grid import assign_folds, resolve_grid
from daskls.solvers.hinge.width import CachedPairSolver, HingePairSolver
from daskls.solvers.rows import LocalRows
from daskls.solvers.width import ClassPairs, WarmStart

N_FEATURES, CELL_SIZE, N_GRID, N_TEST = 631, 5000, 20, 20_000
# The paper's weight of the positive class.
WEIGHTS = {-1: 0.013, 1: 0.987}
SEARCHES = {"daskls, full": "full", "daskls, refine": "refine"}
PEER = "liquidSVM"
# Of one cell: its rows, and ``cache_size`` in units of its kernel matrix. 1: none is given, and the
# matrix is held twice, its distances and its values; 1.1: its values alone.
LARGE = [(n, share) for n in (5000, 10_000, 20_000) for share in (1.0, 1.1, 0.25)]
LARGE_GRID = 3
HELD = {1.0: "none given: 2 K", 1.1: "1.1 K", 0.25: "K / 4"}
LIMIT_S = 5400.0
# The peer is measured on the smaller set alone.
MOST_PEER = 20_000
CELLS = """
method = method | rows = rows:, | cells = cells
fit, CPU s = r.get('failure') or f'{fit_cpu_s:,.1f}'
CPU ms a row = 1000 * fit_cpu_s / rows:.1f | solves = solves:,
predict {N_TEST:,} rows, CPU s = predict_cpu_s:.1f
peak above before, MiB = peak_mib - before_mib:,.0f | planned, MiB = planned_mib:,.0f
TPR = recalls[1]:.3f | TNR = recalls[0]:.3f | TPR x TNR = recalls[0] * recalls[1]:.3f
"""
ONE_CELL = """
rows of the cell = rows:, | cache_size = HELD[share]
before all widths, CPU s = begin_s:.1f | a width, CPU s = move_s:.2f | a solve, CPU s = solve_s:.3f
steps a solve = steps:,.0f | rows of K computed = computed:, | above limit = at_limit
peak above before, MiB = peak_mib - before_mib:,.0f | planned, MiB = planned_mib:,.0f
largest difference of a decision value = difference:.1e | decided otherwise, % = 100 * turned:.2f
"""
PROJECTED = """
run = name | rows x features = f'{rows:,} x {d}' | cells of up to = cell_size:,
candidates = f'{n_grid} x {n_grid}, {search}' | cache_size = HELD[share]
machines = machines | slots = slots | largest task, GiB = task_gib:,.2g | cells = n_cells:,
CPU s a cell = digits(cell_s) | CPU hours = cpu_h:,.0f | hours, a task a cell = digits(hours)
hours, a task a leaf = digits(hours_by_leaf) | the paper, hours = r['paper_h'] or ''
exchange, GB = exchange_gb:,.0f | blocks = n_blocks:, | leaves = n_leaves:,
writes + reads = requests:,
"""
TEXT = (
    "{machine}\n\n`Rare`: 631 float32 features that follow eight hidden ones, 2 % of the rows "
    f"positive; the best possible TPR x TNR is {RARE_BEST_PRODUCT:.3f}. Hinge loss with the "
    "paper's weight of the positive class, 0.987; 20 x 20 candidates scaled to each cell, 5 folds, "
    'chosen by TPR x TNR (`scoring="tpr_x_tnr"`; liquidSVM chooses by its own weighted loss); one '
    "process of one thread, on a machine that others worked on: CPU seconds count."
)
HOW = (
    "\nOne cell's base, widths and solves were measured at 5000, 10,000 and 20,000 rows, and grow "
    "by a power of its rows; the level of the solves is that of the cells fitted whole, of 4000 "
    "rows, whose solves start from each other. Cells are as full as there. Hours are of equal "
    "tasks dealt to slots: as many a machine as it has cores, and as 90 % of its memory holds; the "
    "paper's machines have 12 cores of 2013 and 256 GB, ours was one core of today. A task a leaf: "
    "the leaves are those that the plan cuts, of several cells each. Writes and reads "
    "are those of the plan, at the most. Neither the network nor the disks of a cluster are in "
    "it, nor was the paper's set at hand: other rows take other numbers of steps. The row of a "
    "billion rows is of ten million rows of noisy28 with 10 x 10 candidates "
    "([ten million](ten_million.md)).\n"
)


# Cells, whole


def fit_cells(run: Run, method: str, rows: int) -> Record:
    """Fit cells of a made set, and predict rows that were held out."""
    train, test = (written("rare", run.folder, n, i) for i, n in enumerate((rows, N_TEST)))
    if method == PEER:
        return fit_peer(run, train, test)
    store = run.folder / f"{method}-{rows}.model"
    model = PaperSVC(
        CELL_SIZE, n_grid=N_GRID, search=SEARCHES[method], scoring="tpr_x_tnr",
        class_weight=WEIGHTS, random_state=0, store=store,
    )  # fmt: skip
    predicted, cost = fit_predict(model, train, test / "X", peak_of_fit=True)
    report, y = model.fit_report_, labels(test)
    leaf_rows = max(int(report.n_rows[report.leaf == leaf].sum()) for leaf in set(report.leaf))
    return {
        **cost,
        "recalls": [float(np.mean(predicted[y == c] == c)) for c in (-1, 1)],
        "cells": len(report),
        "solves": int(report.n_trained.sum()),
        "steps": int(report.n_steps.sum()),
        "sum_m2": float((report.n_rows.astype(float) ** 2).sum()),
        "at_limit": int(report.n_at_limit.sum()),
        "support": int(report.n_support.sum()),
        "stages": model.stage_s_,
        "planned_mib": planned_nbytes(model._request().spec, rows, leaf_rows) / MIB,
        "model_mib": nbytes_of(store) / MIB,
    }


def fit_peer(run: Run, train: Path, test: Path) -> Record:
    """Fit liquidSVM with the same weight, cells and grid; its cells overlap in no row."""
    X, X_test = (zarr.open_array(path / "X")[:] for path in (train, test))
    Data(X, labels(train), X_test, labels(test)).save(run.folder / "peer")
    params = {
        "voronoi": f"6 {CELL_SIZE}", "weights": WEIGHTS[1],
        "gamma_steps": N_GRID, "lambda_steps": N_GRID,
    }  # fmt: skip
    found = run_peer(PEER, run.folder / "peer", params, LIMIT_S)
    return {**found, "fit_cpu_s": found["train_cpu_s"]} if "train_cpu_s" in found else found


def planned_nbytes(spec: SolverSpec, rows: int, leaf_rows: int) -> int:
    """Return the projected bytes of the largest part of a fit: the client's sample, or a task."""
    plan = plan_sample(rows, N_FEATURES, CELL_SIZE)
    sample = 2 * plan.n_sample * N_FEATURES * 4
    sample += grow_nbytes(plan.n_sample, N_FEATURES, plan.max_sampled_rows)
    return max(sample, group_nbytes(sizes_of(spec, CELL_SIZE), leaf_rows, rows))


def sizes_of(spec: SolverSpec, cell_size: int) -> TaskSizes:
    return TaskSizes(N_FEATURES, 4, 2, cell_size, spec)


# One large cell


def fit_one_fold(run: Run, rows: int, share: float) -> Record:
    """Train 3 x 3 candidates of one cell without one fold, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    values = run.folder / f"{rows}-{share}.npy"
    child = context.Process(target=_one_fold, args=(sender, rows, share, values))
    child.start()
    sender.close()
    found: Record = receiver.recv()
    child.join()
    whole = run.folder / f"{rows}-1.0.npy"
    if share != 1 and whole.exists():
        here, there = np.load(values), np.load(whole)
        found["difference"] = float(np.abs(here - there).max())
        found["turned"] = float(np.mean((here > 0) != (there > 0)))
    return found


def _one_fold(sender: Any, rows: int, share: float, values: Path) -> None:
    """Measure the parts of a search, and keep the decision values of the held-out rows."""
    from daskls.cli.demo import watch_memory

    X, y = Rare().rows(0, rows, 0)
    cache = None if share == 1 else share * rows * rows * 4 / MIB
    spec = SolverSpec(n_grid=(LARGE_GRID, LARGE_GRID), cache_size=cache, scoring="tpr_x_tnr")
    # Compiled before it is measured.
    _searched(X[:400], y[:400], _small(spec))
    with watch_memory() as seen:
        found, kept = _searched(X, y, spec)
    np.save(values, kept)
    planned = cell_nbytes(sizes_of(spec, rows), rows) / MIB
    peak, before = max(seen)[0] / MIB, seen[0][0] / MIB
    sender.send({**found, "peak_mib": peak, "before_mib": before, "planned_mib": planned})


def _small(spec: SolverSpec) -> SolverSpec:
    from dataclasses import replace

    return spec if spec.cache_size is None else replace(spec, cache_size=0.1)


def _searched(X: np.ndarray, y: np.ndarray, spec: SolverSpec) -> tuple[Record, np.ndarray]:
    """Train one fold's line at each width; return CPU seconds by part, and decision values."""
    clock, whole = time.process_time, spec.cache_size is None
    weights = np.where(y == 1, WEIGHTS[1], WEIGHTS[-1])
    started = clock()
    own = LocalRows.of(X, (y == 1).astype(np.int32), weights, spec)
    _, cell = own.data(assign_folds(own.present, spec.cv, (0,)), whole=whole)
    grid = own.in_units(resolve_grid(spec, own.radius, *X.shape))
    pairs = ClassPairs.of(cell, spec.cv)
    width = (HingePairSolver if whole else CachedPairSolver)(pairs, spec, [0])
    prepared, moved, solved, kept = clock(), 0.0, 0.0, []
    seeds = WarmStart(np.zeros((1, len(pairs.rows)), np.float32), 0.0)
    for gamma in grid.gammas:
        at = clock()
        width.move(gamma, seeds)
        moved, at = moved + clock() - at, clock()
        line = width.solve(0, np.array(grid.costs), spec.tol)
        solved += clock() - at
        kept.append(_held_out_values(width, line, cell.folds == 0))
    n_widths, counts = len(grid.gammas), width.counts
    return {
        "begin_s": prepared - started,
        "move_s": moved / n_widths,
        "solve_s": solved / counts.n_trained,
        "steps": counts.n_steps / counts.n_trained,
        "at_limit": counts.n_at_limit,
        "computed": 0 if whole else width.rows.n_computed,
    }, np.concatenate(kept)


def _held_out_values(width: Any, line: Any, out: np.ndarray) -> np.ndarray:
    """Return the held-out rows' decision values at each C."""
    if isinstance(width, CachedPairSolver):
        return width.values[:, 0].copy()
    return width.pairs.values(width.K, line.betas, line.offsets, slice(0, int(out.sum())))


# The page


def keys(run: Run) -> Iterator[Record]:
    for rows in run.settings["rows"]:
        for method in (*SEARCHES, PEER) if rows <= MOST_PEER else SEARCHES:
            yield {"part": "cells", "method": method, "rows": rows}
    for rows, share in LARGE:
        yield {"part": "one cell", "rows": rows, "share": share}
    for job, _ in enumerate(JOBS):
        yield {"part": "projection", "job": job}


def measure(run: Run, part: str, **key: Any) -> Record:
    return {"cells": fit_cells, "one cell": fit_one_fold, "projection": projection}[part](
        run, **key
    )


def projection(run: Run, job: int) -> Record:
    """Project a run from what the journals have; it is kept as it was made."""
    rows = Journal(RESULTS / "ten_million.jsonl").find(how="paper", rows=10_000_000)
    return {"name": JOBS[job].name, **project(run.journal, JOBS[job], rows or {})}


def report(journal: Journal) -> str:
    parts = [
        (
            "Cells of 5000 rows",
            CELLS.replace("{N_TEST:,}", f"{N_TEST:,}"),
            records(journal, "cells"),
        ),
        ("One cell, 3 x 3 candidates, one fold", ONE_CELL, records(journal, "one cell")),
        ("At the paper's sizes, projected", PROJECTED, projected(journal)),
    ]
    tables = [
        f"\n\n## {title}\n\n{table(columns, own, HELD=HELD, digits=digits)}"
        for title, columns, own in parts
    ]
    about = TEXT.replace("{machine}", journal.machine)
    return f"# The paper's largest run\n\n{about}{''.join(tables)}\n{HOW}\n"


def digits(value: float) -> str:
    """Format a number with two places below 1, and with none from 100 on."""
    return f"{value:,.{2 if value < 1 else 1 if value < 100 else 0}f}"


def records(journal: Journal, part: str) -> list[Record]:
    fields = ("method", "rows") if part == "cells" else ("rows", "share")
    return [r for r in journal.latest("part", *fields) if r["part"] == part]


EXPERIMENT = Experiment(
    keys,
    measure,
    report,
    draw_projection,
    warm=lambda: [PaperSVC(100, n_grid=3, scoring="tpr_x_tnr")],
    settings={"rows": [20_000, 100_000]},
)
