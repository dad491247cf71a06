"""What a run cost: CPU seconds and peak memory of this process and all its children."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version

import psutil

from daskls.cli.memory import PeakMemory

MIB = 1 << 20


@dataclass
class Cost:
    """Seconds and bytes; ``peak_nbytes`` is the largest sum of PSS seen over the processes."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_nbytes: int = 0
    baseline_nbytes: int = 0

    def __str__(self) -> str:
        return (
            f"wall {self.wall_s:.1f} s, CPU {self.cpu_s:.1f} s, peak {self.peak_nbytes / MIB:.0f} "
            f"MiB (before: {self.baseline_nbytes / MIB:.0f} MiB)"
        )


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
    with PeakMemory() as memory:
        wall, cpu = time.perf_counter(), cpu_seconds()
        try:
            yield cost
        finally:
            cost.wall_s = time.perf_counter() - wall
            cost.cpu_s = cpu_seconds() - cpu
    # Reading the processes' maps takes 8 % of a core, which is none of the work's.
    cost.cpu_s -= memory.sampling_cpu_s
    cost.peak_nbytes, cost.baseline_nbytes = memory.peak_nbytes, memory.start_nbytes


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
