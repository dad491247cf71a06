"""How well 8, 32 and 200 slots share the cells of a fit: simulated from measured times of cells.

The fit runs in one thread of this process, so that no cell's time is another's. Its leaves are then
planned into bundles, and each slot takes the next bundle as soon as it is
free: what a scheduler does that knows no times beforehand. Of the work, only training is
simulated; reading and regrouping are not.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.suite import Experiment, Record, Run, page
from benchmarks.suite.data import written
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.places import alone
from daskls import VoronoiSVC
from daskls.memory import TaskSizes
from daskls.plan.bundles import plan_bundles
from daskls.records import SolverSpec

CELL_SIZE = 2000
HOW = {"paper": PaperSVC, "defaults": VoronoiSVC}
SLOTS = (2, 8, 32, 200)
# Seconds of a bundle beside its cells: opened, read, written, scheduled.
BUNDLE_S = 0.02
COLUMNS = """
rows = rows:, | parameters = how | cells = cells | leaves = leaves | slots = slots
bundles = bundles | largest bundle, of a slot's share = largest:.2f
seconds of all cells = cells_s:.1f | wall s = wall_s:.2f | efficiency = efficiency:.2f
"""
TEXT = (
    "{machine}\n\nnoisy28, 28 float32 features, cells of 2000. Times of cells are measured in one "
    "thread; the slots are simulated: each takes the next bundle, the largest first. A bundle "
    f"costs {1000 * BUNDLE_S:.0f} ms beside its cells. Efficiency is the work over slots times "
    "wall seconds, reading and regrouping left out."
)


def keys(run: Run) -> Iterator[Record]:
    for how in HOW:
        for rows in run.settings["rows"]:
            yield from ({"rows": rows, "how": how, "slots": slots} for slots in SLOTS)


def measure(run: Run, rows: int, how: str, slots: int) -> Record:
    """Fit, once for all numbers of slots, and simulate."""
    report = fitted(run, rows, how)
    n_leaves = int(report["leaf"].max()) + 1
    seconds = np.bincount(report["leaf"], report["seconds"], n_leaves)
    leaf_rows = np.bincount(report["leaf"], report["n_rows"], n_leaves).astype(int).tolist()
    sizes = TaskSizes(28, 4, 2, CELL_SIZE, SolverSpec())
    bundles = sorted(plan_bundles(sizes, leaf_rows), key=lambda bundle: -bundle.work)
    times = [seconds[b.first_leaf : b.last_leaf + 1].sum() + BUNDLE_S for b in bundles]
    wall = end_of(times, slots)
    share = sum(times) / slots
    return {
        **{"cells": len(report), "leaves": n_leaves, "bundles": len(times), "wall_s": wall},
        **{"cells_s": float(seconds.sum()), "largest": max(times) / share},
        "efficiency": share / wall,
    }


def fitted(run: Run, rows: int, how: str) -> Any:
    """Return the table of cells of a fit; kept in a file, as the slots share it."""
    kept = run.folder / f"slots-{rows}-{how}.npy"
    if not kept.exists():
        train = written("noisy28", run.folder, rows, 0)
        np.save(kept, np.asarray(HOW[how](CELL_SIZE, random_state=0).fit(train).fit_report_))
    return np.load(kept)


def end_of(times: Sequence[float], n_slots: int) -> float:
    """Return when the last slot ends, each taking the next task as soon as it is free.

    >>> end_of([3.0, 2.0, 2.0, 1.0], 2)
    4.0
    """
    free = [0.0] * n_slots
    for seconds in times:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


EXPERIMENT = Experiment(
    keys,
    measure,
    page("Slots, simulated", TEXT, COLUMNS, "rows how slots"),
    place=alone,
    settings={"rows": [1_000_000]},
)
