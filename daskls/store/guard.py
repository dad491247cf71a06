"""Damage: bytes that differ from those that were written. One error, which names the file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from daskls.errors import DamageError

__all__ = ["MALFORMED", "NOT_WRITTEN", "damaged", "malformed_is_damage"]

NOT_WRITTEN = "its checksum is not that of what was written"
# What Python raises where values are not of the kind or the number that was written.
MALFORMED = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError),
    # JSON that is nested too deep, and lengths that nobody wrote.
    *(RecursionError, MemoryError),
)


def damaged(where: str | os.PathLike[str], why: str) -> DamageError:
    """Return the error of a damaged file: it names the file, what is wrong, and what to do."""
    return DamageError(
        f"The store's file {where} is damaged: {why}. Copy the model again; or call fit again with "
        "the same data, parameters and store: what is damaged is removed, and only that is "
        "trained again.",
        str(where),
        why,
    )


@contextmanager
def malformed_is_damage(where: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the parsing of a file's values raises into an error that names the file."""
    try:
        yield
    except MALFORMED as error:
        raise damaged(
            where, f"its values are malformed ({type(error).__name__}: {error})"
        ) from error
