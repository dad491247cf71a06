"""Predictions of a model as a table: a CSV or Parquet file, in row order."""

import csv
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from daskls.errors import StoreError
from daskls.records import AnyArray
from daskls.sources.arrow import import_arrow
from daskls.store.arrays import ArrayHandle, find_array
from daskls.store.files import disk_errors

__all__ = ["answer_format", "write_answers"]

ENDINGS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COPY_AGAIN = "predict again"
ANSWER_ROWS = 65_536


def answer_format(path: str | os.PathLike[str]) -> str | None:
    """Return "csv" or "parquet" by a path's suffix; None for a Zarr array.

    Examples
    --------
    >>> answer_format("out.csv"), answer_format("out.zarr")
    ('csv', None)
    """
    name = Path(path).name.lower()
    return next((kind for end, kind in ENDINGS.items() if name.endswith(end)), None)


def write_answers(source: str, target: Path, names: list[str]) -> int:
    """Copy predictions from a Zarr array to a file of rows; it appears whole or not at all.

    Parameters
    ----------
    source : str. A path or a URL of an array (n,) of labels, (n, k) of probabilities, or
        (n, t, 2) of intervals
    target : Path. Must not exist; its suffix says the format.
    names : one a column

    Returns
    -------
    n_rows : int

    Raises
    ------
    StoreError : something is at ``target``, or its disk refuses
    """
    array = find_array(source)
    if array is None:
        raise AssertionError(f"{source} is a path")
    begun = target.with_name(f".{os.getpid()}-{target.name}")
    write = _write_csv if answer_format(target) == "csv" else _write_parquet
    with disk_errors(target, COPY_AGAIN):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(array, begun, names)
            # A link fails where a file has come to be there meanwhile; a renaming would replace it.
            os.link(begun, target)
        except FileExistsError as error:
            raise StoreError(
                f"{target} exists already; give another path or remove it first."
            ) from error
        finally:
            begun.unlink(missing_ok=True)
    return array.shape[0]


def _blocks(array: ArrayHandle) -> Iterator[AnyArray]:
    """Yield answers as columns."""
    for start in range(0, array.shape[0], ANSWER_ROWS):
        rows = array.read(start, min(start + ANSWER_ROWS, array.shape[0]))
        yield rows.reshape(len(rows), -1)


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file, packed if its name says so."""
    if path.name.lower().endswith(".gz"):
        with gzip.open(path, "wt", newline="", encoding="utf-8") as file:
            yield file
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            yield file


def _write_csv(array: ArrayHandle, path: Path, names: list[str]) -> None:
    """Write lines of names and answers."""
    delimiter = "\t" if ".tsv" in path.name.lower() else ","
    with _open_text(path) as file:
        table = csv.writer(file, delimiter=delimiter)
        table.writerow(names)
        for rows in _blocks(array):
            table.writerows(rows.tolist())


def _write_parquet(array: ArrayHandle, path: Path, names: list[str]) -> None:
    """Write one column a name."""
    arrow = import_arrow()
    from pyarrow import parquet

    writer: Any = None
    try:
        for rows in _blocks(array):
            columns = [arrow.array(rows[:, i].tolist()) for i in range(len(names))]
            batch = arrow.table(columns, names=names)
            if writer is None:
                writer = parquet.ParquetWriter(path, batch.schema)
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()
