"""How all generators draw rows: in fixed groups of global rows, each with its own random stream.

Row i is in group i // 4096, regardless of the block or Zarr chunk that needs it. So n rows are a
prefix of 2n rows, and any range of rows can be drawn without the rows before it.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

import numpy as np

from daskls.errors import ParameterError
from daskls.records import AnyArray, Codes, Float32, Float64, Floats, Mask
from daskls.seeds import SET_ROWS, SET_STRUCTURE

GROUP_ROWS = 4096
CLASSES = (-1, 1)


class SetId(IntEnum):
    """The number of each set, which separates its random streams from those of the others.

    Rows depend on it, so a set keeps its number. That FRIEDMAN1 and RARE have the same one was a
    mistake; it is harmless, as the two sets draw different distributions from the stream.
    """

    CHECKERBOARD = 1
    XOR = 2
    TWO_SPIRALS = 3
    SWISS_ROLL = 4
    TWO_GAUSSIANS = 5
    NDCC = 6
    NOISY28 = 7
    RARE = 11
    FRIEDMAN1 = 11
    FRIEDMAN2 = 12
    FRIEDMAN3 = 13


Rows: TypeAlias = tuple[Float32, Codes]
# Draws m rows: X (m, d), and a boolean (m,) that is true where the label is +1.
DrawGroup: TypeAlias = Callable[[np.random.Generator, int], tuple[Floats, Mask]]
NumberRows: TypeAlias = tuple[Float32, Float64]
# Draws m rows: X (m, d), and numbers (m,).
DrawNumbers: TypeAlias = Callable[[np.random.Generator, int], tuple[Floats, Float64]]


def generate_rows(draw: DrawGroup, set_id: SetId, first_row: int, n_rows: int, seed: int) -> Rows:
    """Return rows first_row .. first_row + n_rows - 1 of an unbounded data set.

    Parameters
    ----------
    draw : function of (generator, m) that draws one group of m rows
    set_id : SetId
    first_row, n_rows : int, >= 0
    seed : int, 0 <= seed < 2**32

    Returns
    -------
    X : float32 array, shape (n_rows, d), C-contiguous
    y : int32 array, shape (n_rows,), of -1 and +1
    """
    X, positive = _drawn(draw, set_id, first_row, n_rows, seed)
    return X, np.where(positive, 1, -1).astype(np.int32)


def generate_numbers(
    draw: DrawNumbers, set_id: SetId, first_row: int, n_rows: int, seed: int
) -> NumberRows:
    """Like `generate_rows`, for a set whose targets are numbers: y is float64 (n_rows,)."""
    return _drawn(draw, set_id, first_row, n_rows, seed)


def _drawn(
    draw: Callable[[np.random.Generator, int], tuple[Floats, AnyArray]],
    set_id: SetId,
    first_row: int,
    n_rows: int,
    seed: int,
) -> tuple[Float32, AnyArray]:
    """Return features and targets of a range of rows."""
    check_at_least("first_row", first_row, 0)
    check_at_least("n_rows", n_rows, 0)
    check_seed(seed)
    first_group, last_group = first_row // GROUP_ROWS, max(first_row + n_rows - 1, 0) // GROUP_ROWS
    # Always draw whole groups: the number of rows asked for must not shift the stream.
    groups = [
        draw(SET_ROWS.generator(seed, set_id=set_id, group=group), GROUP_ROWS)
        for group in range(first_group, max(last_group, first_group) + 1)
    ]
    inside = slice(first_row - first_group * GROUP_ROWS, None)
    X = np.concatenate([X.astype(np.float32, copy=False) for X, _ in groups])[inside][:n_rows]
    targets = np.concatenate([own for _, own in groups])[inside][:n_rows]
    return np.ascontiguousarray(X), targets


def structure_rng(seed: int, set_id: SetId) -> np.random.Generator:
    """Return the generator for what all rows share (centers, planes); no group of rows uses it."""
    check_seed(seed)
    return SET_STRUCTURE.generator(seed, set_id=set_id)


def flip_labels(rng: np.random.Generator, positive: Mask, flip: float) -> Mask:
    """Swap each label with probability `flip`."""
    return positive ^ (rng.random(len(positive)) < flip)


def check_seed(seed: int) -> None:
    """Refuse a seed that is not a whole number of 32 bits."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise ParameterError(
            f"random_state must be an integer from 0 to 2**32 - 1, got {seed!r}; "
            "the rows are a function of it."
        )


def check_at_least(name: str, value: float, least: float, *, strict: bool = False) -> None:
    """Refuse a parameter below its least value; if strict, also at it."""
    if not (value > least if strict else value >= least):
        raise ParameterError(
            f"{name} must be {'above' if strict else 'at least'} {least}, got {value!r}."
        )


def check_probability(name: str, value: float) -> None:
    """Refuse a value outside of 0 to 1."""
    if not 0 <= value <= 1:
        raise ParameterError(f"{name} must be a probability from 0 to 1, got {value!r}.")
