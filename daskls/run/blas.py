"""One BLAS thread a process while tasks run: a product's bits depend on how many share it.

The libraries are found by threadpoolctl and set by their own functions. threadpoolctl's setters
cannot be relied on for OpenBLAS: since 3.8 only the first thread that ever set a limit may set
another, and the calls of all other threads silently do nothing.
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

P = ParamSpec("P")
R = TypeVar("R")

# How OpenBLAS's functions are called in the builds of distributions, NumPy and SciPy.
PREFIXES, SUFFIXES = ("", "scipy_"), ("", "64_", "_64")
OPENBLAS = "openblas_get_num_threads", "openblas_set_num_threads"
# Where OpenMP counts the threads; it is found through the library that is linked to it.
OPENMP = "omp_get_max_threads", "omp_set_num_threads"
# Work that is disturbed is done again this often. A program that sets limits now and then disturbs
# it once; one that sets them all the time would never let it end.
MAX_TRIES = 5


class DisturbedError(DasklsError):
    """Another thread lifted the limit while work relied on it."""


@dataclass(frozen=True, eq=False)
class Library:
    """A BLAS library of this process.

    ``is_own`` says that each thread has a number of its own, as where OpenMP counts them; else the
    number is the process's.
    """

    name: str
    get: Callable[[], int | None]
    set: Callable[[int], Any]
    is_own: bool

    @property
    def is_held(self) -> bool:
        """Whether products run on one thread; a library that cannot say so has no other."""
        return self.get() in (1, None)


def _library(found: Any) -> Library:
    """Return what threadpoolctl found, with the library's own functions where that matters."""
    is_own = getattr(found, "threading_layer", "") == "openmp"
    get, set_ = found.get_num_threads, found.set_num_threads
    if found.internal_api == "openblas":
        get_name, set_name = OPENMP if is_own else OPENBLAS
        get = _symbol(found.dynlib, get_name) or get
        set_ = _symbol(found.dynlib, set_name) or set_
    return Library(str(found.filepath), get, set_, is_own)


def _symbol(library: Any, name: str) -> Any:
    """Return a function of a library under whatever name its build gave it, or None."""
    for prefix, suffix in product(PREFIXES, SUFFIXES):
        found = getattr(library, f"{prefix}{name}{suffix}", None)
        if found is not None:
            return found
    return None


class _Limit:
    """The process's libraries, how many hold them to one thread, and what they had before."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._users = 0
        self._before: dict[Library, int] = {}
        self._libraries: list[Library] = []
        self._n_modules = -1

    def libraries(self) -> list[Library]:
        """Return the loaded libraries; a new one comes with a module that is imported."""
        if len(sys.modules) != self._n_modules:
            self._n_modules = len(sys.modules)
            known = {library.name: library for library in self._libraries}
            found = [_library(c) for c in ThreadpoolController().lib_controllers if _is_blas(c)]
            self._libraries = [known.get(library.name, library) for library in found]
        return self._libraries

    def enter(self) -> dict[Library, int]:
        """Hold every library; return the numbers to give back that are this thread's own."""
        with self.lock:
            own: dict[Library, int] = {}
            for library in self.libraries():
                if library.is_held:
                    continue
                # Also where it was lifted under running tasks: that number is the user's by now.
                before = own if library.is_own else self._before
                before[library] = int(library.get() or 1)
                library.set(1)
                _check_held(library)
            self._users += 1
            return own

    def leave(self, own: dict[Library, int]) -> list[str]:
        """Give numbers back; return the names of the libraries that were not held to the end."""
        with self.lock:
            lifted = [library.name for library in self.libraries() if not library.is_held]
            self._users -= 1
            given = {**own, **(self._before if self._users == 0 else {})}
            for library, number in given.items():
                # A number that somebody else has set since is theirs.
                if library.is_held:
                    library.set(number)
            if self._users == 0:
                self._before = {}
            return lifted


def _is_blas(found: Any) -> bool:
    return str(found.user_api) == "blas"


def _check_held(library: Library) -> None:
    """Ask the library whether it does as it was told.

    Raises
    ------
    DasklsError : when it does not
    """
    if not library.is_held:
        raise DasklsError(
            f"The BLAS library {library.name} still uses {library.get()} threads after it was "
            "set to 1, so that the same seed would not give the same model. Set "
            "OPENBLAS_NUM_THREADS, MKL_NUM_THREADS and OMP_NUM_THREADS to 1 before Python starts."
        )


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread while the body runs, in any thread.

    A limit belongs to the process, so it is set by the first that enters and lifted by the last
    that leaves. One thread keeps the bits of a product the same, and tasks are the parallelism.

    Raises
    ------
    DisturbedError : when another thread set another number meanwhile: results of the body may have
        other bits. `undisturbed` repeats the body.
    DasklsError : when a library does not let itself be limited
    """
    own = _limit.enter()
    try:
        yield
    except BaseException:
        # The body's own error goes on, whether or not the limit held.
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
    """Return a function that repeats its work in `one_blas_thread` where that was disturbed.

    The function writes nothing before its limit has held to the end.
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
