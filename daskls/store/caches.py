"""Caches that a process keeps for its next task, and their release."""

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

__all__ = ["drop_caches", "kept", "on_drop"]

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
