"""The formats of files, and the files that a path, a folder or a pattern leads to.

One line a format: `fit`, `predict`, `convert` and the command line read it. It names modules and
imports none, so that a process loads the readers that it uses and no others.
"""

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from daskls.errors import DataError
from daskls.store.files import expand_path

__all__ = ["FORMATS", "Format", "all_suffixes", "find_files", "format_of", "shared_format"]

OF_ZARR = ("zarr.json", ".zgroup", ".zarray")


@dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes
    ----------
    suffixes : tuple of str. In small letters, the dot included.
    open : str. As ``module:function`` below the package. Of a table it takes (paths, label, where)
        and returns a `TableSource`; of features it takes (path, `ReadOptions`) and is a context
        that yields `Features`.
    holds : "table" of named columns, of any kinds; or "features", numbers without names
    packings : tuple of str. Suffixes that may follow.
    in_folders : bool. Whether a folder of such files is a table.
    takes : tuple of str. Arguments of `daskls.datasets.convert` that are for this format alone.
    lazily : str. The function of dask.dataframe that reads such files behind a URL, or "".
    """

    suffixes: tuple[str, ...]
    open: str
    holds: Literal["table", "features"] = "table"
    packings: tuple[str, ...] = ()
    in_folders: bool = False
    takes: tuple[str, ...] = ()
    lazily: str = ""

    def matches(self, name: str) -> bool:
        """Whether a file of this name has this format."""
        packed = next((end for end in self.packings if name.endswith(end)), "")
        return name.removesuffix(packed).endswith(self.suffixes)


FORMATS = (
    Format(
        (".csv", ".tsv", ".txt"),
        "sources.text:open_text",
        packings=(".gz", ".bz2", ".zst"),
        lazily="read_csv",
    ),
    Format(
        (".parquet", ".pq"), "sources.parquet:open_parquet", in_folders=True, lazily="read_parquet"
    ),
    Format((".npz",), "sources.arrays:open_npz", "features", takes=("split",)),
    Format((".npy",), "sources.arrays:open_npy", "features"),
    Format(
        (".libsvm", ".svmlight", ".svm"),
        "sources.svmlight:open_svmlight",
        "features",
        takes=("n_features",),
    ),
)


def format_of(path: str | os.PathLike[str]) -> Format | None:
    """Return the format of a file, by its suffix; None of any other.

    Examples
    --------
    >>> format_of("rows.csv.gz").suffixes[0], format_of("rows.pq").suffixes[0]
    ('.csv', '.parquet')
    >>> format_of("rows.zarr")
    """
    name = Path(path).name.lower()
    return next((known for known in FORMATS if known.matches(name)), None)


def all_suffixes() -> str:
    """Return the suffixes of files that can be read, for errors."""
    ends = ", ".join(end for known in FORMATS for end in known.suffixes)
    packed = ", ".join(end for known in FORMATS for end in known.packings)
    return f"{ends}; text may be packed ({packed})"


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path leads to, in natural order; none where it leads to Zarr data.

    Raises
    ------
    DataError : a pattern that nothing matches; folders named by values of a column; a URL of a
        file that is not read from there
    """
    text = expand_path(path)
    if "://" in text:
        _check_remote(text)
        return []
    if os.path.isdir(text):
        return _files_in(Path(text))
    if os.path.lexists(text):
        return [Path(text)]
    if not glob.has_magic(text):
        return []
    files = sorted(map(Path, glob.glob(text)), key=_natural_order)
    if not files:
        raise DataError(f"No file matches {text!r}; check the pattern.")
    return files


def _files_in(folder: Path) -> list[Path]:
    """Return the files of a folder, and of those in it, that are parts of one table."""
    if any((folder / name).is_file() for name in OF_ZARR):
        return []
    ends = [end for known in FORMATS if known.in_folders for end in known.suffixes]
    found = [file for end in ends for file in folder.rglob(f"*{end}")]
    by_value = next((f for f in found if "=" in str(f.parent.relative_to(folder))), None)
    if by_value is not None:
        raise DataError(
            f"{folder} keeps a column in the names of its folders ({by_value.parent.name}); "
            "pass it as a Dask DataFrame: dask.dataframe.read_parquet(path)."
        )
    return sorted((file for file in found if file.name[0] not in "._"), key=_natural_order)


def _check_remote(url: str) -> None:
    """Refuse tables behind URLs, which are read from local files alone.

    Raises
    ------
    DataError
    """
    known = format_of(urlsplit(url).path)
    if known is None:
        return
    lazily = f", or pass dask.dataframe.{known.lazily}({url!r}), which reads URLs"
    raise DataError(
        f"{url} is a table behind a URL; tables are read from local files, more than once. "
        f"Download it first{lazily if known.lazily else ''}."
    )


def shared_format(files: list[Path]) -> Format | None:
    """Return the format of files that are one table; None of no file, and of a folder.

    Raises
    ------
    DataError : they have several formats, or one that is not known
    """
    if not files or (len(files) == 1 and files[0].is_dir()):
        return None
    formats = [format_of(file) for file in files]
    known = formats[0]
    odd = next((f for f, own in zip(files, formats, strict=True) if own is None), files[0])
    if known is None or any(own is not known for own in formats):
        raise DataError(
            f"Cannot read {odd}: files of one table have one suffix, of {all_suffixes()}."
        )
    return known


def _natural_order(path: Path) -> list[str | int]:
    """Return a sorting key by which part 10 comes after part 9."""
    parts = re.split(r"(\d+)", str(path))
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]
