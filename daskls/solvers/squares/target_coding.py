"""The aims of least squares: targets as columns, and the losses of values that miss them.

Classes are functions of one class against the rest; numbers are fitted as they are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from daskls.records import Codes, Float64, Mask, SolverSpec, Targets
from daskls.solvers.registry import find_loss
from daskls.solvers.squares.system import (
    FAR_OFF,
    MergedRows,
    Solution,
    System,
    signs_of,
    without_one_copy,
)
from daskls.targets import Target


@dataclass(frozen=True)
class TargetCoding(ABC):
    """The target columns of a whole model, of ``n`` classes or numbers, and their losses.

    A squared error of `negligible` leaves nothing to gain; a learned scale must be better by
    `least_z` standard errors, as it has more ways to be best by chance.
    """

    n: int
    negligible: ClassVar[float]
    least_z: ClassVar[float]
    leaves_out_together: ClassVar[bool]

    @abstractmethod
    def columns(self, targets: Targets) -> Float64:
        """Return targets as columns, float64 (m, R), one per function of the whole model."""

    def fitted(self, system: System, Y: Float64, ridges: Float64, *, offset: bool) -> Float64:
        """Return what is fitted of target columns: for squared errors all."""
        return Y

    @abstractmethod
    def left_out(
        self, merged: MergedRows, solution: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        """Return each row's leave-one-out values, (m, r), from the solution of merged rows."""

    @abstractmethod
    def losses(self, values: Float64, Y: Float64) -> tuple[Float64, Float64]:
        """Return each row's mean squared error, up to +-1 of classes, and 1 where another wins."""


class ClassCoding(TargetCoding):
    """Targets of +-1, one class against the rest; with two classes, only of the second."""

    negligible, least_z = 1e-3, 4.0
    leaves_out_together = True

    def columns(self, targets: Targets) -> Float64:
        return signs_of(cast(Codes, targets), self.n)

    def left_out(
        self, merged: MergedRows, solution: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        """Copies are left out with a row, as they would reveal its class."""
        assert solution.held_out is not None
        return solution.held_out[merged.of_row].astype(np.float64)

    def losses(self, values: Float64, Y: Float64) -> tuple[Float64, Float64]:
        squared = ((np.clip(values, -1.0, 1.0) - Y) ** 2).mean(axis=1)
        if Y.shape[1] == 1:
            wrong: Mask = (values[:, 0] > 0) != (Y[:, 0] > 0)
        else:
            wrong = values.argmax(axis=1) != Y.argmax(axis=1)
        return squared, wrong.astype(np.float64)


class NumberCoding(TargetCoding):
    """Numbers around their center, in units of their scale."""

    # Some functions without noise are learned to a thousandth of their deviation. Standard errors
    # of squared errors prove little, as these have long tails.
    negligible, least_z = 1e-8, 1.0
    leaves_out_together = False

    def columns(self, targets: Targets) -> Float64:
        return cast(Float64, targets)

    def left_out(
        self, merged: MergedRows, solution: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        all_rows = np.arange(len(merged.A))
        return without_one_copy(merged, solution, ridges, Y, weights, all_rows)[1]

    def losses(self, values: Float64, Y: Float64) -> tuple[Float64, Float64]:
        squared: Float64 = ((values - Y) ** 2).mean(axis=1)
        return squared, squared


@dataclass(frozen=True)
class RobustCoding(NumberCoding):
    """Numbers with outliers: least squares without these, and absolute errors beyond epsilon."""

    epsilon: float = 0.0
    negligible = 1e-4

    def fitted(self, system: System, Y: Float64, ridges: Float64, *, offset: bool) -> Float64:
        return system.without_outliers(Y, ridges, offset=offset)

    def left_out(
        self, merged: MergedRows, solution: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        """Copies are left out with a row, as their mean is what was kept."""
        assert solution.held_out is not None
        return solution.held_out[merged.of_row].astype(np.float64)

    def losses(self, values: Float64, Y: Float64) -> tuple[Float64, Float64]:
        missed: Float64 = np.clip(np.abs(values - Y) - self.epsilon, 0.0, FAR_OFF).mean(axis=1)
        return missed, missed


def coding_of(target: Target, spec: SolverSpec) -> TargetCoding:
    """Return the aim of a target, and of the loss in a spec.

    >>> coding_of(Target("classes", np.arange(3)), SolverSpec())
    ClassCoding(n=3)
    """
    if target.kind == "classes":
        return ClassCoding(target.n_targets)
    loss = find_loss(spec)
    if loss.is_robust:
        return RobustCoding(target.n_targets, 0.0 if loss.of_levels else spec.tube)
    return NumberCoding(target.n_targets)
