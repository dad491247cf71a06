"""The first pass over a table: the encoding of each column, and the coder of the labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from daskls.errors import DataError, listed
from daskls.partition.shuffle import row_keys
from daskls.records import INEXACT, AnyArray, TargetKind
from daskls.seeds import MEDIAN_ROWS
from daskls.sources.arrow import PartTypes, refused_type
from daskls.sources.base import LabelCoder, NumberCoder, TableOptions, TableSource, scan_of
from daskls.sources.columns import ColumnScan
from daskls.sources.encoding import TableEncoding
from daskls.sources.labels import add_labels
from daskls.sources.many_values import ManyValues
from daskls.sources.signs import measured
from daskls.sources.statistics import CrossFit, Targets

# Columns of numbers that may get statistics of their values.
MOST_SPIKY = 8
# Arrow types whose values float32 holds exactly.
SMALL = ("int8", "int16", "uint8", "uint16", "bool", "halffloat", "float")


@dataclass(frozen=True)
class ScannedTable:
    n_rows: int
    encoding: TableEncoding
    labels: LabelCoder | NumberCoder | None
    cross_fit: CrossFit


def scan_table(
    source: TableSource,
    label: str | None,
    options: TableOptions,
    *,
    seed: int = 0,
    kind: TargetKind = "classes",
    target: AnyArray | None = None,
    with_statistics: bool = True,
) -> ScannedTable:
    """Read a table and choose the encoding of its columns; ``target`` are labels apart.

    Columns of many values are read twice, for statistics of their targets. The seed is of the
    sample that medians are taken from, and of the folds of statistics.
    """
    has_target = label is not None or target is not None
    weight = options.weight
    dropped = [*options.drop, *([] if weight is None else [weight])]
    names = _feature_columns(source, label, dropped)
    kinds = {name: source.schema.field(name).type for name in names}
    refused = {name: why for name, kind in kinds.items() if (why := refused_type(kind))}
    columns = [
        ColumnScan(PartTypes(source.where, name), kind, with_median=options.missing == "auto")
        for name, kind in kinds.items()
        if name not in refused
    ]
    types = PartTypes(source.where, label or "")
    labels = None if label is None else scan_of(kind)
    row = 0
    # Read on even if some are refused already, so that one error names all bad columns.
    read = [column.name for column in columns]
    for batch in source.batches(read if label is None else [*read, label]):
        keys = row_keys(np.arange(row, row + batch.num_rows), MEDIAN_ROWS(seed))
        for column in columns:
            column.add(batch, keys, row, is_typed=source.is_typed)
        if labels is not None:
            add_labels(labels, batch, source, types, row)
        row += batch.num_rows
    # Where nothing can be read, it is said below why.
    if not row and (read or label is not None):
        raise DataError(f"{source.where} has no rows; it needs at least 2 to fit, 1 to predict.")
    if target is not None and len(target) != row:
        raise DataError(f"{source.where} has {row} rows, but y has {len(target)}; pass as many.")
    for column in columns:
        column.check_types()
    commas = any(c.reading is not None and c.reading.mark for c in columns)
    told = {column.name: column.mistake(beside_commas=commas) for column in columns}
    mistaken = {name: mistake for name, mistake in told.items() if mistake is not None}
    refused |= {
        column.name: why
        for column in columns
        if column.name not in mistaken and (why := column.refusal(has_target=has_target))
    }
    bad = {*refused, *mistaken}
    gaps = [column for column in columns if options.missing == "refuse" and column.name not in bad]
    _check_columns(
        source.where,
        {name: refused[name] for name in names if name in refused},
        mistaken,
        {c.name: c.first_missing for c in gaps if c.first_missing is not None},
    )
    coder = None if labels is None else labels.finish()
    spiky = [c.name for c in columns if c.is_spiky]
    # Of more such columns the values have a meaning together, as those of pixels.
    spiky = spiky if len(spiky) <= MOST_SPIKY else []
    texts = [c.name for c in columns if c.has_many]
    many = ManyValues(texts, spiky, seed, with_sums=with_statistics)
    if many.names and target is not None:
        many.read(source, target, Targets.of_values(target, kind), weight)
    elif many.names and label is not None and coder is not None:
        many.read(source, label, Targets.of(coder), weight)
    whys = {c.name: c.refusal_of_many(many.sums[c.name]) for c in columns if c.name in texts}
    _check_columns(source.where, {name: why for name, why in whys.items() if why}, {}, {})
    statistics = many.finish(source.where)
    columns = [c for c in columns if not c.has_many or c.name in statistics]
    if not columns:
        raise _no_features(source, label)
    encodings = tuple(column.encoding(statistics.get(column.name)) for column in columns)
    seen = {*map(str, kinds.values())}.union(*(column.seen for column in columns))
    dtype = "float32" if source.is_typed and seen <= set(SMALL) else "float64"
    encoding = TableEncoding(
        encodings,
        label,
        options.unknown,
        dtype,
        has_header=source.has_header,
        notes=_unit_notes(
            {e.name: e.categories for e in encodings if e.kind == "category"} | many.texts
        ),
    )
    _check_features(encoding.feature_names, source.where)
    cross_fit = CrossFit(seed, {name: column.of_others for name, column in statistics.items()})
    return ScannedTable(row, encoding, coder, cross_fit)


def _unit_notes(texts: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Say of which columns the texts are numbers but for a unit."""
    found = {name: measured(values) for name, values in texts.items()}
    return tuple(
        f"{name}: texts such as {text!r} look like numbers with a unit; remove it to use them as "
        "numbers."
        for name, text in found.items()
        if text is not None
    )


def scan_labels(
    source: TableSource, label: str, kind: TargetKind = "classes"
) -> tuple[int, LabelCoder | NumberCoder]:
    scan, row, types = scan_of(kind), 0, PartTypes(source.where, label)
    for batch in source.batches([label]):
        add_labels(scan, batch, source, types, row)
        row += batch.num_rows
    return row, scan.finish()


def _check_features(names: list[str], where: str) -> None:
    """Refuse two features of one name, as of a column "a=b" and the value "b" of a column "a"."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(
            f"{where}: two columns become the feature {twice[0]!r}; rename one of them, or leave "
            "it out: --drop NAME, or fit(..., drop=[NAME])."
        )


def _feature_columns(source: TableSource, label: str | None, drop: list[str]) -> list[str]:
    """Return the columns that become features; names in ``drop`` may be joined by commas."""
    known = set(source.names)
    dropped = {part for name in drop for part in ([name] if name in known else name.split(","))}
    strange = sorted(dropped - known)
    if strange:
        raise DataError(
            f"{source.where} has no column {', '.join(map(repr, strange))} to leave out; its "
            f"columns are {listed(source.names)}."
        )
    names = source.feature_columns(without=dropped if label is None else {label, *dropped})
    if not names:
        raise _no_features(source, label)
    return names


def _no_features(source: TableSource, label: str | None) -> DataError:
    return DataError(f"{source.where} has no feature columns besides the label {label!r}.")


def _check_columns(
    where: str, refused: dict[str, str], mistaken: dict[str, tuple[str, str]], gaps: dict[str, int]
) -> None:
    """Refuse columns that cannot become features, or have missing values, all in one error."""
    reasons = []
    for remedy in dict.fromkeys(remedy for _, remedy in mistaken.values()):
        columns = {name: what for name, (what, why) in mistaken.items() if why == remedy}
        bad = listed([f"column {name!r} holds {what}" for name, what in columns.items()])
        out = "" if remedy == INEXACT else "; or leave it out"
        reasons.append(f"{bad}; {remedy}{out}: {_drop_line(list(columns))}.")
    if refused:
        bad = listed([f"column {name!r} holds {what}" for name, what in refused.items()])
        reasons.append(
            f"{bad}. No distance is defined for that. Leave such columns out: "
            f"{_drop_line(list(refused))}; or make numbers of them first."
        )
    if gaps:
        bad = listed([f"column {n!r} has a missing value in row {row}" for n, row in gaps.items()])
        reasons.append(
            f"{bad} (the first is 0). Fill or remove such rows, or replace them by the median and "
            'add a column that flags them: --missing auto, or fit(..., missing="auto").'
        )
    if reasons:
        raise DataError(f"{where}: {' Besides, '.join(reasons)}")


def _drop_line(names: list[str]) -> str:
    """Return the options that leave columns out, quoted for a shell, and those of Python.

    >>> print(_drop_line(["id", "the day", "a,b"]))
    --drop 'id,the day' --drop a,b, or fit(..., drop=['id', 'the day', 'a,b'])
    """
    joined = [",".join(name for name in names if "," not in name)]
    apart = [name for name in names if "," in name]
    options = " ".join(f"--drop {quote(text)}" for text in [*joined, *apart] if text)
    return f"{options}, or fit(..., drop={names})"
