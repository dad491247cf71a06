"""Text tables: CSV and TSV, packed or not, one file or several, as batches of text."""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from daskls.errors import DataError
from daskls.sources.arrow import import_arrow
from daskls.sources.base import TableSource, check_same_columns, usual_names

__all__ = ["open_text"]

TEXT_BLOCK_NBYTES = 4 << 20
HEAD_NBYTES = 1 << 20
DELIMITERS = ",;\t"
# As pandas reads them.
MISSING = (
    *("", "#N/A", "#NA", "N/A", "NA", "NaN", "nan", "NAN", "-NaN", "-nan", "NULL", "null", "None"),
    *("n/a", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "#N/A N/A"),
)


@dataclass(frozen=True)
class _Head:
    """The beginning of a file: delimiter and names; numbers where it has none.

    ``n_skipped`` are the lines before the first row, blank ones included.
    """

    delimiter: str
    names: list[str]
    n_skipped: int


def open_text(paths: list[Path], label: str | None, where: str) -> TableSource:
    """Open text files as one table; columns are found by name in each of them.

    Parameters
    ----------
    paths : list of Path. Read one after the other.
    label : str or None. A name that makes a first line a header.
    where : str. What to call them in errors.
    """
    arrow = import_arrow()
    heads = [_read_head(path, label) for path in paths]
    check_same_columns(paths, [head.names for head in heads])
    schema = arrow.schema([(name, arrow.string()) for name in heads[0].names])

    def batches(names: list[str]) -> Iterator[Any]:
        for path, head in zip(paths, heads, strict=True):
            yield from _read(path, head, names)

    return TableSource(where, schema, batches, is_typed=False)


def _read_head(path: Path, label: str | None) -> _Head:
    """Find the delimiter and the names in the first line that is not blank."""
    arrow = import_arrow()
    try:
        with arrow.input_stream(str(path), compression="detect") as stream:
            start = stream.read(HEAD_NBYTES).decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}. Check the file.") from error
    text = start.lstrip("\r\n")
    if not text.strip():
        raise DataError(f"{path} is empty; it must have a line of names and rows.")
    delimiter = max(DELIMITERS, key=text.splitlines()[0].count)
    fields = next(csv.reader(StringIO(text, newline=""), delimiter=delimiter))
    names = [name.strip() for name in fields]
    numbered = [str(i) for i in range(len(names))]
    if _are_names(names, numbered, label):
        n_blank = len(start.splitlines()) - len(text.splitlines())
        return _Head(delimiter, names, n_blank + 1)
    return _Head(delimiter, numbered, 0)


def _are_names(first: list[str], numbered: list[str], label: str | None) -> bool:
    """Whether the first line holds names: one that is the label's, or none that is a number."""
    # "2" may be the label's number, and a field of the first row too.
    names_label = label in first and not _is_number(str(label))
    is_usual = label is None and usual_names(first)
    return bool(names_label or is_usual) or first == numbered or not any(map(_is_number, first))


def _is_number(field: str) -> bool:
    """Whether a field is a number; "inf" and "nan" may be names."""
    try:
        return math.isfinite(float(field)) and "_" not in field
    except ValueError:
        return False


def _read(path: Path, head: _Head, names: list[str]) -> Iterator[Any]:
    """Yield the batches of one file, all text."""
    arrow = import_arrow()
    from pyarrow import csv as arrow_csv

    try:
        reader = arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(
                column_names=head.names,
                # Not `skip_rows`, which counts the lines of one quoted name as several.
                skip_rows_after_names=head.n_skipped,
                block_size=TEXT_BLOCK_NBYTES,
                # As fast, batch by batch; and only so errors name the row.
                use_threads=False,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=head.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, arrow.string()),
                include_columns=names,
                null_values=list(MISSING),
                strings_can_be_null=True,
            ),
        )
    except arrow.ArrowInvalid as error:
        # Arrow says so of a file without rows.
        if "Empty CSV" in str(error):
            return
        raise _damaged(path, error) from error
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except arrow.ArrowInvalid as error:
            raise _damaged(path, error) from error
        yield batch


def _damaged(path: Path, error: Exception) -> DataError:
    """Return the error of a line that is no row."""
    return DataError(
        f"{path} cannot be read as a table: {error}. Correct or remove the line; the text must be "
        "UTF-8."
    )
