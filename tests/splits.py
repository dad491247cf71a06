"""Rows of a search: of samples in a square, and of stored regions."""

from dataclasses import replace

import numpy as np

from daskls.scaling.regions import RegionJob, _region_key
from daskls.scaling.splits import draw_cells, draw_rows, held_out, race_rows
from daskls.solvers.squares.target_coding import ClassCoding
from daskls.store.artifact import write_artifact


def drawn_of(n_rows, cell_rows, *, with_cells):
    """Return the rows of a race, of a sample in a square."""
    drawn, held = draw_rows(n_rows, *race_rows(n_rows), 3), held_out(n_rows, 3)
    if not with_cells:
        return drawn
    X = np.random.default_rng(0).random((n_rows, 2)).astype("f4")
    codes = (X[:, 0] > 0.5).astype(int)
    return replace(drawn, cells=draw_cells(X, codes, cell_rows, 3, held, ClassCoding(2)))


def regions_at(root, n_regions, n_rows, run_rows=5, seed=7):
    """Return a job of regions of random rows, whose weights tell them apart."""
    leaves = np.arange(n_regions)
    job = RegionJob(
        str(root), "", None, "a", None, None, leaves, n_rows, run_rows, ClassCoding(2), seed
    )
    for region in range(n_regions):
        rng = np.random.default_rng(region)
        numbers = np.sort(rng.permutation(9 * n_rows)[:n_rows])
        X = rng.random((n_rows, 2)).astype("f4")
        columns = {"X": X, "codes": (X[:, 0] > 0.5).astype("i4"), "numbers": numbers}
        write_artifact(root, _region_key(job, region), {**columns, "weights": numbers + 1.0})
    return job
