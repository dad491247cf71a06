"""The work of a fit before its rows are read: stages, their tasks, and equal pieces of work.

How long a piece takes, nobody knows by arithmetic: it is measured (`daskls.run.pace`).

The exchange of rows: how large its blocks are, whether they are merged, and what it costs.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daskls.memory import TaskSizes
from daskls.plan.bundles import Extent, Resources, model_nbytes, plan_bundles

# Bytes of a block of X: at least so many, small enough for any worker; of large data more, so that
# a leaf's run in a block is worth a request.
BLOCK_NBYTES = 16 << 20
MOST_BLOCK_SHARES = 16
# X is cut into this many blocks before they grow, so that all workers regroup.
MIN_BLOCKS = 32
# A block is regrouped within about this share of a task's memory.
TASK_SHARE = 32
# Up to so many runs of leaves in blocks each leaf is read from every block. Beyond, so many blocks
# at a time are merged first: a file of a group's rows in one window is as large as a block, and is
# read from its blocks by requests of a 32nd of that, at least 512 KiB.
MOST_RUNS = 1 << 17
GROUP_BLOCKS = 32
# An entry of the manifest.
ENTRY_NBYTES = 20


@dataclass(frozen=True)
class ExchangePlan:
    """What regrouping costs.

    Attributes
    ----------
    n_blocks : int
    block_rows : int
    n_groups : int. Of merged blocks; of blocks that are not merged each is one.
    n_windows : int. Ranges of leaves, each with a file of every group and a manifest of its own.
    requests : int. Files written and ranges read, markers included, until every leaf was read, at
        the most: small leaves are read together.
    nbytes : int. On disk at its peak.
    manifest_nbytes : int. Of the largest of the manifests, which a task holds.
    """

    n_blocks: int
    block_rows: int
    n_groups: int
    n_windows: int
    requests: int
    nbytes: int
    manifest_nbytes: int


def block_nbytes(nbytes: int, task_nbytes: int, least: int = BLOCK_NBYTES) -> int:
    """Return how many bytes of X a block has, by those of X and those that a task may use.

    >>> [block_nbytes(n << 30, 2 << 30) >> 20 for n in (0, 1, 4, 1000)]
    [16, 32, 64, 64]
    """
    most = min(MOST_BLOCK_SHARES * least, nbytes // MIN_BLOCKS, task_nbytes // TASK_SHARE)
    return max(least, most)


def group_blocks(n_blocks: int, n_leaves: int) -> int:
    """Return how many blocks are merged into one group; 1 where leaves are read from all blocks.

    >>> group_blocks(32, 4096), group_blocks(33, 4096)
    (1, 32)
    """
    return 1 if n_blocks * n_leaves <= MOST_RUNS else min(GROUP_BLOCKS, n_blocks)


def plan_exchange(
    sizes: TaskSizes, n_rows: int, n_leaves: int, n_partitions: int, task_nbytes: int
) -> ExchangePlan:
    """Project the exchange of rows in blocks as large as they may be.

    Parameters
    ----------
    sizes : TaskSizes
    n_rows : int
    n_leaves : int. Of all partitions.
    n_partitions : int
    task_nbytes : int. What a task may use.

    Examples
    --------
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
    # Rows and marker of each block; markers and leaves read from every file; two of the manifest.
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


# What times a piece of the work that methods share, see `Work`.
GROW, READ = "run.pace:grow_trunk", "run.pace:read_run"
CUT, CELL = "run.pace:cut_leaf", "run.pace:train_cell"
# What a task costs beside its work: of any, and of one that writes a bundle of models.
TASK_S, BUNDLE_S = 1.5e-3, 20e-3
# Rows of a cell, as a share of the most: cuts leave cells uneven where rows are equal. Of Covertype
# cells are full by 0.80, of ijcnn1 by 0.68, of noisy28 by 0.91, of few rows without ties by 1.
USUAL_FULLNESS = 0.9
# Leaves are expected to be equal: beyond so many, the bundles of these tell those of all.
MOST_LEAVES = 20_000
# The power of its size that a piece of work may take time by.
MOST_POWER = 3.0

# Of what times a piece: sizes, and the seconds of a piece of each.
Paces = Mapping[str, Sequence[tuple[int, float]]]


@dataclass(frozen=True)
class Work:
    """Equal pieces of work.

    Attributes
    ----------
    what : str. What times a piece, as ``module:function`` below the package: see
        `daskls.run.pace`.
    size : int. Rows of a piece, or what else its time depends on.
    count : float. Pieces.
    """

    what: str
    size: int
    count: float


@dataclass(frozen=True)
class StageDemand:
    """The tasks of a stage.

    Attributes
    ----------
    name : str. As of `daskls.run.progress.STAGE_LABELS`.
    n_tasks : int. In all rounds; 0: the client does it.
    nbytes : int. Projected peak of its largest task.
    works : tuple of Work. Of all its tasks.
    n_rounds : int. Rounds of tasks, one after the other.
    share : float. The largest task's share of a round's work; 0: that of equal tasks.
    task_s : float. CPU seconds of a task beside its work: the scheduler's, and what it writes.
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
    """What a method asks for after rows are regrouped.

    Attributes
    ----------
    stages : tuple of StageDemand
    n_models : int. Cells, or what else has a model of its own.
    model_nbytes : int. At the most.
    client_nbytes : int. What the client holds beside the sample.
    n_bundles : int. Tasks that train.
    """

    stages: tuple[StageDemand, ...] = ()
    n_models: int = 0
    model_nbytes: int = 0
    client_nbytes: int = 0
    n_bundles: int = 0


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
        """The client's stage: trees on the sample."""
        return StageDemand("cut", 0, 0, (Work(GROW, self.n_sample, self.n_partitions),))


def seconds_of(work: Work, paces: Paces) -> float:
    """Return the seconds of pieces of work: between and beyond measured sizes by a power.

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


def expected_cells(n_rows: int, cell_size: int) -> tuple[int, int]:
    """Return the expected number of cells, and the rows of one.

    >>> expected_cells(1000, 2000), expected_cells(1_000_000, 2000)
    ((1, 1000), (556, 1798))
    """
    n_cells = 1 if n_rows <= cell_size else math.ceil(n_rows / (USUAL_FULLNESS * cell_size))
    return n_cells, n_rows // n_cells


def demand_of_cells(outlook: Outlook, cells: tuple[int, int] | None = None) -> Demand:
    """Return the demand of models of cells, bundle by bundle.

    Parameters
    ----------
    outlook : Outlook
    cells : (int, int), or None where cuts of space decide. Cells, and the rows of one.
    """
    extent, sizes = outlook.extent, outlook.extent.sizes
    n_cells, rows = cells or expected_cells(extent.n_rows, sizes.cell_size)
    n_cells *= outlook.n_partitions
    known = min(outlook.n_leaves, MOST_LEAVES)
    leaf_rows = _even(extent.n_rows * outlook.n_partitions // outlook.n_leaves * known, known)
    plan = plan_bundles(sizes, leaf_rows, [False] * known, outlook.resources)
    n_bundles = len(plan.bundles) * outlook.n_leaves // known
    largest = max((bundle.cost for bundle in plan.bundles), default=0.0)
    share = largest / max(sum(bundle.cost for bundle in plan.bundles), 1.0) * known
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


def _even(n_rows: int, n_leaves: int) -> list[int]:
    """Return the rows of each of some leaves, as even as can be.

    >>> _even(10, 4)
    [3, 3, 2, 2]
    """
    rows, more = divmod(n_rows, n_leaves)
    return [rows + (leaf < more) for leaf in range(n_leaves)]
