"""Advice before any training: chunks that cost more than their rows, labels that are numbers."""

import warnings

from daskls.errors import AdviceWarning
from daskls.plan import Resources
from daskls.records import MIB
from daskls.run.blocks import BlockRows
from daskls.run.scan import TargetScan, name_classes

__all__ = ["warn_of_chunks", "warn_of_classes", "warn_of_thin_classes"]

# A chunk of Zarr takes 0.7 ms in both passes over X, one of Dask 0.1 ms and another 0.35 ms when it
# is predicted: from a thousand on that is seconds. Reading 256 KiB takes less than a tenth of it.
MANY_CHUNKS, SMALL_NBYTES = 1000, 256 << 10
GOOD_NBYTES = 16 << 20
# Of a task's memory: what a Dask array needs beside a chunk to compute it is not in the plan.
LARGE_SHARE = 0.25
# Classes of fewer rows in the mean, if they are more than twenty, are rather numbers.
FEW_ROWS, MANY_CLASSES = 10, 20


def warn_of_chunks(rows: BlockRows, resources: Resources) -> None:
    """Warn of chunks of X so small, or so large, that they decide time or memory.

    Warns
    -----
    AdviceWarning
    """
    row_nbytes = rows.n_features * rows.X.dtype.itemsize
    mean_nbytes = rows.n_rows * row_nbytes / max(rows.n_chunks, 1)
    good_rows = max(GOOD_NBYTES // row_nbytes, 1)
    if rows.n_chunks >= MANY_CHUNKS and mean_nbytes < SMALL_NBYTES:
        warnings.warn(
            f"X lies in {rows.n_chunks:,} chunks of {mean_nbytes / 1024:.1f} KiB in the mean; each "
            "costs about a millisecond however few rows it holds, and more on a network. Store or "
            f"rechunk X in chunks of about {good_rows:,} rows (16 MiB).",
            AdviceWarning,
            stacklevel=2,
        )
    held = max(rows.source_nbytes, rows.unpack_nbytes)
    if held > LARGE_SHARE * resources.task_nbytes:
        warnings.warn(
            f"A chunk of X is held whole, which takes {held // MIB} MiB of the "
            f"{resources.task_nbytes // MIB} MiB that a task may use, and what computes it comes "
            f"on top. Store or rechunk X in chunks of about {good_rows:,} rows (16 MiB).",
            AdviceWarning,
            stacklevel=2,
        )


def warn_of_classes(scan: TargetScan) -> None:
    """Warn of labels that are rather the numbers of a regression.

    Warns
    -----
    AdviceWarning
    """
    k, n = scan.target.n_classes, scan.n_kept
    if k > MANY_CLASSES and n < FEW_ROWS * k:
        warnings.warn(
            f"y holds {k:,} different labels in {n:,} rows, {n / k:.1f} rows a class in the mean: "
            "these may be the numbers of a regression, or names of rows. Sort them into a few "
            "classes first, as with numpy.digitize, or use a regressor, as VoronoiSVR.",
            AdviceWarning,
            stacklevel=3,
        )


def warn_of_thin_classes(n_folds: int, rows: BlockRows, scan: TargetScan) -> None:
    """Warn of classes that have fewer rows than there are folds.

    Warns
    -----
    AdviceWarning
    """
    thin = scan.counts < n_folds
    if not thin.any():
        return
    least = int(scan.counts.argmin())
    name = name_classes(rows, scan.target.labels).tolist()[least]
    warnings.warn(
        f"{int(thin.sum())} of {len(scan.counts)} classes have fewer rows than cv={n_folds}, "
        f"{name!r} with {int(scan.counts[least])} the fewest: some folds hold none of them, so "
        "that C and gamma are chosen without them. Lower cv, join such classes with others, or "
        "leave their rows out.",
        AdviceWarning,
        stacklevel=3,
    )
