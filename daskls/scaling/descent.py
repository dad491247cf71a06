"""Coordinate descent of one candidate to its best width and ridge, by its squared error.

Of a few thousand rows the first train and the last are predicted; those that train too are
predicted without themselves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.records import Float32, Float64, Int64, KernelSpec
from daskls.scaling.grid import Trial, TrialGrid
from daskls.solvers.squares.aims import Aim
from daskls.solvers.squares.system import System, median_distance, merge_groups


@dataclass(frozen=True, eq=False)
class Answers:
    """The errors of each predicted row under a trial: mean squares, and whether it is wrong."""

    squared: Float64
    wrong: Float64

    @classmethod
    def joined(cls, parts: "Iterable[Answers]") -> "Answers":
        own = list(parts)
        return cls(
            *(np.concatenate([getattr(part, n) for part in own]) for n in ("squared", "wrong"))
        )


class TrialSplit:
    """Training rows, and rows to predict, in one coding and scale, solved under many trials.

    Of Y (n, r) the first `n_training` rows train, the last `n_asked` are predicted, left out in
    turn if they train, too.
    """

    def __init__(
        self,
        A: Float32,
        Y: Float64,
        weights: Float64,
        n_training: int,
        n_asked: int,
        kernel: str,
        aim: Aim,
        copies: tuple[Int64, Int64] | None = None,
    ) -> None:
        self._aim = aim
        first = len(A) - n_asked
        self._asked = A[n_training:]
        self._left_out = np.arange(first, n_training)
        self._Y, self._Y_asked = Y[:n_training], Y[first:]
        self._weights, self._kernel = weights[:n_training], find_kernel(kernel)
        self._merged = merge_groups(A[:n_training], self._Y, self._weights, copies)
        self._A = self._merged.A
        self._unit = median_distance(kernel, self._A)
        self._base = self._kernel.matrix(self._A.astype(np.float64))
        self._far = self._distances() if len(self._asked) else None
        self._spec: KernelSpec | None = None

    def _distances(self) -> Float32:
        block = self._kernel.block(self._asked.astype(np.float64), self._A.astype(np.float64))
        return block.astype(np.float32)

    def _enter(self, trial: Trial) -> None:
        """Compute the kernel values at a trial's width, unless they are those at hand."""
        gamma = trial.width if trial.is_gamma else self._kernel.gamma_of(trial.width * self._unit)
        spec = KernelSpec(trial.kernel, gamma)
        if spec == self._spec:
            return
        self._spec = spec
        self._system = System(self._A, spec, self._base)
        if self._far is not None:
            self._K = np.empty_like(self._far)
            self._kernel.write(self._far, spec, self._K)

    def errors(self, trial: Trial) -> Answers:
        self._enter(trial)
        merged, is_merged = self._merged, len(self._A) < len(self._Y)
        ridges = trial.ridge / merged.weights
        # Of rows without copies only those that are asked for need held-out values.
        held_out = False if self._far is not None else is_merged or self._left_out
        Y = self._aim.kept(self._system, merged.Y, ridges, offset=trial.offset)
        solved = self._system.solve(Y, ridges, offset=trial.offset, held_out=held_out)
        if self._far is not None:
            values = self._K @ solved.alpha.astype(np.float32) + solved.offsets
        elif is_merged:
            given = merged, solved, ridges, self._Y, self._weights
            values = self._aim.left_out(*given)[self._left_out]
        else:
            assert solved.held_out is not None
            values = solved.held_out.astype(np.float64)
        return Answers(*self._aim.losses(values, self._Y_asked, clipped=True))


def descend(
    splits: Sequence[TrialSplit],
    start: Trial,
    grid: TrialGrid,
    weights: Float64,
    reaches: Sequence[int],
    most: int,
) -> tuple[Trial, Answers, int]:
    """Find the best trial by coordinate descent on a grid.

    For each descent in turn, `reaches` say by how many grid places a step moves the ridge; a step
    always moves the width by an octave. Returns the trial, its answers, and the number of trials.
    """
    descent = _Descent(splits, grid, start.kernel, weights, most)
    place = grid.place(start)
    for reach in reaches:
        before = None
        while place != before:
            before = place
            for step in ((grid.octave, 0), (-grid.octave, 0), (0, reach), (0, -reach)):
                place = descent.slide(place, step)
    trial = grid.at(place, start.kernel)
    assert trial is not None
    return trial, descent.answers(place), len(descent.found)


class _Descent:
    """The places of a grid that were evaluated, and the steps between them."""

    def __init__(
        self,
        splits: Sequence[TrialSplit],
        grid: TrialGrid,
        kernel: str,
        weights: Float64,
        most: int,
    ) -> None:
        self._splits, self._grid, self._kernel = splits, grid, kernel
        self._weights, self._most = weights, most
        self.found: dict[tuple[int, int], Answers] = {}

    def slide(self, place: tuple[int, int], step: tuple[int, int]) -> tuple[int, int]:
        while True:
            following = place[0] + step[0], place[1] + step[1]
            # The place itself first, so that a start is evaluated before the limit applies.
            here = self._cost(place)
            if not self._cost(following) < here:
                return place
            place = following

    def answers(self, place: tuple[int, int]) -> Answers:
        if place not in self.found:
            trial = self._grid.at(place, self._kernel)
            assert trial is not None
            self.found[place] = Answers.joined(split.errors(trial) for split in self._splits)
        return self.found[place]

    def _cost(self, place: tuple[int, int]) -> float:
        """Return the mean squared error at a place; infinity off the grid or beyond the limit."""
        if place not in self.found and (
            self._grid.at(place, self._kernel) is None or len(self.found) >= self._most
        ):
            return np.inf
        return float(np.average(self.answers(place).squared, weights=self._weights))
