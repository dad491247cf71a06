"""The parts of every choice: trials and their grid, stored steps, and the memory of tasks."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.tokenize import tokenize

from daskls.cluster import compute_each
from daskls.kernels.kernel import find_kernel
from daskls.memory import TaskSizes, assign_nbytes, grow_nbytes
from daskls.plan.bundles import Resources
from daskls.plan.checks import check_usable
from daskls.records import F4, F8, AnyArray, SolverSpec
from daskls.store.artifact import read_arrays, write_artifact
from daskls.store.objects import open_store

# Widths in steps of sqrt(2), ridges in steps of about sqrt(10).
WIDTHS = tuple(2.0 ** (i / 2) for i in range(-8, 11))
RIDGES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
# The ridge of the first trial.
USUAL_RIDGE = 1e-2
# Most bytes of a region's features in float32: with many features a region has fewer rows, so that
# a task fits a worker of 512 MiB. A function of the data alone, as the workers must not change what
# is evaluated.
REGION_NBYTES = 12 << 20
REGION_ROWS, LEAST_REGION_ROWS = 20_000, 4_000
# Rows of the cells that are solved under trial: a solve of 2000 rows costs eight times as much.
TRIAL_ROWS = 1000
# Cells of regions that tune, with at most so many rows in all, as the time of a solve is cubic in
# its rows.
REGION_TUNING_CELLS, TUNING_ROWS = 8, 8_000
# The kind of parts that hold steps; and their version, raised where the same step gives another
# result. 6: one search.
STEPS, STEPS_VERSION = "steps", 6


@dataclass(frozen=True)
class Trial:
    """A kernel, a width in units of a cell's median distance, or gamma as given, and 1 / (2 C)."""

    kernel: str
    width: float
    ridge: float
    is_gamma: bool = False
    offset: bool = False

    def resolve(self, spec: SolverSpec) -> SolverSpec:
        # A given C is used unchanged, as 1 / (2 ridge) may differ from it in the last digit.
        costs = [cost for cost in spec.C or () if 1 / (2 * cost) == self.ridge]
        cost = (costs[0] if costs else 1 / (2 * self.ridge),)
        if self.is_gamma:
            return replace(spec, kernel=self.kernel, C=cost, gamma=(self.width,))
        width = self.width if find_kernel(self.kernel).has_width else None
        return replace(spec, kernel=self.kernel, C=cost, width=width)


@dataclass(frozen=True)
class TrialGrid:
    """Candidates of width, or gamma, and ridge; default ridges are in the weights' ``unit``."""

    widths: tuple[float, ...] = WIDTHS
    ridges: tuple[float, ...] = RIDGES
    are_gammas: bool = False
    offset: bool = False
    is_open: bool = False
    unit: float = 1.0

    @classmethod
    def of(cls, spec: SolverSpec, unit: float = 1.0) -> "TrialGrid":
        """Return the grid of a spec: given values of C and gamma, else the default ones."""
        spec_ridges = spec.C and sorted(1 / (2 * cost) for cost in spec.C)
        ridges = tuple(spec_ridges or (unit * ridge for ridge in RIDGES))
        if spec.gamma is not None:
            gammas = tuple(sorted(spec.gamma))
            return cls(gammas, ridges, True, spec.fit_intercept, not spec_ridges, unit)
        return cls(WIDTHS, ridges, False, spec.fit_intercept, not spec_ridges, unit)

    def of_kernel(self, kernel: str) -> "TrialGrid":
        """Return the grid without the ridges that are too small for a kernel."""
        if not self.is_open:
            return self
        least = find_kernel(kernel).least_ridge
        return replace(self, ridges=self.ridges[bisect_left(RIDGES, least) :])

    def start(self, kernel: str) -> Trial:
        """Return the first trial: the values that are usually chosen, or the middle given ones."""
        usual = find_kernel(kernel).first_width
        width = self.widths[len(self.widths) // 2] if self.are_gammas else usual
        ridge = self.ridges[len(self.ridges) // 2]
        return self.with_usual_ridge(Trial(kernel, width, ridge, self.are_gammas, self.offset))

    def with_usual_ridge(self, trial: Trial) -> Trial:
        if not self.is_open:
            return trial
        usual = USUAL_RIDGE * self.unit
        return replace(trial, ridge=min(self.ridges, key=lambda ridge: abs(ridge / usual - 1)))

    @property
    def doubling(self) -> int:
        """Places of the grid between a width and its double."""
        return 1 if self.are_gammas else 2

    def place(self, trial: Trial) -> tuple[int, int]:
        return self.widths.index(trial.width), self.ridges.index(trial.ridge)

    def nearest(self, trial: Trial) -> Trial:
        ratio = [abs(np.log(width / trial.width)) for width in self.widths]
        return replace(trial, width=self.widths[int(np.argmin(ratio))])

    def at(self, place: tuple[int, int], kernel: str) -> Trial | None:
        i, j = place
        if not (0 <= i < len(self.widths) and 0 <= j < len(self.ridges)):
            return None
        return Trial(kernel, self.widths[i], self.ridges[j], self.are_gammas, self.offset)


class Steps:
    """The steps of one decision, each stored, so that a killed fit resumes after it."""

    def __init__(self, job: Any, client: Any = None, token: str = "") -> None:
        self.job, self._client, self._token = job, client, token
        self._n_steps = 0

    def run(
        self,
        task: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        join: Callable[[Sequence[Any]], dict[str, AnyArray]],
    ) -> dict[str, AnyArray]:
        """Return the joined results of a task's calls, computed or as stored."""
        # An unfinished fit of another version may have taken other steps.
        token = tokenize(STEPS_VERSION, task.__name__, arguments, self._token)
        key = f"{self.job.folder(STEPS)}/{self._n_steps:06d}-{self._n_steps:06d}.{token}"
        self._n_steps += 1
        if not open_store(self.job.root).exists(key):
            calls = [(*call, self.job) for call in arguments]
            write_artifact(self.job.root, key, join(compute_each(task, calls, self._client)))
        return read_arrays(self.job.root, key)


def check_regions(sizes: TaskSizes, block_rows: int, cell_rows: int, resources: Resources) -> None:
    d = sizes.n_features
    check_usable(
        f"Comparing scales on a region of {region_rows(d)} rows x {d} features",
        regions_nbytes(sizes, block_rows, cell_rows),
        resources,
        'give feature_scale="spread" or factors, and with loss="squared_error" one C and one gamma',
    )


def check_race(
    parts: Sequence[tuple[int, int]], n_features: int, sizes: TaskSizes, resources: Resources
) -> None:
    """Raise MemoryPlanError if the last splits would not fit in the memory of a task."""
    n_rows = sum(m + q for m, q in parts)
    check_usable(
        f"Comparing candidates on {n_rows} rows x {n_features} features",
        race_nbytes(parts, n_features, sizes.n_outputs),
        resources,
        'give feature_coding="none", feature_scale="spread" or factors, and with '
        'loss="squared_error" one kernel, one C and one gamma',
    )


def region_rows(n_features: int) -> int:
    """Return the most rows of a region.

    >>> region_rows(54), region_rows(784), region_rows(10_000)
    (20000, 4012, 4000)
    """
    return max(min(REGION_ROWS, REGION_NBYTES // (F4 * n_features)), LEAST_REGION_ROWS)


def tuning_cells(cell_rows: int) -> int:
    """Return of how many cells of regions a task that tunes a candidate holds the distances.

    >>> tuning_cells(1000), tuning_cells(4000)
    (8, 2)
    """
    return min(REGION_TUNING_CELLS, max(TUNING_ROWS // cell_rows, 1))


def regions_nbytes(sizes: TaskSizes, block_rows: int, cell_rows: int) -> int:
    d = sizes.n_features
    collecting = assign_nbytes(sizes, block_rows) + block_rows * d * F4
    shape = region_rows(d), d, sizes.n_outputs, cell_rows
    return max(trial_nbytes(*shape, tuning_cells(cell_rows)), collecting)


def race_nbytes(parts: Sequence[tuple[int, int]], n_features: int, n_outputs: int) -> int:
    learning = trial_nbytes(sum(m + q for m, q in parts), n_features, n_outputs, TRIAL_ROWS)
    return max(rung_nbytes(parts, n_features, n_outputs), learning)


def trial_nbytes(
    n_rows: int, n_features: int, n_outputs: int, cell_rows: int, n_cells: int = 1
) -> int:
    """Return the peak bytes of a task that solves cells of a region of ``n_rows`` under trial.

    It holds ``n_cells`` cells with their distances at once.
    """
    d, m = n_features, min(cell_rows, n_rows)
    learned = min(m, TRIAL_ROWS)
    # The region, its rows that are not held out, and both of them scaled.
    rows = n_rows * (4 * d * F4 + 64)
    # Distances, the kernel matrix (at most in float64), which becomes its inverse, and a mask.
    system = m * m * (F4 + F8 + 2) + m * d * 3 * F8
    # Distances; the inverse and the slopes by kernel values, both at most in float64; later these
    # slopes beside their float32 copy, kernel values, and two products.
    slopes = learned * learned * (F4 + max(2 * F8, F8 + 4 * F4)) + learned * d * 3 * F8
    columns = 8 * m * n_outputs * F8
    rows += (n_cells - 1) * m * ((m + 2 * d) * F4 + 3 * n_outputs * F8 + 64)
    return rows + max(grow_nbytes(n_rows, d, cell_rows), max(system, slopes) + columns)


def rung_nbytes(parts: Sequence[tuple[int, int]], n_features: int, n_outputs: int) -> int:
    """Return the peak bytes of a task that evaluates a candidate in a rung of these parts."""
    d = n_features
    rows = sum(m + q for m, q in parts)
    # The rows as they are read, and those of each part scaled.
    held = rows * (3 * d * F4 + n_outputs * 2 * F8 + 64)
    # Distances of all parts, and kernel values of the predicted rows.
    held += sum(m * (m + 2 * q) * F4 for m, q in parts)
    m, q = max(parts)
    # One part at a time: its kernel matrix (at most in float64) and a mask; or float64 distances.
    solving = m * m * (F4 + F8 + 2) + 8 * (m + q) * n_outputs * F8
    measuring = (m + q) * d * 2 * F8 + q * m * 2 * F8
    return held + max(solving, measuring)
