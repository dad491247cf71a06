"""The expected work of a fit: its stages, their tasks, equal pieces of work, and the exchange.

The seconds of a piece do not follow from arithmetic: `daskls.run.pace` measures them.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daskls.memory import TaskSizes
from daskls.plan.bundles import Extent, Resources, model_nbytes, plan_bundles

# The functions that time the pieces of work that methods share, see `Work.what`.
GROW, READ = "run.pace:grow_trunk", "run.pace:read_run"
CUT, CELL = "run.pace:cut_leaf", "run.pace:train_cell"
# CPU seconds of a task beside its work: of any task, and of one that writes a bundle of models.
TASK_S, BUNDLE_S = 1.5e-3, 20e-3
# Mean rows of a cell as a share of cell_size: where rows are equal, cuts leave cells uneven.
# Measured: 0.80 on Covertype, 0.68 on ijcnn1, 0.91 on noisy28, 1 on few rows without ties.
USUAL_FULLNESS = 0.9
# Leaves are expected to be equal: of more than this many, the bundles are extrapolated.
MOST_LEAVES = 20_000
# Time grows with at most this power of the size of a piece of work.
MOST_POWER = 3.0

# The least bytes of a block of X, small enough for any worker. Blocks of large data have up to
# MOST_BLOCK_SHARES times as many, so that a leaf's run in a block is worth a request.
BLOCK_NBYTES = 16 << 20
MOST_BLOCK_SHARES = 16
# Blocks grow only while X has at least this many, so that all workers regroup.
MIN_BLOCKS = 32
# A block grows to at most 1 / TASK_SHARE of a task's memory.
TASK_SHARE = 32
# Up to this many runs (blocks x leaves) each leaf is read from every block. Beyond, groups of this
# many blocks are merged first. The file of a group's rows in one window is then as large as a
# block, and is read from the blocks by requests of a 32nd of that, at least 512 KiB.
MOST_RUNS = 1 << 17
GROUP_BLOCKS = 32
# Bytes of an entry of the manifest.
ENTRY_NBYTES = 20

# By the function that times a piece: sizes, increasing, and the seconds of a piece of each size.
Paces = Mapping[str, Sequence[tuple[int, float]]]


@dataclass(frozen=True)
class Work:
    """Equal pieces of work.

    Attributes
    ----------
    what : str. The function that times a piece, as ``module:function`` below the package: see
        `daskls.run.pace`.
    size : int. Rows of a piece, or another size that its time depends on.
    count : float. Number of pieces.
    """

    what: str
    size: int
    count: float


@dataclass(frozen=True)
class StageDemand:
    """The tasks of a stage.

    Attributes
    ----------
    name : str. A key of `daskls.run.progress.STAGE_LABELS`.
    n_tasks : int. In all rounds; 0: the client does the work.
    nbytes : int. Projected peak of the largest task.
    works : tuple of Work. Of all tasks.
    n_rounds : int. Rounds of tasks, one after the other.
    share : float. The largest task's share of the work of its round; 0: tasks are equal.
    task_s : float. CPU seconds of a task beside its work: in the scheduler, and for writing.
    """

    name: str
    n_tasks: int
    nbytes: int
    works: tuple[Work, ...] = ()
    n_rounds: int = 1
    share: float = 0.0
    task_s: float = TASK_S


@dataclass(frozen=True)
class Demand:
    """The work of a method after rows are regrouped.

    Attributes
    ----------
    stages : tuple of StageDemand
    n_models : int. Cells, or other parts with a model of their own.
    model_nbytes : int. Upper bound of the model's size.
    client_nbytes : int. Held by the client beside the sample.
    n_bundles : int. Tasks that train.
    """

    stages: tuple[StageDemand, ...] = ()
    n_models: int = 0
    model_nbytes: int = 0
    client_nbytes: int = 0
    n_bundles: int = 0


@dataclass(frozen=True)
class ExchangePlan:
    """The sizes and the cost of the exchange of rows.

    Attributes
    ----------
    n_blocks, block_rows : int. Blocks of X, and the rows of one.
    n_groups : int. Groups of merged blocks; a block that is not merged is a group.
    n_windows : int. Ranges of leaves, each with one file per group and a manifest of its own.
    requests : int. Upper bound of the files written and ranges read until every leaf was read,
        markers included; fewer where small leaves are read together.
    nbytes : int. Peak on disk.
    manifest_nbytes : int. Of the largest manifest, which a task holds.
    """

    n_blocks: int
    block_rows: int
    n_groups: int
    n_windows: int
    requests: int
    nbytes: int
    manifest_nbytes: int


@dataclass(frozen=True)
class Outlook:
    """What is known of a fit before its rows are read.

    Attributes
    ----------
    extent : Extent. As expected.
    resources : Resources
    exchange : ExchangePlan
    n_sample : int. Rows that the client grows trees on.
    n_leaves : int. Of all partitions.
    n_partitions : int
    reading : Work. Reading all leaves once.
    """

    extent: Extent
    resources: Resources
    exchange: ExchangePlan
    n_sample: int
    n_leaves: int
    n_partitions: int
    reading: Work

    @property
    def grown(self) -> StageDemand:
        """The client's own stage: growing trees on the sample."""
        return StageDemand("cut", 0, 0, (Work(GROW, self.n_sample, self.n_partitions),))


def demand_of_cells(outlook: Outlook, cells: tuple[int, int] | None = None) -> Demand:
    """Return the demand of training the cells, bundle by bundle.

    ``cells`` are the number of cells and the rows of each; None: as cuts of space make them.
    """
    extent, sizes = outlook.extent, outlook.extent.sizes
    n_cells, rows = cells or expected_cells(extent.n_rows, sizes.cell_size)
    n_cells *= outlook.n_partitions
    known = min(outlook.n_leaves, MOST_LEAVES)
    leaf_rows = _even(extent.n_rows * outlook.n_partitions // outlook.n_leaves * known, known)
    plan = plan_bundles(sizes, leaf_rows, [False] * known, outlook.resources)
    n_bundles = len(plan.bundles) * outlook.n_leaves // known
    largest = max((bundle.work for bundle in plan.bundles), default=0.0)
    share = largest / max(sum(bundle.work for bundle in plan.bundles), 1.0) * known
    of_leaf = max(extent.n_rows * outlook.n_partitions // outlook.n_leaves, 1)
    works = outlook.reading, Work(CUT, of_leaf, outlook.n_leaves), Work(CELL, rows, n_cells)
    train = StageDemand(
        "train",
        n_bundles,
        plan.peak_nbytes,
        works,
        share=share / outlook.n_leaves,
        task_s=BUNDLE_S,
    )
    total = outlook.n_partitions * extent.n_rows
    return Demand((train,), n_cells, model_nbytes(sizes, total), 0, n_bundles)


def expected_cells(n_rows: int, cell_size: int) -> tuple[int, int]:
    """Return the expected number of cells, and the rows of each.

    >>> expected_cells(1000, 2000), expected_cells(1_000_000, 2000)
    ((1, 1000), (556, 1798))
    """
    n_cells = 1 if n_rows <= cell_size else math.ceil(n_rows / (USUAL_FULLNESS * cell_size))
    return n_cells, n_rows // n_cells


def _even(n_rows: int, n_leaves: int) -> list[int]:
    """Distribute rows over leaves as evenly as possible.

    >>> _even(10, 4)
    [3, 3, 2, 2]
    """
    rows, more = divmod(n_rows, n_leaves)
    return [rows + (leaf < more) for leaf in range(n_leaves)]


def seconds_of(work: Work, paces: Paces) -> float:
    """Return the seconds of some work, by a power law between and beyond the measured sizes.

    >>> seconds_of(Work("cell", 400, 10), {"cell": ((100, 1.0), (200, 4.0))})
    160.0
    >>> seconds_of(Work("cell", 50, 1), {"cell": ((100, 1.0),)})
    0.5
    """
    points = paces[work.what]
    at = min(max(bisect_left(points, (work.size, 0.0)), 1), len(points) - 1)
    (low, first), (high, last) = points[max(at - 1, 0)], points[at]
    power = 1.0
    if high > low and first > 0 and last > 0:
        power = min(max(math.log(last / first) / math.log(high / low), 0.0), MOST_POWER)
    return float(work.count * last * (work.size / high) ** power)


def plan_exchange(
    sizes: TaskSizes, n_rows: int, n_leaves: int, n_partitions: int, task_nbytes: int
) -> ExchangePlan:
    """Project the exchange of rows in the largest blocks that ``task_nbytes`` of a task allow.

    ``n_leaves`` counts the leaves of all partitions.

    >>> from daskls.records import SolverSpec
    >>> sizes = TaskSizes(28, 4, 2, 2000, SolverSpec())
    >>> [plan_exchange(sizes, n, 4096, 1, 2 << 30).requests for n in (10**7, 10**8, 10**9)]
    [139361, 44398, 340554]
    """
    given = n_rows * sizes.n_features * sizes.itemsize
    row_nbytes = max(sizes.n_features * sizes.itemsize, 1)
    block_rows = min(max(block_nbytes(given, task_nbytes) // row_nbytes, 1), n_rows)
    n_blocks = -(-n_rows // block_rows)
    merged = group_blocks(n_blocks, n_leaves)
    n_groups, n_windows = -(-n_blocks // merged), min(merged, n_leaves)
    nbytes = n_rows * n_partitions * sizes.row_nbytes
    # Rows and marker of each block, the marker of each file, each leaf in each group, and two per
    # window for its manifest.
    requests = 2 * n_blocks + n_windows + n_groups * (n_windows + n_leaves) + 2 * n_leaves
    if merged > 1:
        # Each window of a group reads marker and rows of all its blocks, and writes its own.
        requests += 2 * n_blocks * n_windows + 2 * n_groups * n_windows
    return ExchangePlan(
        n_blocks,
        block_rows,
        n_groups,
        n_windows,
        requests,
        nbytes * (2 if merged > 1 else 1),
        ENTRY_NBYTES * n_groups * -(-n_leaves // n_windows),
    )


def block_nbytes(nbytes: int, task_nbytes: int, least: int = BLOCK_NBYTES) -> int:
    """Return the bytes of a block of X, given those of X and those that a task may use.

    >>> [block_nbytes(n << 30, 2 << 30) >> 20 for n in (0, 1, 4, 1000)]
    [16, 32, 64, 64]
    """
    most = min(MOST_BLOCK_SHARES * least, nbytes // MIN_BLOCKS, task_nbytes // TASK_SHARE)
    return max(least, most)


def group_blocks(n_blocks: int, n_leaves: int) -> int:
    """Return how many blocks are merged into a group; 1 where leaves are read from all blocks.

    >>> group_blocks(32, 4096), group_blocks(33, 4096)
    (1, 32)
    """
    return 1 if n_blocks * n_leaves <= MOST_RUNS else min(GROUP_BLOCKS, n_blocks)
