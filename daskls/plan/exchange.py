"""The blocks of X that a fit reads, and the exchange of rows by way of the store."""

from dataclasses import dataclass

from daskls.memory import TaskSizes

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
# Bytes of an entry of the manifest: two row numbers.
ENTRY_NBYTES = 16


@dataclass(frozen=True)
class ExchangePlan:
    """The sizes and the cost of the exchange of rows.

    Attributes
    ----------
    n_blocks, block_rows : int. Blocks of X, and the rows of one.
    n_groups : int. Groups of merged blocks; a block that is not merged is a group.
    n_windows : int. Ranges of leaves, each with one file per group and a manifest of its own.
    requests : int. Upper bound of the files written and ranges read until every leaf was read;
        fewer where small leaves are read together.
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


def plan_exchange(
    sizes: TaskSizes, n_rows: int, n_leaves: int, n_partitions: int, task_nbytes: int
) -> ExchangePlan:
    """Project the exchange of rows in the largest blocks that ``task_nbytes`` of a task allow.

    >>> from daskls.records import SolverSpec
    >>> sizes = TaskSizes(28, 4, 2, 2000, SolverSpec())
    >>> [plan_exchange(sizes, n, 4096, 1, 2 << 30).requests for n in (10**7, 10**8, 10**9)]
    [139393, 55111, 447397]
    """
    features_nbytes = n_rows * sizes.n_features * sizes.itemsize
    row_nbytes = max(sizes.n_features * sizes.itemsize, 1)
    block_rows = min(max(block_nbytes(features_nbytes, task_nbytes) // row_nbytes, 1), n_rows)
    n_blocks = -(-n_rows // block_rows)
    merged = group_blocks(n_blocks, n_leaves)
    n_groups, n_windows = -(-n_blocks // merged), min(merged, n_leaves)
    nbytes = n_rows * n_partitions * sizes.row_nbytes
    # Blocks and manifests are written; of each file the header, the checksums and the offsets are
    # read, and each leaf in each group, by its window's manifest.
    requests = n_blocks + n_windows * (1 + 3 * n_groups) + n_groups * n_leaves + 2 * n_leaves
    if merged > 1:
        # Each window of a group reads as much, and rows, of all its blocks, and is written.
        requests += 4 * n_blocks * n_windows + n_groups * n_windows
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
    """Return the number of blocks merged into a group; 1 if leaves are read from all blocks.

    >>> group_blocks(32, 4096), group_blocks(33, 4096)
    (1, 32)
    """
    return 1 if n_blocks * n_leaves <= MOST_RUNS else min(GROUP_BLOCKS, n_blocks)
