"""What an answer at a level loses, the constant that loses least, and D2, which compares both.

Light: estimators score by it, and load no solver.
"""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
from sklearn.metrics import d2_pinball_score

from daskls.records import Float64

__all__ = ["Expectile", "LevelLoss", "Pinball"]

# The mean of squares with fixed weights is found anew until no row changes sides: a few times.
MOST_ROUNDS = 100


class LevelLoss(ABC):
    """An asymmetric loss: above an answer a row counts by the level, below by 1 less the level."""

    @abstractmethod
    def losses(self, missed: npt.ArrayLike, level: float) -> Float64:
        """Return the loss of each row, in the shape of ``missed``, y less the answer."""

    @abstractmethod
    def constant(self, y: Float64, weights: Float64, level: float) -> float:
        """Return the constant of the least weighted loss, for y of shape (m,)."""

    def mean(self, missed: Float64, level: float, weights: Float64 | None = None) -> float:
        """Return the weighted mean of losses."""
        return float(np.average(self.losses(missed, level), weights=weights))

    def constant_loss(self, y: Float64, level: float, weights: Float64 | None = None) -> float:
        """Return the mean loss of the best constant, for y of shape (m,)."""
        ones = np.ones(len(y)) if weights is None else weights
        return self.mean(y - self.constant(y, ones, level), level, ones)

    def d2(
        self, y: Float64, values: Float64, level: float, weights: Float64 | None = None
    ) -> float:
        """Return D2: 1 less the loss in units of the best constant's.

        As scikit-learn's scores: where the constant loses nothing, 1 if the values do neither,
        else 0.
        """
        ones = np.ones(len(y)) if weights is None else weights
        best = self.constant_loss(y, level, ones)
        lost = self.mean(y - values, level, ones)
        if best == 0.0:
            return float(lost == 0.0)
        return 1.0 - lost / best


class Pinball(LevelLoss):
    """Absolute errors, of which quantiles minimize the mean: Koenker, Bassett 1978."""

    def losses(self, missed: npt.ArrayLike, level: float) -> Float64:
        """As of `LevelLoss`.

        >>> Pinball().losses(np.array([-1.0, 2.0]), 0.25)
        array([0.75, 0.5 ])
        """
        missed = np.asarray(missed, np.float64)
        return np.maximum(level * missed, (level - 1.0) * missed)

    def constant(self, y: Float64, weights: Float64, level: float) -> float:
        """As of `LevelLoss`: the least number that so large a share of the weight does not exceed.

        >>> Pinball().constant(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
        2.0
        """
        order = np.argsort(y, kind="stable")
        reached = np.cumsum(weights[order])
        place = np.searchsorted(reached, reached[-1] * level)
        return float(y[order][min(int(place), len(y) - 1)])

    def d2(
        self, y: Float64, values: Float64, level: float, weights: Float64 | None = None
    ) -> float:
        """As of `LevelLoss`: scikit-learn's, whose constant is a percentile of its own kind."""
        return float(d2_pinball_score(y, values, alpha=level, sample_weight=weights))


class Expectile(LevelLoss):
    """Squared errors, of which expectiles minimize the mean: Newey, Powell 1987."""

    def losses(self, missed: npt.ArrayLike, level: float) -> Float64:
        """As of `LevelLoss`.

        >>> Expectile().losses(np.array([-1.0, 2.0]), 0.25)
        array([0.75, 1.  ])
        """
        missed = np.asarray(missed, np.float64)
        found: Float64 = np.where(missed > 0, level, 1.0 - level) * missed**2
        return found

    def constant(self, y: Float64, weights: Float64, level: float) -> float:
        """As of `LevelLoss`: of the level 1/2 the mean.

        >>> round(Expectile().constant(np.array([0.0, 1.0]), np.ones(2), 0.75), 12)
        0.75
        """
        found = float(np.average(y, weights=weights))
        for _ in range(MOST_ROUNDS):
            own = weights * np.where(y > found, level, 1.0 - level)
            last, found = found, float(np.average(y, weights=own))
            if found == last:
                break
        return found
