"""Stage 4 of FaLK-SVM: the centers, in rounds of searches; kept in the store."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskls.errors import MemoryPlanError
from daskls.methods.neighborhoods.parts import Centers, read_centers, write_centers
from daskls.neighbors.search import find_nearest
from daskls.partition.cover import Cover, n_ranked_rows, order_rows
from daskls.records import Int64, Ints, KernelSpec, RowNumbers
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.gather import RowsHandle
from daskls.run.progress import StageClock
from daskls.run.resources import free_nbytes

__all__ = [
    "center_order",
    "check_client",
    "choose_centers",
    "run_cover",
    "search_block",
    "search_positions",
]

# What the client holds for each row while it decides: its position in the order, its center, the
# rank and the center's number; and the sort of the order.
NBYTES_A_ROW = 44
# A round is searched in so many tasks, each of so many rows at the least.
N_SEARCHES = 64
MIN_SEARCHED = 256
# Positions that travel to the client in one round.
ROUND_POSITIONS = 1 << 22


@undisturbed
def search_block(
    positions: Int64, n_neighbors: int, handle: RowsHandle, metric: KernelSpec
) -> Ints:
    """Return the positions of the rows nearest to those at some positions, (q, k), in order."""
    reader = handle.open()
    with one_blas_thread():
        X = reader.read_positions(positions).X
        found = find_nearest(X, n_neighbors, reader.regions, handle.source(reader), metric)
    # Half the bytes for the way to the client.
    return found.positions.astype(np.int32) if reader.n_rows < 2**31 else found.positions


def search_positions(
    positions: Int64,
    n_neighbors: int,
    handle: RowsHandle,
    metric: KernelSpec,
    client: Any = None,
) -> Ints:
    """Return the lists of the rows at some positions, in their order; a task a run of near ones."""
    order = np.argsort(positions, kind="stable")
    parts = np.array_split(order, min(-(-len(positions) // MIN_SEARCHED), N_SEARCHES))
    own = [(positions[part], n_neighbors, handle, metric) for part in parts]
    lists = compute_each(search_block, own, client)
    found = np.empty((len(positions), n_neighbors), lists[0].dtype)
    for part, own in zip(parts, lists, strict=True):
        found[part] = own
    return found


def choose_centers(
    begun: Beginning,
    handle: RowsHandle,
    n_assigned: int,
    metric: KernelSpec,
    clock: StageClock,
    client: Any = None,
) -> Centers:
    """Return the covering set of centers and every row's center; from the store if it has them."""
    stored = read_centers(begun.root)
    if stored is not None:
        return stored
    reader = handle.open()
    check_client(reader.n_rows)
    numbers = reader.read_numbers()
    cover = Cover(center_order(begun, numbers, n_assigned), n_assigned)
    with clock.stage("cover", reader.n_rows, _covered(cover)):
        run_cover(cover, numbers, handle, metric, client)
    owner = cover.resolved_owner()
    return write_centers(begun.root, cover.centers, owner, cover.n_rounds, cover.n_searched)


def check_client(n_rows: int) -> None:
    """Refuse to choose centers of more rows than the client can keep account of.

    Raises
    ------
    MemoryPlanError
    """
    needed, free = NBYTES_A_ROW * n_rows, free_nbytes()
    if needed > free:
        raise MemoryPlanError(
            f"Choosing the centers of {n_rows} rows needs {needed >> 20} MiB on the client but "
            f"{free >> 20} MiB are free; fit on fewer rows, or on a larger machine."
        )


def center_order(begun: Beginning, numbers: RowNumbers, n_assigned: int) -> Int64:
    """Return the positions of all rows in the order in which they may become centers."""
    sample, n_ranked = begun.sample, n_ranked_rows(len(numbers), n_assigned)
    return order_rows(numbers, begun.seed, sample.numbers, sample.X, n_ranked)


def run_cover(
    cover: Cover,
    numbers: RowNumbers,
    handle: RowsHandle,
    metric: KernelSpec,
    client: Any = None,
) -> None:
    """Decide all centers, round by round."""
    most = max(ROUND_POSITIONS // cover.n_assigned, 1)
    while len(positions := cover.next_round()[:most]):
        lists = search_positions(positions, cover.n_assigned, handle, metric, client)
        cover.take_round(positions, numbers[positions], lists)


def _covered(cover: Cover) -> Callable[[], int]:
    return lambda: cover.n_covered
