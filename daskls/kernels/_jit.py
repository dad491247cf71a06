"""The numba options: every compiled function carries these and no others."""

from collections.abc import Callable
from typing import TypeVar

import numba

F = TypeVar("F", bound=Callable)

# Sums may be reordered so that they vectorize, and products may fuse into the sum. NaN and
# infinity keep their meaning: a guard against them must not be compiled away.
_FASTMATH = {"reassoc", "contract", "nsz", "arcp"}


def jit(function: F) -> F:
    """Compile `function` on first call, without the GIL, cached on disk across processes.

    A compiled function must not call another one that was compiled this way: use `inline_jit`.
    Both would then hold a copy of the callee, rounded in two ways, and which of them runs depends
    on what the process loaded first. The same seed would not give the same model.
    """
    return numba.njit(cache=True, nogil=True, fastmath=_FASTMATH, error_model="numpy")(function)


def inline_jit(function: F) -> F:
    """Make `function` a part of each compiled function that calls it; same options as `jit`."""
    options = {"cache": True, "nogil": True, "fastmath": _FASTMATH, "error_model": "numpy"}
    return numba.njit(inline="always", **options)(function)


def exact_jit(function: F) -> F:
    """Compile as `jit` does, but keep the order of every sum: same bits wherever it is inlined."""
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
