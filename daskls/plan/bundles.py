"""The depth of the sampled tree, and the leaves that are trained together.

Memory of the tasks that train the cells of a leaf: their own part, and the solver's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from daskls.memory import GROWN_COLUMNS, TaskSizes, grow_nbytes
from daskls.records import F8, LEAVES_NBYTES, Bundle
from daskls.solvers.registry import find_solver

# Rows of a cell, where nobody says: a linear system of more costs more than it gains. Time is in
# proportion to rows x cell_size^2: of more rows of data than these, smaller cells keep it.
LARGE_CELL, SMALL_CELL, MANY_ROWS = 4000, 2000, 60_000


def usual_cells(n_rows: int) -> int:
    """Return the number of cells of linear systems, where nobody says how large they are.

    >>> [usual_cells(n) for n in (100, 4000, 10_000, 60_000, 240_000)]
    [1, 1, 3, 15, 120]
    """
    return -(-n_rows // (LARGE_CELL if n_rows <= MANY_ROWS else SMALL_CELL))


def cell_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Bytes that the training of one cell of ``n_rows`` rows adds to the task that holds it."""
    return find_solver(sizes.spec).nbytes(sizes, n_rows)


def model_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Bytes of the models of ``n_rows`` rows if every row is a support row."""
    return find_solver(sizes.spec).model_nbytes(sizes, n_rows)


def leaf_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Peak bytes of reading a leaf, cutting it into cells and training one of them."""
    reading = 2 * n_rows * sizes.row_nbytes
    cutting = n_rows * sizes.row_nbytes + grow_nbytes(n_rows, sizes.n_features, sizes.cell_size)
    training = n_rows * sizes.row_nbytes + cell_nbytes(sizes, min(n_rows, sizes.cell_size))
    return max(reading, cutting, training)


def group_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Peak bytes of a task that trains one leaf: the leaf, and the models until they are written.

    Models are copied once more as they are written, when the leaf is no longer in memory.
    """
    models = model_nbytes(sizes, n_rows)
    return models + max(models, leaf_nbytes(sizes, n_rows))


# A leaf of the sampled tree holds as few cells as the sample can tell apart: its own rows, known
# exactly, cut it into cells in the task that trains it. A leaf is the least that a worker takes on,
# so few cells a leaf let many workers end together; and they let a task hold little.
# Sampled rows a leaf, where there is room: its size is then known to about 6 %. A quarter of them
# tells 12 %, which costs cells of few a leaf some of their rows.
SAMPLED_PER_LEAF = 256
# From so many cells a leaf on, how full they are no longer depends on the leaf's size: still fewer
# sampled rows do, by which it is known to some 18 %.
SHARED_CELLS = 4
LEAST_SAMPLED = 32
# Leaves are of less than that while they are so few, which keep some hundred workers busy to the
# end.
FEW_LEAVES = 1 << 10
# The client holds the sample and a float64 copy of it, and tasks the tree: both are bounded,
# however many rows there are, and leaves grow instead.
MAX_LEAVES = 1 << 12
SAMPLE_NBYTES = 32 << 20
# Cells that cost little share leaves: of about the cost (rows^2) of a cell of 2000, but no more
# than so many rows (and bytes, in float64), or than lets this many leaves of them be.
LEAST_LEAF_COST = 2000**2
MIN_LEAF_ROWS = 1 << 14
MIN_LEAF_NBYTES = 4 << 20
MIN_LEAVES = 64
# Up to this many rows (and bytes, in float64) all rows are sampled, and leaves are exact.
MIN_SAMPLE = 1 << 16
MIN_SAMPLE_NBYTES = 64 << 20
# Work is cut into so many bundles at the least: workers may join. Of more slots each has some: the
# last ones to end then wait for a quarter of their share at the most, or for one leaf. But a bundle
# has a cost of its own, some 20 ms: small work is cut into fewer, of this cost (rows^2, some tenths
# of a second) at least, and large work into more.
N_BUNDLES, BUNDLES_PER_SLOT = 64, 4
MIN_BUNDLE_COST = 2e6
MAX_BUNDLE_COST = 3e7

# Parameters of the whole model are selected on one row in so many: enough that an error of a few
# percent is known to some tenths, and few enough that their kernel matrix fits a task.
ROWS_PER_SELECTING_ROW = 100
LEAST_SELECTING, MOST_SELECTING = 2000, 5000


@dataclass(frozen=True)
class Resources:
    """The slots and the memory that the current scheduler offers.

    ``n_slots`` tasks run at once, each with ``task_nbytes`` of memory. ``held`` is the memory that
    workers hold from earlier work, where that is much; ``has_svc`` whether scikit-learn's SVC is
    part of it.
    """

    n_slots: int
    task_nbytes: int
    held: str = ""
    has_svc: bool = False

    @property
    def more(self) -> str:
        """The remedy that always helps where a task has too little memory."""
        remedy = "give each worker more memory or fewer threads."
        return f"{remedy} {self.held}" if self.held else remedy


@dataclass(frozen=True)
class Extent:
    """The sizes of the parts of a fit, as expected or as found on the way.

    Attributes
    ----------
    sizes : TaskSizes
    n_rows : int. Rows that count.
    leaf_rows : int. Of the largest leaf.
    block_rows : int. Of the largest block of X.
    at : "expected" before anything is written, "found" once rows are regrouped
    """

    sizes: TaskSizes
    n_rows: int
    leaf_rows: int
    block_rows: int
    at: str = "expected"


@dataclass(frozen=True)
class SamplePlan:
    """Stage 1: rows to sample, and the bound of a leaf in full and in sampled rows."""

    n_sample: int
    leaf_rows: int
    max_sampled_rows: int

    @property
    def largest_rows(self) -> int:
        """The rows that the largest leaf may hold, once all rows are known.

        Leaves of m sampled rows differ by one part in the root of m; of thousands of leaves one
        reaches four such deviations.

        >>> SamplePlan(65_536, 2000, 2000).largest_rows, SamplePlan(65_536, 16_000, 64).largest_rows
        (2000, 24000)
        """
        if self.max_sampled_rows >= self.leaf_rows:
            return self.leaf_rows
        return int(self.leaf_rows * (1.0 + 4.0 / math.sqrt(self.max_sampled_rows)))


@dataclass(frozen=True)
class Plan:
    """Stage 3: the bundles, largest first, and the projected peak of any task."""

    bundles: tuple[Bundle, ...]
    peak_nbytes: int


def n_selecting(n_rows: int) -> int:
    """Return how many rows parameters are selected on that are one for the whole model.

    >>> [n_selecting(n) for n in (500, 50_000, 300_000, 10_000_000)]
    [500, 2000, 3000, 5000]
    """
    share = -(-n_rows // ROWS_PER_SELECTING_ROW)
    return min(max(share, LEAST_SELECTING), MOST_SELECTING, n_rows)


def plan_sample(n_rows: int, n_features: int, cell_size: int) -> SamplePlan:
    """Decide the sample and the leaves from the data and the parameters alone.

    Parameters
    ----------
    n_rows : int. Rows that count.
    n_features : int
    cell_size : int

    Returns
    -------
    plan : SamplePlan. What it promises: the same for the same numbers, whatever the workers and
        their memory; all rows, in leaves that are the cells, up to `MIN_SAMPLE`; above, a sample
        of no more bytes than `most_sampled` allows and some `MAX_LEAVES` leaves at the most, of as
        few cells each as these bounds allow.

    Notes
    -----
    A leaf of less than `SHARED_CELLS` cells aims at that many less two standard deviations of its
    count, as estimated from the sample, so that few of them are cut into one cell more.

    Examples
    --------
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
    """Return the most rows of a sample.

    Of many features `SAMPLE_NBYTES` are few rows, and leaves would be too large for a task: there,
    as many rows as let a leaf be of the sample's size.

    >>> [most_sampled(10**9, d) for d in (2, 28, 631)], most_sampled(10**6, 10_000)
    ([262144, 131072, 131072], 5656)
    """
    balanced = min(math.isqrt(LEAST_SAMPLED * n_rows), LEAST_SAMPLED * MAX_LEAVES)
    by_nbytes = SAMPLE_NBYTES // (F8 * (n_features + GROWN_COLUMNS))
    bounded = min(by_nbytes, SAMPLED_PER_LEAF * FEW_LEAVES)
    return min(max(_cheap_rows(n_features), bounded, balanced), n_rows)


def _cheap_rows(n_features: int) -> int:
    """Return up to how many rows all are sampled."""
    return min(MIN_SAMPLE, MIN_SAMPLE_NBYTES // (F8 * n_features))


def _leaf_rows(n_rows: int, n_features: int, cell_size: int, most: int) -> int:
    """Return the rows that a leaf aims at: of as few cells as a sample of ``most`` rows tells."""
    shared = min(MIN_LEAF_ROWS, MIN_LEAF_NBYTES // (F8 * n_features))
    least = min(LEAST_LEAF_COST // cell_size, shared, n_rows // MIN_LEAVES) // cell_size
    for n_cells in range(max(least, 1), SHARED_CELLS):
        rows = _few_cells_rows(n_rows, n_cells * cell_size, most)
        if rows and math.ceil(n_rows / rows) <= FEW_LEAVES:
            return rows
    n_leaves = max(min(most // LEAST_SAMPLED, MAX_LEAVES), 1)
    return max(least, SHARED_CELLS, -(-n_rows // (n_leaves * cell_size))) * cell_size


def _few_cells_rows(n_rows: int, full_rows: int, most: int) -> int:
    """Return what a leaf aims at that few full cells make; 0 if the sample does not tell them."""
    margin = 1.0 - 2.0 / math.sqrt(SAMPLED_PER_LEAF)
    sampled = min(margin * most * full_rows / n_rows, SAMPLED_PER_LEAF)
    if sampled < SAMPLED_PER_LEAF // 4:
        return 0
    return max(int(full_rows * (1.0 - 2.0 / math.sqrt(sampled))), 1)


def plan_bundles(
    sizes: TaskSizes, leaf_rows: Sequence[int], done: Sequence[bool], resources: Resources
) -> Plan:
    """Group the leaves that are not done into contiguous bundles of at most equal work.

    Parameters
    ----------
    sizes : TaskSizes
    leaf_rows : sequence of int. Rows of each leaf.
    done : sequence of bool. Leaves whose models are already stored.
    resources : Resources

    Returns
    -------
    plan : Plan. What it promises: every open leaf is in one bundle, the largest come first; none
        costs more than `bundle_cost` says, nor needs more than a task may use, but single leaves:
        a task holds one leaf at a time, and the models of its leaves until they are written.
        Slots and memory decide the bundles alone, never what a leaf or a cell is.
    """
    costs = [_cost(rows, sizes.cell_size) for rows in leaf_rows]
    left = sum(cost for cost, is_done in zip(costs, done, strict=True) if not is_done)
    coarse, fine = (bundle_cost(left, n * resources.n_slots) for n in (1, BUNDLES_PER_SLOT))
    bundles: list[Bundle] = []
    grouped = 0.0
    # Of the last bundle, its largest leaf; None where the next leaf begins another one.
    largest: int | None = None
    for leaf, rows in enumerate(leaf_rows):
        if done[leaf]:
            largest = None
            continue
        # The last quarter of the work, in smaller bundles, fills what the large ones leave open.
        target = coarse if grouped < 0.75 * left else fine
        grouped += costs[leaf]
        own = leaf_nbytes(sizes, rows)
        alone = _bundle(sizes, leaf, leaf, rows, costs[leaf], own)
        if largest is not None:
            first, n_rows, cost = bundles[-1].first_leaf, bundles[-1].n_rows, bundles[-1].cost
            widest = max(largest, own)
            wider = _bundle(sizes, first, leaf, n_rows + rows, cost + costs[leaf], widest)
            if wider.cost <= target and wider.nbytes <= resources.task_nbytes:
                bundles[-1], largest = wider, widest
                continue
        bundles.append(alone)
        largest = own
    bundles.sort(key=lambda bundle: (-bundle.cost, bundle.first_leaf))
    return Plan(tuple(bundles), max((bundle.nbytes for bundle in bundles), default=0))


def group_open(costs: Sequence[float], done: Sequence[bool], limit: float) -> list[tuple[int, int]]:
    """Group what is not done into runs of neighbors whose costs add up to ``limit`` at most.

    One that costs more than the limit is a group of its own.

    >>> group_open([2, 2, 2, 9, 1, 1], [False, False, False, False, True, False], 4)
    [(0, 1), (2, 2), (3, 3), (5, 5)]
    """
    groups: list[tuple[int, int]] = []
    held = 0.0
    for i, cost in enumerate(costs):
        if done[i]:
            continue
        if groups and groups[-1][1] == i - 1 and held + cost <= limit:
            groups[-1] = groups[-1][0], i
            held += cost
        else:
            groups.append((i, i))
            held = cost
    return groups


def bundle_cost(cost: float, n_slots: int = 1) -> float:
    """Return the cost (rows^2) that a bundle aims at, from that of all the work.

    >>> [round(cost / bundle_cost(cost)) for cost in (1e6, 1e8, 1e9, 1e11)]
    [0, 50, 64, 3333]
    >>> [round(cost / bundle_cost(cost, 200)) for cost in (1e6, 1e8, 1e10, 1e11)]
    [0, 50, 800, 3333]
    """
    share = cost / max(N_BUNDLES, BUNDLES_PER_SLOT * n_slots)
    return min(max(share, MIN_BUNDLE_COST), MAX_BUNDLE_COST)


def _cost(n_rows: int, cell_size: int) -> float:
    """Training costs the sum over cells of rows^2; cells are of near-equal size."""
    n_cells = max(-(-n_rows // cell_size), 1)
    return n_rows**2 / n_cells


def _bundle(
    sizes: TaskSizes, first: int, last: int, n_rows: int, cost: float, largest: int
) -> Bundle:
    """Return the bundle of leaves first .. last, of which one needs ``largest`` bytes."""
    models = model_nbytes(sizes, n_rows)
    # As in group_nbytes: one leaf at a time, all models until they are written.
    nbytes = models + max(models, largest)
    if last > first:
        # Of those that are read together.
        nbytes += min(LEAVES_NBYTES, n_rows * sizes.row_nbytes)
    return Bundle(first, last, n_rows, cost, nbytes)
