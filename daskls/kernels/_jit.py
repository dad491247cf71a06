"""The numba options: every compiled function carries these and no others."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numba

F = TypeVar("F", bound=Callable)

# Sums may be reordered so that they vectorize, and products may fuse into the sum. NaN and
# infinity keep their meaning: a guard against them must not be compiled away.
_FASTMATH = {"reassoc", "contract", "nsz", "arcp"}

# numba knows what it has compiled by the function's own file. What a function inlines from other
# files would stay what it was, after an edit or an upgrade: a cache is one of all these files.
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def _compiler(**options: object) -> Callable[[F], F]:
    """Return numba's decorator with a cache on disk, or without where no folder can be written."""

    def compiled(function: F) -> F:
        try:
            found = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        except RuntimeError:
            # "no locator available": neither the package nor the user's cache folder is writable.
            return numba.njit(nogil=True, error_model="numpy", **options)(function)
        if not numba.config.DISABLE_JIT:
            _stamp(found)
        return found

    return compiled


def _stamp(compiled: Callable) -> None:
    """Make a cache one of all sources; numba has no public way to.

    Where it keeps them elsewhere, the cache is one of the function's own file.
    """
    with suppress(AttributeError):
        compiled._cache._cache_file._source_stamp = _STAMP


def jit(function: F) -> F:
    """Compile `function` on first call, without the GIL, cached on disk across processes.

    A compiled function must not call another one that was compiled this way: use `inline_jit`.
    Both would then hold a copy of the callee, rounded in two ways, and which of them runs depends
    on what the process loaded first. The same seed would not give the same model.
    """
    return _compiler(fastmath=_FASTMATH)(function)


def inline_jit(function: F) -> F:
    """Make `function` a part of each compiled function that calls it; same options as `jit`."""
    return _compiler(inline="always", fastmath=_FASTMATH)(function)


def exact_jit(function: F) -> F:
    """Compile as `jit` does, but keep the order of every sum: same bits wherever it is inlined."""
    return _compiler()(function)
