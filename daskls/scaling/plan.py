"""Memory of the tasks that look at candidates."""

from collections.abc import Sequence

from daskls.memory import TaskSizes, assign_nbytes, grow_nbytes
from daskls.plan import Resources, check_usable
from daskls.records import F4, F8

__all__ = [
    "LOOK_ROWS",
    "MAX_PRODUCTS",
    "check_race",
    "check_regions",
    "heat_nbytes",
    "look_nbytes",
    "region_rows",
]

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
