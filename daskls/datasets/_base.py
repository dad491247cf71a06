"""How all synthetic sets draw rows: in fixed groups, each with its own random stream.

Row i is in group i // 4096, regardless of the block or Zarr chunk that needs it. So n rows are a
prefix of 2n rows, and any range of rows can be drawn without the rows before it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from daskls.errors import ParameterError
from daskls.records import AnyArray, Float32, Floats, Labels
from daskls.seeds import SET_ROWS

GROUP_ROWS = 4096
CLASSES = (-1, 1)

# X, float32 (m, d), C-contiguous; and y (m,): -1 and +1 as int32, or numbers as float64.
Rows: TypeAlias = tuple[Float32, Labels]


@dataclass(frozen=True)
class Generator(ABC):
    """A synthetic set: rows without end, of which any range can be drawn.

    Fields of subclasses are the set's parameters; `set_id` separates its random streams.
    """

    set_id: ClassVar[int]

    @abstractmethod
    def _draw(self, rng: np.random.Generator, m: int) -> tuple[Floats, AnyArray]:
        """Return m rows: X (m, d), and numbers (m,), or booleans, true where the label is +1."""

    @abstractmethod
    def bayes_accuracy(self) -> float:
        """Return the accuracy of the best possible classifier; of numbers, the best R2."""

    def rows(self, first_row: int, n_rows: int, seed: int) -> Rows:
        """Return X, float32 (n_rows, d), and y, int32 -1 and +1 or float64, from one row on."""
        check_at_least("first_row", first_row, 0)
        check_at_least("n_rows", n_rows, 0)
        _check_seed(seed)
        first_group = first_row // GROUP_ROWS
        last_group = max(first_row + n_rows - 1, first_row) // GROUP_ROWS
        # Always draw whole groups: the number of rows asked for must not shift the stream.
        groups = [
            self._draw(SET_ROWS.generator(seed, set_id=self.set_id, group=group), GROUP_ROWS)
            for group in range(first_group, last_group + 1)
        ]
        begin = first_row - first_group * GROUP_ROWS
        inside = slice(begin, begin + n_rows)
        X, y = (np.concatenate(parts)[inside] for parts in zip(*groups, strict=True))
        if y.dtype == bool:
            y = np.where(y, 1, -1).astype(np.int32)
        return np.ascontiguousarray(X, np.float32), y


def _check_seed(seed: int) -> None:
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
    if not 0 <= value <= 1:
        raise ParameterError(f"{name} must be a probability from 0 to 1, got {value!r}.")
