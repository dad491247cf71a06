"""Paths that lead to tables: files by their suffix, folders of Parquet files, patterns of names."""

import glob
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from daskls.errors import DataError
from daskls.store.files import expand_path
from daskls.tables.frames import is_frame, open_frame, open_parquet_files
from daskls.tables.source import FILE_KINDS, TEXT_PACKINGS, TableSource, file_kind, natural_order
from daskls.tables.text import open_text

__all__ = ["check_label", "find_files", "is_table", "open_table", "table_kind"]

OF_ZARR = ("zarr.json", ".zgroup", ".zarray")


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a table, in natural order; none where the path leads to no table.

    Raises
    ------
    DataError : a pattern that nothing matches; folders named by values of a column
    """
    text = expand_path(path)
    if "://" in text:
        _check_remote(text)
        return []
    if os.path.isdir(text):
        if any(Path(text, name).is_file() for name in OF_ZARR):
            return []
        found = [file for end in FILE_KINDS["parquet"] for file in Path(text).rglob(f"*{end}")]
        by_value = next((f for f in found if "=" in str(f.parent.relative_to(text))), None)
        if by_value is not None:
            raise DataError(
                f"{text} keeps a column in the names of its folders ({by_value.parent.name}); "
                "pass it as a Dask DataFrame: dask.dataframe.read_parquet(path)."
            )
        return sorted((file for file in found if file.name[0] not in "._"), key=natural_order)
    if os.path.lexists(text):
        return [Path(text)]
    if not glob.has_magic(text):
        return []
    files = sorted(map(Path, glob.glob(text)), key=natural_order)
    if not files:
        raise DataError(f"No file matches {text!r}; check the pattern.")
    return files


def _check_remote(url: str) -> None:
    """Refuse tables behind URLs, which are read from local files alone.

    Raises
    ------
    DataError
    """
    kind = file_kind(urlsplit(url).path)
    if kind is None:
        return
    reader = {"text": "read_csv", "parquet": "read_parquet"}.get(kind)
    lazily = f", or pass dask.dataframe.{reader}({url!r}), which reads URLs" if reader else ""
    raise DataError(
        f"{url} is a table behind a URL; tables are read from local files, more than once. "
        f"Download it first{lazily}."
    )


def table_kind(path: str | os.PathLike[str]) -> str | None:
    """Return what the files of a path hold: "text", "parquet" or "arrays"; None for no table.

    Raises
    ------
    DataError : files of several kinds, or of none that is known
    """
    files = find_files(path)
    kinds = {file_kind(str(file)) for file in files}
    if not files or (len(files) == 1 and files[0].is_dir()):
        return None
    if len(kinds) > 1 or None in kinds:
        ends = ", ".join(end for kind in FILE_KINDS.values() for end in kind)
        odd = next((f for f in files if file_kind(str(f)) is None), files[0])
        raise DataError(
            f"Cannot read {odd}: files of one table have one suffix, of {ends}; text may be packed "
            f"({', '.join(TEXT_PACKINGS)})."
        )
    return kinds.pop()


def is_table(X: Any) -> bool:
    """Whether X is a table: a frame, or a path that leads to files of one."""
    if isinstance(X, str | os.PathLike):
        return table_kind(X) is not None
    return is_frame(X)


def check_label(label: Any) -> None:
    """Refuse labels beside a table: they are a column of it.

    Raises
    ------
    DataError
    """
    if label is not None and not isinstance(label, str):
        raise DataError(
            f"y is of type {type(label).__name__} beside a table; name the column of the table "
            "that holds the labels, as in fit(X, NAME) or --label NAME."
        )


def open_table(X: Any, label: str | None, scratch: Path) -> TableSource:
    """Open a table of named columns.

    Parameters
    ----------
    X : path of a text or Parquet table, or a frame
    label : str or None. A name that makes the first line of a text file a header.
    scratch : Path. A folder, for what has to be on disk first; the caller removes it.
    """
    if not isinstance(X, str | os.PathLike):
        source = open_frame(X, scratch)
    else:
        files = find_files(X)
        where = os.fspath(X)
        is_text = table_kind(X) == "text"
        source = open_text(files, label, where) if is_text else open_parquet_files(files, where)
    source.check_names()
    return source
