"""Percentiles of the distances in a matrix, without an index of pairs and without a sort of all."""

import numpy as np

from daskls.kernels._jit import exact_jit

__all__ = ["pair_values", "ranked_values"]

# Values are counted in so many bins of equal width; those of the wanted bins alone are sorted.
N_RANK_BINS = 4096
LEAST_RANGE = 1e-300


@exact_jit
def pair_values(squared, positions, strides, noise):
    """Return the values of pairs of rows: row i with row i + s, around the end, for every stride s.

    Parameters
    ----------
    squared : float array, shape (m, m)
    positions : int64 array, shape (m,). Where row i stands in the matrix.
    strides : int64 array, shape (n,), >= 1. None at all: every pair, once.
    noise : float, >= 0. Values up to this become 0.

    Returns
    -------
    values : float array, shape (m n,) or (m (m - 1) / 2,), >= 0, by the first row
    """
    m, n = positions.shape[0], strides.shape[0]
    values = np.empty(m * n if n else m * (m - 1) // 2, squared.dtype)
    at = 0
    for i in range(m):
        # All strides of one row together: its values are in the cache.
        row = squared[positions[i]]
        for s in range(n if n else m - 1 - i):
            j = i + (strides[s] if n else s + 1)
            value = row[positions[j if j < m else j - m]]
            values[at] = value if value > noise else 0.0
            at += 1
    return values


@exact_jit
def ranked_values(values, ranks):
    """Return the values that would stand at some positions if all were sorted.

    Parameters
    ----------
    values : float array, shape (n,), n >= 1, >= 0, finite
    ranks : int64 array, shape (k,), not decreasing. Positions, from 0.

    Returns
    -------
    ranked : float array, shape (k,)

    Notes
    -----
    Cost: two passes, unless nearly all values are in one bin.
    """
    largest = np.float64(values.max())
    # Smaller ones share a bin: their inverse overflows.
    scale = (N_RANK_BINS - 1) / largest if largest > LEAST_RANGE else 0.0
    counts = np.zeros(N_RANK_BINS, np.int64)
    for value in values:
        # Never decreasing in the value, so that bins are in order.
        counts[int(value * scale)] += 1
    ranked = np.empty(ranks.shape[0], values.dtype)
    begin = 0
    k = 0
    for b in range(N_RANK_BINS):
        end = begin + counts[b]
        if k < ranks.shape[0] and ranks[k] < end:
            own = np.empty(counts[b], values.dtype)
            at = 0
            for value in values:
                if int(value * scale) == b:
                    own[at] = value
                    at += 1
            own.sort()
            while k < ranks.shape[0] and ranks[k] < end:
                ranked[k] = own[ranks[k] - begin]
                k += 1
        begin = end
    return ranked
