"""Text tables: CSV and TSV, packed or not, one file or several, as batches of text."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daskls.errors import DataError
from daskls.tables.arrow import import_arrow
from daskls.tables.source import TableSource

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
    """The first line of a file: delimiter and names; numbers where it has none."""

    delimiter: str
    names: list[str]
    has_header: bool


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
    for path, head in zip(paths, heads, strict=True):
        if set(head.names) != set(heads[0].names) or head.has_header != heads[0].has_header:
            raise DataError(
                f"{path} has the columns {', '.join(head.names[:20])}, and {paths[0]} has "
                f"{', '.join(heads[0].names[:20])}. Files of one table have the same columns."
            )
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
    lines = start.lstrip("\r\n").splitlines()
    if not lines or not lines[0].strip():
        raise DataError(f"{path} is empty; it must have a line of names and rows.")
    delimiter = max(DELIMITERS, key=lines[0].count)
    names = [name.strip() for name in next(csv.reader(lines, delimiter=delimiter))]
    numbered = [str(i) for i in range(len(names))]
    # "2" may be the label's number, and a field of the first row too.
    names_label = label in names and not _is_number(str(label))
    if names_label or names == numbered or not any(map(_is_number, names)):
        return _Head(delimiter, names, True)
    return _Head(delimiter, numbered, False)


def _is_number(field: str) -> bool:
    """Whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read(path: Path, head: _Head, names: list[str]) -> Iterator[Any]:
    """Yield the batches of one file, all text."""
    arrow = import_arrow()
    from pyarrow import csv as arrow_csv

    try:
        reader = arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(
                column_names=head.names,
                skip_rows=1 if head.has_header else 0,
                block_size=TEXT_BLOCK_NBYTES,
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
