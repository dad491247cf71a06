"""Errors of candidates on the same rows, compared in pairs."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from daskls.records import Float64, Int64

# A learned scale, by its name among the scales of candidates.
LEARNED = "learned"
# It is also tried without the features whose factors are below these shares of the largest, and
# without the smaller half. Of many uninformative features, chance decides which end at a small
# factor and which at 0; each one that is kept makes cells less dense and models larger.
WEAK_SHARES = (0.3, 0.1, 0.03)
# The fewest groups of rows for a comparison.
LEAST_GROUPS = 10


@dataclass(frozen=True, eq=False)
class RowErrors:
    """A candidate's errors on held-out rows; each group, or row, counts as one observation."""

    squared: Float64
    wrong: Float64
    weights: Float64
    groups: Int64 | None = None

    @property
    def squared_error(self) -> float:
        return _mean(self.squared, self.weights)

    @property
    def error(self) -> float:
        return _mean(self.wrong, self.weights)

    def z_over(self, old: "RowErrors") -> float:
        """Return by how many standard errors these are smaller; 0 for too few groups."""
        return self._z(old.squared - self.squared)

    def z_of_fewer_wrong(self, old: "RowErrors") -> float:
        return self._z(old.wrong - self.wrong)

    def passes(self, old: "RowErrors", least_z: float) -> bool:
        """Whether squared errors are smaller by ``least_z`` standard errors, no more wrong."""
        return self.z_over(old) > least_z and self.error <= old.error

    def _z(self, differences: Float64) -> float:
        gain = self.weights * differences
        if self.groups is not None:
            gain = np.bincount(self.groups, gain).astype(np.float64)
        if len(gain) < LEAST_GROUPS:
            return 0.0
        spread = np.sqrt(((gain - gain.mean()) ** 2).sum())
        return float(gain.sum() / spread) if spread > 0 else 0.0


# The errors of a candidate before it is evaluated.
NO_ERRORS = RowErrors(np.empty(0), np.empty(0), np.empty(0))


def _mean(values: Float64, weights: Float64) -> float:
    """Return a weighted mean; 0 of no rows, as few rows may leave none held out."""
    return float(np.average(values, weights=weights)) if len(values) else 0.0


def without_weak(factors: Float64) -> list[Float64]:
    """Return the factors with weak ones set to 0, for each limit that drops more; fewest first.

    >>> [own.tolist() for own in without_weak(np.array([1.0, 0.5, 0.4, 0.05, 0.0]))]
    [[1.0, 0.5, 0.0, 0.0, 0.0], [1.0, 0.5, 0.4, 0.0, 0.0]]
    """
    shares = [share * factors.max() for share in WEAK_SHARES]
    limits = sorted([*shares, np.median(factors[factors > 0])], reverse=True)
    found = [np.where(factors < limit, 0.0, factors) for limit in limits]
    counts = pairwise(np.count_nonzero(own) for own in (*found, factors))
    return [own for own, (n, n_next) in zip(found, counts, strict=True) if n < n_next]
