"""The refusals of tasks that would not fit in memory; each names what to change."""

import math
from collections.abc import Callable

from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes, assign_nbytes, gather_nbytes, grow_nbytes, largest_block
from daskls.plan.bundles import Resources, SamplePlan
from daskls.records import MIB

# Rows are gathered in N_GATHERS tasks, which lets some dozens of slots end together; small data in
# fewer, as a task has an overhead, and large data in more. A task gathers leaves of some bytes in
# this range, or one leaf.
N_GATHERS = 64
LEAST_GATHERED, MOST_GATHERED = 256 << 10, 8 << 20


def check_sample(
    sampling: SamplePlan, sizes: TaskSizes, client_nbytes: int, remedy: str = ""
) -> None:
    """Raise MemoryPlanError if the client cannot hold the sample while it grows the tree on it."""
    needed = growing_nbytes(sampling, sizes)
    if needed > client_nbytes:
        raise MemoryPlanError(
            f"Cutting space by a sample of {sampling.n_sample} rows x {sizes.n_features} "
            f"features needs {mib(needed, math.ceil)} on the client but "
            f"{mib(client_nbytes, math.floor)} are free; "
            f"{remedy or 'give the client more memory'}, or use fewer features."
        )


def growing_nbytes(sampling: SamplePlan, sizes: TaskSizes) -> int:
    held = 2 * sampling.n_sample * sizes.n_features * sizes.itemsize
    return held + grow_nbytes(sampling.n_sample, sizes.n_features, sampling.max_sampled_rows)


def check_block(sizes: TaskSizes, resources: Resources) -> None:
    block_rows = sizes.block_rows
    block = assign_nbytes(sizes, block_rows)
    if block > resources.task_nbytes and (sizes.source_nbytes or sizes.unpack_nbytes):
        # The chunk is either cut into blocks (source_nbytes), or is itself a block.
        chunk_rows = max(sizes.source_nbytes // (sizes.n_features * sizes.itemsize), block_rows)
        rows = max(resources.task_nbytes * chunk_rows // block, 1)
        raise MemoryPlanError(
            f"A chunk of {chunk_rows} rows x {sizes.n_features} features of X is held whole, which "
            f"needs {excess(block, resources.task_nbytes)}; store X "
            f"uncompressed, or store or rechunk it in chunks of at most {rows} rows, or "
            f"{resources.more}"
        )
    if block > resources.task_nbytes:
        rows = largest_block(sizes, resources.task_nbytes)
        raise MemoryPlanError(
            f"A block of {block_rows} rows x {sizes.n_features} features needs "
            f"{excess(block, resources.task_nbytes)}; store or rechunk X in blocks of at most "
            f"{rows} rows, or {resources.more}"
        )


def gathering_nbytes(sizes: TaskSizes) -> int:
    """Return the peak bytes of gathering: of a leaf, and of those gathered until written."""
    gathered = most_gathered(sizes.n_rows, sizes) * sizes.row_nbytes
    return gather_nbytes(sizes, sizes.leaf_rows) + 2 * gathered


def most_gathered(n_rows: int, sizes: TaskSizes) -> int:
    least, most = (nbytes // sizes.row_nbytes for nbytes in (LEAST_GATHERED, MOST_GATHERED))
    return min(max(n_rows // N_GATHERS, least), most)


def check_gather(sizes: TaskSizes, resources: Resources) -> None:
    leaf_rows, at = sizes.leaf_rows, sizes.at
    leaf, usable = gathering_nbytes(sizes), usable_nbytes(resources)
    if leaf > usable:
        raise MemoryPlanError(
            f"Gathering the largest group of cells ({leaf_rows} rows {at}) needs "
            f"{excess(leaf, usable)} for it; use fewer features, or {resources.more}"
        )


def check_usable(what: str, needed: int, resources: Resources, remedy: str, least: int = 0) -> None:
    """The message names the remedy only if ``least``, the bytes needed with it, fit."""
    usable = usable_nbytes(resources)
    if needed > usable:
        remedy = f"{remedy}, or " if least <= usable else ""
        raise MemoryPlanError(
            f"{what} needs {excess(needed, usable)} for it; {remedy}{resources.more}"
        )


def usable_nbytes(resources: Resources) -> int:
    """Return three quarters of a task's memory; the rest is for the rows that a process caches."""
    return resources.task_nbytes * 3 // 4


def excess(needed: int, usable: int) -> str:
    """Say both, one rounded up and one down: what does not fit never looks as if it did."""
    return f"{mib(needed, math.ceil)} but a task may use {mib(usable, math.floor)}"


def mib(nbytes: int, rounded: Callable[[float], int] = round) -> str:
    if nbytes < 10_000 * MIB:
        return f"{rounded(nbytes / MIB)} MiB"
    return f"{rounded(nbytes / MIB / 102.4) / 10:.1f} GiB"
