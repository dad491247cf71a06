"""Codings of features, as ranks or as indicators of few values, and their spread."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskls.records import Coding, FeatureCoding, FeatureScale, Float64, Reals

LOW, HIGH = 0.05, 0.95
# The range between these quantiles of a normal distribution, in standard deviations: features for
# which the deviation replaces the range are then as wide as the others.
DEVIATIONS = 3.29
# The ratio of the largest spread to the smallest beyond which narrow features hardly contribute to
# distances; and that of standard deviations, which are cheaper, above which spreads are computed.
MAX_RATIO, SUSPECT_RATIO = 1e3, 1e2
# A feature whose range is below this share of its standard deviation has one value in most rows.
RARE_RANGE = 0.1
# A feature with at most this many values may be categorical; ranks would hold no more information.
FEW_VALUES = 20
# Most knots of a map to ranks: less than half a percent of the sample lies between two of them.
N_KNOTS = 257
# Coded rows may take this many bytes, or, with more rows, this multiple of the bytes before coding.
CODED_NBYTES, MOST_TIMES = 256 << 20, 2


@dataclass(frozen=True, eq=False)
class BaseCoding:
    """One coding of features, and its base scale, by the spread of features not coded."""

    name: Coding
    scale: FeatureScale
    spread: Float64

    @property
    def n_features(self) -> int:
        return len(self.spread)


def find_bases(X: Reals, codings: Sequence[Coding], most: int) -> list[BaseCoding]:
    """Return the codings that differ on sampled rows; ``most`` bounds the coded features."""
    center, spread = X.mean(axis=0, dtype=np.float64), spreads(X)
    bases, seen = [], set()
    for name in codings:
        coding = fit_coding(X, name, most)
        key = None if coding is None else (coding.ptr.tobytes(), coding.points.tobytes())
        if key in seen:
            continue
        seen.add(key)
        bases.append(_base_of(name if coding else "none", coding, center, spread))
    return bases


def _base_of(
    name: Coding, coding: FeatureCoding | None, center: Float64, spread: Float64
) -> BaseCoding:
    if coding is not None:
        is_coded = np.diff(coding.ptr) > 0
        # Ranks are centered at a half; indicators at 0, as most rows have 0 in each.
        middle = np.where(coding.is_indicated, 0.0, 0.5)
        center = np.where(is_coded, middle, center)[coding.sources]
        spread = np.where(is_coded, 1.0, spread)[coding.sources]
    return BaseCoding(name, FeatureScale(center, 1 / spread, coding), spread)


def max_coded_features(n_rows: int, n_features: int) -> int:
    """Return the most coded features, a function of the data's shape alone.

    >>> max_coded_features(10_000, 10), max_coded_features(10_000_000, 28)
    (6710, 56)
    """
    return max(CODED_NBYTES // (4 * n_rows), MOST_TIMES * n_features)


def fit_coding(X: Reals, coding: Coding, most: int) -> FeatureCoding | None:
    """Return a coding fitted to sampled rows; None where it would leave every feature as it is.

    "ranks": features of more than `FEW_VALUES` values become their rank in [0, 1], as by
    scikit-learn's ``QuantileTransformer``, equal values the mean of their ranks; "indicators": each
    value of a feature with 3 to `FEW_VALUES` values becomes one, unless they are more than `most`;
    "both".

    >>> fit_coding(np.array([[3.0], [7.0], [5.0], [3.0]]), "indicators", 10).points
    array([3., 5., 7.])
    """
    points, ranks = [], []
    indicated = _indicated(X, most) if coding in ("indicators", "both") else {}
    for j in range(X.shape[1]):
        knots: tuple[Float64, Float64] = np.empty(0), np.empty(0)
        if j in indicated:
            knots = indicated[j], np.full(len(indicated[j]), -1.0)
        elif coding in ("ranks", "both"):
            knots = _knots(X[:, j].astype(np.float64))
        points.append(knots[0])
        ranks.append(knots[1])
    ptr = np.r_[0, np.cumsum([len(p) for p in points])].astype(np.int64)
    if not ptr[-1]:
        return None
    return FeatureCoding(ptr, np.concatenate(points), np.concatenate(ranks))


def _indicated(X: Reals, most: int) -> dict[int, Float64]:
    """Return the values of each feature that becomes indicators; none if they are too many."""
    indicated = {}
    for j in range(X.shape[1]):
        # Compared as float32, as queries are.
        values = np.unique(X[:, j].astype(np.float32))
        if 3 <= len(values) <= FEW_VALUES and len(values) == len(np.unique(X[:, j])):
            indicated[j] = values.astype(np.float64)
    n_coded = X.shape[1] + sum(len(values) - 1 for values in indicated.values())
    return indicated if n_coded <= most else {}


def _knots(x: Float64) -> tuple[Float64, Float64]:
    """Return the knots of the map to ranks, and their ranks; none for a feature of few values."""
    x = np.sort(x)
    at = np.unique(x[np.linspace(0, len(x) - 1, min(N_KNOTS, len(x))).astype(np.int64)])
    if len(at) <= FEW_VALUES:
        at = np.unique(x)
    if len(at) <= FEW_VALUES:
        return np.empty(0), np.empty(0)
    first, last = np.searchsorted(x, at), np.searchsorted(x, at, "right") - 1
    return at, (first + last) / (2 * (len(x) - 1))


def spreads(X: Reals) -> Float64:
    """Return the range of each feature from the 5th to the 95th percentile, float64 (d,), > 0.

    If the range is 0, 3.29 standard deviations; for a constant, 1. For a feature of two values
    their difference, if others have more: by its deviation a category of one row in 1000 would be
    ten times as far from others as a frequent one.

    >>> spreads(np.c_[np.arange(101.0), np.arange(101) == 7, np.full(101, 7.0)])
    array([90.,  1.,  1.])
    >>> spreads(np.arange(101)[:, None] == 7).round(2)
    array([0.33])
    """
    d = X.shape[1]
    spread, ranges, has_two = np.empty(d), np.empty(d), np.empty(d, dtype=bool)
    # One feature at a time, as sorting copies, and the sample may be most of the client's memory.
    for j in range(d):
        x = X[:, j].astype(np.float64)
        low, high = np.quantile(x, (LOW, HIGH))
        spread[j] = high - low if high > low else DEVIATIONS * x.std()
        least, most = x.min(), x.max()
        has_two[j] = ((x == least) | (x == most)).all()
        ranges[j] = most - least
    if not has_two.all():
        spread = np.where(has_two, ranges, spread)
    # Rounding of the mean can make a constant's standard deviation nonzero.
    return np.where((ranges == 0) | (spread == 0), 1.0, spread)


def widest_and_narrowest(X: Reals, *, with_rare: bool = True) -> tuple[int, int, float] | None:
    """Return the features of the largest and the smallest spread, and the ratio of their spreads.

    None where it is at most 1000. `with_rare` includes features with one value in about nine rows
    of ten: marginal pixels have a small spread, but not because of their unit.

    >>> widest_and_narrowest(np.c_[np.arange(9.0), 1e-4 * np.arange(9.0), np.ones(9)])
    (0, 1, 10000.0)
    """
    deviations = X.std(axis=0, dtype=np.float64)
    varying = np.flatnonzero((X[:1] != X).any(axis=0))
    varying_stds = deviations[varying]
    if not len(varying_stds) or varying_stds.max() <= SUSPECT_RATIO * varying_stds.min():
        return None
    if not with_rare:
        ranges = np.array([np.ptp(np.quantile(X[:, j], (LOW, HIGH))) for j in varying])
        varying = varying[ranges > RARE_RANGE * varying_stds]
    spread = spreads(X)[varying]
    if not len(spread):
        return None
    ratio = float(spread.max() / spread.min())
    if ratio <= MAX_RATIO:
        return None
    return int(varying[spread.argmax()]), int(varying[spread.argmin()]), round(ratio, 6)
