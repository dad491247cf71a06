"""The decorators of compiled functions: the one place that sets numba options."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable)

# Sums may be reordered so that they vectorize, and products may fuse into the sum. NaN and
# infinity keep their meaning: a guard against them must not be compiled away.
_FASTMATH = {"reassoc", "contract", "nsz", "arcp"}

# numba checks a cached function against its own file alone. Code inlined from other files would go
# stale after an edit or an upgrade, so each cache is stamped with the content of all these files.
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def _compiler(**options: object) -> Callable[[F], F]:
    """Return numba's decorator, with a cache on disk if a folder for it can be written."""

    def compiled(function: F) -> F:
        try:
            jitted = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        except RuntimeError:
            # "no locator available": neither the package nor the user's cache folder is writable.
            return numba.njit(nogil=True, error_model="numpy", **options)(function)
        if not numba.config.DISABLE_JIT:
            _guard_cache(jitted)
        return jitted

    return compiled


def _guard_cache(compiled: Callable) -> None:
    """Tie a cache to all sources, and let processes that compile at once share it.

    If numba's internals change, the cache works as its own, tied to the function's file.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    parts = ("_source_stamp", "_data_name_pattern", "_load_index", "_save_index", "_save_data")
    if all(hasattr(file, part) for part in parts):
        file._source_stamp = _STAMP
        file.save = partial(_save, file)


def _save(file: Any, key: object, data: object) -> None:
    """Write the code of one signature, then the index that names it.

    numba writes the index first, and numbers the files of code: a process that reads in between,
    or two that write at once, may take the code of other argument types or of an earlier version,
    which reads foreign memory. Here a name belongs to one signature of one version.
    """
    number = int.from_bytes(hashlib.sha256(f"{_STAMP}{key}".encode()).digest()[:8])
    name = file._data_name_pattern.format(number=number)
    file._save_data(name, data)
    file._save_index({**file._load_index(), key: name})


def jit(function: F) -> F:
    """Compile at the first call, without the GIL, cached on disk across processes.

    A compiled function must not call another one compiled this way, but use `inline_jit`: else both
    hold a copy of the callee, rounded in two ways, and the same seed would not give the same model.
    """
    return _compiler(fastmath=_FASTMATH)(function)


def inline_jit(function: F) -> F:
    """Inline `function` into each compiled function that calls it; same options as `jit`."""
    return _compiler(inline="always", fastmath=_FASTMATH)(function)


def exact_jit(function: F) -> F:
    """Compile as `jit` does but keep the order of every sum: same bits wherever it is inlined."""
    return _compiler()(function)
