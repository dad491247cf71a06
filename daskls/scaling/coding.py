"""Codings of features, fitted to a sample: ranks, and indicators of numbers of few values.

The spread of features, by which unscaled rows are divided to remove their units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskls.records import Coding, FeatureCoding, FeatureScale, Float64, Reals

LOW, HIGH = 0.05, 0.95
# Of a normal distribution that range is so many standard deviations: features that fall back to
# theirs are then no wider than the others.
DEVIATIONS = 3.29


# Of the largest spread to the smallest: beyond, the features of small ones have no part in
# distances. Standard deviations, which cost less, are looked at first.
MAX_RATIO, SUSPECT_RATIO = 1e3, 1e2
# Of its standard deviation: a feature of a smaller range is rarely anything but one value.
RARE_RANGE = 0.1


def widest_and_narrowest(X: Reals, *, with_rare: bool = True) -> tuple[int, int, float] | None:
    """Return the features of the largest and the smallest spread, and their ratio beyond 1000.

    None where spreads differ by less. Constants count as neither.

    Parameters
    ----------
    X : real array, shape (m, d)
    with_rare : bool. Whether features count that have one value in some nine rows of ten. Rare
        indicators and pixels at the margin have a small spread, and no unit that is the reason.

    Examples
    --------
    >>> widest_and_narrowest(np.c_[np.arange(9.0), 1e-4 * np.arange(9.0), np.ones(9)])
    (0, 1, 10000.0)
    """
    deviations = X.std(axis=0, dtype=np.float64)
    varying = np.flatnonzero((X[:1] != X).any(axis=0))
    own = deviations[varying]
    if not len(own) or own.max() <= SUSPECT_RATIO * own.min():
        return None
    if not with_rare:
        ranges = np.array([np.ptp(np.quantile(X[:, j], (LOW, HIGH))) for j in varying])
        varying = varying[ranges > RARE_RANGE * own]
    found = spreads(X)[varying]
    if not len(found):
        return None
    ratio = float(found.max() / found.min())
    if ratio <= MAX_RATIO:
        return None
    return int(varying[found.argmax()]), int(varying[found.argmin()]), round(ratio, 6)


def spreads(X: Reals) -> Float64:
    """Return the spread of each feature, float64 (d,), > 0.

    Its range from the 5th to the 95th percentile; where that is 0, as for rare indicators, 3.29
    standard deviations; of a constant, 1.

    >>> spreads(np.c_[np.arange(101.0), np.full(101, 7.0)])
    array([90.,  1.])
    """
    found = np.empty(X.shape[1])
    # Feature by feature: sorting copies, and a sample may be most of the client's memory.
    for j in range(X.shape[1]):
        own = X[:, j].astype(np.float64)
        low, high = np.quantile(own, (LOW, HIGH))
        found[j] = high - low if high > low else DEVIATIONS * own.std()
    # A constant's deviation is the rounding of its mean.
    constant = np.array([(X[:, j] == X[0, j]).all() for j in range(X.shape[1])])
    return np.where(constant | (found == 0), 1.0, found)


# A feature of so many values, or fewer, may be categories; ranks would say no more than they do.
FEW_VALUES = 20
# Knots of a map to ranks: between two of them lies less than half a percent of the sample.
N_KNOTS = 257
# Rows of indicators may take so many bytes; of more rows, so many times what they took before.
CODED_NBYTES, MOST_TIMES = 256 << 20, 2


@dataclass(frozen=True, eq=False)
class Base:
    """One coding of features, and the scale in it that candidates are factors of.

    Attributes
    ----------
    name : Coding
    scale : FeatureScale. Features that stay as they are, are divided by their spread; ranks and
        indicators have a unit of their own.
    spread : float64 array, shape (d',). What the scale divides by.
    """

    name: Coding
    scale: FeatureScale
    spread: Float64

    @property
    def n_features(self) -> int:
        """The number of coded features."""
        return len(self.spread)


def find_bases(X: Reals, codings: Sequence[Coding], most: int) -> list[Base]:
    """Return the codings in question that differ, each with its scale.

    Parameters
    ----------
    X : real array, shape (m, d). Sampled rows.
    codings : sequence of Coding
    most : int. Coded features.
    """
    center, spread = X.mean(axis=0, dtype=np.float64), spreads(X)
    found, seen = [], set()
    for name in codings:
        coding = fit_coding(X, name, most)
        key = None if coding is None else (coding.ptr.tobytes(), coding.points.tobytes())
        if key in seen:
            continue
        seen.add(key)
        found.append(_base_of(name if coding else "none", coding, center, spread))
    return found


def _base_of(name: Coding, coding: FeatureCoding | None, center: Float64, spread: Float64) -> Base:
    if coding is not None:
        is_coded = np.diff(coding.ptr) > 0
        # Ranks lie around a half; most rows have none of a feature's indicators.
        middle = np.where(coding.is_indicated, 0.0, 0.5)
        center = np.where(is_coded, middle, center)[coding.sources]
        spread = np.where(is_coded, 1.0, spread)[coding.sources]
    return Base(name, FeatureScale(center, 1 / spread, coding), spread)


def max_coded_features(n_rows: int, n_features: int) -> int:
    """Return the most features that indicators may make: a function of the data alone.

    >>> max_coded_features(10_000, 10), max_coded_features(10_000_000, 28)
    (6710, 56)
    """
    return max(CODED_NBYTES // (4 * n_rows), MOST_TIMES * n_features)


def fit_coding(X: Reals, coding: Coding, most: int) -> FeatureCoding | None:
    """Return a coding of features; None where it would leave every feature as it is.

    Parameters
    ----------
    X : real array, shape (m, d). Sampled rows.
    coding : "none"; "ranks": features of more than `FEW_VALUES` values become their rank in [0, 1];
        "indicators": of 3 to `FEW_VALUES` values an indicator each; "both".
    most : int. Coded features; where indicators would be more, there are none.

    Notes
    -----
    Ranks are scikit-learn's ``QuantileTransformer`` of all rows, by `N_KNOTS` of them at the most:
    equal rows have the mean of their ranks.

    Examples
    --------
    >>> fit_coding(np.array([[3.0], [7.0], [5.0], [3.0]]), "indicators", 10).points
    array([3., 5., 7.])
    """
    points, ranks = [], []
    indicated = _indicated(X, most) if coding in ("indicators", "both") else {}
    for j in range(X.shape[1]):
        own: tuple[Float64, Float64] = np.empty(0), np.empty(0)
        if j in indicated:
            own = indicated[j], np.full(len(indicated[j]), -1.0)
        elif coding in ("ranks", "both"):
            own = _knots(X[:, j].astype(np.float64))
        points.append(own[0])
        ranks.append(own[1])
    ptr = np.r_[0, np.cumsum([len(own) for own in points])].astype(np.int64)
    if not ptr[-1]:
        return None
    return FeatureCoding(ptr, np.concatenate(points), np.concatenate(ranks))


def _indicated(X: Reals, most: int) -> dict[int, Float64]:
    """Return the values of the features that become indicators; none where they are too many."""
    found = {}
    for j in range(X.shape[1]):
        # Told apart as float32, as queries are.
        values = np.unique(X[:, j].astype(np.float32))
        if 3 <= len(values) <= FEW_VALUES and len(values) == len(np.unique(X[:, j])):
            found[j] = values.astype(np.float64)
    n_coded = X.shape[1] + sum(len(values) - 1 for values in found.values())
    return found if n_coded <= most else {}


def _knots(x: Float64) -> tuple[Float64, Float64]:
    """Return knots of the map to ranks, and their ranks; none of a feature of few values."""
    x = np.sort(x)
    at = np.unique(x[np.linspace(0, len(x) - 1, min(N_KNOTS, len(x))).astype(np.int64)])
    if len(at) <= FEW_VALUES:
        at = np.unique(x)
    if len(at) <= FEW_VALUES:
        return np.empty(0), np.empty(0)
    first, last = np.searchsorted(x, at), np.searchsorted(x, at, "right") - 1
    return at, (first + last) / (2 * (len(x) - 1))
