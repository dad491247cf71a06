"""Tables as input: a fit or a prediction first converts them to a data set on Zarr."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from daskls.cluster import compute
from daskls.datasets import convert
from daskls.errors import DataError, listed
from daskls.estimators.inputs import target_apart
from daskls.estimators.view import progress_bars, rows_done, say
from daskls.records import AnyArray, TargetKind
from daskls.run.progress import Progress
from daskls.sources.base import TableOptions, TableSource, guess_label
from daskls.sources.encoding import ColumnEncoding, TableEncoding, UnseenCounts
from daskls.sources.formats import Source, check_label, open_source
from daskls.sources.frames import all_columns, boxes_of, count_rows, open_frame, with_labels
from daskls.sources.labels import asked_label_column, check_no_feature, pick_label_column
from daskls.sources.scan import scan_labels, scan_table
from daskls.sources.signs import with_numbers
from daskls.sources.statistics import CrossFit
from daskls.sources.write import WEIGHTS, encoded, write_features
from daskls.store.objects import BaseStore, Scratch, expand_path, temporary_path

Listener = Callable[[Progress], None] | None


def table_seed(estimator: Any) -> int:
    """Return the seed of samples and folds of a table's rows."""
    seed = estimator.random_state
    return int(seed) if isinstance(seed, Integral) else 0


@contextmanager
def unless_empty(store: BaseStore) -> Iterator[None]:
    """Remove the store again if an error leaves it empty, as if the fit had not begun."""
    try:
        yield
    except BaseException:
        store.unmake()
        raise


@contextmanager
def training_rows(
    X: Source,
    label: str | None,
    target: AnyArray | None,
    scratch: Scratch,
    options: TableOptions,
    estimator: Any,
) -> Iterator[tuple[str, TableEncoding | None, str | None, dict[str, str]]]:
    """Yield a data set with a table's rows, the encoding, the path of the weights, and what is out.

    Labels are in the column `label`, or in `target`.
    """
    with scratch:
        with progress_bars(show=bool(estimator.verbose)) as on_progress:
            table, left_out = None, dict[str, str]()
            if X.kind == "features":
                options.check_unused(X.where)
                path = _convert_arrays(X, label, scratch, None, on_progress, estimator._kind)
            else:
                arguments = X, label, target, scratch, options, estimator
                path, table, left_out = _convert_table(*arguments, on_progress)
        if estimator.verbose and table is not None:
            say(table.describe())
        has_weights = table is not None and table.weight is not None
        weights = f"{scratch.shared}/{WEIGHTS}/X" if has_weights else None
        yield path, table, weights, left_out


def _convert_table(
    X: Source,
    label: str | None,
    target: AnyArray | None,
    scratch: Scratch,
    options: TableOptions,
    estimator: Any,
    on_progress: Listener,
) -> tuple[str, TableEncoding, dict[str, str]]:
    source = X.open(label, scratch.folder)
    label = pick_label_column(source, label, required=target is None)
    weight = weight_column(source, options.weight, label)
    source = with_numbers(source, label, estimator._kind, weight)
    scan = scan_table(
        source,
        label,
        replace(options, weight=weight),
        seed=table_seed(estimator),
        kind=estimator._kind,
        target=target,
        # A bound on false alarms is of rows whose labels no feature depends on.
        with_statistics=getattr(estimator, "max_false_alarm", None) is None,
    )
    encoding = replace(scan.encoding, weight=weight)
    features = encoded(
        source,
        encoding,
        label=label,
        labels=scan.labels,
        n_rows=scan.n_rows,
        cross_fit=scan.cross_fit,
    )
    progress = rows_done("convert", on_progress)
    path = write_features(features, f"{scratch.shared}/rows", on_rows=progress).path
    return path, encoding, _left_out(source, encoding, options)


def _left_out(
    source: TableSource, encoding: TableEncoding, options: TableOptions
) -> dict[str, str]:
    """Return the columns of a table that are no features, each with the reason."""
    used = {*encoding.column_names, encoding.label, encoding.weight}
    dropped = {part for name in options.drop for part in (name, *name.split(","))}
    why = dict.fromkeys(source.index, "as an index") | dict.fromkeys(dropped, "as asked for")
    names = [name for name in source.names if name not in used]
    return {name: why.get(name, "as values tell nothing of other rows") for name in names}


def weight_column(source: TableSource, weight: str | None, label: str | None) -> str | None:
    """Return the column of weights; None if ``weight`` is None or the path of an array."""
    if weight is None or (weight not in source.names and _exists(weight)):
        return None
    if weight not in source.names or weight == label:
        what = "holds the labels" if weight == label else "is no column"
        raise DataError(
            f"sample_weight is {weight!r}, which {what} of {source.where}; its "
            f"{len(source.names)} columns are: {listed(source.names)}. Name the column of weights, "
            "or pass one number per row."
        )
    return weight


def _exists(path: str) -> bool:
    return "://" in path or os.path.lexists(expand_path(path))


def _convert_arrays(
    X: Source,
    label: str | None,
    scratch: Scratch,
    n_features: int | None,
    on_progress: Listener,
    kind: TargetKind,
) -> str:
    target = f"{scratch.shared}/rows"
    takes_width = X.format is not None and "n_features" in X.format.takes
    convert(
        X.value,
        target,
        label=label,
        n_features=n_features if takes_width else None,
        progress=rows_done("convert", on_progress),
        task="classification" if kind == "classes" else "regression",
    )
    return target


@contextmanager
def query_rows(
    estimator: Any,
    X: Source,
    label: str | None,
    scratch: Scratch,
    *,
    with_y: bool,
    on_progress: Listener,
    weight: str | None = None,
) -> Iterator[str]:
    """Yield the path of a data set with the rows of a table, encoded for a fitted estimator."""
    with scratch:
        if X.kind == "features":
            # An .npy array of queries holds no label, whatever its width: never guess one.
            is_bare = not with_y and X.files[0].suffix.lower() == ".npy"
            column = label or ("none" if is_bare else None)
            width = estimator._reader.n_columns
            yield _convert_arrays(X, column, scratch, width, on_progress, estimator._kind)
            return
        table = getattr(estimator, "table_", None)
        names = table or _named(getattr(estimator, "feature_names_in_", ()))
        source = X.open(label or (table.label if table else None), scratch.folder, names)
        if with_y:
            label = asked_label_column(source, label, table.label if table else None)
        encoding = table or _plain_encoding(estimator, source, label)
        weight = weight_column(source, weight, label)
        source = with_numbers(source, label if with_y else None, estimator._kind, weight)
        labels, n_rows = None, source.n_rows
        if with_y and label is not None:
            check_no_feature(label, encoding.column_names)
            n_rows, labels = scan_labels(source, label, estimator._kind)
        features = encoded(
            source,
            replace(encoding, weight=weight),
            label=label if with_y else None,
            labels=labels,
            n_rows=n_rows,
            with_names=hasattr(estimator, "feature_names_in_"),
        )
        progress = rows_done("convert", on_progress)
        dataset = write_features(features, f"{scratch.shared}/rows", on_rows=progress)
        if not dataset.n_rows:
            raise DataError(f"{source.where} has no rows, so there is nothing to predict.")
        yield dataset.path


def _plain_encoding(estimator: Any, source: TableSource, label: str | None) -> TableEncoding:
    """Return an encoding of plain numbers, for a model that was trained on an array."""
    names = list(getattr(estimator, "feature_names_in_", ()))
    if not names:
        names = source.feature_columns(without=[] if label is None else [label])
        if len(names) == estimator.n_features_in_ + 1 and label is None:
            names.remove(guess_label(names, source.where, "score(X, NAME)"))
        if len(names) != estimator.n_features_in_:
            raise DataError(
                f"{source.where} has {len(names)} columns of features, but the model was trained "
                f"on {estimator.n_features_in_} features without names. Pass those alone."
            )
    return _named(names)


def _named(names: Sequence[str]) -> TableEncoding:
    return TableEncoding(tuple(ColumnEncoding(str(name)) for name in names))


def encode_partition(
    rows: Any, encoding: TableEncoding, first_row: int, cross_fit: CrossFit | None = None
) -> AnyArray:
    """Return the features of a frame in memory; errors count rows from ``first_row``."""
    source = open_frame(rows, Path())
    encoding.check_columns(source.names)
    blocks, news = [np.empty((0, len(encoding.feature_names)), encoding.dtype)], UnseenCounts()
    for batch in source.batches(encoding.column_names):
        blocks.append(encoding.encode(batch, first_row, news, cross_fit))
        first_row += batch.num_rows
    news.warn()
    return np.concatenate(blocks)


def training_features(estimator: Any, X: Source, y: Any) -> AnyArray:
    """Return the features of a frame that an estimator was fitted to with labels apart."""
    scan = scan_table(
        X.open(None, temporary_path()),
        None,
        TableOptions(),
        seed=table_seed(estimator),
        kind=estimator._kind,
        target=target_apart(estimator, X, y),
    )
    return encode_partition(X.value, scan.encoding, 0, scan.cross_fit)


def encoded_lazily(X: Any, encoding: TableEncoding, cross_fit: CrossFit | None = None) -> da.Array:
    """Return the features of a Dask DataFrame as a lazy array; partition lengths are computed."""
    encoding.check_columns([str(name) for name in X.columns])
    boxes = boxes_of(X[encoding.column_names])
    lengths = tuple(count_rows(boxes, X)[:, 0].tolist())
    dtype = np.dtype(encoding.dtype)
    return da.map_blocks(
        encode_block,
        boxes,
        encoding=encoding,
        cross_fit=cross_fit,
        chunks=(lengths, (len(encoding.feature_names),)),
        dtype=dtype,
        meta=np.empty((0, 0), dtype),
    )


def encode_block(
    boxes: AnyArray, encoding: TableEncoding, cross_fit: CrossFit | None, block_info: Any = None
) -> AnyArray:
    first_row = block_info[None]["array-location"][0][0]
    return encode_partition(boxes[0, 0], encoding, first_row, cross_fit)


def answer_table(estimator: Any, X: Source, answer: Callable[[Source], Any]) -> Any:
    """Predict the rows of a table, whose columns are found by name, or of a file of features."""
    if X.kind == "dask table":
        encoding = getattr(estimator, "table_", None)
        if encoding is None:
            encoding = _plain_encoding(estimator, X.open(None, temporary_path()), None)
        return answer(Source(encoded_lazily(X.value, encoding), "dask"))
    if X.kind == "frame":
        # Encoded in memory: a query of few rows should not wait for a disk.
        estimator.table_.check_columns([str(name) for name in all_columns(X.value)])
        return answer(Source(encode_partition(X.value, estimator.table_, 0), "memory"))
    with query_rows(
        estimator, X, None, Scratch.temporary(), with_y=False, on_progress=None
    ) as rows:
        (answers,) = compute([answer(open_source(rows))], estimator.client)
    return answers


def score_table(estimator: Any, X: Source, label: Any, sample_weight: Any) -> float:
    """Return the score on a table; `label` None is that of the training table."""
    check_label(label)
    scratch = Scratch.temporary()
    column = sample_weight if isinstance(sample_weight, str) else None
    with query_rows(
        estimator, X, label, scratch, with_y=True, on_progress=None, weight=column
    ) as rows:
        written = f"{scratch.shared}/{WEIGHTS}/X"
        weight = written if os.path.exists(written) else sample_weight
        return float(estimator.score(rows, sample_weight=weight))


@contextmanager
def labeled_rows(estimator: Any, X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """Yield rows and labels as arrays or the path of a data set, to which a table is converted."""
    X, y = with_labels(X, y)
    source, is_labeled = open_source(X), y is None or isinstance(y, str)
    if not source.has_columns:
        yield X, y
        return
    label, scratch = (y if is_labeled else None), Scratch.temporary()
    with query_rows(estimator, source, label, scratch, with_y=is_labeled, on_progress=None) as rows:
        yield rows, None if is_labeled else y
