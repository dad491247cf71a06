"""Features that a learned scale lost, found again by what its model leaves unexplained.

A learned scale follows derivatives. Where many features say nothing, the derivative along one whose
effect is symmetric does not stand out, and the rounds let go of it. Once the others are gone, too,
what the model leaves unexplained shows it: its mean differs between groups of the feature's values.
"""

import numpy as np
from scipy import stats

from daskls.records import SMALLEST, Float32, Float64, Targets
from daskls.scaling.grid import Trial, TrialCell
from daskls.scaling.regions import own_center
from daskls.solvers.squares.aims import Aim

# A feature is gone if its share in the spread of scaled rows is below this part of the largest.
GONE = 0.05
# Most groups of a feature's values, and the probability that any feature is found of those that say
# nothing.
MOST_GROUPS, LEVEL = 8, 0.01

# Features, targets and weights of some rows.
Columns = tuple[Float32, Targets, Float64]


def with_lost(
    training: Columns, asked: Columns, factors: Float64, trial: Trial, aim: Aim
) -> Float64:
    """Return the factors with those of lost features as large as the largest.

    Parameters
    ----------
    training, asked : (X, targets, weights). Rows that train a model, and others, which it predicts.
    factors : float64 array, shape (d,). Of a learned scale.
    """
    X, _, weights = asked
    spread = X.std(axis=0, dtype=np.float64)
    shares = factors * spread
    (gone,) = np.nonzero((shares < GONE * shares.max()) & (spread > 0))
    if not len(gone):
        return factors
    left = _unexplained(training, asked, factors, trial, aim)
    lost = [j for j in gone if probability(X[:, j], left, weights) * len(gone) < LEVEL]
    found = factors.copy()
    found[lost] = shares.max() / spread[lost]
    return found


def _unexplained(
    training: Columns, asked: Columns, factors: Float64, trial: Trial, aim: Aim
) -> Float64:
    """Return the columns of targets minus the values of a model, float64 (q, R)."""
    A, queries = (own[0] * factors.astype(np.float32) for own in (training, asked))
    center = own_center(A)
    values = TrialCell(A - center, training[1], training[2], aim).values(queries - center, trial)
    left: Float64 = aim.columns(asked[1]) - values
    return left


def probability(x: Float32, columns: Float64, weights: Float64) -> float:
    """Return how probable it is that a feature which says nothing explains as much of columns.

    By a one-way analysis of variance between groups of x: its values if these are few, or else as
    many rows each. The ratios of several columns are averaged, which errs on the safe side.

    Parameters
    ----------
    x : float32 array, shape (q,)
    columns : float64 array, shape (q, R)
    weights : float64 array, shape (q,)

    Examples
    --------
    >>> x = np.linspace(-1, 1, 400, dtype="f4")
    >>> noise = np.tile([1.0, -1.0], 200)
    >>> [probability(x, y[:, None], np.ones(400)) < 0.01 for y in (noise, noise + x**2)]
    [False, True]
    """
    values, groups = np.unique(x, return_inverse=True)
    if len(values) > MOST_GROUPS:
        edges = np.quantile(x, np.arange(1, MOST_GROUPS) / MOST_GROUPS)
        _, groups = np.unique(np.searchsorted(edges, x), return_inverse=True)
    n_groups = int(groups.max()) + 1
    if not 1 < n_groups < len(x):
        return 1.0
    total = np.maximum(np.bincount(groups, weights), SMALLEST)
    ratios = []
    for y in columns.T:
        own = y - np.average(y, weights=weights)
        means = np.bincount(groups, weights * own) / total
        between, inside = total @ means**2, weights @ (own - means[groups]) ** 2
        ratios.append(between / max(inside, SMALLEST))
    scale = (len(x) - n_groups) / (n_groups - 1)
    return float(stats.f.sf(scale * np.mean(ratios), n_groups - 1, len(x) - n_groups))
