"""Descriptions for a plan: of rows that it does not read, of workers that need not exist."""

import math
from contextlib import ExitStack
from numbers import Integral
from typing import Any

import dask.array as da
import numpy as np

from daskls.datasets.convert import open_files
from daskls.errors import DataError, ParameterError
from daskls.estimators.inputs import check_targets, other_columns
from daskls.plan.bundles import Resources
from daskls.plan.exchange import BLOCK_NBYTES
from daskls.records import AnyArray, TargetKind
from daskls.run.resources import find_resources, resources_of
from daskls.sources.base import LabelCoder, NumberCoder, ReadOptions, TableOptions
from daskls.sources.formats import Source, check_label, open_source
from daskls.sources.frames import with_labels
from daskls.sources.labels import pick_label_column
from daskls.sources.scan import scan_table
from daskls.sources.signs import with_numbers
from daskls.store.objects import Scratch, TemporaryFolder
from daskls.targets import Target

# Assumed of a shape, and of a target that is not known.
USUAL_DTYPE, USUAL_CLASSES = np.dtype(np.float32), 2


# Rows on Zarr, or a lazy array of their shape; the target with the expected number of classes or of
# columns; and the assumptions.
UnreadRows = tuple[Source, Target, tuple[str, ...]]


def unread_rows(X: Any, y: Any, kind: TargetKind, options: TableOptions) -> UnreadRows:
    """Describe rows by their shape; the classes of y are counted if it is in memory."""
    if isinstance(X, tuple) and len(X) == 2 and all(isinstance(n, Integral) for n in X):
        options.check_unused("a shape")
        note = f"{USUAL_DTYPE.name} features"
        return _of_shape((int(X[0]), int(X[1])), USUAL_DTYPE, *_target(y, None, kind), note)
    X, y = with_labels(X, y)
    source = open_source(X)
    if source.is_table(y):
        return _of_table(source, y, kind, options)
    options.check_unused("X with y apart")
    target, notes = _target(y, source, kind)
    if source.in_memory:
        array = source.value if hasattr(source.value, "shape") else np.asarray(source.value)
        if other_columns(array):
            labels = open_source(y)
            known = check_targets(labels.value, kind) if labels.in_memory else None
            rows, *_ = _of_table(source, None, kind, TableOptions(), known)
            return rows, target, notes
        return _of_shape(array.shape, _dtype_of(array), target, notes)
    return source, target, notes


def _of_shape(
    shape: tuple[int, ...], dtype: np.dtype[Any], target: Target, notes: tuple[str, ...], *more: str
) -> UnreadRows:
    if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
        raise DataError(
            f"X has the shape {tuple(shape)}; a fit takes (rows, features), of 2 rows and 1 "
            "feature at least."
        )
    rows = max(BLOCK_NBYTES // (shape[1] * dtype.itemsize), 1)
    lazy = da.zeros(shape, dtype=dtype, chunks=(rows, -1))
    return Source(lazy, "dask"), target, (*more, *notes)


def _dtype_of(array: Any) -> np.dtype[Any]:
    dtype = getattr(array, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else np.dtype(float)


def count_rows(source: Source) -> int:
    shape = source.handle.shape if source.handle is not None else source.array.shape
    if not shape or math.isnan(shape[0]):
        raise DataError(
            f"The number of rows of {source.where} is unknown until it is computed. Call "
            "compute_chunk_sizes() first, or give a shape, (rows, features)."
        )
    return int(shape[0])


def _of_table(
    source: Source,
    label: Any,
    kind: TargetKind,
    options: TableOptions,
    labels: AnyArray | None = None,
) -> UnreadRows:
    """Return the rows of a table, which is read once to find its encoding; labels if apart."""
    check_label(label)
    if source.kind == "features":
        options.check_unused(source.where)
        return _of_features(source, label, kind)
    with Scratch.temporary() as scratch:
        table = source.open(label, scratch.folder)
        label = pick_label_column(table, label, required=labels is None)
        table = with_numbers(table, label, kind)
        scan = scan_table(table, label, options, kind=kind, target=labels)
    shape, dtype = (scan.n_rows, len(scan.encoding.feature_names)), scan.encoding.dtype
    return _of_shape(shape, np.dtype(dtype), *_target_of(scan.labels, kind))


def _of_features(source: Source, label: str | None, kind: TargetKind) -> UnreadRows:
    """Return the rows of a file of arrays or of LIBSVM lines, whose reader counts them."""
    folder = TemporaryFolder()
    with ExitStack() as stack:
        options = ReadOptions(label, None, None, None, folder.where, kind)
        opened = open_files(source, options, stack)
        target = _target_of(opened.labels, kind)
        return _of_shape((opened.n_rows or 0, opened.n_features), opened.dtype, *target)


def _target_of(
    labels: LabelCoder | NumberCoder | None, kind: TargetKind
) -> tuple[Target, tuple[str, ...]]:
    classes = None if labels is None else labels.classes
    return _target(None if classes is None else np.asarray(classes), None, kind)


def _target(y: Any, source: Source | None, kind: TargetKind) -> tuple[Target, tuple[str, ...]]:
    if kind == "numbers":
        width = _width(y, source)
        return Target(kind, center=np.zeros(width), scale=np.ones(width)), ()
    labels = _labels(y, source)
    if labels is None:
        return Target(kind, np.arange(USUAL_CLASSES)), (f"{USUAL_CLASSES} classes",)
    # A fit refuses a single class, but its costs are planned as those of two.
    return Target(kind, np.arange(max(len(labels), USUAL_CLASSES))), ()


def _labels(y: Any, source: Source | None) -> AnyArray | None:
    if y is None:
        dataset = None if source is None else source.dataset
        classes = None if dataset is None else dataset.classes
        return None if classes is None else np.asarray(classes)
    labels = open_source(y)
    return np.unique(check_targets(labels.value, "classes")) if labels.in_memory else None


def _width(y: Any, source: Source | None) -> int:
    if y is None and source is not None and source.dataset is not None:
        y = source.dataset.y
    shape: tuple[int, ...] = () if y is None or isinstance(y, str) else np.shape(y)
    return int(shape[1]) if len(shape) > 1 else 1


def planned_resources(
    workers: int | None, threads_per_worker: int, memory_limit: int | str | None, client: Any
) -> Resources:
    """Return the resources of a described cluster; of the current one without ``workers``."""
    if workers is not None:
        return resources_of(workers, threads_per_worker, memory_limit)
    if memory_limit is not None or threads_per_worker != 1:
        raise ParameterError(
            f"memory_limit={memory_limit!r} and threads_per_worker={threads_per_worker} describe "
            "workers, but workers is None; give their number."
        )
    return find_resources(client)
