"""Features that a learned scale lost, found again by what its model leaves unexplained.

A learned scale follows derivatives. Where many features say nothing, the derivative along one whose
effect is symmetric does not stand out, and the rounds let go of it. Once the others are gone, too,
what the model leaves unexplained shows it: its mean differs between groups of the feature's values.
"""

import numpy as np
from scipy import stats

from daskls.records import SMALLEST, Float32, Float64, Mask, Targets
from daskls.scaling.grid import Trial, TrialCell
from daskls.scaling.regions import own_center
from daskls.solvers.squares.aims import Aim

# A feature is gone if its share in the spread of scaled rows is below this part of the largest.
GONE = 0.05
# Groups of a feature's values, with as many rows each, and the probability that any feature is
# found of those that say nothing.
N_GROUPS, LEVEL = 8, 0.01


def with_lost(
    training: tuple[Float32, Targets, Float64],
    asked: tuple[Float32, Targets, Float64],
    factors: Float64,
    trial: Trial,
    aim: Aim,
) -> Float64:
    """Return the factors with those of lost features as large as the largest.

    Parameters
    ----------
    training, asked : (X, targets, weights). Rows that train a model, and others, which it predicts.
    factors : float64 array, shape (d,). Of a learned scale.
    """
    spread = asked[0].std(axis=0, dtype=np.float64)
    shares = factors * spread
    gone = (shares < GONE * shares.max()) & (spread > 0)
    if not gone.any():
        return factors
    left = _unexplained(training, asked, factors, trial, aim)
    ratios = np.zeros(len(factors))
    ratios[gone] = [variance_ratio(x, left, asked[2]) for x in asked[0].T[gone]]
    least = stats.f.isf(LEVEL / gone.sum(), N_GROUPS - 1, len(left) - N_GROUPS)
    lost: Mask = ratios > least
    back = shares.max() / np.maximum(spread, SMALLEST)
    found: Float64 = np.where(lost, back, factors)
    return found


def _unexplained(
    training: tuple[Float32, Targets, Float64],
    asked: tuple[Float32, Targets, Float64],
    factors: Float64,
    trial: Trial,
    aim: Aim,
) -> Float64:
    """Return the columns of targets minus the values of a model, float64 (q, R)."""
    A, queries = (own[0] * factors.astype(np.float32) for own in (training, asked))
    center = own_center(A)
    values = TrialCell(A - center, training[1], training[2], aim).values(queries - center, trial)
    left: Float64 = aim.columns(asked[1]) - values
    return left


def variance_ratio(x: Float32, columns: Float64, weights: Float64) -> float:
    """Return the variance between groups of x over that inside, the mean over columns.

    Where x says nothing about a column, the ratio has Fisher's distribution.

    Parameters
    ----------
    x : float32 array, shape (q,). Its values are cut into up to `N_GROUPS` groups.
    columns : float64 array, shape (q, R)
    weights : float64 array, shape (q,)

    Examples
    --------
    >>> x = np.linspace(-1, 1, 80, dtype="f4")
    >>> noise = np.tile([1.0, -1.0], 40)
    >>> ratio = lambda y: round(variance_ratio(x, y[:, None], np.ones(80)), 1)
    >>> ratio(noise), ratio(noise + x**2)
    (0.0, 0.9)
    """
    edges = np.unique(np.quantile(x, np.arange(1, N_GROUPS) / N_GROUPS))
    groups = np.searchsorted(edges, x)
    n_groups = groups.max() + 1
    total = np.bincount(groups, weights, n_groups)
    ratios = []
    for y in columns.T:
        y = y - np.average(y, weights=weights)
        means = np.bincount(groups, weights * y, n_groups) / np.maximum(total, SMALLEST)
        between, inside = total @ means**2, weights @ (y - means[groups]) ** 2
        ratios.append(between * (len(x) - n_groups) / max(inside * (n_groups - 1), SMALLEST))
    return float(np.mean(ratios))
