"""What the live view costs: the same fit with and without it, in pairs.

Pairs differ by what else the machine does, by more than the view takes; so client and scheduler,
which are one process here, are counted on their own, too: they do nearly all of it. The page is
open in a process of its own, which is not counted, as in a browser, or not.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from statistics import fmean, stdev

import dask
import psutil

from benchmarks.suite import Experiment, Journal, Record, Run, table
from benchmarks.suite.measure import cpu_seconds
from benchmarks.suite.places import cluster, warm_up
from daskls import VoronoiSVC
from daskls.datasets import write

CELL_SIZE = 1000
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
its standard error = error:.2f | of these in client and scheduler = own:.2f
the standard error of those = own_error:.2f
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
                with dask.config.set({"daskls.live": live}):
                    before, own = cpu_seconds() - seconds_of(watcher), time.process_time()
                    VoronoiSVC(CELL_SIZE, random_state=0).fit(str(train))
                    own = time.process_time() - own
                    spent = cpu_seconds() - seconds_of(watcher) - before
                name = "with" if live else "without"
                found.update({f"{name}_s": spent, f"{name}_own_s": own})
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


def report(journal: Journal) -> str:
    records, rows = journal.latest("pair", "page", "rows"), []
    for shown in ("closed", "open"):
        own = [r for r in records if r["page"] == shown]
        if len(own) < 2:
            continue
        more = [100 * (r["with_s"] / r["without_s"] - 1) for r in own]
        apart = [100 * (r["with_own_s"] - r["without_own_s"]) / r["without_s"] for r in own]
        rows.append(
            {
                "page": shown,
                "pairs": len(own),
                "cpu_s": fmean(r["without_s"] for r in own),
                "more": fmean(more),
                "error": stdev(more) / len(more) ** 0.5,
                "own": fmean(apart),
                "own_error": stdev(apart) / len(apart) ** 0.5,
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
    keys, measure, report, place=nullcontext, settings={"pairs": 8, "rows": 200_000}
)
