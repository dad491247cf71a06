"""What the live view costs: the same fit with and without it, in pairs, and the parts of it alone.

Pairs differ by what else the machine does, which is more than the view takes; so the processor
time of its own code is measured, too: in the client its thread, in the scheduler what it does with
messages and for the page. The page is open in a process of its own, as in a browser, or not.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from statistics import fmean, stdev
from typing import Any
from unittest import mock

import dask
import psutil

from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.measure import cpu_seconds
from benchmarks.suite.places import cluster, warm_up
from daskls import VoronoiSVC
from daskls.datasets import write
from daskls.live import board
from daskls.live import fit as live_fit
from daskls.live import page as live_page

CELL_SIZE = 1000
# What is timed where the client and the scheduler are one process.
PARTS = (
    (live_fit.LiveFit, "_watch"),
    (live_fit.LiveFit, "__exit__"),
    (live_fit.LiveFit, "on_progress"),
    (board.Board, "take"),
    (live_page, "add_page"),
    (live_page.PageView, "update"),
)
WATCHER = """
import sys, time
from bokeh.client import pull_session
while True:
    try:
        session = pull_session(url=sys.argv[1])
        while session.connected:
            session.force_roundtrip()
            time.sleep(1)
    except OSError:
        time.sleep(0.3)
"""
COLUMNS = """
page = page | pairs = pairs | CPU s of a fit = cpu_s:.1f | more with it, % = more:.2f
its standard error = error:.2f | of its own code, % = own:.2f
"""


def keys(run: Run) -> Iterator[Record]:
    for pair in range(run.settings["pairs"]):
        for shown in ("closed", "open"):
            yield {"pair": pair, "page": shown, "rows": run.settings["rows"]}


def measure(this: Run, pair: int, page: str, rows: int) -> Record:
    train = this.folder / f"{rows}.zarr"
    if not train.exists():
        write("two_spirals", str(train), rows)
    found: Record = {}
    with cluster(1, "6GiB") as running:
        warm_up(VoronoiSVC(cell_size=100))
        link = f"http://127.0.0.1:{running.scheduler.http_server.port}/daskls"
        with watching(link) if page == "open" else nullcontext() as watcher:
            # Neither is always the first one.
            for live in (True, False) if pair % 2 else (False, True):
                own: list[float] = []
                with dask.config.set({"daskls.live": live}), timed(own):
                    before = cpu_seconds() - seconds_of(watcher)
                    VoronoiSVC(CELL_SIZE, random_state=0).fit(str(train))
                    spent = cpu_seconds() - seconds_of(watcher) - before
                found["with_s" if live else "without_s"] = spent
                found.update({"own_s": sum(own)} if live else {})
    return found


@contextmanager
def watching(link: str) -> Iterator[psutil.Process]:
    """Hold the page open in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", WATCHER, link])
    try:
        time.sleep(3)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def seconds_of(process: psutil.Process | None) -> float:
    """Return the processor time of a process."""
    return 0.0 if process is None else float(sum(process.cpu_times()[:2]))


@contextmanager
def timed(spent: list[float]) -> Iterator[None]:
    """Note the processor time of every call of the view's own code in this process."""
    with ExitStack() as stack:
        for owner, name in PARTS:
            own = note(getattr(owner, name), spent)
            stack.enter_context(mock.patch.object(owner, name, own))
        yield


def note(function: Any, spent: list[float]) -> Any:
    """Return a function that notes what each call took."""

    def noting(*args: Any, **kwargs: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent.append(time.thread_time() - began)

    return noting


def report(journal: Journal) -> str:
    records, rows = journal.latest("pair", "page", "rows"), []
    for shown in ("closed", "open"):
        own = [r for r in records if r["page"] == shown]
        if len(own) < 2:
            continue
        more = [100 * (r["with_s"] / r["without_s"] - 1) for r in own]
        rows.append(
            {
                "page": shown,
                "pairs": len(own),
                "cpu_s": fmean(r["without_s"] for r in own),
                "more": fmean(more),
                "error": stdev(more) / len(more) ** 0.5,
                "own": fmean(100 * r["own_s"] / r["without_s"] for r in own),
            }
        )
    text = "# What the live view costs\n\n"
    n_rows = f"{records[0]['rows']:,}" if records else "no"
    text += f"{journal.machine}; {n_rows} rows of two spirals, one worker of one thread, cells of "
    text += (
        f"{CELL_SIZE} rows, the whole grid; processor seconds of client, scheduler and worker\n\n"
    )
    return text + table(COLUMNS, rows)


EXPERIMENT = Experiment(
    keys, measure, report, place=nullcontext, settings={"pairs": 10, "rows": 200_000}
)
