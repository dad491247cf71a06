"""What least squares fits: targets as columns, and the losses of values that miss them.

Classes are functions of one class against the rest; numbers are fitted as they are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from daskls.kernels.answers import rest_scores
from daskls.records import Codes, Float64, Mask, SolverSpec, Targets
from daskls.solvers.level_losses import Pinball
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


@dataclass(frozen=True, eq=False)
class CellAim:
    """The target columns Y (m, r) of one cell, of the functions of its classes, increasing.

    Y is None where one answer, (R,) for all functions of the model, is right for all rows.
    """

    Y: Float64 | None
    answer: Float64
    classes: Codes


@dataclass(frozen=True)
class Aim(ABC):
    """The target columns of a whole model, of ``n`` classes or numbers, and their losses.

    A squared error of `negligible` leaves nothing to gain; a learned scale must be better by
    `least_z` standard errors, as it has more ways to be best by chance.
    """

    n: int
    negligible: ClassVar[float]
    least_z: ClassVar[float]
    leaves_out_together: ClassVar[bool]

    @abstractmethod
    def of_cell(self, targets: Targets, weights: Float64) -> CellAim:
        """Return the target columns of a cell's rows."""

    @abstractmethod
    def columns(self, targets: Targets) -> Float64:
        """Return targets as columns, float64 (m, R), one per function of the whole model."""

    def kept(self, system: System, Y: Float64, ridges: Float64, *, offset: bool) -> Float64:
        """Return what is fitted of target columns: for squared errors all."""
        return Y

    @abstractmethod
    def left_out(
        self, merged: MergedRows, found: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        """Return each row's leave-one-out values, (m, r), from the solution of merged rows."""

    @abstractmethod
    def spread(self, values: Float64, own: CellAim) -> Float64:
        """Return values of a cell's functions, (m, r), as those of the whole model, (m, R)."""

    @abstractmethod
    def losses(
        self, values: Float64, Y: Float64, *, clipped: bool = False
    ) -> tuple[Float64, Float64]:
        """Return each row's mean squared error, and 1 where another class wins."""


class ClassAim(Aim):
    """Targets of +-1, one class against the rest; with two classes, only of the second."""

    negligible, least_z = 1e-3, 4.0
    leaves_out_together = True

    def of_cell(self, targets: Targets, weights: Float64) -> CellAim:
        found, present = np.unique(cast(Codes, targets), return_inverse=True)
        Y = signs_of(present, len(found)) if len(found) > 1 else None
        most = found[np.bincount(present, weights).argmax()]
        return CellAim(Y, rest_scores(None, np.array([most]), self.n).reshape(-1), found)

    def columns(self, targets: Targets) -> Float64:
        return signs_of(cast(Codes, targets), self.n)

    def left_out(
        self, merged: MergedRows, found: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        """Copies are left out with a row, as they would reveal its class."""
        assert found.held_out is not None
        return found.held_out[merged.of_row].astype(np.float64)

    def spread(self, values: Float64, own: CellAim) -> Float64:
        return rest_scores(values, own.classes, self.n).reshape(len(values), -1)

    def losses(
        self, values: Float64, Y: Float64, *, clipped: bool = False
    ) -> tuple[Float64, Float64]:
        compared = np.clip(values, -1.0, 1.0) if clipped else values
        squared = ((compared - Y) ** 2).mean(axis=1)
        if Y.shape[1] == 1:
            wrong: Mask = (values[:, 0] > 0) != (Y[:, 0] > 0)
        else:
            wrong = values.argmax(axis=1) != Y.argmax(axis=1)
        return squared, wrong.astype(np.float64)


class NumberAim(Aim):
    """Numbers around their center, in units of their scale."""

    # Some functions without noise are learned to a thousandth of their deviation. Standard errors
    # of squared errors prove little, as these have long tails.
    negligible, least_z = 1e-8, 1.0
    leaves_out_together = False

    def of_cell(self, targets: Targets, weights: Float64) -> CellAim:
        Y = cast(Float64, targets)
        is_constant = bool((Y[0] == Y).all())
        mean = Y[0] if is_constant else np.average(Y, axis=0, weights=weights)
        return CellAim(None if is_constant else Y, mean, np.empty(0, np.int32))

    def columns(self, targets: Targets) -> Float64:
        return cast(Float64, targets)

    def left_out(
        self, merged: MergedRows, found: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        all_rows = np.arange(len(merged.A))
        return without_one_copy(merged, found, ridges, Y, weights, all_rows)[1]

    def spread(self, values: Float64, own: CellAim) -> Float64:
        return values

    def losses(
        self, values: Float64, Y: Float64, *, clipped: bool = False
    ) -> tuple[Float64, Float64]:
        squared: Float64 = ((values - Y) ** 2).mean(axis=1)
        return squared, squared


@dataclass(frozen=True)
class RobustAim(NumberAim):
    """Numbers with outliers: least squares without these, and absolute errors beyond epsilon."""

    epsilon: float = 0.0
    negligible = 1e-4

    def of_cell(self, targets: Targets, weights: Float64) -> CellAim:
        found = super().of_cell(targets, weights)
        if found.Y is None:
            return found
        median = [Pinball().constant(column, weights, 0.5) for column in found.Y.T]
        return replace(found, answer=np.array(median))

    def kept(self, system: System, Y: Float64, ridges: Float64, *, offset: bool) -> Float64:
        return system.without_outliers(Y, ridges, offset=offset)

    def left_out(
        self, merged: MergedRows, found: Solution, ridges: Float64, Y: Float64, weights: Float64
    ) -> Float64:
        """Copies are left out with a row, as their mean is what was kept."""
        assert found.held_out is not None
        return found.held_out[merged.of_row].astype(np.float64)

    def losses(
        self, values: Float64, Y: Float64, *, clipped: bool = False
    ) -> tuple[Float64, Float64]:
        missed: Float64 = np.clip(np.abs(values - Y) - self.epsilon, 0.0, FAR_OFF).mean(axis=1)
        return missed, missed


def aim_of(target: Target, spec: SolverSpec) -> Aim:
    """Return the aim of a target, and of the loss in a spec.

    >>> aim_of(Target("classes", np.arange(3)), SolverSpec())
    ClassAim(n=3)
    """
    if target.kind == "classes":
        return ClassAim(target.n_aims)
    loss = find_loss(spec)
    if loss.is_robust:
        return RobustAim(target.n_aims, 0.0 if loss.of_levels else spec.tube)
    return NumberAim(target.n_aims)
