"""From sizes to a plan: how fine the sampled tree is, and which leaves are trained together.

Pure arithmetic: no Dask, no Zarr, no data. Workers and memory decide only the bundles, never a
leaf or a cell.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from daskls.errors import MemoryPlanError, ParameterError
from daskls.memory import (
    TaskSizes,
    assign_nbytes,
    ball_nbytes,
    gather_nbytes,
    group_nbytes,
    grow_nbytes,
    landmark_nbytes,
    largest_block,
    leaf_nbytes,
    model_nbytes,
    neighborhood_nbytes,
    sample_nbytes,
    search_nbytes,
)
from daskls.partition.subsamples import plan_draws
from daskls.records import Bundle, SamplingSpec

__all__ = [
    "CELL_ROWS",
    "SEARCHED_ROWS",
    "Plan",
    "Resources",
    "SamplePlan",
    "beside_svc",
    "cache_nbytes",
    "check_chunks",
    "check_landmarks",
    "check_memory",
    "check_neighborhoods",
    "check_sample",
    "check_sampling",
    "check_trained",
    "chunk_size",
    "group_open",
    "plan_bundles",
    "plan_chunk",
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
# So many bundles keep a slot busy to the end; but a bundle costs about a tenth of a second
# whatever it holds: small work is cut into fewer, of this cost (rows^2) at least: about a second.
BUNDLES_PER_SLOT = 16
FEW_BUNDLES_PER_SLOT = 4
MIN_BUNDLE_COST = 1e7
# Rows of a cell that searches look at: few enough that a query's nearest row costs little, many
# enough that a product with them is one of matrices.
CELL_ROWS = 1024
# Rows of neighborhoods that a task gathers at once.
CHUNK_NBYTES = 24 << 20
# What a process holds more once it has loaded scikit-learn's SVC, measured with pandas installed.
SVC_NBYTES = 128 << 20
# Support rows whose neighbors one task searches.
SEARCHED_ROWS = 1 << 11
MIB = 1 << 20


@dataclass(frozen=True)
class Resources:
    """What the current scheduler offers.

    ``n_slots`` tasks run at once, each with ``task_nbytes`` of memory.
    """

    n_slots: int
    task_nbytes: int


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


def plan_sample(n_rows: int, n_features: int, cell_size: int) -> SamplePlan:
    """Decide the sample and the leaves from the data and the parameters alone.

    A leaf of c cells aims at c x ``cell_size`` rows less two standard deviations of what its
    sampled count leaves open; if every row is sampled, leaves are exact and are the cells.

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


def check_memory(
    sizes: TaskSizes,
    n_rows: int,
    leaf_rows: int,
    block_rows: int,
    resources: Resources,
    *,
    at: str,
) -> None:
    """Refuse before any training what would not fit.

    Raises
    ------
    MemoryPlanError : when a block, or the largest leaf with its largest cell, needs more than a
        task may use. The message names the parameter to change.
    """
    _check_block(sizes, block_rows, resources)
    leaf = group_nbytes(sizes, leaf_rows)
    if leaf > resources.task_nbytes:
        raise MemoryPlanError(
            f"The largest cell group ({leaf_rows} rows {at}, cells of up to {sizes.cell_size}) "
            f"needs {_mib(leaf)} but a task may use {_mib(resources.task_nbytes)}; "
            f"lower cell_size{_remedy(sizes, n_rows, leaf_rows, resources)}, or give each worker "
            "more memory or fewer threads."
        )


def check_chunks(
    sizes: TaskSizes,
    n_rows: int,
    leaf_rows: int,
    block_rows: int,
    resources: Resources,
    *,
    at: str,
) -> None:
    """Refuse before any training what would not fit a task that trains a random chunk.

    ``leaf_rows`` and ``at`` do not matter: the chunks' sizes are known beforehand.

    Raises
    ------
    MemoryPlanError : when a block or a chunk needs more than a task may use
    """
    _check_block(sizes, block_rows, resources)
    size = min(sizes.cell_size, n_rows)
    needed = group_nbytes(sizes, size)
    if needed > resources.task_nbytes:
        fitting = size
        while fitting > 2 and group_nbytes(sizes, fitting) > resources.task_nbytes:
            fitting //= 2
        raise MemoryPlanError(
            f"A chunk of {size} rows x {sizes.n_features} features needs {_mib(needed)} but a task "
            f"may use {_mib(resources.task_nbytes)}; lower chunk_size to about {fitting}, or give "
            "each worker more memory or fewer threads."
        )


def check_landmarks(
    sizes: TaskSizes,
    n_rows: int,
    leaf_rows: int,
    block_rows: int,
    resources: Resources,
    *,
    at: str,
    n_landmarks: int,
    n_candidates: int,
) -> None:
    """Refuse before any training what would not fit a task of an L3-SVM.

    Clusters may be of any size: what is expected is the mean, what is found is the largest.

    Raises
    ------
    MemoryPlanError : when a block or a cell needs more than a task may use
    """
    _check_block(sizes, block_rows, resources)
    rows = min(sizes.cell_size, n_rows) if at == "expected" else leaf_rows
    n_problems = n_candidates * (1 if sizes.n_classes == 2 else sizes.n_classes)
    needed = landmark_nbytes(sizes, rows, n_landmarks, n_problems)
    if needed > resources.task_nbytes:
        raise MemoryPlanError(
            f"The largest cell ({rows} rows {at}, {n_landmarks} landmarks, {n_problems} problems) "
            f"needs {_mib(needed)} but a task may use {_mib(resources.task_nbytes)}; raise "
            "n_cells, lower n_landmarks, give fewer values of C, or give each worker more memory "
            "or fewer threads."
        )


def check_neighborhoods(
    sizes: TaskSizes,
    n_rows: int,
    leaf_rows: int,
    block_rows: int,
    resources: Resources,
    *,
    at: str,
    n_neighbors: int,
) -> None:
    """Refuse before any training what would not fit a task of a neighborhood method.

    Raises
    ------
    MemoryPlanError : when a block, a leaf, or the largest neighborhood needs more than a task may
        use. The message names the parameter to change.
    """
    _check_block(sizes, block_rows, resources)
    usable = _usable(resources)
    _check_gather(sizes, leaf_rows, usable, at)
    needed = neighborhood_nbytes(sizes, n_neighbors, leaf_rows, 1)
    if needed > usable:
        k = n_neighbors
        while k > 1 and neighborhood_nbytes(sizes, k, leaf_rows, 1) > usable:
            k //= 2
        raise MemoryPlanError(
            f"A neighborhood of {n_neighbors} rows x {sizes.n_features} features needs "
            f"{_mib(needed)} but a task may use {_mib(usable)} for it; lower n_neighbors to about "
            f"{k}, or give each worker more memory or fewer threads."
        )


def beside_svc(resources: Resources) -> Resources:
    """Return what is left where tasks load scikit-learn's SVC: of little memory, half."""
    left = max(resources.task_nbytes - SVC_NBYTES, resources.task_nbytes // 2)
    return replace(resources, task_nbytes=left)


def check_sampling(
    sizes: TaskSizes,
    n_rows: int,
    leaf_rows: int,
    block_rows: int,
    resources: Resources,
    *,
    at: str,
    sampling: SamplingSpec,
) -> None:
    """Refuse before any training what would not fit a task that trains on drawn rows.

    Raises
    ------
    ParameterError : when a subsample would have fewer than two rows
    MemoryPlanError : when a block, a leaf, or a subsample needs more than a task may use. The
        message names the parameter to change.
    """
    resources = beside_svc(resources)
    fraction, n_subsamples = sampling.sample_fraction, sampling.n_subsamples
    draws = plan_draws(n_rows, fraction, n_subsamples, 0)
    if draws.subsample_rows < 2:
        smallest = 2 * n_subsamples / n_rows
        fewer = "lower n_subsamples, " if n_subsamples > 1 else ""
        raise ParameterError(
            f"sample_fraction={fraction:g} of {n_rows} rows, of which {draws.n_validation} "
            f"validate, in n_subsamples={n_subsamples} gives subsamples of {draws.subsample_rows} "
            f"row(s), but an SVM needs 2 at least; {fewer}raise sample_fraction to "
            f"{smallest:.2g} or more, or fit on more rows."
        )
    _check_block(sizes, block_rows, resources)
    usable = _usable(resources)
    _check_gather(sizes, leaf_rows, usable, at)
    split = "raise n_subsamples or " if sampling.name == "local-sampling" else ""
    check_trained(
        sizes,
        draws.subsample_rows,
        resources,
        what="A subsample",
        remedy=f"{split}lower sample_fraction below {fraction:g}",
    )
    around = f"Searching around up to {draws.n_sampled} support rows"
    if sampling.name == "local-sampling":
        needed = ball_nbytes(sizes, draws.n_sampled, leaf_rows)
        lower = f"sample_fraction below {fraction:g}"
    else:
        k = sampling.n_neighbors
        needed = search_nbytes(sizes, SEARCHED_ROWS, k + 1, leaf_rows)
        lower = f"n_neighbors below {k}"
    if needed > usable:
        raise MemoryPlanError(
            f"{around} needs {_mib(needed)} but a task may use {_mib(usable)} for it; lower "
            f"{lower}, or give each worker more memory or fewer threads."
        )


def check_trained(
    sizes: TaskSizes, n_rows: int, resources: Resources, *, what: str, remedy: str
) -> None:
    """Refuse to train one SVM on more rows than a task holds.

    Raises
    ------
    MemoryPlanError : with the remedy
    """
    needed, usable = sample_nbytes(sizes, n_rows), _usable(resources)
    if needed > usable:
        raise MemoryPlanError(
            f"{what} of {n_rows} rows x {sizes.n_features} features needs {_mib(needed)} but a "
            f"task may use {_mib(usable)} for it; {remedy}, or give each worker more memory or "
            "fewer threads."
        )


def cache_nbytes(sizes: TaskSizes, n_rows: int, resources: Resources) -> int:
    """Return what is left of a task's memory for kernel values while it trains on a sample."""
    return max(_usable(resources) - sample_nbytes(sizes, n_rows), 0)


def _check_gather(sizes: TaskSizes, leaf_rows: int, usable: int, at: str) -> None:
    """Refuse leaves that a task cannot gather."""
    leaf = gather_nbytes(sizes, leaf_rows)
    if leaf > usable:
        raise MemoryPlanError(
            f"Gathering the largest leaf ({leaf_rows} rows {at}) needs {_mib(leaf)} but a task may "
            f"use {_mib(usable)} for it; give each worker more memory or fewer threads, or use "
            "fewer features."
        )


def _usable(resources: Resources) -> int:
    """Return a task's memory but for a quarter: that of the rows which its process keeps."""
    return resources.task_nbytes * 3 // 4


def chunk_size(n_neighbors: int, n_features: int) -> int:
    """Return how many neighborhoods' rows `CHUNK_NBYTES` hold, at least one."""
    return max(CHUNK_NBYTES // (n_neighbors * (8 * n_features + 20)), 1)


def plan_chunk(sizes: TaskSizes, n_neighbors: int, leaf_rows: int, resources: Resources) -> int:
    """Return how many neighborhoods a task gathers at once: fewer where it has less memory."""
    chunk = chunk_size(n_neighbors, sizes.n_features)
    usable = _usable(resources)
    while chunk > 1 and neighborhood_nbytes(sizes, n_neighbors, leaf_rows, chunk) > usable:
        chunk //= 2
    return chunk


def _check_block(sizes: TaskSizes, block_rows: int, resources: Resources) -> None:
    """Refuse blocks that a task cannot regroup."""
    block = assign_nbytes(sizes, block_rows)
    if block > resources.task_nbytes:
        rows = largest_block(sizes, resources.task_nbytes)
        raise MemoryPlanError(
            f"A block of {block_rows} rows x {sizes.n_features} features needs {_mib(block)} but "
            f"a task may use {_mib(resources.task_nbytes)}; store or rechunk X in blocks of at "
            f"most {rows} rows, or give each worker more memory or fewer threads."
        )


def check_sample(
    sampling: SamplePlan, sizes: TaskSizes, client_nbytes: int, remedy: str = ""
) -> None:
    """Refuse a sample that the client could not hold while it grows the tree on it.

    Raises
    ------
    MemoryPlanError : with the parameter to change
    """
    needed = 2 * sampling.n_sample * sizes.n_features * sizes.itemsize
    needed += grow_nbytes(sampling.n_sample, sizes.n_features, sampling.max_sampled_rows)
    if needed > client_nbytes:
        raise MemoryPlanError(
            f"Growing the partition on a sample of {sampling.n_sample} rows x {sizes.n_features} "
            f"features needs {_mib(needed)} on the client but {_mib(client_nbytes)} are free; "
            f"{remedy or f'raise cell_size above {sizes.cell_size}'}, or use fewer features."
        )


def _remedy(sizes: TaskSizes, n_rows: int, leaf_rows: int, resources: Resources) -> str:
    """Name the largest cell_size, by halving, whose groups would fit; nothing if none does."""
    d = sizes.n_features
    # A leaf may hold more than planned: count on as much more of a smaller one.
    overshoot = leaf_rows / plan_sample(n_rows, d, sizes.cell_size).leaf_rows
    cell_size = sizes.cell_size
    while cell_size > 3:
        cell_size //= 2
        smaller = replace(sizes, cell_size=cell_size)
        rows = math.ceil(overshoot * plan_sample(n_rows, d, cell_size).leaf_rows)
        if group_nbytes(smaller, rows) <= resources.task_nbytes:
            return f" to about {cell_size}"
    return ""


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
    plan : Plan. Enough bundles that all slots end together, each within a task's memory: it
        holds one leaf at a time, and the models of its leaves until they are written.
    """
    costs = [_cost(rows, sizes.cell_size) for rows in leaf_rows]
    open_cost = sum(cost for cost, is_done in zip(costs, done, strict=True) if not is_done)
    target = _target_cost(open_cost / resources.n_slots)
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


def group_open(costs: Sequence[int], done: Sequence[bool], limit: int) -> list[tuple[int, int]]:
    """Group what is not done into runs of neighbors whose costs add up to ``limit`` at most.

    One that costs more than the limit is a group of its own.

    >>> group_open([2, 2, 2, 9, 1, 1], [False, False, False, False, True, False], 4)
    [(0, 1), (2, 2), (3, 3), (5, 5)]
    """
    groups: list[tuple[int, int]] = []
    held = 0
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


def _target_cost(slot_cost: float) -> float:
    """Return the cost that a bundle aims at, from the cost of the work of one slot."""
    return max(slot_cost / BUNDLES_PER_SLOT, min(MIN_BUNDLE_COST, slot_cost / FEW_BUNDLES_PER_SLOT))


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


def _mib(nbytes: int) -> str:
    """Format bytes for a message."""
    return f"{nbytes / MIB:.0f} MiB" if nbytes < 10_000 * MIB else f"{nbytes / MIB / 1024:.1f} GiB"
