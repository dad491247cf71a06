"""Readers of files: typed tables, text tables (CSV, TSV), and the LIBSVM / SVMlight format."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from operator import lt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.sources.arrow import import_arrow, index_of, is_number, of_part
from daskls.sources.base import (
    BLOCK_FIELDS,
    Block,
    Features,
    ReadOptions,
    TableSource,
    batch_rows,
    check_same_columns,
    narrowed,
    scan_of,
)
from daskls.sources.header import (
    FileHeader,
    TableHints,
    decoded,
    open_lines,
    read_head,
    unicode_of,
    warn_of_encoding,
)

# The names in pyarrow.dataset of the formats that it reads for us, by suffix.
FORMAT_OF = {
    **dict.fromkeys((".feather", ".arrow", ".ipc"), "feather"),
    ".orc": "orc",
    **dict.fromkeys((".jsonl", ".ndjson"), "json"),
}
TEXT_BLOCK_NBYTES = 4 << 20
# Texts that mean a missing value, as in pandas.
MISSING = (
    *("", "#N/A", "#NA", "N/A", "NA", "NaN", "nan", "NAN", "-NaN", "-nan", "NULL", "null", "None"),
    *("n/a", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "#N/A N/A"),
)
# A LIBSVM line that needs no check pair by pair.
PLAIN_PAIRS = re.compile(r"[^:\s]+(?:\s+[0-9]+:[^:\s_]+)*")


# Parquet, Feather and Arrow files, ORC, JSON lines.


class _TypedFile(NamedTuple):
    schema: Any
    n_rows: int
    batches: Callable[[list[str]], Iterator[Any]]


def open_typed(paths: list[Path], known: TableHints, where: str) -> TableSource:
    """Open files as one table, one after the other; columns are found by name in each."""
    arrow = import_arrow()
    files = [_open_parquet(path) if _is_parquet(path) else _open_other(path) for path in paths]
    schemas = [file.schema for file in files]
    index = _common_index(paths, [(s.names, index_of(s)) for s in schemas])
    names = [name for name in schemas[0].names if _is_in_all(name, schemas)]
    schema = arrow.schema(
        [(name, _joint_type([s.field(name).type for s in schemas])) for name in names]
    )

    def batches(names: list[str]) -> Iterator[Any]:
        for path, file in zip(paths, files, strict=True):
            try:
                for batch in file.batches(names):
                    yield of_part(batch, str(path))
            except (arrow.ArrowException, OSError) as error:
                raise DataError(
                    f"{path} cannot be read: {_one_line(error)}. The file is damaged, or has "
                    "changed; write it again."
                ) from error

    return TableSource(where, schema, batches, sum(file.n_rows for file in files), index=index)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() not in FORMAT_OF


def _open_parquet(path: Path) -> _TypedFile:
    from pyarrow import parquet

    with _of_kind(path, "a Parquet"):
        schema, n_rows = parquet.read_schema(path), parquet.read_metadata(path).num_rows

    # Not by a scanner, which decodes a whole row group at once.
    def batches(names: list[str]) -> Iterator[Any]:
        with parquet.ParquetFile(path) as file:
            yield from file.iter_batches(batch_size=batch_rows(len(names)), columns=names)

    return _TypedFile(schema, n_rows, batches)


def _open_other(path: Path) -> _TypedFile:
    from pyarrow import dataset

    kind = FORMAT_OF[path.suffix.lower()]
    with _of_kind(path, {"feather": "a Feather", "orc": "an ORC"}.get(kind, "a JSON lines")):
        rows = dataset.dataset(str(path), format=kind)
        n_rows, _ = rows.count_rows(), rows.schema.names

    def batches(names: list[str]) -> Iterator[Any]:
        size = batch_rows(len(names))
        scanner = rows.scanner(names, batch_size=size, batch_readahead=1, use_threads=False)
        for batch in scanner.to_batches():
            # JSON is read whatever its bytes are.
            batch.validate(full=kind == "json")
            yield batch

    return _TypedFile(rows.schema, n_rows, batches)


@contextmanager
def _of_kind(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except (import_arrow().ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path} is not {kind} file: {_one_line(error)}. Check the file."
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _common_index(
    paths: list[Path], columns: list[tuple[list[str], frozenset[str]]]
) -> frozenset[str]:
    """The other columns are the same in all files."""
    index = frozenset[str]().union(*(file_index for _, file_index in columns))
    check_same_columns(paths, [[n for n in names if n not in index] for names, _ in columns])
    return index


def _joint_type(kinds: list[Any]) -> Any:
    """Return the type of a column in several files: of numbers one that holds those of all."""
    types = import_arrow().types
    kinds = [kind for kind in kinds if not types.is_null(kind)] or kinds[:1]
    if all(kind == kinds[0] for kind in kinds) or not all(map(is_number, kinds)):
        return kinds[0]
    dtypes = [float if types.is_decimal(kind) else kind.to_pandas_dtype() for kind in kinds]
    return import_arrow().from_numpy_dtype(np.result_type(*dtypes))


def _is_in_all(name: str, of_files: list[Any]) -> bool:
    """Whether all files have a column; a column of an index may be in some alone."""
    return all(name in file.names for file in of_files)


# CSV and TSV.


def open_text(paths: list[Path], known: TableHints, where: str) -> TableSource:
    """A first line that holds the known names is a header."""
    arrow = import_arrow()
    heads = [read_head(path, known) for path in paths]
    # As pandas writes its index: a first column without a name.
    unnamed = [h.names[:1] if h.names[0] == "" and len(h.names) > 1 else [] for h in heads]
    columns = [(head.names, frozenset(first)) for head, first in zip(heads, unnamed, strict=True)]
    index = _common_index(paths, columns)
    names = [name for name in heads[0].names if _is_in_all(name, heads)]
    schema = arrow.schema([(name, arrow.string()) for name in names])
    strange = [path for path, head in zip(paths, heads, strict=True) if not head.is_unicode]
    for path in strange[:1]:
        warn_of_encoding(path)

    def batches(names: list[str]) -> Iterator[Any]:
        for path, head in zip(paths, heads, strict=True):
            for batch in _read(path, head, names):
                read = [_as_text(values) for values in batch.columns]
                if not strange and not all(is_unicode for _, is_unicode in read):
                    strange.append(path)
                    warn_of_encoding(path)
                texts = arrow.record_batch([text for text, _ in read], names=names)
                yield of_part(texts, str(path))

    has_header = heads[0].has_header
    return TableSource(where, schema, batches, is_typed=False, index=index, has_header=has_header)


def _read(path: Path, head: FileHeader, names: list[str]) -> Iterator[Any]:
    arrow = import_arrow()
    from pyarrow import csv as arrow_csv

    if not head.has_rows:
        return
    try:
        reader = arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(
                column_names=head.names,
                skip_rows=head.n_above,
                # Not a line more of `skip_rows`: a quoted name may have several.
                skip_rows_after_names=int(head.has_header),
                block_size=TEXT_BLOCK_NBYTES,
                encoding="utf8" if head.encoding == "utf-8-sig" else head.encoding,
                # Without threads errors name the row; batch by batch it is as fast.
                use_threads=False,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=head.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, arrow.binary()),
                include_columns=names,
                null_values=list(MISSING),
                strings_can_be_null=True,
            ),
        )
    except (arrow.ArrowInvalid, OSError, UnicodeError) as error:
        # The error that Arrow raises for a file without rows.
        if "Empty CSV" in str(error):
            return
        raise _damaged(path, error) from error
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (arrow.ArrowInvalid, OSError, UnicodeError) as error:
            raise _damaged(path, error) from error
        yield batch


def _as_text(values: Any) -> tuple[Any, bool]:
    """Return bytes as text, and whether they are UTF-8."""
    try:
        return values.cast(import_arrow().string()), True
    except import_arrow().ArrowInvalid:
        coded = values.dictionary_encode()
        words = [decoded(word) for word in coded.dictionary.to_pylist()]
        return import_arrow().array(words).take(coded.indices), False


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path} cannot be read as a table: {_one_line(error)}. Correct or remove the line."
    )


# LIBSVM. scikit-learn's `load_svmlight_file` refuses text as a label, and its errors name no line.


class _Line(NamedTuple):
    label: str
    columns: list[int]
    values: list[float]


@contextmanager
def open_svmlight(path: Path, options: ReadOptions) -> Iterator[Features]:
    """Open a LIBSVM file; a first pass finds its width and its labels."""
    with_y = _check_label(options.label)
    scan = scan_of(options.kind)
    n_rows = largest = 0
    for line, row in _rows(path):
        n_rows += 1
        largest = max(largest, row.columns[-1] + 1 if row.columns else 0)
        if with_y:
            scan.add_text(row.label, f"{path}, line {line}")
    n_features = largest if options.n_features is None else options.n_features
    if n_features < largest:
        raise ParameterError(
            f"n_features is {n_features}, but {path} has index {largest}. Raise n_features, or "
            "leave it out."
        )
    dtype = np.dtype(np.float32) if options.dtype is None else options.dtype

    def blocks() -> Iterator[Block]:
        rows = (row for _, row in _rows(path))
        block_rows = batch_rows(n_features, BLOCK_FIELDS)
        while block := list(islice(rows, block_rows)):
            y = [row.label for row in block] if with_y else None
            yield _dense(block, n_features, dtype, path), y, None

    labels = scan.finish() if with_y else None
    yield Features(str(path), n_rows, n_features, dtype, None, labels, blocks)


def _check_label(label: str | int | None) -> bool:
    """Whether labels are kept; a LIBSVM file has them first in each line."""
    if label not in (None, "none"):
        raise ParameterError(
            f"label must be None or 'none' for a LIBSVM file, where it is first, got {label!r}."
        )
    return label is None


def _rows(path: Path) -> Iterator[tuple[int, _Line]]:
    is_unicode = True
    with open_lines(path) as file:
        for line, text in enumerate(file, start=1):
            content = text.partition("#")[0].strip()
            if not content:
                continue
            unicode = unicode_of(content)
            if is_unicode and unicode != content:
                is_unicode = False
                warn_of_encoding(path)
            try:
                yield line, _parse(unicode)
            except ValueError as error:
                raise DataError(f"{path}, line {line}: {error}; correct the line.") from error


def _parse(content: str) -> _Line:
    """Return one row; nearly all have the plain form, which is parsed quickly."""
    if PLAIN_PAIRS.fullmatch(content):
        label, *tokens = content.replace(":", " ").split()
        columns = [int(index) - 1 for index in tokens[::2]]
        if not columns or (columns[0] >= 0 and all(map(lt, columns, columns[1:]))):
            return _Line(label, columns, [float(value) for value in tokens[1::2]])
    return _parse_pairs(content)


def _parse_pairs(content: str) -> _Line:
    label, *pairs = content.split()
    if ":" in label:
        raise ValueError(f"starts with {label!r} where the label should be")
    columns, values, last = [], [], -1
    for pair in pairs:
        index, colon, value = pair.partition(":")
        if index == "qid":
            continue
        if not colon or not index.isdecimal() or "_" in value:
            raise ValueError(f"{pair!r} is not of the form index:value")
        column = int(index) - 1
        if column <= last:
            why = "indices start at 1" if column < 0 else "indices must rise"
            raise ValueError(f"index {index} is wrong: {why}")
        columns.append(column)
        values.append(float(value))
        last = column
    return _Line(label, columns, values)


def _dense(
    block: list[_Line], n_features: int, dtype: np.dtype[Any], path: Path
) -> np.ndarray[Any, Any]:
    X = np.zeros((len(block), n_features), np.float64 if dtype.kind != "f" else dtype)
    for row, (_, columns, values) in zip(X, block, strict=True):
        row[columns] = values
    return narrowed(X, dtype, path)
