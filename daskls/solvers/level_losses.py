"""Losses at a level, of quantiles and of expectiles: their best constants, and D2."""

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from daskls.records import Float64

# The limit of reweighted means for a constant expectile; no row changes sides after a few.
MAX_CONSTANT_ROUNDS = 100


class LevelLoss(ABC):
    """An asymmetric loss: rows above the answer count by the level, rows below by 1 - level."""

    @abstractmethod
    def losses(self, missed: npt.ArrayLike, level: float) -> Float64:
        """Return the loss of each row, in the shape of ``missed``, which is y - answer."""

    @abstractmethod
    def constant(self, y: Float64, weights: Float64, level: float) -> float:
        """Return the constant of the least weighted loss; y and weights have shape (m,)."""

    def mean(self, missed: Float64, level: float, weights: Float64 | None = None) -> float:
        return float(np.average(self.losses(missed, level), weights=weights))

    def constant_loss(self, y: Float64, level: float, weights: Float64 | None = None) -> float:
        ones = np.ones(len(y)) if weights is None else weights
        return self.mean(y - self.constant(y, ones, level), level, ones)

    def d2(
        self, y: Float64, values: Float64, level: float, weights: Float64 | None = None
    ) -> float:
        """Return D2; where the constant loses nothing, 1 for no loss, else 0, as scikit-learn."""
        ones = np.ones(len(y)) if weights is None else weights
        best = self.constant_loss(y, level, ones)
        lost = self.mean(y - values, level, ones)
        if best == 0.0:
            return float(lost == 0.0)
        return 1.0 - lost / best


class Pinball(LevelLoss):
    """The pinball loss, whose mean quantiles minimize: Koenker, Bassett 1978."""

    def losses(self, missed: npt.ArrayLike, level: float) -> Float64:
        """Return the loss of each row.

        >>> Pinball().losses(np.array([-1.0, 2.0]), 0.25)
        array([0.75, 0.5 ])
        """
        missed = np.asarray(missed, np.float64)
        return np.maximum(level * missed, (level - 1.0) * missed)

    def constant(self, y: Float64, weights: Float64, level: float) -> float:
        """The least y at which the cumulative weight reaches the level's share.

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
        """scikit-learn's, whose constant is a percentile of its own kind."""
        # Imported here, as workers that train need no metrics, which hold 50 MiB.
        from sklearn.metrics import d2_pinball_score

        return float(d2_pinball_score(y, values, alpha=level, sample_weight=weights))


class Expectile(LevelLoss):
    """Asymmetric squared errors, whose mean expectiles minimize: Newey, Powell 1987."""

    def losses(self, missed: npt.ArrayLike, level: float) -> Float64:
        """Return the loss of each row.

        >>> Expectile().losses(np.array([-1.0, 2.0]), 0.25)
        array([0.75, 1.  ])
        """
        missed = np.asarray(missed, np.float64)
        losses: Float64 = np.where(missed > 0, level, 1.0 - level) * missed**2
        return losses

    def constant(self, y: Float64, weights: Float64, level: float) -> float:
        """At level 1/2 the mean.

        >>> round(Expectile().constant(np.array([0.0, 1.0]), np.ones(2), 0.75), 12)
        0.75
        """
        constant = float(np.average(y, weights=weights))
        for _ in range(MAX_CONSTANT_ROUNDS):
            side_weights = weights * np.where(y > constant, level, 1.0 - level)
            last, constant = constant, float(np.average(y, weights=side_weights))
            if constant == last:
                break
        return constant
