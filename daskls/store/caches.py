"""Caches that a process keeps between tasks, and the release of its memory."""

import gc
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from ctypes import CDLL
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

import psutil

P = ParamSpec("P")
R = TypeVar("R")

# Memory of a process once its first tasks have loaded all that they need: 291 to 302 MiB where
# xarray is installed, with which Dask's arrays load pandas; 70 MiB less elsewhere.
BASELINE_NBYTES = 304 << 20
# A process with no more than this above the baseline is not worth a garbage collection, which takes
# as long as some cells of a fit.
SPARED_NBYTES = 32 << 20

_droppers: list[Callable[[], object]] = []


def fork_safe(lock: threading.Lock) -> threading.Lock:
    """Return a lock of the whole process, which a child never inherits held by a lost thread."""
    if hasattr(os, "register_at_fork"):
        release = lock.release
        os.register_at_fork(before=lock.acquire, after_in_parent=release, after_in_child=release)
    return lock


# Of all caches: it is held for moments.
LOCK = fork_safe(threading.Lock())


def cached(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator like `functools.lru_cache`, whose cache `drop_caches` clears."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        wrapped = lru_cache(maxsize)(function)
        on_drop(wrapped.cache_clear)
        return wrapped  # type: ignore[return-value]

    return decorate


def on_drop(drop: Callable[[], object]) -> None:
    """Register a function that `drop_caches` calls."""
    with LOCK:
        _droppers.append(drop)


def drop_caches() -> None:
    """Drop cached models, partitions and rows; objects still in use stay valid."""
    for drop in _droppers:
        drop()


class SizedCache:
    """A least-recently-used cache bounded in bytes; threads may share it."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = self._left = nbytes
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        with LOCK:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, value: Any, nbytes: int) -> None:
        """Store a value of ``nbytes`` bytes, evicting the least recently used ones."""
        with LOCK:
            # Another thread may have put it; a value larger than the whole cache evicts nothing.
            if key in self._entries or nbytes > self._nbytes:
                return
            while nbytes > self._left:
                self._left += self._entries.popitem(last=False)[1][1]
            self._entries[key] = value, nbytes
            self._left -= nbytes

    def clear(self) -> None:
        with LOCK:
            self._entries.clear()
            self._left = self._nbytes


def give_back() -> None:
    """Drop the caches of this process, and return its free pages to the system."""
    drop_caches()
    _trim()
    if resident_nbytes() > BASELINE_NBYTES + SPARED_NBYTES:
        gc.collect()
        _trim()


def resident_nbytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _trim() -> None:
    if sys.platform == "linux":
        # Only glibc has the function; other C libraries do not keep freed pages.
        trim = getattr(CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
