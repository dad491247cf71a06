"""The second pass over a table: its rows as features, into a data set on Zarr."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from daskls.datasets.readers._labels import LabelCoder, NumberCoder
from daskls.store.dataset import WRITE_AGAIN, Dataset, DatasetWriter
from daskls.store.files import disk_errors
from daskls.tables.arrow import as_numbers, column_of
from daskls.tables.encoding import TableEncoding
from daskls.tables.labels import raw_labels
from daskls.tables.source import TableSource

__all__ = ["WEIGHTS", "RowsDone", "write_table"]

# Beside the data set: a folder for the weights of its rows.
WEIGHTS = "weights"

# Called with the rows that are done, and all of them if that is known.
RowsDone = Callable[[int, int | None], None]


def write_table(
    source: TableSource,
    encoding: TableEncoding,
    target: Path,
    *,
    label: str | None = None,
    labels: LabelCoder | NumberCoder | None = None,
    weight: str | None = None,
    n_rows: int | None = None,
    with_names: bool = True,
    on_rows: RowsDone | None = None,
) -> Dataset:
    """Write the features of a table, and its labels if it has some, as a data set.

    Weights go into an array ``X`` of one column, in a folder `WEIGHTS` beside it.

    Parameters
    ----------
    source : TableSource
    encoding : TableEncoding
    target : Path. Must not exist.
    label, labels : the column of labels and what codes them, or None
    weight : the column of weights, or None
    n_rows : int or None. How many there are, for progress.
    with_names : bool. Whether the features keep their names.
    on_rows : called after each batch, and at the end with the number of all rows, or None

    Raises
    ------
    DataError : as `TableEncoding.encode`
    StoreError : the disk refuses
    """
    encoding.check_columns(source.names)
    with disk_errors(target, WRITE_AGAIN):
        target.parent.mkdir(parents=True, exist_ok=True)
    names = encoding.feature_names
    wanted = encoding.column_names
    done = 0
    own = [name for name in (label, weight) if name is not None]
    with ExitStack() as stack:
        writer = DatasetWriter(
            target,
            len(names),
            encoding.dtype,
            with_y=labels is not None,
            y_dtype="int32" if labels is None else labels.dtype,
            classes=None if labels is None else labels.classes,
            feature_names=names if with_names else None,
            source=source.where,
        )
        stack.enter_context(writer)
        weights = None
        if weight is not None:
            weights = DatasetWriter(target.with_name(WEIGHTS), 1, "float64", with_y=False)
            stack.enter_context(weights)
        for batch in source.batches([*wanted, *own]):
            y = None
            if labels is not None and label is not None:
                y = labels.encode(raw_labels(column_of(batch, label), source))
            writer.append(encoding.encode(batch, done), y)
            if weights is not None and weight is not None:
                weights.append(as_numbers(column_of(batch, weight), weight, done)[:, None])
            done += batch.num_rows
            if on_rows is not None:
                on_rows(done, n_rows)
    if on_rows is not None and n_rows is None and done:
        # Only now it is known how many there were.
        on_rows(done, done)
    return writer.close()
