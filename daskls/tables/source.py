"""The interface of every source of batches: names, kinds and streamed rows."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daskls.errors import DataError

__all__ = [
    "BATCH_FIELDS",
    "FileKind",
    "TableSource",
    "check_unique",
    "file_kind",
    "natural_order",
]

# Values of a batch: 8 MiB of float64.
BATCH_FIELDS = 2**20
FILE_KINDS = {
    "text": (".csv", ".tsv", ".txt"),
    "parquet": (".parquet", ".pq"),
    "arrays": (".npz", ".npy", ".libsvm", ".svmlight", ".svm"),
}
TEXT_PACKINGS = (".gz", ".bz2", ".zst")
FileKind = str


@dataclass(frozen=True)
class TableSource:
    """A table that can be read more than once.

    Attributes
    ----------
    where : str. What to call it in errors.
    schema : Arrow schema. Names and kinds of the columns.
    batches : called with names of columns; yields Arrow batches of them, in row order
    n_rows : int, or None where only reading tells
    is_typed : bool. Whether the kinds of the columns are known; else all are text.
    """

    where: str
    schema: Any
    batches: Callable[[list[str]], Iterator[Any]]
    n_rows: int | None = None
    is_typed: bool = True

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.schema.names]

    def check_names(self) -> None:
        """Refuse names that do not tell columns apart.

        Raises
        ------
        DataError
        """
        check_unique(self.names, self.where)


def check_unique(names: Sequence[Any], where: str) -> None:
    """Refuse names of columns that do not tell these apart.

    Raises
    ------
    DataError
    """
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(
            f"{where} has more than one column {twice[0]!r}; rename them, as columns are known by "
            "their names."
        )


def file_kind(path: str) -> FileKind | None:
    """Return what a file holds, by its suffix; None for any other.

    Examples
    --------
    >>> file_kind("rows.csv.gz"), file_kind("rows.parquet"), file_kind("rows.zarr")
    ('text', 'parquet', None)
    """
    name = Path(path).name.lower()
    for suffix in TEXT_PACKINGS:
        if name.endswith(suffix):
            bare = name.removesuffix(suffix)
            return "text" if bare.endswith(FILE_KINDS["text"]) else None
    return next((kind for kind, ends in FILE_KINDS.items() if name.endswith(ends)), None)


def natural_order(path: Path) -> list[Any]:
    """Return a sorting key by which part 10 comes after part 9."""
    parts: list[Any] = []
    digits = ""
    for letter in str(path) + "\0":
        if letter.isdigit():
            digits += letter
            continue
        if digits:
            parts.append((0, int(digits)))
            digits = ""
        parts.append((1, letter))
    return parts
