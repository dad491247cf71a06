"""A leaf's rows in blocks, as the search tests them in bulk; kept as long as the leaf is."""

import math
from weakref import WeakKeyDictionary

import numpy as np

from daskls.kernels.blocks import BLOCK_ROWS, FEATURE_STEP, fill_blocks, order_blocks
from daskls.records import Float32, Float64, Int64, LeafRows, Reals

__all__ = ["Packed", "packed"]

# Blocks are padded to whole vectors.
BLOCKS = 16

# Blocks, where they lie, their radii, the order of rows, center, scale and the longest row.
Packed = tuple[Float32, Float32, Float64, Int64, Float64, float, float]

_packed: "WeakKeyDictionary[LeafRows, Packed]" = WeakKeyDictionary()


def packed(leaf: LeafRows) -> Packed:
    """Return the blocks of a leaf with rows; cached with the leaf."""
    found = _packed.get(leaf)
    if found is None:
        # Two threads may both do so; either result serves.
        found = _packed[leaf] = pack_blocks(leaf.X)
    return found


def pack_blocks(X: Reals) -> Packed:
    """Return rows in blocks, as `kernels.blocks.offer_blocks` takes them.

    Parameters
    ----------
    X : real array, shape (m, d), m >= 1
    """
    m, d = X.shape
    n_blocks, n_features = -(-m // BLOCK_ROWS), _padded(d, FEATURE_STEP)
    order = np.arange(m)
    order_blocks(X, order)
    center = X.mean(axis=0, dtype=np.float64)
    scale = unit_scale(
        max(np.abs(X.min(axis=0) - center).max(), np.abs(X.max(axis=0) - center).max())
    )
    blocks = np.zeros((n_blocks, n_features, BLOCK_ROWS), np.float32)
    bounds = np.zeros((3, n_features, _padded(n_blocks, BLOCKS)), np.float32)
    r_max = np.zeros(bounds.shape[2])
    longest = fill_blocks(X, order, center, scale, blocks, bounds, r_max)
    return blocks, bounds, r_max, order, center, scale, longest


def unit_scale(extent: float) -> float:
    """Return the power of two that takes an extent to about 1.

    >>> unit_scale(5.0), unit_scale(0.0)
    (0.125, 1.0)
    """
    exponent = math.frexp(extent)[1]
    return math.ldexp(1.0, min(max(-exponent, -1000), 1000))


def _padded(n: int, step: int) -> int:
    return -(-n // step) * step
