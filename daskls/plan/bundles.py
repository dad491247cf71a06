"""The size of the sample and of leaves, the bundles of leaves, and the memory of their training."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from daskls.memory import GROWN_COLUMNS, TaskSizes, grow_nbytes
from daskls.records import F8, LEAVES_NBYTES, Bundle
from daskls.solvers.registry import find_solver

# Default rows of a cell that solves a linear system: a larger system costs more than it gains.
# Time grows as rows x cell_size^2, so data of more than MANY_ROWS get smaller cells; so do several
# partitions of more than MANY_PARTITIONED rows: four of SMALL_CELL err as rarely as two of
# LARGE_CELL and cost less. But letter and usps, with few rows of each class, err a tenth
# more often.
LARGE_CELL, SMALL_CELL, MANY_ROWS, MANY_PARTITIONED = 4000, 2000, 60_000, 20_000
# Default partitions: as many as train within PARTITIONED_WORK (rows x cell_size^2), at most
# MOST_PARTITIONS.
MOST_PARTITIONS, PARTITIONED_WORK = 4, 480_000 * SMALL_CELL**2
# Tables of fewer than PARTITIONED_VALUES (rows x features x classes) get one, as boosting would
# finish much sooner: eight of 3500 to 8300 rows gain .02 points in the mean, six of numbers 1 % of
# their root mean squared error. Wide tables gain more.
PARTITIONED_VALUES = 2_000_000

# A leaf of the sampled tree holds as few cells as the sample can resolve; the task that trains the
# leaf reads all of its rows and cuts it into cells. A leaf is the smallest unit of work, so leaves
# of few cells let many workers finish together, and keep the memory of a task small.

# Sampled rows per leaf, where the sample is large enough: the size of the leaf is then known to
# about 6 %. A quarter of them gives 12 %, and cells of leaves with few cells hold fewer rows.
SAMPLED_PER_LEAF = 256
# With this many cells per leaf, how full cells are no longer depends on the size of the leaf. Then
# LEAST_SAMPLED sampled rows per leaf are enough, which give its size to some 18 %.
SHARED_CELLS = 4
LEAST_SAMPLED = 32
# Leaves have fewer cells than that while there are at most this many leaves, which keep some
# hundred workers busy to the end.
FEW_LEAVES = 1 << 10
# The client holds the sample and a float64 copy of it, and tasks hold the tree. Both are bounded,
# however many rows there are; of more rows, leaves grow instead.
MAX_LEAVES = 1 << 12
SAMPLE_NBYTES = 32 << 20
# Small cells share leaves, which cost about as much (rows^2) as a cell of 2000 rows. Such a leaf
# has at most this many rows (and bytes, in float64), and there are at least MIN_LEAVES of them.
LEAST_LEAF_COST = 2000**2
MIN_LEAF_ROWS = 1 << 14
MIN_LEAF_NBYTES = 4 << 20
MIN_LEAVES = 64
# Up to this many rows (and bytes, in float64) all rows are sampled, and leaves are the cells.
MIN_SAMPLE = 1 << 16
MIN_SAMPLE_NBYTES = 64 << 20

# Work is cut into N_BUNDLES bundles, which keep two slots busy to the last hundredth of the time. A
# bundle has an overhead of some 20 ms. So small work is cut into fewer, of at least MIN_BUNDLE_WORK
# (rows^2, some tenths of a second), and large work into more, of at most MAX_BUNDLE_WORK: 10M rows
# in cells of 2000 make some 700, and so work for 200 slots. Which leaves form a bundle follows from
# the data and the parameters alone, as its key does.
N_BUNDLES = 64
MIN_BUNDLE_WORK = 2e6
MAX_BUNDLE_WORK = 3e7

# Mean rows of a cell as a share of cell_size: where rows are equal, cuts leave cells uneven.
# Measured: 0.80 on Covertype, 0.68 on ijcnn1, 0.91 on noisy28, 1 on few rows without ties.
USUAL_FULLNESS = 0.9

# Parameters of the whole model are selected on one row in ROWS_PER_SELECTING_ROW: enough to know
# an error of a few percent to some tenths, few enough that their kernel matrix fits in a task.
ROWS_PER_SELECTING_ROW = 100
LEAST_SELECTING, MOST_SELECTING = 2000, 5000


@dataclass(frozen=True)
class Resources:
    """The slots and the memory that the current scheduler offers.

    `held` is a sentence on the memory that a worker holds from earlier work. `has_svc`: all workers
    have loaded scikit-learn's SVC, which then is part of what they hold.
    """

    n_slots: int
    task_nbytes: int
    held: str = ""
    has_svc: bool = False

    @property
    def more(self) -> str:
        remedy = "give each worker more memory or fewer threads."
        return f"{remedy} {self.held}" if self.held else remedy


@dataclass(frozen=True)
class SamplePlan:
    """The plan of stage 1: rows to sample, and the bound of a leaf in full and in sampled rows."""

    n_sample: int
    leaf_rows: int
    max_sampled_rows: int

    @property
    def largest_rows(self) -> int:
        """The rows that the largest leaf may turn out to hold.

        The relative standard deviation of the size of a leaf of m sampled rows is 1 / sqrt(m); the
        largest of thousands of leaves is four of these above the mean.

        >>> SamplePlan(65_536, 2000, 2000).largest_rows, SamplePlan(65_536, 16_000, 64).largest_rows
        (2000, 24000)
        """
        if self.max_sampled_rows >= self.leaf_rows:
            return self.leaf_rows
        return int(self.leaf_rows * (1.0 + 4.0 / math.sqrt(self.max_sampled_rows)))


def usual_sizes(
    n_rows: int, n_features: int, n_targets: int, *, cell_size: int | None, n_partitions: int | None
) -> tuple[int, int]:
    """Return the size of cells that each solve a linear system, and the number of partitions.

    >>> from functools import partial
    >>> usual = partial(usual_sizes, cell_size=None, n_partitions=None)
    >>> [usual(n, 50, 2) for n in (19_999, 20_000, 40_000, 40_001, 240_000, 10_000_000)]
    [(4000, 1), (4000, 4), (2000, 4), (1905, 4), (2000, 2), (2000, 1)]
    >>> [usual(n, 8, 2) for n in (40_001, 60_000)]
    [(3637, 1), (4000, 1)]
    >>> [usual(n, 256, 10) for n in (4000, 4001)]
    [(4000, 1), (2001, 4)]
    """
    is_few = n_rows * n_features * n_targets < PARTITIONED_VALUES
    # With one feature all partitions would be equal.
    is_one = n_partitions is not None or is_few or n_features == 1
    size = SMALL_CELL if n_rows > (MANY_ROWS if is_one else MANY_PARTITIONED) else LARGE_CELL
    cell_rows = share_of(n_rows, -(-n_rows // size)) if cell_size is None else cell_size
    if is_one or n_rows <= max(cell_rows, LARGE_CELL):
        return cell_rows, n_partitions or 1
    work = n_rows * max(cell_rows, size) ** 2
    return cell_rows, min(max(PARTITIONED_WORK // work, 1), MOST_PARTITIONS)


def share_of(n_rows: int, n_cells: int) -> int:
    """Return the mean rows of a cell, rounded up; at least 2, as one row trains nothing."""
    return max(-(-n_rows // n_cells), 2)


def n_selecting(n_rows: int) -> int:
    """Return the number of rows on which parameters of the whole model are selected.

    >>> [n_selecting(n) for n in (500, 50_000, 300_000, 10_000_000)]
    [500, 2000, 3000, 5000]
    """
    share = -(-n_rows // ROWS_PER_SELECTING_ROW)
    return min(max(share, LEAST_SELECTING), MOST_SELECTING, n_rows)


def plan_sample(n_rows: int, n_features: int, cell_size: int) -> SamplePlan:
    """Decide the sample and the leaves from the data and the parameters alone.

    Up to `MIN_SAMPLE` rows all are sampled, and leaves are the cells. Of more, the sample has at
    most `most_sampled` rows, and there are at most some `MAX_LEAVES` leaves, of as few cells each
    as these bounds allow. A leaf of k < `SHARED_CELLS` cells aims at k full cells less two standard
    deviations of its size, so that few leaves are cut into k + 1 cells.

    >>> plan_sample(30_000, 28, 2000)
    SamplePlan(n_sample=30000, leaf_rows=2000, max_sampled_rows=2000)
    >>> [plan_sample(n, 28, 2000).leaf_rows for n in (10**6, 10**7, 10**8, 10**9)]
    [1719, 8000, 28000, 246000]
    """
    cheap = _cheap_rows(n_features)
    if n_rows <= cheap:
        return SamplePlan(n_rows, cell_size, cell_size)
    most = most_sampled(n_rows, n_features)
    leaf_rows = _leaf_rows(n_rows, n_features, cell_size, most)
    wanted = SAMPLED_PER_LEAF * math.ceil(n_rows / leaf_rows)
    n_sample = min(n_rows, max(cheap, min(wanted, most)))
    return SamplePlan(n_sample, leaf_rows, max(leaf_rows * n_sample // n_rows, 1))


def most_sampled(n_rows: int, n_features: int) -> int:
    """Return the largest number of rows of a sample.

    With many features `SAMPLE_NBYTES` are few rows, and leaves would be too large for a task. Then
    the sample has as many rows as make a leaf of the sample's size.

    >>> [most_sampled(10**9, d) for d in (2, 28, 631)], most_sampled(10**6, 10_000)
    ([262144, 131072, 131072], 5656)
    """
    balanced = min(math.isqrt(LEAST_SAMPLED * n_rows), LEAST_SAMPLED * MAX_LEAVES)
    by_nbytes = SAMPLE_NBYTES // (F8 * (n_features + GROWN_COLUMNS))
    bounded = min(by_nbytes, SAMPLED_PER_LEAF * FEW_LEAVES)
    return min(max(_cheap_rows(n_features), bounded, balanced), n_rows)


def _cheap_rows(n_features: int) -> int:
    """Return the number of rows up to which all rows are sampled."""
    return min(MIN_SAMPLE, MIN_SAMPLE_NBYTES // (F8 * n_features))


def _leaf_rows(n_rows: int, n_features: int, cell_size: int, most: int) -> int:
    """Return the target size of a leaf: as few cells as a sample of ``most`` rows can resolve."""
    shared = min(MIN_LEAF_ROWS, MIN_LEAF_NBYTES // (F8 * n_features))
    least = min(LEAST_LEAF_COST // cell_size, shared, n_rows // MIN_LEAVES) // cell_size
    for n_cells in range(max(least, 1), SHARED_CELLS):
        rows = _few_cells_rows(n_rows, n_cells * cell_size, most)
        if rows and math.ceil(n_rows / rows) <= FEW_LEAVES:
            return rows
    n_leaves = max(min(most // LEAST_SAMPLED, MAX_LEAVES), 1)
    return max(least, SHARED_CELLS, -(-n_rows // (n_leaves * cell_size))) * cell_size


def _few_cells_rows(n_rows: int, full_rows: int, most: int) -> int:
    """Return ``full_rows`` less two standard deviations; 0 if the sample is too small for that."""
    margin = 1.0 - 2.0 / math.sqrt(SAMPLED_PER_LEAF)
    sampled = min(margin * most * full_rows / n_rows, SAMPLED_PER_LEAF)
    if sampled < SAMPLED_PER_LEAF // 4:
        return 0
    return max(int(full_rows * (1.0 - 2.0 / math.sqrt(sampled))), 1)


def expected_cells(n_rows: int, cell_size: int) -> int:
    """Return the expected number of cells.

    >>> expected_cells(1000, 2000), expected_cells(1_000_000, 2000)
    (1, 556)
    """
    return 1 if n_rows <= cell_size else math.ceil(n_rows / (USUAL_FULLNESS * cell_size))


def plan_bundles(sizes: TaskSizes, leaf_rows: Sequence[int]) -> tuple[Bundle, ...]:
    """Group all leaves into contiguous bundles.

    Unless it is a single leaf, a bundle has at most the work `bundle_work`, and rows and models of
    at most `LEAVES_NBYTES` each: its task holds one leaf at a time, and the models of all its
    leaves until they are written.
    """
    work = [_work(rows, sizes.cell_size) for rows in leaf_rows]
    most = bundle_work(sum(work))
    nbytes = [max(rows * sizes.row_nbytes, model_nbytes(sizes, rows)) for rows in leaf_rows]
    # The sum of maxima is no less than the maximum of either sum.
    costs = [max(w / most, n / LEAVES_NBYTES) for w, n in zip(work, nbytes, strict=True)]
    return tuple(
        _bundle(sizes, first, leaf_rows[first : last + 1], sum(work[first : last + 1]))
        for first, last in group_neighbors(costs, 1.0)
    )


def group_neighbors(costs: Sequence[float], limit: float) -> list[tuple[int, int]]:
    """Group neighbors into runs (first, last) that cost at most ``limit``.

    One that alone costs more is a group of its own.

    >>> group_neighbors([2, 2, 2, 9, 1, 1], 4)
    [(0, 1), (2, 2), (3, 3), (4, 5)]
    """
    groups: list[tuple[int, int]] = []
    held = 0.0
    for i, cost in enumerate(costs):
        if groups and held + cost <= limit:
            groups[-1] = groups[-1][0], i
            held += cost
        else:
            groups.append((i, i))
            held = cost
    return groups


def bundle_work(work: float) -> float:
    """Return the most work of a bundle (rows^2) from the work of all.

    >>> [round(work / bundle_work(work)) for work in (1e6, 1e8, 1e9, 1e11)]
    [0, 50, 64, 3333]
    """
    return min(max(work / N_BUNDLES, MIN_BUNDLE_WORK), MAX_BUNDLE_WORK)


def _work(n_rows: int, cell_size: int) -> float:
    """Return the sum of rows^2 over the cells of a leaf, of near-equal size."""
    n_cells = max(-(-n_rows // cell_size), 1)
    return n_rows**2 / n_cells


def _bundle(sizes: TaskSizes, first: int, leaf_rows: Sequence[int], work: float) -> Bundle:
    n_rows, largest = sum(leaf_rows), max(leaf_nbytes(sizes, rows) for rows in leaf_rows)
    models = model_nbytes(sizes, n_rows)
    # Writing copies the models, but no leaf is in memory by then.
    nbytes = models + max(models, largest)
    if len(leaf_rows) > 1:
        # Small neighboring leaves are read together.
        nbytes += min(LEAVES_NBYTES, n_rows * sizes.row_nbytes)
    return Bundle(first, first + len(leaf_rows) - 1, n_rows, work, nbytes)


def leaf_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Return the peak bytes of reading a leaf, cutting it into cells and training one of them."""
    reading = 2 * n_rows * sizes.row_nbytes
    cutting = n_rows * sizes.row_nbytes + grow_nbytes(n_rows, sizes.n_features, sizes.cell_size)
    training = n_rows * sizes.row_nbytes + cell_nbytes(sizes, min(n_rows, sizes.cell_size))
    return max(reading, cutting, training)


def group_nbytes(sizes: TaskSizes, leaf_rows: int, n_rows: int) -> int:
    """Return the peak bytes of a task that trains leaves of up to so many rows, one at a time."""
    models, beside = model_nbytes(sizes, leaf_rows), 0
    if leaf_rows < n_rows and max(leaf_rows * sizes.row_nbytes, models) < LEAVES_NBYTES:
        # Of several leaves, whose rows are read together.
        models = max(models, min(model_nbytes(sizes, n_rows), LEAVES_NBYTES))
        beside = min(n_rows * sizes.row_nbytes, LEAVES_NBYTES)
    return models + max(models, leaf_nbytes(sizes, leaf_rows)) + beside


def cell_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    return find_solver(sizes.spec).nbytes(sizes, n_rows)


def model_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Return the bytes of the models of ``n_rows`` rows if every row is a support row."""
    return find_solver(sizes.spec).model_nbytes(sizes, n_rows)
