"""Memory that a worker's process holds beside its tasks, and its release."""

import gc
import os
import socket
import sys
from ctypes import CDLL
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import psutil

from daskls.store.caches import drop_caches

__all__ = ["BASELINE_NBYTES", "HeldMemory", "available_nbytes", "give_back", "report_held"]

# What a process holds when its first tasks have loaded all that they need, measured.
BASELINE_NBYTES = 200 << 20
# A process that holds no more than this above it has no garbage worth a look at all its objects,
# which takes as long as some cells of a fit.
SPARED_NBYTES = 32 << 20
# What this process held when it was last asked between tasks.
_at_rest = BASELINE_NBYTES


@dataclass(frozen=True)
class HeldMemory:
    """A worker's report: its process, the memory that it holds, free memory, the modules it loaded.

    Workers that are threads of one process share it, and what it holds.
    """

    process: tuple[str, int]
    nbytes: int
    free_nbytes: int
    has_svc: bool


def report_held(dask_worker: Any = None) -> HeldMemory:
    """Return the memory that a worker's process holds, after it released what it can.

    What its tasks hold at this moment they give back: with some running, it is what the process
    held when none was, as far as is known.
    """
    global _at_rest
    give_back()
    nbytes = _own_nbytes()
    if dask_worker is not None and dask_worker.state.executing_count:
        nbytes = min(nbytes, _at_rest)
    else:
        _at_rest = nbytes
    process = socket.gethostname(), os.getpid()
    return HeldMemory(process, nbytes, available_nbytes(), "sklearn.svm" in sys.modules)


def give_back() -> None:
    """Drop this process's caches, and return free pages to the system."""
    drop_caches()
    _trim()
    if _own_nbytes() > BASELINE_NBYTES + SPARED_NBYTES:
        gc.collect()
        _trim()


def _own_nbytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _trim() -> None:
    """Give pages back to the system that hold nothing."""
    if sys.platform == "linux":
        # Only glibc keeps freed pages, and only it has the function.
        trim = getattr(CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def available_nbytes() -> int:
    """Return the free memory of this machine, or of its container."""
    return int(min(psutil.virtual_memory().available, _machine_nbytes()))


@cache
def _machine_nbytes() -> int:
    """Return what this machine, or its container, has in all: what distributed makes of it.

    Its file is run alone: without a client nothing else of the package is wanted, and to load all
    of it takes as long as some cells of a fit.
    """
    if "distributed" in sys.modules:
        from distributed.system import MEMORY_LIMIT

        return int(MEMORY_LIMIT)
    package = find_spec("distributed")
    assert package is not None, "distributed is a requirement"
    assert package.origin is not None, "distributed is a requirement"
    return int(run_path(str(Path(package.origin).with_name("system.py")))["MEMORY_LIMIT"])
