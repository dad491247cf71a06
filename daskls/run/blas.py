"""Limits BLAS to one thread per process while tasks run, as the bits of a product depend on it.

threadpoolctl finds the libraries; their own functions set the number of threads. The setters of
threadpoolctl are unreliable for OpenBLAS: since 3.8 only the first thread that ever set a limit may
set another, and calls from all other threads silently do nothing.
"""

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from daskls.errors import DasklsError
from daskls.store.caches import fork_safe

P = ParamSpec("P")
R = TypeVar("R")
# Affixes of OpenBLAS's function names in the builds of Linux distributions, NumPy and SciPy.
PREFIXES, SUFFIXES = ("", "scipy_"), ("", "64_", "_64")
OPENBLAS = "openblas_get_num_threads", "openblas_set_num_threads"
# For builds whose threads OpenMP counts: its functions are found through the linked library.
OPENMP = "omp_get_max_threads", "omp_set_num_threads"
# How often disturbed work is tried in all. A program that sets limits now and then disturbs it
# once; one that sets them all the time would never let it end.
MAX_TRIES = 5


class DisturbedError(DasklsError):
    """Another thread changed the number of BLAS threads while work relied on the limit."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while the body runs; any thread may enter.

    The limit belongs to the process: the first thread that enters sets it, and the last that leaves
    lifts it. One thread keeps the bits of products the same; the tasks are the parallelism.

    Raises
    ------
    DisturbedError : another thread set another number meanwhile, so results of the body may
        have other bits. `undisturbed` repeats the work.
    DasklsError : a library ignores the limit
    """
    own = _limit.enter()
    try:
        yield
    except BaseException:
        # The body's own error propagates, whether or not the limit held.
        _limit.leave(own)
        raise
    lifted = _limit.leave(own)
    if lifted:
        raise DisturbedError(
            f"Another thread of this process set the number of threads of {lifted[0]} while a task "
            f"ran that needs one thread for the same bits, {MAX_TRIES} times in a row. Do not "
            "enter or leave threadpool_limits in other threads meanwhile, or use a cluster of "
            "processes; then call again: what is finished is kept."
        )


def undisturbed(task: Callable[P, R]) -> Callable[P, R]:
    """Decorate a task that uses `one_blas_thread`: it is repeated when it was disturbed.

    The task must not write anything before its limit has held to the end.
    """

    @functools.wraps(task)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(MAX_TRIES - 1):
            try:
                return task(*args, **kwargs)
            except DisturbedError:
                continue
        return task(*args, **kwargs)

    return run


@dataclass(frozen=True, eq=False)
class Library:
    """A BLAS library of this process, and the functions that get and set its number of threads.

    ``is_own`` says that each calling thread has a number of its own, as with OpenMP; else one
    number holds for the process.
    """

    name: str
    get: Callable[[], int | None]
    set: Callable[[int], Any]
    is_own: bool

    @property
    def is_held(self) -> bool:
        """Whether products run on one thread; a library that cannot tell has only one."""
        return self.get() in (1, None)


class _Limit:
    """The limit of this process: its libraries, how many users it has, and the numbers before."""

    def __init__(self) -> None:
        self.lock = fork_safe(threading.Lock())
        self._users = 0
        self._before: dict[Library, int] = {}
        self._libraries: list[Library] = []
        self._n_modules = -1

    def libraries(self) -> list[Library]:
        """Return the loaded libraries."""
        # A new library only comes with a new module, so unchanged modules need no new search.
        if len(sys.modules) != self._n_modules:
            self._n_modules = len(sys.modules)
            known = {library.name: library for library in self._libraries}
            found = map(_library, ThreadpoolController().select(user_api="blas").lib_controllers)
            self._libraries = [known.get(library.name, library) for library in found]
        return self._libraries

    def enter(self) -> dict[Library, int]:
        """Limit every library; return the previous numbers of those that count by thread."""
        with self.lock:
            own: dict[Library, int] = {}
            for library in self.libraries():
                if library.is_held:
                    continue
                # Also if the user set a number while tasks ran: then that is the one to restore.
                before = own if library.is_own else self._before
                before[library] = int(library.get() or 1)
                library.set(1)
                _check_held(library)
            self._users += 1
            return own

    def leave(self, own: dict[Library, int]) -> list[str]:
        """Restore the numbers; return the names of libraries that did not keep the limit."""
        with self.lock:
            lifted = [library.name for library in self.libraries() if not library.is_held]
            self._users -= 1
            given = {**own, **(self._before if self._users == 0 else {})}
            for library, number in given.items():
                # A number that someone else has set meanwhile is kept.
                if library.is_held:
                    library.set(number)
            if self._users == 0:
                self._before = {}
            return lifted


_limit = _Limit()


def _library(found: Any) -> Library:
    """Wrap what threadpoolctl found; for OpenBLAS with the library's own functions."""
    is_own = getattr(found, "threading_layer", "") == "openmp"
    get, set_ = found.get_num_threads, found.set_num_threads
    if found.internal_api == "openblas":
        get_name, set_name = OPENMP if is_own else OPENBLAS
        get = _symbol(found.dynlib, get_name) or get
        set_ = _symbol(found.dynlib, set_name) or set_
    return Library(str(found.filepath), get, set_, is_own)


def _symbol(library: Any, name: str) -> Any:
    """Return a function of a library under any of the names that builds give it, or None."""
    for prefix, suffix in product(PREFIXES, SUFFIXES):
        found = getattr(library, f"{prefix}{name}{suffix}", None)
        if found is not None:
            return found
    return None


def _check_held(library: Library) -> None:
    """Raise DasklsError if the library ignored the limit that was just set."""
    if not library.is_held:
        raise DasklsError(
            f"The BLAS library {library.name} still uses {library.get()} threads after it was "
            "set to 1, so the same seed would not give the same model. Set "
            "OPENBLAS_NUM_THREADS, MKL_NUM_THREADS and OMP_NUM_THREADS to 1 before Python starts."
        )
