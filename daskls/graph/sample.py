"""Stage 1, second half: rows drawn by their global numbers, and the identity of the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.graph.blocks import block_start, map_rows
from daskls.graph.rows import BlockRows
from daskls.graph.scan import LabelScan, block_checksum, take_kept
from daskls.records import FloatArray, IntArray

__all__ = [
    "Sample",
    "first_bad_value",
    "sample_block",
    "sample_numbers",
    "sample_rows",
    "value_error",
]

# Squared distances of larger values would overflow float32.
LARGEST = 1e18
TILE_ROWS = 4096


@dataclass(frozen=True, eq=False)
class BlockSample:
    """The sampled rows of one block, its checksum, and its first row that is not finite."""

    X: FloatArray
    checksum: int
    bad_row: int | None
    bad_value: float


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows in the order of their numbers, and the checksum of all rows."""

    X: FloatArray
    checksum: int


def sample_numbers(n_rows: int, n_sample: int, seed: int) -> IntArray:
    """Return sorted global row numbers: the same whatever the blocks, in every task."""
    if n_sample >= n_rows:
        return np.arange(n_rows)
    rng = np.random.default_rng((seed, n_rows))
    return np.sort(rng.choice(n_rows, n_sample, replace=False, shuffle=False))


def first_bad_value(X: FloatArray) -> tuple[int, float] | None:
    """Return (row, value) of the first value that is NaN, infinite or too large; or None."""
    if X.dtype.kind != "f":
        return None
    limit = min(LARGEST, float(np.finfo(X.dtype).max))
    # Tile by tile: a temporary of X's size would double the memory of the task.
    for start in range(0, len(X), TILE_ROWS):
        tile = X[start : start + TILE_ROWS]
        # NaN compares as false, so it is found too; float16 holds no value that large but infinity.
        bad = ~(np.isfinite(tile) & (np.abs(tile) <= limit))
        if bad.any():
            row, column = np.unravel_index(bad.argmax(), bad.shape)
            return start + int(row), float(tile[row, column])
    return None


def value_error(row: int, value: float, name: str = "X") -> DataError:
    """Return the error for a value that no kernel can take."""
    what = "NaN" if value != value else "infinity" if np.isinf(value) else f"{value:g}"
    return DataError(
        f"Input {name} contains {what}, first in row {row}; values must be finite and at most "
        f"{LARGEST:g} in size (no NaN, no inf). Impute or remove the rows, for example with "
        "scikit-learn's SimpleImputer."
    )


def sample_block(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    *,
    labels: FloatArray,
    first_kept: IntArray,
    n_sample: int,
    seed: int,
    block_info: Any = None,
) -> BlockSample:
    """Draw one block's sampled rows; check and identify all of its rows on the way."""
    block, first_row = block_start(block_info)
    bad = first_bad_value(X)
    if bad is not None:
        return BlockSample(X[:0], 0, first_row + bad[0], bad[1])
    kept, codes, given = take_kept(X, y, weights, labels)
    start, stop = first_kept[block], first_kept[block + 1]
    numbers = sample_numbers(int(first_kept[-1]), n_sample, seed)
    mine = numbers[np.searchsorted(numbers, start) : np.searchsorted(numbers, stop)] - start
    return BlockSample(kept[mine], block_checksum(kept, codes, given, int(start)), None, 0.0)


def sample_rows(
    rows: BlockRows, scan: LabelScan, n_sample: int, seed: int, client: Any = None
) -> Sample:
    """Read X once: sample it, check it, identify it.

    Raises
    ------
    DataError : when a value is NaN, infinite or too large, with the first such row's number
    """
    blocks = map_rows(
        sample_block,
        rows,
        rows.X,
        rows.y,
        rows.weights,
        client=client,
        labels=scan.labels,
        first_kept=scan.first_kept,
        n_sample=n_sample,
        seed=seed,
    )
    bad = [(b.bad_row, b.bad_value) for b in blocks if b.bad_row is not None]
    if bad:
        raise value_error(*min(bad))
    X = np.concatenate([b.X for b in blocks])
    return Sample(X, sum(b.checksum for b in blocks) % 2**64)
