"""The work of a fit before its rows are read: stages, their tasks, and equal pieces of work.

How long a piece takes, nobody knows by arithmetic: it is measured (`daskls.run.pace`).
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daskls.plan.bundles import Extent, Resources, plan_bundles
from daskls.plan.exchange import ExchangePlan
from daskls.plan.leaves import model_nbytes

__all__ = [
    "BUNDLE_S",
    "CUT",
    "GROW",
    "READ",
    "USUAL_FULLNESS",
    "Demand",
    "Outlook",
    "Paces",
    "StageDemand",
    "Work",
    "demand_of_cells",
    "expected_cells",
    "seconds_of",
]

# What times a piece of the work that methods share, see `Work`.
GROW, READ = "run.timed:grow_trunk", "run.timed:read_run"
CUT, CELL = "run.timed:cut_leaf", "run.timed:train_cell"
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
