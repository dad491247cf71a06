"""The peak memory of this process and its children, each page that they share counted once."""

import threading
import time
from types import TracebackType
from typing import Self

import psutil

__all__ = ["PeakMemory", "tree_nbytes"]

MEASURE_INTERVAL_S = 0.2


def tree_nbytes() -> int:
    """Return the sum of the PSS of this process and its children; of the RSS where there is none.

    The proportional set size divides a shared page by the processes that share it, so that the
    sum is what all of them hold together.
    """
    me = psutil.Process()
    return sum(_nbytes(process) for process in [me, *me.children(recursive=True)])


def _nbytes(process: psutil.Process) -> int:
    """Return one process's share; 0 if it has just ended."""
    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.rss))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0


class PeakMemory:
    """Samples `tree_nbytes` while the context lasts.

    Attributes
    ----------
    start_nbytes, peak_nbytes : int. At the beginning, and the most that was seen.
    sampling_cpu_s : float. What the sampling itself took so far.
    """

    def __enter__(self) -> Self:
        self.start_nbytes = self.peak_nbytes = tree_nbytes()
        self.sampling_cpu_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="daskls-memory", daemon=True)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._stopped.wait(MEASURE_INTERVAL_S):
            self.peak_nbytes = max(self.peak_nbytes, tree_nbytes())
            self.sampling_cpu_s = time.thread_time()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
