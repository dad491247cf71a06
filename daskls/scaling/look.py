"""A look at one candidate: the errors of models of some rows on rows that they did not see.

Of a few thousand rows the first train and the others are answered; where there are no others, each
is answered without itself. Width and ridge climb down to the least squared error, from where the
candidate was seen last.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.records import Float32, Float64, KernelSpec
from daskls.scaling.grid import Trial, TrialGrid
from daskls.solvers.squares.aims import Aim
from daskls.solvers.squares.system import System, median_distance


@dataclass(frozen=True, eq=False)
class Answers:
    """The errors of each answered row under a trial.

    Attributes
    ----------
    squared : float64 array, shape (q,). The mean over functions, those of classes clipped to
        [-1, 1].
    wrong : float64 array, shape (q,). 1 where another class won; of numbers the squared error.
    """

    squared: Float64
    wrong: Float64

    @classmethod
    def joined(cls, parts: "Iterable[Answers]") -> "Answers":
        """Return the answers of several looks, one after the other."""
        own = list(parts)
        return cls(
            *(np.concatenate([getattr(part, n) for part in own]) for n in ("squared", "wrong"))
        )


class Look:
    """Rows in one coding and scale, solved again and again.

    Parameters
    ----------
    A : float32 array, shape (n, d)
    Y : float64 array, shape (n, r). Columns of targets, see `Aim`.
    weights : float64 array, shape (n,)
    n_training : int. Of the first rows; all of them: each is left out in its turn.
    kernel : str
    aim : Aim
    """

    def __init__(
        self, A: Float32, Y: Float64, weights: Float64, n_training: int, kernel: str, aim: Aim
    ) -> None:
        self._aim = aim
        self._A, self._asked = A[:n_training], A[n_training:]
        self._Y, self._Y_asked = Y[:n_training], Y[n_training:] if len(A) > n_training else Y
        self._weights, self._kernel = weights[:n_training], find_kernel(kernel)
        self._unit = median_distance(kernel, self._A)
        self._base = self._kernel.matrix(self._A.astype(np.float64))
        self._far = self._distances() if len(self._asked) else None
        self._spec: KernelSpec | None = None

    def _distances(self) -> Float32:
        """Return the base of the kernel of asked rows and training rows."""
        block = self._kernel.block(self._asked.astype(np.float64), self._A.astype(np.float64))
        return block.astype(np.float32)

    def _enter(self, trial: Trial) -> None:
        """Go to the width of a trial: ridges share its kernel values."""
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
        """Return the errors of the rows that are answered."""
        self._enter(trial)
        ridges = trial.ridge / self._weights
        is_left_out = self._far is None
        solved = self._system.solve(self._Y, ridges, offset=trial.offset, held_out=is_left_out)
        if solved.held_out is not None:
            values = solved.held_out.astype(np.float64)
        else:
            values = self._K @ solved.alpha.astype(np.float32) + solved.offsets
        return Answers(*self._aim.losses(values, self._Y_asked, clipped=True))


def climb(
    looks: Sequence[Look],
    start: Trial,
    grid: TrialGrid,
    weights: Float64,
    reaches: Sequence[int],
    most: int,
) -> tuple[Trial, Answers, int]:
    """Find the best trial by coordinate descent on a grid.

    Parameters
    ----------
    looks : sequence of Look. Their answers are taken together.
    start : Trial. Of the grid.
    grid : TrialGrid
    weights : float64 array, shape (q,). Of the answered rows of all looks.
    reaches : ints. Places of a step of the ridge, one descent after the other; a step of the width
        is one octave.
    most : int. Trials, at the most.

    Returns
    -------
    trial : Trial
    answers : Answers. Under it.
    n_looks : int. Trials that were solved.
    """
    walk = _Walk(looks, grid, start.kernel, weights, most)
    place = grid.place(start)
    for reach in reaches:
        before = None
        while place != before:
            before = place
            for step in ((grid.octave, 0), (-grid.octave, 0), (0, reach), (0, -reach)):
                place = walk.slide(place, step)
    trial = grid.at(place, start.kernel)
    assert trial is not None
    return trial, walk.answers(place), len(walk.found)


class _Walk:
    """The places of a grid that were looked at."""

    def __init__(
        self, looks: Sequence[Look], grid: TrialGrid, kernel: str, weights: Float64, most: int
    ) -> None:
        self._looks, self._grid, self._kernel = looks, grid, kernel
        self._weights, self._most = weights, most
        self.found: dict[tuple[int, int], Answers] = {}

    def slide(self, place: tuple[int, int], step: tuple[int, int]) -> tuple[int, int]:
        """Return where steps in one direction cease to lower the error."""
        while True:
            following = place[0] + step[0], place[1] + step[1]
            # The place itself first: it is looked at whatever the limit.
            here = self._cost(place)
            if not self._cost(following) < here:
                return place
            place = following

    def answers(self, place: tuple[int, int]) -> Answers:
        """Return the answers at a place that lies on the grid."""
        if place not in self.found:
            trial = self._grid.at(place, self._kernel)
            assert trial is not None
            self.found[place] = Answers.joined(look.errors(trial) for look in self._looks)
        return self.found[place]

    def _cost(self, place: tuple[int, int]) -> float:
        """Return the mean squared error at a place; infinity where it is not looked at."""
        if place not in self.found and (
            self._grid.at(place, self._kernel) is None or len(self.found) >= self._most
        ):
            return np.inf
        return float(np.average(self.answers(place).squared, weights=self._weights))
