"""The candidate values of C and gamma in one cell, the points that a search visits, and the folds.

The 2017 paper scales its grid to each cell: widths from 5 r to 0.2 r m^(-1/d), r the cell's
radius, and regularizations lambda from 0.01 to 0.001 / m, m the rows in the training folds. With
``C = 1 / (2 lambda m)`` that is C from 50 / m to 500; with ``gamma = 1 / width^2`` it is gamma from
0.04 / r^2 to 25 m^(2/d) / r^2.

Source: Thomann, Blaschzyk, Meister, Steinwart, Spatial decompositions for large scale SVMs,
AISTATS 2017, appendix C. Difference: the paper prints 0.01 / m for the larger lambda; its
software takes 0.01, and so does this module.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.records import N_GRID, Float64, Int64, SolverSpec

# The ends of the paper's grid, as above: of widths, and of lambda.
WIDEST, NARROWEST = 5.0, 0.2
STRONGEST, WEAKEST = 0.01, 0.001


@dataclass(frozen=True)
class Grid:
    """Candidates in the order they are tried: widest first, smallest C first."""

    gammas: tuple[float, ...]
    costs: tuple[float, ...]


def n_training_rows(n_rows: int, n_folds: int) -> int:
    """Return m: the rows of a cell in the training folds, when the smallest fold is held out.

    >>> n_training_rows(2000, 5), n_training_rows(7, 5)
    (1600, 6)
    """
    return n_rows - n_rows // n_folds


def count_gammas(spec: SolverSpec, percentiles: tuple[float, ...] | None = None) -> int:
    """Return the number of candidate widths: those of the percentiles if given, else of the spec.

    >>> count_gammas(SolverSpec()), count_gammas(SolverSpec(kernel="linear"))
    (10, 1)
    >>> count_gammas(SolverSpec(n_grid=(4, 20)))
    20
    """
    if percentiles is not None:
        return len(percentiles)
    if spec.gamma is not None:
        return len(spec.gamma)
    if not find_kernel(spec.kernel).has_width:
        return 1
    return N_GRID if spec.n_grid is None else spec.n_grid[1]


def resolve_grid(spec: SolverSpec, radius: float, n_rows: int, n_features: int) -> Grid:
    """Return the cell's candidates: those given, or the paper's range in geometric steps.

    The radius is the largest distance of the cell's rows to their mean.

    >>> grid = resolve_grid(SolverSpec(), radius=1.0, n_rows=2000, n_features=2)
    >>> [round(c, 5) for c in (grid.costs[0], grid.costs[-1])]
    [0.03125, 500.0]
    >>> [round(g, 2) for g in (grid.gammas[0], grid.gammas[-1])]
    [0.04, 40000.0]
    """
    m = n_training_rows(n_rows, spec.cv)
    if spec.C is not None:
        costs = tuple(sorted(spec.C))
    else:
        lambdas = np.geomspace(STRONGEST, min(WEAKEST / m, STRONGEST), spec.n_costs)
        costs = tuple((1.0 / (2.0 * lambdas * m)).tolist())
    if spec.gamma is not None:
        gammas = tuple(sorted(spec.gamma))
    else:
        narrowest = NARROWEST * radius * m ** (-1.0 / n_features)
        widths = np.geomspace(WIDEST * radius, narrowest, count_gammas(spec))
        gammas = tuple((widths ** -find_kernel(spec.kernel).width_power).tolist())
    return Grid(gammas, costs)


def grid_ends(
    spec: SolverSpec, radius: Float64, n_rows: Int64, n_features: int
) -> dict[str, tuple[Float64, Float64]]:
    """Return the first and the last candidate of C and of gamma, for many cells at once.

    >>> ends = grid_ends(SolverSpec(), np.array([1.0]), np.array([2000]), 2)
    >>> [round(float(value[0]), 5) for axis in ends.values() for value in axis]
    [0.03125, 500.0, 0.04, 40000.0]
    """
    m = n_rows - n_rows // spec.cv
    if spec.C is None:
        lambdas = np.full(len(m), STRONGEST), np.minimum(WEAKEST / m, STRONGEST)
        costs = tuple(1.0 / (2.0 * strength * m) for strength in lambdas)
    else:
        costs = tuple(np.full(len(m), end) for end in (min(spec.C), max(spec.C)))
    if spec.gamma is None:
        widths = WIDEST * radius, NARROWEST * radius * m ** (-1.0 / n_features)
        gammas = tuple(width ** -find_kernel(spec.kernel).width_power for width in widths)
    else:
        gammas = tuple(np.full(len(m), end) for end in (min(spec.gamma), max(spec.gamma)))
    return {"C": (costs[0], costs[1]), "gamma": (gammas[0], gammas[1])}


def find_choice(row: Any, spec: SolverSpec, n_features: int) -> tuple[int, int]:
    """Return the indices of a cell's (gamma, C) in its own grid, from a row of ``fit_report_``."""
    grid = resolve_grid(spec, float(row.radius), int(row.n_rows), n_features)
    return _nearest(grid.gammas, row.gamma), _nearest(grid.costs, row.C)


def _nearest(values: tuple[float, ...], value: float) -> int:
    distance: Float64 = np.abs(np.log(np.array(values) / value))
    return int(distance.argmin())


# An axis of up to so many values is tried whole.
SHORT_AXIS = 3

Shape = tuple[int, int]


def _coarse(n: int, first: int) -> list[int]:
    """Return every second index of an axis, so that each has one beside it; all of a short axis."""
    return list(range(first, n, 2)) if n > SHORT_AXIS else list(range(n))


def coarse_points(shape: Shape) -> tuple[list[int], list[int]]:
    """Return the indices of gamma and of C in the coarse pass.

    Widths come from the middle outwards: a good one early on lets later ones be pruned sooner. The
    largest C is left out: its solves take the most steps.

    >>> coarse_points((10, 10)), coarse_points((1, 11))
    (([5, 3, 7, 1, 9], [0, 2, 4, 6, 8]), ([0], [1, 3, 5, 7, 9]))
    """
    middle = shape[0] // 2
    gammas = sorted(_coarse(shape[0], 1), key=lambda index: (abs(index - middle), index))
    return gammas, _coarse(shape[1], shape[1] % 2)


def near_points(shape: Shape, point: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Return the indices of gamma and of C at and beside a point; its own gamma comes first.

    >>> near_points((10, 10), (5, 8))
    ([5, 4, 6], [7, 8, 9])
    """
    g, c = point
    gammas = [index for index in (g, g - 1, g + 1) if 0 <= index < shape[0]]
    return gammas, [index for index in (c - 1, c, c + 1) if 0 <= index < shape[1]]


def assign_folds(codes: Int64, n_folds: int, seed: tuple[int, ...]) -> Int64:
    """Assign the rows (m,) of each class to the folds in turn, in an order drawn from ``seed``.

    Each class starts where the last one ended, so fold sizes differ by at most one. A class with
    fewer rows than folds keeps its row order.

    >>> assign_folds(np.array([0, 0, 1]), 5, (0,))
    array([0, 1, 2])
    """
    rng = np.random.default_rng(seed)
    folds = np.empty(len(codes), dtype=np.int64)
    assigned = 0
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        if len(members) >= n_folds:
            members = rng.permutation(members)
        folds[members] = (assigned + np.arange(len(members))) % n_folds
        assigned += len(members)
    return folds
