"""Caches that a process keeps for its next task, and their release."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_droppers: list[Callable[[], object]] = []
_lock = threading.Lock()


def kept(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return `functools.lru_cache` of this size, whose content `drop_caches` drops."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = lru_cache(maxsize)(function)
        on_drop(cached.cache_clear)
        return cached  # type: ignore[return-value]

    return decorate


def on_drop(drop: Callable[[], object]) -> None:
    """Let `drop_caches` call a function too."""
    with _lock:
        _droppers.append(drop)


def drop_caches() -> None:
    """Drop cached models, partitions and rows; objects still in use stay valid."""
    for drop in _droppers:
        drop()


class SizedCache:
    """Keeps what was used last, up to so many bytes; threads may share it."""

    def __init__(self, nbytes: int) -> None:
        self._left = nbytes
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any:
        """Return what was put, or None."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def put(self, key: Hashable, value: Any, nbytes: int) -> None:
        """Keep a value of so many bytes, in the place of what was not used for longest."""
        with self._lock:
            # Another thread may have put it; what would not fit an empty cache pushes nothing out.
            if key in self._held or nbytes > self._left + sum(n for _, n in self._held.values()):
                return
            while nbytes > self._left:
                self._left += self._held.popitem(last=False)[1][1]
            self._held[key] = value, nbytes
            self._left -= nbytes
