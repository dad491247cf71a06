"""Cells of regions under trial: in a scale of features, with a kernel, a width and a ridge."""

from collections.abc import Iterator

import numpy as np

from daskls.partition.grow import grow_tree
from daskls.partition.tree import Tree, no_cuts, route_rows
from daskls.records import Float32, Float64, Int64
from daskls.scaling.regions import RegionJob, RegionRows, read_region
from daskls.seeds import REGION_CELLS

__all__ = ["cells_of", "cut_rows", "draw_cells", "in_scale", "own_center"]

# Cells of fewer rows say nothing about the others.
LEAST_ROWS = 20


def draw_cells(job: RegionJob, n_cells: int, draw: int) -> dict[int, int]:
    """Return how many cells of each region are looked at: as many of each, first of some.

    Parameters
    ----------
    job : RegionJob
    n_cells : int. Of all regions.
    draw : int. Names the draw among those of a fit.
    """
    order = REGION_CELLS.generator(job.seed, region=0, draw=draw).permutation(job.n_regions)
    counts = np.bincount(np.arange(n_cells) % job.n_regions, minlength=job.n_regions)
    return {int(region): int(n) for region, n in zip(order, counts, strict=True) if n}


def in_scale(rows: RegionRows, factors: Float64) -> Float32:
    """Return the features of a region's rows, each times its factor."""
    Z: Float32 = rows.X * factors.astype(np.float32)
    return Z


def cut_rows(Z: Float32, cell_size: int) -> tuple[Tree, list[Int64]]:
    """Cut rows into cells of at most ``cell_size``; return the tree and the rows of each cell."""
    center = Z.mean(axis=0, dtype=np.float64)
    tree = grow_tree(Z, cell_size, center) if len(Z) > cell_size else no_cuts(center)
    cells = route_rows(tree, Z)
    order = np.argsort(cells, kind="stable")
    ends = np.cumsum(np.bincount(cells, minlength=tree.n_leaves))
    return tree, np.split(order, ends[:-1])


def cells_of(
    region: int, factors: Float64, job: RegionJob, n_cells: int, cell_size: int, draw: int
) -> Iterator[tuple[Float32, RegionRows]]:
    """Yield the scaled features and the rows of some cells of a region, cut in a scale.

    Rows that are held out are in none of them.
    """
    rows = read_region(region, job)
    rows = rows.take(np.flatnonzero(~rows.held))
    if len(rows.X) < LEAST_ROWS:
        return
    Z = in_scale(rows, factors)
    _, cells = cut_rows(Z, cell_size)
    cells = [own for own in cells if len(own) >= LEAST_ROWS]
    rng = REGION_CELLS.generator(job.seed, region=region + 1, draw=draw)
    for i in rng.permutation(len(cells))[:n_cells].tolist():
        own = cells[i]
        # Around the cell's mean: float32 products then lose no digits to its place.
        yield Z[own] - own_center(Z[own]), rows.take(own)


def own_center(Z: Float32) -> Float32:
    """Return the mean of some rows, summed in float64."""
    center: Float32 = Z.mean(axis=0, dtype=np.float64).astype(np.float32)
    return center
