"""Trials of a kernel, a width and a ridge, and the grid that they are on."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import product

from daskls.kernels.registry import find_kernel
from daskls.records import SolverSpec

__all__ = ["Trial", "TrialGrid"]

# Two values a factor of 2 of the width, and of sqrt(10) of the ridge.
WIDTHS = tuple(2.0 ** (i / 2) for i in range(-8, 11))
RIDGES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
# A first look: at widths in the middle of the grid, at every other of values that are given.
COARSE_WIDTHS, EVERY_OTHER_GAMMA, EVERY_OTHER_RIDGE = (
    slice(4, 13, 2),
    slice(2, 11, 2),
    slice(2, 7, 2),
)
# Where looks begin.
USUAL_RIDGE = 1e-2


@dataclass(frozen=True)
class Trial:
    """Parameters that cells are solved with.

    Attributes
    ----------
    kernel : str
    width : float. In units of a cell's median distance; or gamma, as the user has given it.
    ridge : float. 1 / (2 C).
    is_gamma : bool. Which of the two ``width`` is.
    offset : bool. Whether functions have one.
    """

    kernel: str
    width: float
    ridge: float
    is_gamma: bool = False
    offset: bool = False

    def resolve(self, spec: SolverSpec) -> SolverSpec:
        """Return a spec whose open parameters are set to those of the trial."""
        # A given C is used as it is: it need not come back from its ridge to the last digit.
        given = [cost for cost in spec.C or () if 1 / (2 * cost) == self.ridge]
        cost = (given[0] if given else 1 / (2 * self.ridge),)
        if self.is_gamma:
            return replace(spec, kernel=self.kernel, C=cost, gamma=(self.width,))
        width = self.width if find_kernel(self.kernel).has_width else None
        return replace(spec, kernel=self.kernel, C=cost, width=width)


@dataclass(frozen=True)
class TrialGrid:
    """Candidates of width and ridge; of gamma in the place of widths where it is given.

    ``is_open`` says that no ridge is given; those of the grid are then multiples of ``unit``.
    """

    widths: tuple[float, ...] = WIDTHS
    ridges: tuple[float, ...] = RIDGES
    are_gammas: bool = False
    offset: bool = False
    is_open: bool = False
    unit: float = 1.0

    @classmethod
    def of(cls, spec: SolverSpec, unit: float = 1.0) -> "TrialGrid":
        """Return the candidates that a spec leaves open; given values of C and gamma alone.

        Parameters
        ----------
        spec : SolverSpec
        unit : float. Of the rows' weights, which divide ridges: those of the grid are for 1.
        """
        given = spec.C and sorted(1 / (2 * cost) for cost in spec.C)
        ridges = tuple(given or (unit * ridge for ridge in RIDGES))
        if spec.gamma is not None:
            gammas = tuple(sorted(spec.gamma))
            return cls(gammas, ridges, True, spec.fit_intercept, not given, unit)
        return cls(WIDTHS, ridges, False, spec.fit_intercept, not given, unit)

    def of_kernel(self, kernel: str) -> "TrialGrid":
        """Return the candidates that are worth a try with a kernel."""
        if not self.is_open:
            return self
        least = find_kernel(kernel).least_ridge
        return replace(self, ridges=self.ridges[bisect_left(RIDGES, least) :])

    def start(self, kernel: str) -> Trial:
        """Return the trial that is looked at first: of values in the middle of what is chosen."""
        usual = find_kernel(kernel).usual_width
        # Of given values the one in the middle.
        width = self.widths[len(self.widths) // 2] if self.are_gammas else usual
        ridge = self.ridges[len(self.ridges) // 2]
        if self.is_open:
            ridge = min(self.ridges, key=lambda own: abs(own / (USUAL_RIDGE * self.unit) - 1))
        return Trial(kernel, width, ridge, self.are_gammas, self.offset)

    @property
    def octave(self) -> int:
        """The places of a step of the width in a first descent."""
        return 1 if self.are_gammas else 2

    def place(self, trial: Trial) -> tuple[int, int]:
        """Return the place of a trial on the grid: of its width, and of its ridge."""
        return self.widths.index(trial.width), self.ridges.index(trial.ridge)

    def at(self, place: tuple[int, int], kernel: str) -> Trial | None:
        """Return the trial at a place; None beyond the ends."""
        i, j = place
        if not (0 <= i < len(self.widths) and 0 <= j < len(self.ridges)):
            return None
        return Trial(kernel, self.widths[i], self.ridges[j], self.are_gammas, self.offset)

    def coarse(self, kernel: str) -> list[Trial]:
        """Return the trials of a first look."""
        widths = self.widths[COARSE_WIDTHS]
        if self.are_gammas:
            widths = self.widths[EVERY_OTHER_GAMMA] or self.widths
        ridges = self.ridges[EVERY_OTHER_RIDGE] or self.ridges
        if self.is_open:
            first = len(RIDGES) - len(self.ridges)
            coarse = find_kernel(kernel).coarse_ridges
            # A kernel may leave out ridges of its own first look.
            places = dict.fromkeys(max(RIDGES.index(ridge) - first, 0) for ridge in coarse)
            ridges = tuple(self.ridges[at] for at in places)
        own = product(widths, ridges)
        return [Trial(kernel, w, r, self.are_gammas, self.offset) for w, r in own]
