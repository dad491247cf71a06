"""The encoding of named columns as features: a record that a model keeps as JSON.

scikit-learn's encoders want all rows at once, and are kept as pickles.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from daskls.errors import DataError, counted, listed, warn_user
from daskls.records import AnyArray, Float64, Int64, Mask
from daskls.sources.arrow import (
    as_numbers,
    as_text,
    column_of,
    compute_module,
    import_arrow,
    refused_type,
    whole_spelled,
)
from daskls.sources.base import Unknown
from daskls.sources.dates import ISO, feature_names, features_of, not_a_date, read_dates
from daskls.sources.letters import N_DIRECTIONS, letters_of
from daskls.sources.signs import COMMA, unsigned, without_blanks
from daskls.sources.statistics import CrossFit, DistinctValues

FLAGS = ("false", "true")


@dataclass(frozen=True)
class ColumnEncoding:
    """A "number", "flag", "category", "date" or "statistics"; `fill` replaces missing values.

    Where training rows had none, `usual` does in queries. Dates are spelled as `spelling`, in the
    time zone `zone`, and become `parts` beside their seconds. Numbers may be text with a `sign`, or
    with "" for none, and with commas between thousands; before it a comma means decimal commas. The
    statistics of `categories` are those named by `parts`: `statistics` holds them by rows, of a gap
    and of any other value last. Beside them, or alone, are positions by `letters`. Where it
    `is_cut`, training rows had other values.
    """

    name: str
    kind: str = "number"
    categories: tuple[str, ...] = ()
    fill: float | None = None
    usual: float | None = None
    spelling: str = ISO
    zone: str | None = None
    parts: tuple[str, ...] = ()
    statistics: tuple[float, ...] = ()
    letters: str = ""
    is_cut: bool = False
    sign: str | None = None

    @cached_property
    def places(self) -> dict[str | None, int]:
        """The row of each value in the table of statistics, and of a gap."""
        places: dict[str | None, int] = {text: place for place, text in enumerate(self.categories)}
        return {**places, None: len(places)}

    @cached_property
    def table(self) -> Float64:
        return np.reshape(self.statistics, (len(self.categories) + 2, -1))

    @property
    def is_plain(self) -> bool:
        """Whether these are numbers as they are."""
        is_bare = self.fill is None and self.sign is None and not self.parts
        return self.kind == "number" and is_bare

    @property
    def feature_names(self) -> list[str]:
        letters = [f"letters {i}" for i in range(N_DIRECTIONS if self.letters else 0)]
        statistics = [f"{self.name}: {part}" for part in (*self.parts, *letters)]
        if self.kind == "date":
            names = feature_names(self.name, self.parts)
        elif self.kind == "category":
            names = [f"{self.name}={value}" for value in self.categories]
        else:
            names = statistics if self.kind == "statistics" else [self.name, *statistics]
        return [*names, *([] if self.fill is None else [f"{self.name} is missing"])]

    def describe(self) -> str:
        kinds = {
            "number": "a number",
            "flag": "true or false, as 1 or 0",
            "category": counted(
                len(self.categories), "category, one column", "categories, a column each"
            ),
            "date": f"a date: {', '.join(['seconds since 1970', *self.parts])}",
            "statistics": self._describe_statistics(),
        }
        if self.kind == "number" and self.parts:
            kinds["number"] += f", and of {self._describe_statistics()}"
        if self.sign is not None:
            kinds["number"] += f", written with {self.written_with}"
        if self.fill is None:
            return kinds[self.kind]
        filled = "zeros" if self.kind == "category" else f"{self.fill:g}"
        if self.kind == "statistics":
            filled = "a value of their own"
        if self.kind == "date":
            filled = f"{np.datetime64(round(self.fill), 's')}"
        return f"{kinds[self.kind]}; missing values become {filled}, flagged by an added column"

    @property
    def written_with(self) -> str:
        sign = self.sign or ""
        words = ["decimal commas"] * sign.startswith(COMMA) + [sign.removeprefix(COMMA)]
        return " and ".join(filter(None, words)) or "thousands apart"

    def _describe_statistics(self) -> str:
        letters = f"{N_DIRECTIONS} directions of the pieces that its values share"
        if not self.parts:
            return f"text: {letters}"
        also = f"; {letters}" if self.letters else ""
        values = counted(len(self.categories), "value", "values")
        return f"{values}: {', '.join(self.parts)} of each{also}"


@dataclass
class UnseenCounts:
    """How many missing and unknown values queries have in columns whose training rows had none."""

    gaps: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def warn(self) -> None:
        if self.gaps:
            counts = listed([f"{n:,} in {name!r}" for name, n in self.gaps.items()])
            warn_user(
                f"Missing values where training rows had none: {counts}. Numbers count as the "
                "median of the training rows, categories and booleans as 0 in all their "
                "columns, statistics as the mean of all rows.",
                UserWarning,
            )
        if self.unknown:
            names = [f"{n:,} in {name!r} ({self.first[name]})" for name, n in self.unknown.items()]
            warn_user(
                f"Values that no training row had: {listed(names)}. They count as no category; "
                "in columns of statistics, as the average row. To refuse them, pass "
                'unknown="error" to fit, or --unknown error.',
                UserWarning,
            )


@dataclass(frozen=True)
class TableEncoding:
    """The encoding of a table's columns as features, in order, in training and in queries.

    With `unknown` "zero" a category that no training row had becomes 0 in all columns of its
    feature.
    """

    columns: tuple[ColumnEncoding, ...]
    label: str | None = None
    unknown: Unknown = "zero"
    dtype: str = "float64"
    weight: str | None = None
    has_header: bool = True
    # Of the fit alone: no model keeps it.
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def feature_names(self) -> list[str]:
        return [name for column in self.columns for name in column.feature_names]

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def to_json(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.compare}
        values["columns"] = [_column_to_json(column) for column in self.columns]
        usual = {"weight": None, "has_header": not _are_places(values)}
        return {key: value for key, value in values.items() if value != usual.get(key, ...)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        columns = tuple(
            ColumnEncoding(
                **{**column, **{k: tuple(v) for k, v in column.items() if isinstance(v, list)}}
            )
            for column in values["columns"]
        )
        has_header = not _are_places(values)
        return cls(**{"has_header": has_header, **values, "columns": columns})

    def describe(self) -> list[str]:
        """Return the encoding in words, a line per column; plain numbers share one line."""
        plain = [column.name for column in self.columns if column.is_plain]
        lines = [] if self.label is None else [f"label: {self.label}"]
        lines += [] if self.weight is None else [f"weights: {self.weight}"]
        if plain:
            n = counted(len(plain), "number as it is", "numbers as they are")
            lines.append(f"{n}: {listed(plain)}")
        others = [c for c in self.columns if c.name not in set(plain)]
        lines += [f"{column.name}: {column.describe()}" for column in others]
        return [*lines, *self.notes]

    def check_columns(self, names: list[str]) -> None:
        """Refuse a table that lacks a column; the order of columns is free."""
        lacking = [name for name in self.column_names if name not in set(names)]
        if lacking:
            raise DataError(
                f"The table has no column {listed([*map(repr, lacking)])}, which the model was "
                f"trained on; its columns are {listed(names)}. Pass tables with the columns of the "
                "training table, in any order."
            )

    def encode(
        self, batch: Any, first_row: int, news: UnseenCounts, cross_fit: CrossFit | None = None
    ) -> AnyArray:
        """Return the features (m, d) of one batch; DataError names column and row.

        What no training row had is counted in ``news``; training rows have their ``cross_fit``.
        """
        X = np.zeros((batch.num_rows, len(self.feature_names)), self.dtype)
        start = 0
        for column in self.columns:
            stop = start + len(column.feature_names)
            values = without_blanks(column_of(batch, column.name))
            self._fill(X[:, start:stop], column, values, first_row, news, cross_fit)
            start = stop
        return X

    def _fill(
        self,
        out: AnyArray,
        column: ColumnEncoding,
        values: Any,
        first_row: int,
        news: UnseenCounts,
        cross_fit: CrossFit | None,
    ) -> None:
        why = refused_type(values.type)
        if why is not None:
            raise DataError(
                f"Column {column.name!r} holds {why}, from row {first_row} on. Write it as in the "
                "training table."
            )
        if column.kind == "number":
            bare, trained = values, "numbers"
            if column.sign is not None:
                bare, trained = unsigned(values, column.sign), f"numbers with {column.written_with}"
            numbers = as_numbers(bare, column.name, first_row, original=values, trained=trained)
            missing = np.isnan(numbers)
            out[:, 0] = np.where(missing, column.fill or column.usual or 0.0, numbers)
            if column.parts:
                distinct = DistinctValues.of_numbers(numbers)
                self._fill_statistics(out[:, 1:], column, distinct, first_row, cross_fit)
        elif column.kind == "date":
            dates = read_dates(values, column.spelling, column.zone)
            if dates is None:
                raise not_a_date(column.name, values, first_row, column.spelling)
            features, missing = features_of(dates, column.parts, column.fill or column.usual)
            out[:, : features.shape[1]] = features
        elif column.kind == "statistics":
            distinct, others = DistinctValues.of(values), len(column.categories) + 1
            places = self._fill_statistics(out, column, distinct, first_row, cross_fit)
            missing = places == others - 1
            if column.parts and cross_fit is None and not column.is_cut:
                self._note_unseen(column, values, places == others, first_row, news)
        else:
            codes, missing = self._codes(column, values, first_row, news)
            if column.kind == "flag":
                out[:, 0] = codes > 0
            else:
                known = np.flatnonzero(codes >= 0)
                out[known, codes[known]] = 1
        if column.fill is not None:
            out[:, -1] = missing
        elif missing.any() and column.usual is None:
            row = first_row + int(np.argmax(missing))
            raise DataError(
                f"Column {column.name!r} has a missing value in row {row} (the first is 0), but "
                'had none in training. Fill it, remove the row, or train with missing="auto" '
                "(--missing auto)."
            )
        elif missing.any():
            news.gaps[column.name] += int(missing.sum())

    def _fill_statistics(
        self,
        out: AnyArray,
        column: ColumnEncoding,
        distinct: DistinctValues,
        first_row: int,
        cross_fit: CrossFit | None,
    ) -> Int64:
        """Write statistics and letters of values; return their places in the table."""
        n = len(column.parts)
        places = distinct.at(column.places, len(column.categories) + 1)
        if n:
            of_rows = cross_fit and cross_fit.features(column.name, places, first_row)
            out[:, :n] = column.table[places] if of_rows is None else of_rows
        if column.letters:
            positions = letters_of(column.letters).positions(distinct.texts)
            out[:, n : n + N_DIRECTIONS] = positions[distinct.codes]
        return places

    def _codes(
        self, column: ColumnEncoding, values: Any, first_row: int, news: UnseenCounts
    ) -> tuple[Int64, Mask]:
        """Return the index of each value's category, -1 if it has none; and the missing values."""
        compute = compute_module()
        text = as_text(values)
        text = compute.utf8_lower(text) if column.kind == "flag" else text
        known = FLAGS if column.kind == "flag" else column.categories
        missing = np.asarray(text.is_null())
        categories = import_arrow().array(list(known), text.type)
        # A whole number is one category, whether pandas wrote 1 or 1.0.
        places = compute.coalesce(
            compute.index_in(text, value_set=categories),
            compute.index_in(whole_spelled(text), value_set=whole_spelled(categories)),
        )
        codes: Int64 = np.asarray(compute.fill_null(places, -1)).astype(np.int64)
        unseen = (codes < 0) & ~missing
        self._note_unseen(column, text, unseen, first_row, news)
        return codes, missing

    def _note_unseen(
        self, column: ColumnEncoding, values: Any, unseen: Mask, first_row: int, news: UnseenCounts
    ) -> None:
        """Count values that no training row had, or refuse them."""
        if not unseen.any():
            return
        row = int(np.argmax(unseen))
        first = f"{values[row].as_py()!r} in row {first_row + row} (the first is 0)"
        if self.unknown == "error":
            known = FLAGS if column.kind == "flag" else column.categories
            raise DataError(
                f"Column {column.name!r} holds {first}, which no training row had; the known ones "
                f"are {listed(known)}. Correct it, or let unknown categories be zeros: --unknown "
                'zero, or fit(..., unknown="zero").'
            )
        news.unknown[column.name] += int(unseen.sum())
        news.first.setdefault(column.name, first)


def _are_places(values: dict[str, Any]) -> bool:
    """Whether all names of an encoding, as JSON values, may be the numbers of columns."""
    names = [*(column["name"] for column in values["columns"]), values["label"] or "0"]
    return all(map(str.isdecimal, names))


def _column_to_json(column: ColumnEncoding) -> dict[str, Any]:
    """Return one column as JSON values, without values that are the defaults."""
    default = ColumnEncoding(column.name, column.kind)
    return {
        f.name: getattr(column, f.name)
        for f in fields(column)
        if f.name in ("name", "kind") or getattr(column, f.name) != getattr(default, f.name)
    }
