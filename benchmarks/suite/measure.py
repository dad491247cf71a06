"""What work costs: CPU seconds, wall seconds and peak memory; and on which machine."""

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil

from benchmarks.suite.journal import Record
from daskls.cli.demo import watch_memory

MIB = 1 << 20
Result = TypeVar("Result")


@dataclass
class Cost:
    """Seconds and bytes; ``peak_nbytes`` is the largest sum of PSS seen over the processes."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_nbytes: int = 0
    baseline_nbytes: int = 0


def cpu_seconds() -> float:
    """Return user + system seconds of all living processes and their finished children."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def measured() -> Iterator[Cost]:
    """Yield a `Cost` that is filled in at the end; processes must outlive the body."""
    cost = Cost()
    with watch_memory() as seen:
        wall, cpu = time.perf_counter(), cpu_seconds()
        try:
            yield cost
        finally:
            cost.wall_s = time.perf_counter() - wall
            cost.cpu_s = cpu_seconds() - cpu
    # Reading the processes' maps takes 8 % of a core, which is none of the work's.
    cost.cpu_s -= seen[-1][1]
    cost.peak_nbytes, cost.baseline_nbytes = max(seen)[0], seen[0][0]


def fit_predict(model: Any, train: Path, X: Any, peak_of_fit: bool = False) -> tuple[Any, Record]:
    """Fit the rows of a folder and predict; return labels and what both cost.

    The peak is that of both, or that of the fit alone, as ``peak_of_fit`` says.
    """
    with measured() as fit:
        model.fit(train)
    with measured() as predict:
        found = model.predict(X)
        found = found if isinstance(found, np.ndarray) else found.compute()
    peak = fit.peak_nbytes if peak_of_fit else max(fit.peak_nbytes, predict.peak_nbytes)
    return found, {
        "fit_cpu_s": fit.cpu_s,
        "fit_wall_s": fit.wall_s,
        "predict_cpu_s": predict.cpu_s,
        "peak_mib": peak / MIB,
        "predict_peak_mib": predict.peak_nbytes / MIB,
        "before_mib": fit.baseline_nbytes / MIB,
    }


def cpu_of(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return what a piece of work of this process returns, and its CPU seconds."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def nbytes_of(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def machine() -> str:
    """Describe what a table was measured on, in one line."""
    packages = ("daskls", "dask", "numpy", "numba", "zarr", "scikit-learn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    flags = set()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as info:
            flags = {f for line in info if line.startswith("flags") for f in line.split()}
    vector = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    return (
        f"{os.cpu_count()} cores ({platform.machine()}, {vector}), "
        f"{psutil.virtual_memory().total / 2**30:.0f} GiB; Python {platform.python_version()}, "
        f"{versions}"
    )
