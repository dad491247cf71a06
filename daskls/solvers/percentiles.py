"""The candidates of a neighborhood: its widths are percentiles of the distances within it."""

import numpy as np

from daskls.kernels.nearest import pair_values, ranked_values
from daskls.records import EPS, Float32, Int64
from daskls.solvers.grid import Grid
from daskls.solvers.rows import LocalRows

# The most distances that percentiles are taken of; if there are more pairs, a seed draws some.
MAX_PAIRS = 100_000


def sampled_strides(m: int, seed: tuple[int, ...]) -> Int64:
    """Return which pairs of rows to measure, as strides drawn by seed; none stands for all pairs.

    Stride s pairs every row i with row i + s, modulo m.

    >>> sampled_strides(3, (0,)).tolist()
    []
    """
    if m * (m - 1) // 2 <= MAX_PAIRS:
        return np.empty(0, np.int64)
    # Strides up to m / 2 repeat no pair.
    strides = np.random.default_rng(seed).permutation(np.arange(1, (m + 1) // 2))
    return strides[: max(MAX_PAIRS // m, 1)]


def width_gammas(
    squared: Float32,
    percentiles: tuple[float, ...],
    seed: tuple[int, ...],
    noise: float = 0.0,
    positions: Int64 | None = None,
) -> tuple[float, ...]:
    """Return gamma = 1 / q_p^2 for percentiles p of the distances within a neighborhood.

    Percentiles are decreasing, widest first; one of 0 becomes the smallest positive distance.
    Squared distances up to `noise` are rounding errors of 0. Rows are at `positions` of the matrix,
    if not in order.

    >>> width_gammas(np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]]), (50,), (0,))
    (0.25,)
    """
    m = len(squared)
    positions = np.arange(m) if positions is None else positions
    pairs = pair_values(squared, positions, sampled_strides(m, seed), squared.dtype.type(noise))
    # As numpy.percentile of the distances, without sorting all of them.
    at = np.array(percentiles) / 100 * (len(pairs) - 1)
    below, above = np.floor(at).astype(int), np.ceil(at).astype(int)
    ranks, back = np.unique(np.r_[below, above], return_inverse=True)
    ends = np.sqrt(ranked_values(pairs, ranks)[back].astype(np.float64))
    low, high = ends[: len(at)], ends[len(at) :]
    widths = low + (at - below) * (high - low)
    if (widths == 0).any():
        positive = pairs[pairs > 0]
        widths[widths == 0] = np.sqrt(positive.min() if len(positive) else squared.max())
    return tuple((widths**-2.0).tolist())


def neighborhood_grid(
    local: LocalRows,
    base: Float32,
    percentiles: tuple[float, ...] | None,
    seed: tuple[int, ...],
    positions: Int64 | None = None,
) -> Grid:
    """Return given candidates, or widths from the neighborhood's distances."""
    spec = local.spec
    if spec.C is None:
        raise AssertionError("a neighborhood's candidates of C are given")
    costs = tuple(sorted(spec.C))
    if percentiles is None:
        gammas = tuple(sorted(spec.gamma)) if spec.gamma is not None else (1.0,)
        return local.in_units(Grid(gammas, costs))
    # Rounding in the expanded squares leaves a distance between equal rows.
    noise = 8 * (local.rows.shape[1] + 8) * EPS * (local.radius / local.unit) ** 2
    # By positions, the pairs do not depend on the order that folds put the rows in.
    return Grid(width_gammas(base, percentiles, seed, noise, positions), costs)
