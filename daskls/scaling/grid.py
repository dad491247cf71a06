"""Trials of a kernel, a width and a ridge, and the grid that they are on.

Memory of the tasks that look at candidates.

Least squares of one cell under a trial: leave-one-out errors, derivatives, held-out values.

Steps of a decision, each stored when it is done, so that a killed fit resumes after it.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.memory import TaskSizes, assign_nbytes, grow_nbytes
from daskls.plan import Resources, check_usable
from daskls.records import F4, F8, AnyArray, Float32, Float64, KernelSpec, SolverSpec, Targets
from daskls.run.compute import compute_each
from daskls.solvers.squares.aims import Aim
from daskls.solvers.squares.system import (
    MergedRows,
    Solution,
    System,
    gamma_in_cell,
    merge_equal_rows,
)
from daskls.store.artifacts import open_store
from daskls.store.packs import read_pack, write_pack

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


# Of the features of a region, in float32: of many features fewer rows, so that a task stays within
# a worker of 512 MiB. A function of the data alone: workers must not decide what is looked at.
REGION_NBYTES = 12 << 20
REGION_ROWS, LEAST_REGION_ROWS = 20_000, 4_000
# Rows of the cells that are looked at: a solve of 2000 costs eight times as much, and what is found
# on Covertype is the same within 0.1 points.
LOOK_ROWS = 1000
# Derivatives are taken at as many of a cell's rows as this many multiplications allow: of many
# features and classes, at some.
MAX_PRODUCTS = 4e9


def region_rows(n_features: int) -> int:
    """Return the most rows of a region.

    >>> region_rows(54), region_rows(784), region_rows(10_000)
    (20000, 4012, 4000)
    """
    return max(min(REGION_ROWS, REGION_NBYTES // (F4 * n_features)), LEAST_REGION_ROWS)


def look_nbytes(n_rows: int, n_features: int, n_outputs: int, cell_rows: int) -> int:
    """Return the peak bytes of a task that looks at cells of one region.

    Parameters
    ----------
    n_rows : int. Of the region.
    n_features : int
    n_outputs : int. Functions of a cell.
    cell_rows : int. Of the cells; derivatives are taken of smaller ones.
    """
    d, m = n_features, min(cell_rows, n_rows)
    looked = min(m, LOOK_ROWS)
    # The region, those of its rows that are not held out, and both in the scale.
    rows = n_rows * (4 * d * F4 + 64)
    # Distances, the kernel matrix in float64 if need be, which becomes its inverse, and a mask.
    system = m * m * (F4 + F8 + 2) + m * d * 3 * F8
    # Of derivatives: kernel values at some rows and all, times coefficients; and the derivatives.
    asked = min(looked, int(MAX_PRODUCTS / (2.0 * looked * d * n_outputs)) + 1)
    derivatives = asked * (2 * looked + 2 * d) * F8
    columns = 8 * m * n_outputs * F8
    return rows + max(grow_nbytes(n_rows, d, cell_rows), system + derivatives + columns)


def check_regions(sizes: TaskSizes, block_rows: int, cell_rows: int, resources: Resources) -> None:
    """Refuse to look at regions, before X is read for them, where a task could not.

    Raises
    ------
    MemoryPlanError
    """
    d, rows = sizes.n_features, region_rows(sizes.n_features)
    outputs = sizes.n_outputs
    collecting = assign_nbytes(sizes, block_rows) + block_rows * d * F4
    needed = max(look_nbytes(rows, d, outputs, cell_rows), collecting)
    check_usable(
        f"Looking at a region of {rows} rows x {d} features",
        needed,
        resources,
        'give feature_scale="spread" or factors, and with loss="squared_error" one C and one gamma',
    )


def heat_nbytes(parts: Sequence[tuple[int, int]], n_features: int, n_outputs: int) -> int:
    """Return the peak bytes of a task that looks at a candidate in a heat of a race.

    Parameters
    ----------
    parts : sequence of (int, int). Rows that train, and rows that are asked, of each part.
    n_features : int. Of the candidate's coding.
    n_outputs : int. Functions of a model.
    """
    d = n_features
    rows = sum(m + q for m, q in parts)
    # The rows as they are read, and each part's in the scale.
    held = rows * (3 * d * F4 + n_outputs * 2 * F8 + 64)
    # Distances of all parts, and kernel values of the rows that are asked.
    held += sum(m * (m + 2 * q) * F4 for m, q in parts)
    m, q = max(parts)
    # Of one at a time: its kernel matrix in float64 if need be, a mask; or distances in float64.
    solving = m * m * (F4 + F8 + 2) + 8 * (m + q) * n_outputs * F8
    measuring = (m + q) * d * 2 * F8 + q * m * 2 * F8
    return held + max(solving, measuring)


def check_race(
    parts: Sequence[tuple[int, int]], n_features: int, sizes: TaskSizes, resources: Resources
) -> None:
    """Refuse a race whose last heat a task has no memory for.

    Parameters
    ----------
    parts, n_features : see `heat_nbytes`; of the widest coding
    sizes : TaskSizes
    resources : Resources

    Raises
    ------
    MemoryPlanError
    """
    outputs = sizes.n_outputs
    n_rows = sum(m + q for m, q in parts)
    learning = look_nbytes(n_rows, n_features, outputs, LOOK_ROWS)
    check_usable(
        f"Comparing candidates on {n_rows} rows x {n_features} features",
        max(heat_nbytes(parts, n_features, outputs), learning),
        resources,
        'give feature_coding="none", feature_scale="spread" or factors, and with '
        'loss="squared_error" one kernel, one C and one gamma',
    )


class TrialCell:
    """A cell of a region, solved again and again.

    Parameters
    ----------
    A : float32 array, shape (m, d). Around the cell's mean, in some scale.
    targets : array. Class codes (m,), or numbers (m, t).
    weights : float64 array, shape (m,)
    aim : Aim
    """

    def __init__(self, A: Float32, targets: Targets, weights: Float64, aim: Aim) -> None:
        self._own, self._aim = aim.of_cell(targets, weights), aim
        self.Y, self.weights = self._own.Y, weights
        self._A = A

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to solve: of one class or number, or of equal rows."""
        return self.Y is None or bool((self._A[0] == self._A).all())

    def _merged(self) -> MergedRows:
        assert self.Y is not None
        return merge_equal_rows(self._A, self.Y, self.weights)

    def _kernel(self, trial: Trial, rows: Float32) -> KernelSpec:
        if trial.is_gamma:
            return KernelSpec(trial.kernel, trial.width)
        return KernelSpec(trial.kernel, gamma_in_cell(trial.kernel, trial.width, rows))

    def errors(self, trials: Sequence[Trial]) -> Float64:
        """Return leave-one-out errors: squared, wrong rows, and weights; float64 (n_trials, 3)."""
        sums = np.zeros((len(trials), 3))
        if self.is_constant:
            return sums
        merged, at = self._merged(), 0
        for _, own in groupby(trials, lambda trial: (trial.kernel, trial.width)):
            group = list(own)
            system = System(merged.A, self._kernel(group[0], merged.A))
            for trial in group:
                ridges = trial.ridge / merged.weights
                found = system.solve(merged.Y, ridges, offset=trial.offset, held_out=True)
                sums[at] = self._error_of(self._left_out(merged, found, ridges))
                at += 1
        return sums

    def _left_out(self, merged: MergedRows, found: Solution, ridges: Float64) -> Float64:
        assert self.Y is not None
        return self._aim.left_out(merged, found, ridges, self.Y, self.weights)

    def _error_of(self, held_out: Float64) -> tuple[float, float, float]:
        assert self.Y is not None
        squared, wrong = self._aim.losses(held_out, self.Y)
        w = self.weights
        return float((w * squared).sum()), float((w * wrong).sum()), float(w.sum())

    def gradients(self, trial: Trial) -> Float64:
        """Return sums of squared derivatives along each feature, of all rows and functions."""
        if self.is_constant:
            return np.zeros(self._A.shape[1])
        merged = self._merged()
        kernel = self._kernel(trial, merged.A)
        system = System(merged.A, kernel)
        found = system.solve(merged.Y, trial.ridge / merged.weights, offset=trial.offset)
        alpha = found.alpha.astype(np.float32)
        m, d = merged.A.shape
        step = max(int(2.0 * m * m * d * alpha.shape[1] / MAX_PRODUCTS), 1)
        K = system.matrix32()[::step]
        of_kernel, at = find_kernel(kernel.name), slice(None, None, step)
        sums = of_kernel.squared_gradients(merged.A, alpha, K, kernel, at)
        return sums * (len(self._A) / len(K))

    def values(self, queries: Float32, trial: Trial) -> Float64:
        """Return values of queries around the cell's mean, float64 (q, R)."""
        if self.is_constant:
            return np.repeat(self._own.answer[None], len(queries), axis=0)
        merged = self._merged()
        kernel = self._kernel(trial, merged.A)
        ridges = trial.ridge / merged.weights
        found = System(merged.A, kernel).solve(merged.Y, ridges, offset=trial.offset)
        own = find_kernel(kernel.name)
        base = own.block(queries.astype(np.float64), merged.A.astype(np.float64))
        values = own.apply(base, kernel, base) @ found.alpha.astype(np.float64) + found.offsets
        return self._aim.spread(values, self._own)


# The kind of parts that steps are kept as.
STEPS = "steps"


def sum_in_order(parts: Sequence[Float64]) -> Float64:
    """Return the sum of arrays, first to last: a sum's bits depend on its order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


class Steps:
    """The steps of one decision, in their order, which the data and the parameters decide.

    Parameters
    ----------
    job : RegionJob or ThinJob
    client : distributed client, or None for the current scheduler
    """

    def __init__(self, job: Any, client: Any = None) -> None:
        self.job, self._client = job, client
        self._n_steps = 0

    def run(
        self,
        task: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        join: Callable[[Sequence[Any]], dict[str, AnyArray]],
    ) -> dict[str, AnyArray]:
        """Return what ``join`` makes of the results of a task, computed or as it was kept.

        Parameters
        ----------
        task : function. Its name is what the dashboard shows.
        arguments : sequence of tuple. One call each; the job is given last.
        join : makes named arrays of the results, which are in the order of the arguments
        """
        key = f"{self.job.folder(STEPS)}/{self._n_steps:06d}-{self._n_steps:06d}"
        self._n_steps += 1
        if not open_store(self.job.root).exists(key):
            calls = [(*own, self.job) for own in arguments]
            write_pack(self.job.root, key, join(compute_each(task, calls, self._client)))
        return read_pack(self.job.root, key)
