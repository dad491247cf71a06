"""The pace of pieces of work: each is done once or twice on a worker, and timed there.

Rows are drawn anew, of the fit's width and classes: nothing of the data is read.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from daskls.plan.demand import Paces, Work
from daskls.records import Reals, SolverSpec, Targets
from daskls.registry import load_object
from daskls.run.blas import undisturbed
from daskls.run.compute import compute_each
from daskls.run.contract import Method

__all__ = ["Setting", "measure_paces"]

# Sizes rise from the least to that of the fit, unless a piece takes enough seconds: by this factor
# while it takes next to none, else by two, as its time may go by the cube.
LEAST_SIZE, FACTOR, NEXT_TO_NONE_S, ENOUGH_S = 250, 4, 5e-3, 0.15
# The least of so many times, of what is short: others work beside it.
SHORT_S, N_TIMES = 0.05, 3
# Features that targets depend on, and the share of rows with another class.
MOST_USED, NOISE = 8, 0.1
# Of the rows that are timed: no fit draws from it.
TIMED_SEED = 0


@dataclass(frozen=True)
class Setting:
    """What pieces of work are timed on.

    Attributes
    ----------
    method : Method
    spec : SolverSpec. With what is expected to be chosen before space is cut.
    n_features : int
    dtype : str. Of features.
    n_classes : int. Classes, or the numbers of a row's target.
    n_leaves : int. Of one partition.
    cell_size : int
    leaf_rows : int
    n_asked : int. Rows of a cell whose held-out values are wanted.
    """

    method: Method
    spec: SolverSpec
    n_features: int
    dtype: str
    n_classes: int
    n_leaves: int
    cell_size: int
    leaf_rows: int
    n_asked: int = 0

    def draw(self, n_rows: int) -> tuple[Reals, Targets]:
        """Return rows, and what they are to be answered with: noisy functions of them."""
        return _drawn(self, n_rows)


@lru_cache(maxsize=2)
def _drawn(setting: Setting, n_rows: int) -> tuple[Reals, Targets]:
    rng = np.random.default_rng(TIMED_SEED)
    X = rng.standard_normal((n_rows, setting.n_features), np.float32)
    few = X[:, :MOST_USED]
    values = np.sin(2.0 * few) @ rng.standard_normal((few.shape[1], setting.n_classes))
    if setting.spec.target == "numbers":
        noisy = values + NOISE * rng.standard_normal(values.shape)
        return X.astype(setting.dtype), noisy / max(float(noisy.std()), NOISE)
    codes = values.argmax(axis=1)
    other = rng.random(n_rows) < NOISE
    codes[other] = rng.integers(setting.n_classes, size=int(other.sum()))
    return X.astype(setting.dtype), codes.astype(np.int32)


def measure_paces(
    works: Iterable[Work], setting: Setting, client: Any = None
) -> tuple[Paces, float]:
    """Time a piece of each kind of work on one worker.

    Parameters
    ----------
    works : iterable of Work
    setting : Setting
    client : distributed client, or None for the current scheduler

    Returns
    -------
    paces : Paces. Sizes and CPU seconds.
    busy : float, >= 1. Seconds that passed for each of the processor's: what other work beside it
        takes away.
    """
    largest: dict[str, int] = {}
    for work in works:
        largest[work.what] = max(largest.get(work.what, 1), work.size)
    ((paces, busy),) = compute_each(time_works, [(largest, setting)], client)
    return paces, busy


@undisturbed
def time_works(largest: dict[str, int], setting: Setting) -> tuple[Paces, float]:
    """Time a piece of each kind of work, up to the largest; and tell how busy the machine is."""
    passed, own = time.perf_counter(), time.thread_time()
    try:
        paces = {what: _timed(what, size, setting) for what, size in largest.items()}
    finally:
        _drawn.cache_clear()
    passed, own = time.perf_counter() - passed, time.thread_time() - own
    return paces, max(passed / max(own, SHORT_S), 1.0)


def _timed(what: str, largest: int, setting: Setting) -> list[tuple[int, float]]:
    time_piece = load_object(what)
    size = min(LEAST_SIZE, largest)
    # What is compiled or loaded first is no part of a piece.
    time_piece(size, setting)
    points: list[tuple[int, float]] = []
    while True:
        seconds = time_piece(size, setting)
        for _ in range(N_TIMES - 1 if seconds < SHORT_S else 0):
            seconds = min(seconds, time_piece(size, setting))
        points.append((size, seconds))
        if size == largest or seconds > ENOUGH_S:
            return points
        size = min((FACTOR if seconds < NEXT_TO_NONE_S else 2) * size, largest)
