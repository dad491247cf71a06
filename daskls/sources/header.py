"""The first lines of a text table: its encoding, its delimiter, and the names of its columns."""

import csv
import re
from codecs import getincrementaldecoder
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from json import detect_encoding
from pathlib import Path
from typing import IO, NamedTuple

from daskls.errors import DataError, listed, warn_user
from daskls.sources.arrow import import_arrow
from daskls.sources.base import WITH_COMMA, reads_as_number, usual_names

# Bytes that are read to find the delimiter and the header.
HEAD_NBYTES = 1 << 20
# "|" only where no other is.
DELIMITERS = ",;\t|"
# The first record, and a quoted field in it.
QUOTED = re.compile(r'"(?:[^"]|"")*"')
RECORD = re.compile(rf'(?:{QUOTED.pattern}|[^"\r\n])*')
# The line by which Excel names the delimiter.
SEP_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)
# How bytes that are not UTF-8 stand in text until it is known what they are.
ESCAPED = "surrogateescape"


class TableHints(NamedTuple):
    """Knowledge of a table before it is opened; by it a text file's header is recognized."""

    label: str | None = None
    columns: Sequence[str] = ()
    has_header: bool = True

    @property
    def is_place(self) -> bool:
        """Whether the label may be the number of a column, and also a field of a row."""
        return self.label is not None and reads_as_number(self.label)

    def are_in(self, fields: list[str]) -> bool:
        if self.columns:
            return self.has_header and set(self.columns) <= set(fields)
        if self.label is None or self.is_place:
            return bool(usual_names(fields))
        return self.label in fields


@dataclass(frozen=True)
class FileHeader:
    """The delimiter and the names of a file's columns: "0", "1", .. if it has no header."""

    encoding: str
    delimiter: str
    names: list[str]
    n_above: int
    has_header: bool
    has_rows: bool
    is_unicode: bool


def read_head(path: Path, known: TableHints) -> FileHeader:
    """Find the delimiter, and the names in the first line that is neither blank nor a comment."""
    try:
        with import_arrow().input_stream(str(path), compression="detect") as stream:
            start = stream.read(HEAD_NBYTES)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}. Check the file.") from error
    encoding, errors = encoding_of(start)
    text = getincrementaldecoder(encoding)(errors).decode(start)
    if "\0" in text.split("\n", 1)[0]:
        raise DataError(f"{path} is no text: it has zero bytes. Check the file.")
    if not text.strip():
        raise DataError(f"{path} is empty; it must have a line of names and rows.")
    lines = list(StringIO(text, newline=""))
    n_above = next(i for i, line in enumerate(lines) if line.strip("\r\n"))
    told = SEP_LINE.fullmatch(lines[n_above])
    delimiters, n_above = (told[1], n_above + 1) if told else (DELIMITERS, n_above)
    n_above += _count_comments(lines[n_above:], known, delimiters)
    first = "".join(lines[n_above:])
    if not first.strip():
        raise DataError(f"{path} has no line of names and no rows.")
    delimiter = _find_delimiter(first, known, delimiters)
    names = _fields(first, delimiter)
    if not names:
        raise DataError(f"{path}: the first line is too long for names of columns. Check the file.")
    numbered = [str(i) for i in range(len(names))]
    is_header = _is_header(names, numbered, known, path)
    record = RECORD.match(first)
    assert record is not None
    return FileHeader(
        encoding,
        delimiter,
        names if is_header else numbered,
        n_above,
        is_header,
        has_rows=not is_header or bool(first[record.end() :].strip()),
        is_unicode=unicode_of(record[0]) == record[0],
    )


def encoding_of(start: bytes) -> tuple[str, str]:
    """Return the encoding of text that begins so, of UTF-8 if it is of bytes; how errors count."""
    encoding = detect_encoding(start)
    return ("utf-8-sig", ESCAPED) if encoding.startswith("utf-8") else (encoding, "replace")


def open_lines(path: Path) -> IO[str]:
    """Open a file of lines; `unicode_of` reads what is not Unicode in them."""
    with path.open("rb") as file:
        encoding, errors = encoding_of(file.read(4))
    return path.open(encoding=encoding, errors=errors)


def decoded(text: bytes) -> str:
    """Return text of UTF-8 or, if it is none, of Windows, or else of Latin-1: one rule for all."""
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            return text.decode(encoding)
    return text.decode("latin-1")


def unicode_of(text: str) -> str:
    return text if text.isascii() else decoded(text.encode(errors=ESCAPED))


def warn_of_encoding(path: Path) -> None:
    warn_user(
        f"{path} is not UTF-8: text in it that is not is taken for cp1252 (or Latin-1), as of "
        "Western Windows. If it is of another encoding, write the file again: iconv -f ENCODING "
        "-t utf-8.",
        UserWarning,
    )


def _count_comments(lines: list[str], known: TableHints, delimiters: str) -> int:
    """Return the number of lines that begin with "#" above one which holds the known names."""
    n = next((i for i, line in enumerate(lines) if line.strip("\r\n") and line[0] != "#"), 0)
    if not n:
        return 0
    first, below = "".join(lines), "".join(lines[n:])
    is_known = [any(known.are_in(_fields(text, d)) for d in delimiters) for text in (first, below)]
    return n if is_known == [False, True] else 0


def _find_delimiter(text: str, known: TableHints, delimiters: str) -> str:
    """Return the delimiter which gives the known names, else that which is most frequent."""
    record = RECORD.match(text)
    bare = QUOTED.sub("", record[0] if record else text)
    if ";" in bare or "\t" in bare:
        bare = re.sub(r"(?<=\d),(?=\d)", "", bare)

    def weight(delimiter: str) -> tuple[bool, float]:
        n = bare.count(delimiter)
        return known.are_in(_fields(text, delimiter)), n if delimiter != "|" else min(n, 0.5)

    return max(delimiters, key=weight)


def _fields(text: str, delimiter: str) -> list[str]:
    """Return the fields of the first record, without the spaces around them."""
    try:
        return [
            unicode_of(name.strip())
            for name in next(csv.reader(StringIO(text, newline=""), delimiter=delimiter), [])
        ]
    except csv.Error:
        return []


def _is_header(first: list[str], numbered: list[str], known: TableHints, path: Path) -> bool:
    """Whether the first line holds the known names, or no number, also none with commas."""
    if known.columns and not known.has_header:
        if first in (numbered, ["", *numbered[:-1]]):
            raise DataError(
                f"The first line of {path} is {listed(first)}, which may be the numbers of its "
                "columns or a row; the training table had no line of names. Remove the line if "
                "it numbers the columns; if it is a row, put another row first."
            )
        return False
    if known.columns and known.are_in(first):
        return True
    is_known = known.label in first and not known.is_place
    is_usual = (known.label is None or known.is_place) and usual_names(first)
    is_header = bool(is_known or is_usual) or first == numbered
    is_header = is_header or not any(reads_as_number(n) or WITH_COMMA.fullmatch(n) for n in first)
    if known.columns and not is_header:
        lacking = [name for name in known.columns if name not in first]
        raise DataError(
            f"The first line of {path}, {listed(first)}, does not name the column"
            f"{'s' * (len(lacking) > 1)} {listed([*map(repr, lacking)])} that the model was "
            "trained on. Begin the file with a line of the names of its columns."
        )
    return is_header
