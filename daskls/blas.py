"""Limits BLAS to one thread per process while tasks run, as the bits of a product depend on it."""

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from daskls.errors import DasklsError
from daskls.store.caches import fork_safe

P = ParamSpec("P")
R = TypeVar("R")
# How often disturbed work is tried in all. A program that sets limits now and then disturbs it
# once; one that sets them all the time would never let it end.
MAX_TRIES = 5


class ThreadCountError(DasklsError):
    """Another thread changed the number of BLAS threads while work relied on the limit."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit this process's BLAS to one thread, from the first that enters to the last that leaves.

    ThreadCountError where another thread set another number meanwhile, so results of the body may
    have other bits.
    """
    previous = _limit.enter()
    try:
        yield
    except BaseException:
        # The body's own error propagates, whether or not the limit held.
        _limit.leave(previous)
        raise
    lifted = _limit.leave(previous)
    if lifted:
        raise ThreadCountError(
            f"Another thread of this process changed the number of threads of {lifted[0]} "
            f"{MAX_TRIES} times in a row while a task needed one thread, without which the same "
            "seed may give other bits. Use no threadpool_limits in other threads during the "
            "call, or use a cluster of processes; then call again: what is finished is kept."
        )


def undisturbed(task: Callable[P, R]) -> Callable[P, R]:
    """Decorate what uses `one_blas_thread`, unless it is a task: it is repeated when disturbed.

    It must not write anything before its limit has held to the end.
    """

    @functools.wraps(task)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(MAX_TRIES - 1):
            try:
                return task(*args, **kwargs)
            except ThreadCountError:
                continue
        return task(*args, **kwargs)

    return run


class _ThreadLimit:
    def __init__(self) -> None:
        self.lock = fork_safe(threading.Lock())
        self._users = 0
        self._before: dict[str, int] = {}
        self._libraries: list[Any] = []
        self._n_modules = -1

    def libraries(self) -> list[Any]:
        # A new library only comes with a new module, so unchanged modules need no new search.
        if len(sys.modules) != self._n_modules:
            self._n_modules = len(sys.modules)
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        return self._libraries

    def enter(self) -> dict[str, int]:
        """Limit every library; return the previous numbers of those that count by thread."""
        with self.lock:
            previous: dict[str, int] = {}
            for library in self.libraries():
                if is_held(library):
                    continue
                counts_by_thread = getattr(library, "threading_layer", "") == "openmp"
                # Also if the user set a number while tasks ran: then that is the one to restore.
                before = previous if counts_by_thread else self._before
                before[library.filepath] = library.num_threads
                set_threads(library, 1)
                if not is_held(library):
                    raise _ignored(library)
            self._users += 1
            return previous

    def leave(self, previous: dict[str, int]) -> list[str]:
        with self.lock:
            lifted = [library.filepath for library in self.libraries() if not is_held(library)]
            self._users -= 1
            counts = previous
            if self._users == 0:
                counts, self._before = {**previous, **self._before}, {}
            for library in self.libraries():
                # A number that someone else has set meanwhile is kept.
                if library.filepath in counts and is_held(library):
                    set_threads(library, counts[library.filepath])
            return lifted


_limit = _ThreadLimit()


def is_held(library: Any) -> bool:
    """Tell whether products run on one thread; a library that cannot tell has only one."""
    return library.num_threads in (1, None)


def set_threads(library: Any, number: int) -> None:
    """Set a library's number of threads, whichever thread has set it before."""
    # Since threadpoolctl 3.8 only the first thread that sets a number of OpenBLAS may set another
    # until it is cleared; calls from all others silently do nothing.
    clear = getattr(library, "clear_controlling_thread", None)
    if clear:
        clear(force=True)
    library.set_num_threads(number)
    if clear:
        clear(force=True)


def _ignored(library: Any) -> DasklsError:
    return DasklsError(
        f"The BLAS library {library.filepath} still uses {library.num_threads} threads after it "
        "was set to 1, so the same seed would not give the same model. Set OPENBLAS_NUM_THREADS, "
        "MKL_NUM_THREADS and OMP_NUM_THREADS to 1 before Python starts."
    )
