"""Answers for rows, in memory, lazily, or into Zarr, and what a score compares them with."""

import os
from typing import Any

import dask.array as da
import numpy as np

from daskls.cluster import compute
from daskls.errors import DataError
from daskls.estimators.inputs import check_names, check_rows, read_targets, read_weights
from daskls.methods.predict import Wanted, check_chunks, most_rows, predict_array, predict_lazily
from daskls.methods.to_zarr import predict_to_zarr
from daskls.plan.exchange import BLOCK_NBYTES
from daskls.records import AnyArray, Float64, Labels
from daskls.run.resources import answering_nbytes
from daskls.run.rows import find_labels, open_named, open_whole
from daskls.sources.formats import Source, open_source
from daskls.store.objects import Scratch, store_at


def answer_rows(estimator: Any, X: Source, wanted: Wanted) -> Any:
    """Return what is wanted of each row: in memory for rows in memory, else lazily."""
    if X.in_memory:
        rows = check_rows(estimator, X.value)
        _check_width(estimator, rows.shape[1])
        return predict_array(rows, estimator._handle, wanted)
    target = estimator._reader.target
    lazy, most, worker_nbytes = _planned(estimator, X, wanted)
    check_chunks(lazy, target, wanted, worker_nbytes)
    return predict_lazily(lazy, estimator._handle, wanted, target, most)


def _planned(estimator: Any, X: Source, wanted: Wanted) -> tuple[da.Array, int, float]:
    """Return lazy rows, the most of them that a task may take, and the bytes of a worker."""
    lazy = open_whole(X, BLOCK_NBYTES)
    n_features, itemsize = lazy.shape[1], lazy.dtype.itemsize
    _check_width(estimator, n_features)
    task_nbytes, worker_nbytes = answering_nbytes(estimator.client)
    most = most_rows(estimator._reader, n_features, itemsize, wanted, task_nbytes)
    if X.handle is not None:
        lazy = open_whole(X, most * n_features * itemsize)
    return lazy, most, worker_nbytes


def _check_width(estimator: Any, n_features: int) -> None:
    wanted = estimator._reader.n_columns
    if n_features != wanted:
        raise DataError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{wanted} features as input. Pass the columns it was trained on."
        )


def answer_to_zarr(
    estimator: Any, X: Any, path: str | os.PathLike[str], wanted: Wanted, on_progress: Any
) -> None:
    """Write what is wanted of each row of X, which may be a table, into a new Zarr array."""
    source = open_source(X)
    if not source.has_columns:
        check_names(estimator, source)
        _write(estimator, source, path, wanted, on_progress)
        return
    from daskls.estimators.tables import query_rows

    how = {"with_y": False, "on_progress": on_progress}
    with query_rows(estimator, source, None, Scratch.temporary(), **how) as rows:
        _write(estimator, open_source(rows), path, wanted, on_progress)


def _write(
    estimator: Any, X: Source, path: str | os.PathLike[str], wanted: Wanted, on_progress: Any
) -> None:
    lazy, most, _ = _planned(estimator, X, wanted)
    place = store_at(path, what="output").where()
    how = most, place, estimator.client, on_progress
    predict_to_zarr(lazy, estimator._handle, wanted, estimator._reader, *how)


def measure_rows(
    estimator: Any, X: Source, y: Any, sample_weight: Any
) -> tuple[AnyArray, Any, Labels | None, Float64 | None]:
    """Return predictions, y as given, the labels of y's codes if it has them, and weights."""
    y, classes = find_labels(X, y)
    true, weight = read_targets(y, estimator._kind), None
    if sample_weight is not None:
        weight = read_weights(open_named(sample_weight, "sample_weight"))
    predicted, true, weight = compute([estimator.predict(X), true, weight], estimator.client)
    if not len(predicted):
        raise DataError("X has no rows, so there is nothing to score. Pass at least one.")
    if weight is not None:
        _check_weights(weight, len(predicted))
    return predicted, true, classes, weight


def _check_weights(weight: Float64, n_rows: int) -> None:
    """Refuse weights of another number than the rows, and any by which no mean is defined."""
    if len(weight) != n_rows:
        raise DataError(
            f"X and sample_weight have inconsistent numbers of samples: X has {n_rows} rows, "
            f"sample_weight has {len(weight)}. Pass one value per row."
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad) or not weight.any():
        held = f"{weight[bad[0]]:g} in row {bad[0]}" if len(bad) else "0 in all rows"
        raise DataError(
            f"sample_weight is {held}; weights must be finite and not negative, and at least "
            "one positive. Give weight 0 to rows that should not count."
        )
