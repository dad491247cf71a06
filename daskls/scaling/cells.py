"""Cells under trial: what a kernel, a width and a ridge make of rows held out or left out.

Width and ridge descend from one place of a grid to the next. A learned scale descends along the
slopes of the leave-one-out error by the factors of features. Source: Chapelle, Vapnik, Bousquet,
Mukherjee, Choosing multiple parameters for support vector machines, Machine Learning 2002.
Differences: least squares, whose leave-one-out error is exact; few rounds, of which the best
counts.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from daskls.kernels.copies import find_copies
from daskls.kernels.kernel import find_kernel
from daskls.records import Float32, Float64, Int64, KernelSpec, Targets
from daskls.scaling.grid import Trial, TrialGrid
from daskls.solvers.squares.system import System, median_distance, merge_groups
from daskls.solvers.squares.target_coding import TargetCoding

N_LEARNING_ROUNDS = 7
# Of a round: the length of a usual step in logarithms, the most of these in one round, the share of
# the step before that it keeps; and the most that a logarithm grows in all rounds.
STEP, MOST_STEPS, MOMENTUM, MOST_GROWTH = 0.4, 2.0, 0.5, 3.0


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows in one coding, features (n, d); errors in a group, a run of rows, may be correlated."""

    X: Float32
    targets: Targets
    weights: Float64
    groups: Int64

    def take(self, rows: slice | Int64) -> Self:
        return type(self)(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True, eq=False)
class TrialRows:
    """Rows of a cell, of which the first train and the last are predicted.

    Rows that train, too, are predicted without themselves. `ids` order what cells predict.
    """

    rows: CodedRows
    n_training: int
    ids: Int64

    @property
    def first_predicted(self) -> int:
        return len(self.rows.X) - len(self.ids)

    @property
    def predicted(self) -> CodedRows:
        return self.rows.take(slice(self.first_predicted, None))


@dataclass(frozen=True, eq=False)
class TrialErrors:
    """The errors of predicted rows under a trial: mean squares, and whether each is wrong."""

    squared: Float64
    wrong: Float64

    @classmethod
    def joined(cls, parts: "Iterable[TrialErrors]") -> "TrialErrors":
        errors = list(parts)
        return cls(
            *(np.concatenate([getattr(part, n) for part in errors]) for n in ("squared", "wrong"))
        )


class TrialCell:
    """A cell in one coding and scale, solved under many trials of a kernel."""

    def __init__(self, cell: TrialRows, factors: Float64, kernel: str, aim: TargetCoding) -> None:
        self._aim, rows, n, first = aim, cell.rows, cell.n_training, cell.first_predicted
        A, Y = rows.X * factors.astype(np.float32), aim.columns(rows.targets)
        # Around their mean, so that float32 products lose no digits to the distance of the origin.
        A -= A[:n].mean(axis=0, dtype=np.float64).astype(np.float32)
        self._queries, self._left_out = A[n:], np.arange(first, n)
        # Of a class that a cell lacks its model has no function: such targets are not fitted.
        self._answer, self._Y_last, self._varies = Y[:1], Y[first:], (Y[:n] != Y[0]).any(axis=0)
        self._Y = Y[:n, self._varies] if self._varies.any() else Y[:n]
        self._weights, self._kernel = rows.weights[:n], find_kernel(kernel)
        # As they were before scaling: rows that a scale makes equal stay rows of their own.
        self._merged = merge_groups(A[:n], self._Y, self._weights, find_copies(rows.X[:n]))
        self._A = self._merged.A
        self._unit = median_distance(kernel, self._A)
        self._base = self._kernel.matrix(self._A.astype(np.float64))
        self._far = self._distances() if len(self._queries) else None
        self._spec: KernelSpec | None = None

    def _distances(self) -> Float32:
        block = self._kernel.block(self._queries.astype(np.float64), self._A.astype(np.float64))
        return block.astype(np.float32)

    def _enter(self, trial: Trial) -> None:
        """Compute the kernel values at a trial's width, unless they are those at hand."""
        gamma = trial.width if trial.is_gamma else self._kernel.gamma_of(trial.width * self._unit)
        spec = KernelSpec(trial.kernel, gamma)
        if spec == self._spec:
            return
        self._spec, self._system = spec, System(self._A, spec, self._base)
        if self._far is not None:
            self._K = np.empty_like(self._far)
            self._kernel.write(self._far, spec, self._K)

    def errors(self, trial: Trial) -> TrialErrors:
        predicted = np.repeat(self._answer, len(self._Y_last), axis=0)
        if self._varies.any():
            predicted[:, self._varies] = self._values(trial)
        return TrialErrors(*self._aim.losses(predicted, self._Y_last))

    def _values(self, trial: Trial) -> Float64:
        self._enter(trial)
        merged, is_merged = self._merged, len(self._A) < len(self._Y)
        ridges = trial.ridge / merged.weights
        # Of rows without copies only those that are asked for need held-out values.
        held_out = False if self._far is not None else is_merged or self._left_out
        Y = self._aim.fitted(self._system, merged.Y, ridges, offset=trial.offset)
        solved = self._system.solve(Y, ridges, offset=trial.offset, held_out=held_out)
        if self._far is not None:
            return self._K @ solved.alpha.astype(np.float32) + solved.offsets
        if is_merged:
            args = merged, solved, ridges, self._Y, self._weights
            return self._aim.left_out(*args)[self._left_out]
        assert solved.held_out is not None
        return solved.held_out.astype(np.float64)

    def error_slopes(self, trial: Trial) -> Float64:
        """Return how leave-one-out errors change with the width and with the factors of features.

        Sums (3 + d,): weights of rows; squared errors; their derivatives by the logarithms of the
        width, in units of the median distance, and of the factors. Copies are left out together.
        """
        # One distinct row has no distance, and an offset leaves no value without it.
        if not self._varies.any() or len(self._A) == 1:
            return np.zeros(3 + self._A.shape[1])
        self._enter(trial)
        merged, kernel = self._merged, self._kernel
        assert self._spec is not None
        ridges = trial.ridge / merged.weights
        fitted = self._aim.fitted(self._system, merged.Y, ridges, offset=trial.offset)
        args = fitted, ridges, merged.weights
        error, by_values = self._system.error_slopes(*args, offset=trial.offset)
        by_values = by_values.astype(np.float32, copy=False)
        slopes = kernel.scale_slopes(self._A, by_values, self._system.matrix32(), self._spec)
        by_width = 0.0
        if not trial.is_gamma:
            by_width = -slopes.sum()
            # A larger factor makes the median distance longer, which the width follows.
            slopes += by_width * kernel.shares(self._A)
        return np.concatenate([[merged.weights.sum(), error, by_width], slopes])


def errors_of_mean(cell: TrialRows, aim: TargetCoding) -> Float64:
    Y, n = aim.columns(cell.rows.targets), cell.n_training
    mean = np.average(Y[:n], axis=0, weights=cell.rows.weights[:n])
    predicted = Y[cell.first_predicted :]
    return aim.losses(np.broadcast_to(mean, predicted.shape), predicted)[0]


def descend(
    cells: Sequence[TrialCell],
    start: Trial,
    grid: TrialGrid,
    weights: Float64,
    ridge_steps: Sequence[int],
    most: int,
    enough: float = 0.0,
) -> tuple[Trial, TrialErrors, int]:
    """Find the best trial by coordinate descent on a grid.

    For each descent in turn, `ridge_steps` say by how many grid places a step moves the ridge; a
    step always moves the width by a factor of two. No step is taken below a squared error that is
    `enough`: larger ridges cost less. Returns the trial, its errors, and the number of trials.
    """
    descent = _Descent(cells, grid, start.kernel, weights, most, enough)
    place = grid.place(start)
    for ridge_step in ridge_steps:
        before = None
        while place != before:
            before = place
            for step in (
                (grid.doubling, 0),
                (-grid.doubling, 0),
                (0, ridge_step),
                (0, -ridge_step),
            ):
                place = descent.slide(place, step)
    trial = grid.at(place, start.kernel)
    assert trial is not None
    return trial, descent.errors(place), len(descent.evaluated)


class _Descent:
    """The places of a grid that were evaluated, and the steps between them."""

    def __init__(
        self,
        cells: Sequence[TrialCell],
        grid: TrialGrid,
        kernel: str,
        weights: Float64,
        most: int,
        enough: float,
    ) -> None:
        self._cells, self._grid, self._kernel = cells, grid, kernel
        self._weights, self._most, self._enough = weights, most, enough
        self.evaluated: dict[tuple[int, int], TrialErrors] = {}

    def slide(self, place: tuple[int, int], step: tuple[int, int]) -> tuple[int, int]:
        while True:
            following = place[0] + step[0], place[1] + step[1]
            # The place itself first, so that a start is evaluated before the limit applies.
            here = self._cost(place)
            if here < self._enough or not self._cost(following) < here:
                return place
            place = following

    def errors(self, place: tuple[int, int]) -> TrialErrors:
        if place not in self.evaluated:
            trial = self._grid.at(place, self._kernel)
            assert trial is not None
            self.evaluated[place] = TrialErrors.joined(cell.errors(trial) for cell in self._cells)
        return self.evaluated[place]

    def _cost(self, place: tuple[int, int]) -> float:
        """Return the mean squared error at a place; infinity off the grid or beyond the limit."""
        if place not in self.evaluated and (
            self._grid.at(place, self._kernel) is None or len(self.evaluated) >= self._most
        ):
            return np.inf
        return float(np.average(self.errors(place).squared, weights=self._weights))


def learn_factors(
    cells: Sequence[TrialRows], start: Float64, trial: Trial, aim: TargetCoding
) -> tuple[Float64, Trial]:
    """Return factors learned on the training rows of cells, and the trial they led to."""

    def slopes_at(factors: Float64, trial: Trial) -> Float64:
        sums = np.zeros(3 + len(start))
        for rows in cells:
            sums += TrialCell(rows, factors, trial.kernel, aim).error_slopes(trial)
        return sums

    return descend_slopes(slopes_at, start, trial)


def descend_slopes(
    slopes_at: Callable[[Float64, Trial], Float64], start: Float64, trial: Trial
) -> tuple[Float64, Trial]:
    """Return the factors and the width of the least leave-one-out error in some rounds.

    Each round moves their logarithms against the slopes, in units of their root mean square, and
    some of the way of the round before.

    >>> def slopes_at(factors, trial):
    ...     left = np.log(np.append(trial.width, factors)) - np.log([1.0, 2.0, 0.5])
    ...     return np.concatenate([[1.0, left @ left], 2 * left])
    >>> factors, trial = descend_slopes(slopes_at, np.ones(2), Trial("rbf", 1.0, 0.1))
    >>> bool((np.abs(np.log(factors / [2.0, 0.5])) < 0.2).all()), trial.ridge
    (True, 0.1)
    """
    place, step = np.zeros(1 + len(start)), np.zeros(1 + len(start))
    least, best = np.inf, place
    for _ in range(N_LEARNING_ROUNDS):
        width = float(trial.width * np.exp(place[0]))
        weight, error, *by_log = slopes_at(start * np.exp(place[1:]), replace(trial, width=width))
        slopes = np.array(by_log)
        size = np.sqrt(np.mean(slopes**2))
        if not 0 < size < np.inf:
            break
        if error / weight < least:
            least, best = error / weight, place
        step = MOMENTUM * step - slopes / size
        moved = place + STEP * np.clip(step, -MOST_STEPS, MOST_STEPS)
        place = np.minimum(moved, MOST_GROWTH)
    width = float(trial.width * np.exp(best[0]))
    return start * np.exp(best[1:]), replace(trial, width=width)
