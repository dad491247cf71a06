"""Columns in the names of folders, as of ``year=2024/month=5/rows.parquet``."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from daskls.errors import DataError
from daskls.sources.arrow import as_text, import_arrow, of_part, part_of, part_text, whole_spelled
from daskls.sources.base import TableSource, check_same_columns

# How a missing value is spelled.
GAP = "__HIVE_DEFAULT_PARTITION__"

# The columns of a file's folders, and their values.
Held = dict[str, str | None]


def held_by_folders(files: Sequence[Path], below: Path) -> list[Held]:
    """Return what the folders of each file hold, below one; the same columns for all files."""
    columns = [_held(file.relative_to(below)) for file in files]
    named = [[f"{name}=..." for name in held] or ["no name=value"] for held in columns]
    check_same_columns(files, named, "in the names of its folders")
    return columns


def _held(path: Path) -> Held:
    parts = [name.partition("=") for name in path.parts[:-1]]
    return {unquote(n): None if v == GAP else unquote(v) for n, sign, v in parts if n and sign}


def with_folders(table: TableSource, files: Sequence[Path], held: list[Held]) -> TableSource:
    """Return a table with the columns in the names of its files' folders, after all others."""
    if not held[0]:
        return table
    arrow, place = import_arrow(), {part_text(str(file)): i for i, file in enumerate(files)}
    columns = {
        name: _values([folder[name] for folder in held], is_typed=table.is_typed)
        for name in held[0]
        if name not in table.names
    }
    schema = table.schema
    for name, values in columns.items():
        schema = schema.append(arrow.field(name, values.type))

    def batches(names: list[str]) -> Iterator[Any]:
        # Some column, to count rows by.
        for batch in table.batches([n for n in names if n not in columns] or table.names[:1]):
            at = place[part_of(batch)]
            _check_agree(batch, held[at], files[at])
            arrays = [
                arrow.repeat(columns[name][at], batch.num_rows)
                if name in columns
                else batch.column(name)
                for name in names
            ]
            yield of_part(arrow.record_batch(arrays, names=names), part_of(batch))

    return replace(table, schema=schema, batches=batches)


def _check_agree(batch: Any, held: Held, file: Path) -> None:
    """Refuse values of a column that are others in the names of the file's folders."""
    for name in held.keys() & set(batch.schema.names):
        values = set(whole_spelled(as_text(batch.column(name))).unique().to_pylist())
        if not values <= {held[name]}:
            raise DataError(
                f"{file} holds {min(map(str, values))!r} in column {name!r}, and its folder is "
                f"{name}={held[name]}. Correct one of them, or write the files without the column."
            )


def _values(texts: list[str | None], *, is_typed: bool) -> Any:
    """Return values as text or, beside columns that have types, as numbers if they are."""
    arrow = import_arrow()
    values = arrow.array(texts, arrow.string())
    for kind in (arrow.int64(), arrow.float64()) if is_typed else ():
        with suppress(arrow.ArrowInvalid):
            numbers = values.cast(kind)
            # Not "01", whose type would depend on the other folders.
            if numbers.cast(values.type).equals(values):
                return numbers
    return values
