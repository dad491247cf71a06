"""What would not fit a task is refused before any training; how much of what fits goes at once."""

import math
from dataclasses import replace

from daskls.errors import MemoryPlanError, ParameterError
from daskls.memory import (
    WAITING_PAIRS,
    TaskSizes,
    assign_nbytes,
    ball_nbytes,
    gather_nbytes,
    group_nbytes,
    grow_nbytes,
    landmark_nbytes,
    largest_block,
    neighborhood_nbytes,
    pairs_within,
    sample_nbytes,
    search_nbytes,
)
from daskls.partition.subsamples import Draws, plan_draws, sampling_sizes
from daskls.plan.bundles import Resources, SamplePlan, plan_sample
from daskls.records import SamplingSpec

__all__ = [
    "CELL_ROWS",
    "SEARCHED_ROWS",
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
    "most_pairs",
    "plan_chunk",
]

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
            f"Cutting space by a sample of {sampling.n_sample} rows x {sizes.n_features} "
            f"features needs {_mib(needed)} on the client but {_mib(client_nbytes)} are free; "
            f"{remedy or 'give the client more memory'}, or use fewer features."
        )


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
            f"lower cell_size{_remedy(sizes, n_rows, leaf_rows, resources)}, or "
            f"{resources.more}"
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
            f"may use {_mib(resources.task_nbytes)}; lower chunk_size to about {fitting}, or "
            f"{resources.more}"
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
            f"n_cells, lower n_landmarks, give fewer values of C, or {resources.more}"
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
    _check_gather(sizes, leaf_rows, resources, at)
    needed = neighborhood_nbytes(sizes, n_neighbors, leaf_rows, 1)
    if needed > usable:
        k = n_neighbors
        while k > 1 and neighborhood_nbytes(sizes, k, leaf_rows, 1) > usable:
            k //= 2
        raise MemoryPlanError(
            f"A neighborhood of {n_neighbors} rows x {sizes.n_features} features needs "
            f"{_mib(needed)} but a task may use {_mib(usable)} for it; lower n_neighbors to about "
            f"{k}, or {resources.more}"
        )


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
    fraction, n_subsamples = sampling_sizes(sampling, n_rows, sizes.n_classes)
    draws = plan_draws(n_rows, fraction, n_subsamples, 0)
    if draws.subsample_rows < 2:
        raise ParameterError(
            f"sample_fraction={fraction:g} of {n_rows} rows, of which {draws.n_validation} "
            f"validate, in n_subsamples={n_subsamples} gives subsamples of {draws.subsample_rows} "
            f"row(s), but an SVM needs 2 at least; {_larger_subsamples(draws, fraction)}."
        )
    _check_block(sizes, block_rows, resources)
    _check_gather(sizes, leaf_rows, resources, at)
    split = "raise n_subsamples or " if sampling.name == "local-sampling" else ""
    check_trained(
        sizes,
        draws.subsample_rows,
        resources,
        what="A subsample",
        remedy=f"{split}lower sample_fraction below {fraction:g}",
    )
    if sampling.name == "local-sampling":
        most_pairs(sizes, draws.n_sampled, leaf_rows, resources, fraction)
        return
    # As in the fit: no row has more neighbors than all others.
    n_trained = n_rows - draws.n_validation
    found, queries = min(sampling.n_neighbors, n_trained - 1), min(SEARCHED_ROWS, n_trained)
    needed, least = (search_nbytes(sizes, queries, k + 1, leaf_rows) for k in (found, 1))
    what = f"Searching {found} neighbors of {queries} support rows"
    _check_usable(what, needed, resources, f"lower n_neighbors below {found}", least)


def most_pairs(
    sizes: TaskSizes, n_balls: int, leaf_rows: int, resources: Resources, fraction: float
) -> int:
    """Return how many pairs of a ball and a row a task may keep.

    ``resources`` are those beside the SVC, ``fraction`` is the parameter to lower.

    Raises
    ------
    MemoryPlanError : it could not even keep those that wait
    """
    usable = _usable(resources)
    needed, least = (ball_nbytes(sizes, m, leaf_rows, WAITING_PAIRS) for m in (n_balls, 2))
    what = f"Drawing around up to {n_balls} support rows"
    _check_usable(what, needed, resources, f"lower sample_fraction below {fraction:g}", least)
    return pairs_within(sizes, n_balls, leaf_rows, usable)


def _check_usable(
    what: str, needed: int, resources: Resources, remedy: str, least: int = 0
) -> None:
    """Refuse what needs more than a task may use; the remedy helps if it comes to ``least``."""
    usable = _usable(resources)
    if needed > usable:
        remedy = f"{remedy}, or " if least <= usable else ""
        raise MemoryPlanError(
            f"{what} needs {_mib(needed)} but a task may use {_mib(usable)} for it; {remedy}"
            f"{resources.more}"
        )


def _larger_subsamples(draws: Draws, fraction: float) -> str:
    """Say what gives subsamples of two rows: only what does, by itself or together."""
    n, available = draws.n_rows, draws.n_rows - draws.n_validation
    drawn = plan_draws(n, fraction, 1, 0).subsample_rows
    remedies = []
    if drawn >= 2:
        remedies.append(f"lower n_subsamples to {drawn // 2} or less")
    if available >= 2 * draws.n_subsamples:
        remedies.append(f"raise sample_fraction to {_rounded_up(2 * draws.n_subsamples / n)}")
    if not remedies and available >= 2:
        remedies.append(
            f"lower n_subsamples to 1 and raise sample_fraction to {_rounded_up(2 / n)}"
        )
    return ", or ".join([*remedies, "fit on more rows"])


def _rounded_up(value: float) -> str:
    """Return a positive number with two figures, never a smaller one."""
    digits = 1 - math.floor(math.log10(value))
    # What two figures say exactly may be a little more as a product.
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.2g}"


def check_trained(
    sizes: TaskSizes, n_rows: int, resources: Resources, *, what: str, remedy: str
) -> None:
    """Refuse to train one SVM on more rows than a task holds.

    Raises
    ------
    MemoryPlanError : with the remedy
    """
    what = f"{what} of {n_rows} rows x {sizes.n_features} features"
    _check_usable(what, sample_nbytes(sizes, n_rows), resources, remedy)


def _check_block(sizes: TaskSizes, block_rows: int, resources: Resources) -> None:
    """Refuse blocks that a task cannot regroup."""
    block = assign_nbytes(sizes, block_rows)
    if block > resources.task_nbytes and (sizes.source_nbytes or sizes.unpack_nbytes):
        # A chunk that is cut, or one that is a block.
        chunk_rows = max(sizes.source_nbytes // (sizes.n_features * sizes.itemsize), block_rows)
        rows = max(resources.task_nbytes * chunk_rows // block, 1)
        raise MemoryPlanError(
            f"A chunk of {chunk_rows} rows x {sizes.n_features} features of X is made whole, which "
            f"needs {_mib(block)} but a task may use {_mib(resources.task_nbytes)}; store X "
            f"uncompressed, or store or rechunk it in chunks of at most {rows} rows, or "
            f"{resources.more}"
        )
    if block > resources.task_nbytes:
        rows = largest_block(sizes, resources.task_nbytes)
        raise MemoryPlanError(
            f"A block of {block_rows} rows x {sizes.n_features} features needs {_mib(block)} but "
            f"a task may use {_mib(resources.task_nbytes)}; store or rechunk X in blocks of at "
            f"most {rows} rows, or {resources.more}"
        )


def _check_gather(sizes: TaskSizes, leaf_rows: int, resources: Resources, at: str) -> None:
    """Refuse leaves that a task cannot gather."""
    leaf, usable = gather_nbytes(sizes, leaf_rows), _usable(resources)
    if leaf > usable:
        raise MemoryPlanError(
            f"Gathering the largest leaf ({leaf_rows} rows {at}) needs {_mib(leaf)} but a task may "
            f"use {_mib(usable)} for it; use fewer features, or {resources.more}"
        )


def beside_svc(resources: Resources) -> Resources:
    """Return what is left where tasks load scikit-learn's SVC: of little memory, half."""
    if resources.has_svc:
        return resources
    left = max(resources.task_nbytes - SVC_NBYTES, resources.task_nbytes // 2)
    return replace(resources, task_nbytes=left)


def cache_nbytes(sizes: TaskSizes, n_rows: int, resources: Resources) -> int:
    """Return what is left of a task's memory for kernel values while it trains on a sample."""
    return max(_usable(resources) - sample_nbytes(sizes, n_rows), 0)


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


def _mib(nbytes: int) -> str:
    """Format bytes for a message."""
    return f"{nbytes / MIB:.0f} MiB" if nbytes < 10_000 * MIB else f"{nbytes / MIB / 1024:.1f} GiB"
