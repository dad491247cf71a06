"""Features that a learned scale lost, found again by what its model leaves unexplained.

A learned scale follows derivatives. Where many features say nothing, the derivative along one whose
effect is symmetric does not stand out, and the rounds let go of it. Once the others are gone, too,
what the model leaves unexplained shows it: its mean differs between groups of the feature's values.
"""

import numpy as np
from scipy import special

from daskls.records import SMALLEST, Float32, Float64
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.scaling.grid import Trial, TrialCell
from daskls.scaling.regions import own_center
from daskls.scaling.rungs import Part, RaceJob, RaceRows, read_race_rows
from daskls.solvers.squares.aims import Aim

# A feature is gone if its share in the spread of scaled rows is below this part of the largest.
GONE = 0.05
# Most groups of a feature's values, and the probability that any feature is found of those that say
# nothing.
MOST_GROUPS, LEVEL = 8, 0.01


@undisturbed
def find_lost(number: int, factors: Float64, trial: Trial, part: Part, job: RaceJob) -> Float64:
    """Return the factors of a learned scale, (d',), with those of features that it lost."""
    rows = read_race_rows(number, job)
    training, asked = (rows.take(slice(*own)) for own in (part.train, part.asked))
    with one_blas_thread():
        return with_lost(training, asked, factors, trial, job.aim)


def with_lost(
    training: RaceRows, asked: RaceRows, factors: Float64, trial: Trial, aim: Aim
) -> Float64:
    """Return the factors with those of lost features as large as the largest.

    Parameters
    ----------
    training, asked : RaceRows. Those that train a model, and others, which it predicts.
    factors : float64 array, shape (d',)
    """
    spread = asked.X.std(axis=0, dtype=np.float64)
    shares = factors * spread
    (gone,) = np.nonzero((shares < GONE * shares.max()) & (spread > 0))
    if not len(gone):
        return factors
    left = _unexplained(training, asked, factors, trial, aim)
    chances = [probability(asked.X[:, j], left, asked.weights) for j in gone]
    lost = gone[np.array(chances) * len(gone) < LEVEL]
    found = factors.copy()
    found[lost] = shares.max() / spread[lost]
    return found


def _unexplained(
    training: RaceRows, asked: RaceRows, factors: Float64, trial: Trial, aim: Aim
) -> Float64:
    """Return the columns of targets minus the values of a model, float64 (q, R)."""
    A, queries = (own.X * factors.astype(np.float32) for own in (training, asked))
    center = own_center(A)
    cell = TrialCell(A - center, training.targets, training.weights, aim)
    left: Float64 = aim.columns(asked.targets) - cell.values(queries - center, trial)
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
    left = columns - np.average(columns, axis=0, weights=weights)
    members = weights[:, None] * (groups[:, None] == np.arange(n_groups))
    total = np.maximum(members.sum(axis=0), SMALLEST)
    between = ((members.T @ left) ** 2 / total[:, None]).sum(axis=0)
    inside = np.maximum(weights @ left**2 - between, SMALLEST)
    # The upper tail of Fisher's distribution.
    free = n_groups - 1, len(x) - n_groups
    return float(special.fdtrc(*free, free[1] / free[0] * np.mean(between / inside)))
