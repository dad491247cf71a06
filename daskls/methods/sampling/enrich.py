"""Step (iii) of procedure CGLQ: support rows, their nearest rows, and a new subsample."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from daskls.methods.sampling.parts import has_part, read_part, read_part_rows, write_part
from daskls.methods.sampling.train import KEPT, SamplingJob, read_further
from daskls.neighbors.search import find_nearest, home_order
from daskls.records import Int64, LeafRows
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.store.leaves import LeafReader

__all__ = ["EnrichJob", "merge_round", "nearest_of", "search_support"]


@dataclass(frozen=True)
class EnrichJob:
    """Arguments of the searches of a round: whose support rows, and the number of neighbors."""

    own: SamplingJob
    step: int
    n_neighbors: int


def nearest_of(step: int) -> str:
    """Return the kind of the parts that hold the neighbors of a step's support rows."""
    return f"nearest-{step:03d}"


@undisturbed
def search_support(part: tuple[int, int], job: EnrichJob) -> None:
    """Write numbers and positions of the rows nearest to some of a step's support rows.

    A retry after a worker's death finds the part and returns.
    """
    own, kind = job.own, nearest_of(job.step)
    if has_part(own.root, kind, *part):
        return
    reader = own.handle.open()
    support = read_part_rows(own.root, KEPT, job.step, job.step)
    with one_blas_thread():
        queries = home_order(support.X, reader.regions)[part[0] : part[1] + 1]
        found = find_nearest(
            support.X[queries], job.n_neighbors + 1, reader.regions, _training(reader, own)
        )
    others = found.numbers != support.numbers[queries, None]
    # Where so many copies came first that a row is not its own neighbor, the last one is too many.
    others[others.all(axis=1), -1] = False
    numbers, first = np.unique(found.numbers[others], return_index=True)
    write_part(
        own.root, kind, *part, {"numbers": numbers, "places": found.positions[others][first]}
    )


def _training(reader: LeafReader, job: SamplingJob) -> Callable[[int], LeafRows]:
    """Return what searches read leaves by: without the rows that validate."""

    def read_training(leaf: int) -> LeafRows:
        rows = reader.read_leaf(leaf)
        order = job.draws.shuffled(rows.numbers)
        return rows.only((order < job.draws.n_sampled) | (order >= job.draws.n_reserved))

    return read_training


def merge_round(
    step: int,
    tiles: Sequence[tuple[int, int]],
    drawn: Sequence[tuple[int, int]],
    job: SamplingJob,
) -> tuple[Int64, Int64]:
    """Return numbers and positions of the next sample, in the order of numbers.

    Parameters
    ----------
    step : int. Of the support rows that are enriched.
    tiles : parts of their neighbors
    drawn : parts of the rows drawn by number
    job : SamplingJob
    """
    size = job.draws.subsample_rows
    kept = read_part(job.root, KEPT, step, step, ("numbers", "places"))
    parts = [tuple(kept.values()), read_further(job, drawn, step * size, (step + 1) * size)]
    for tile in tiles:
        near = read_part(job.root, nearest_of(step), *tile, ("numbers", "places"))
        parts.append(tuple(near.values()))
    numbers, first = np.unique(np.concatenate([p[0] for p in parts]), return_index=True)
    return numbers, np.concatenate([p[1] for p in parts])[first]
