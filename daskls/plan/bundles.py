"""The depth of the sampled tree, and the leaves that are trained together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from daskls.memory import TaskSizes
from daskls.plan.leaves import leaf_nbytes, model_nbytes
from daskls.records import Bundle

__all__ = [
    "Extent",
    "Plan",
    "Resources",
    "SamplePlan",
    "bundle_cost",
    "group_open",
    "n_selecting",
    "plan_bundles",
    "plan_sample",
]

# A leaf of the sampled tree aims at this many cells at most: its own rows, known exactly, cut it
# into cells, so that more cells a leaf means fuller cells; the leaf must fit a task's memory.
MAX_CELLS_PER_LEAF = 8
# Small cells share leaves of about this many rows (and bytes, in float64), or the sample would grow
# as they shrink.
MIN_LEAF_ROWS = 1 << 14
MIN_LEAF_NBYTES = 4 << 20
# Below this many leaves, workers would wait for each other: leaves are made smaller instead.
MIN_LEAVES = 64
# Sampled rows a leaf: its size is then known to about 6 %.
SAMPLED_PER_LEAF = 256
# Up to this many rows (and bytes, in float64) all rows are sampled, and leaves are exact.
MIN_SAMPLE = 1 << 16
MIN_SAMPLE_NBYTES = 64 << 20
# Work is cut into so many bundles, regardless of the slots: workers may join. But a bundle has a
# cost of its own, some 20 ms: small work is cut into fewer, of this cost (rows^2, some tenths of a
# second) at least, and large work into more, so that many workers end together.
N_BUNDLES = 64
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

    A leaf of c cells aims at c x ``cell_size`` rows less two standard deviations of its count, as
    estimated from the sample; if every row is sampled, leaves are exact and are the cells.

    Examples
    --------
    >>> plan_sample(30_000, 28, 2000)
    SamplePlan(n_sample=30000, leaf_rows=2000, max_sampled_rows=2000)
    >>> plan_sample(10_000_000, 28, 2000).leaf_rows
    14000
    """
    cheap = min(MIN_SAMPLE, MIN_SAMPLE_NBYTES // (8 * n_features))
    if n_rows <= cheap:
        return SamplePlan(n_rows, cell_size, cell_size)
    shared = min(MIN_LEAF_ROWS, MIN_LEAF_NBYTES // (8 * n_features))
    most = max(MAX_CELLS_PER_LEAF, shared // cell_size)
    cells_per_leaf = min(max(n_rows // (cell_size * MIN_LEAVES), 1), most)
    margin = 1.0 - 2.0 / math.sqrt(SAMPLED_PER_LEAF)
    leaf_rows = max(int(cells_per_leaf * cell_size * margin), 1)
    n_leaves = math.ceil(n_rows / leaf_rows)
    n_sample = min(n_rows, max(cheap, SAMPLED_PER_LEAF * n_leaves))
    return SamplePlan(n_sample, leaf_rows, max(leaf_rows * n_sample // n_rows, 1))


def plan_bundles(
    sizes: TaskSizes, leaf_rows: Sequence[int], done: Sequence[bool], resources: Resources
) -> Plan:
    """Group the leaves that are not done into contiguous bundles of near-equal work.

    Parameters
    ----------
    sizes : TaskSizes
    leaf_rows : sequence of int. Rows of each leaf.
    done : sequence of bool. Leaves whose models are already stored.
    resources : Resources

    Returns
    -------
    plan : Plan. Bundles sized by the work, each within a task's memory: it holds one leaf at
        a time, and the models of its leaves until they are written.
    """
    costs = [_cost(rows, sizes.cell_size) for rows in leaf_rows]
    target = bundle_cost(sum(costs))
    bundles: list[Bundle] = []
    start: int | None = None
    for leaf in range(len(leaf_rows)):
        if done[leaf]:
            start = None
            continue
        wider = _bundle(sizes, leaf_rows, costs, start if start is not None else leaf, leaf)
        if start is None or wider.cost > target or wider.nbytes > resources.task_nbytes:
            start = leaf
            bundles.append(_bundle(sizes, leaf_rows, costs, leaf, leaf))
        else:
            bundles[-1] = wider
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


def bundle_cost(cost: float) -> float:
    """Return the cost (rows^2) that a bundle aims at, from that of all the work.

    >>> [round(cost / bundle_cost(cost)) for cost in (1e6, 1e8, 1e9, 1e11)]
    [0, 50, 64, 3333]
    """
    return min(max(cost / N_BUNDLES, MIN_BUNDLE_COST), MAX_BUNDLE_COST)


def _cost(n_rows: int, cell_size: int) -> float:
    """Training costs the sum over cells of rows^2; cells are of near-equal size."""
    n_cells = max(-(-n_rows // cell_size), 1)
    return n_rows**2 / n_cells


def _bundle(
    sizes: TaskSizes, leaf_rows: Sequence[int], costs: Sequence[float], first: int, last: int
) -> Bundle:
    """Return the bundle of leaves first .. last."""
    rows = leaf_rows[first : last + 1]
    models = model_nbytes(sizes, sum(rows))
    # As in group_nbytes: one leaf at a time, all models until they are written.
    nbytes = models + max(models, max(leaf_nbytes(sizes, r) for r in rows))
    return Bundle(first, last, sum(rows), sum(costs[first : last + 1]), nbytes)
