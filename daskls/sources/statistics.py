"""Target statistics: a column of many values as the mean target of each value, and its count.

A mean is shrunk to that of all rows by an empirical Bayes weight. A training row gets the means of
the other folds, so that no row sees its own target; a query those of all rows. Sums are of whole
numbers, so that they do not depend on how rows are dealt to blocks.

Sources: Micci-Barreca 2001; the weight is that of scikit-learn's ``TargetEncoder(smooth="auto")``.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from daskls.partition.shuffle import row_keys
from daskls.records import AnyArray, Float64, Int64, Keys, TargetKind
from daskls.seeds import STATISTIC_FOLDS
from daskls.sources.arrow import as_text, compute_module, import_arrow, whole_spelled
from daskls.sources.base import WITH_COMMA, LabelCoder, NumberCoder, RawLabels, reads_as_number
from daskls.sources.dates import MAYBE
from daskls.sources.letters import MOST_LETTERS, LetterFeatures

N_FOLDS = 5
# Values that have means of their own, the most frequent ones: of a column, and of all columns.
MOST_VALUES, MOST_IN_ALL = 10_000, 100_000
# Bytes of a value beside its sums; a longer one is known by its beginning and a hash.
VALUE_NBYTES, LONGEST = 300, 60
# The largest numbers that are averaged in their own units.
MAX_UNITS = 1e17
# Features of a column beside its count.
MOST_TARGETS = 8
# Parts of a number in [-1, 1] are summed in units of 2**-30, and of 2**-60.
RESOLUTION = 2.0**30
# Most bytes of the sums of all columns, as of those that are written while they grow.
SUMS_NBYTES = 128 << 20
# Among numbers values that are none are a mistake if they are fewer than one in so many.
FEW_OTHERS = 20
# A text that may stand for a missing value, as "?".
NO_WORD = re.compile(r"[^\w\s]+")
# A column whose values have fewer rows on average may only name each row.
ROWS_PER_VALUE = 2
COUNT = "log of count"


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets to average, as numbers in [-1, 1]: each class's share, or the target itself."""

    names: tuple[str, ...]
    center: Float64
    scale: Float64
    to_numbers: Callable[[RawLabels], Float64]

    @classmethod
    def of(cls, coder: LabelCoder | NumberCoder) -> Self:
        if isinstance(coder, NumberCoder):
            return cls.of_numbers(np.array([coder.low]), np.array([coder.high]))
        n, codes = len(coder.classes), np.arange(len(coder.classes))
        if n > MOST_TARGETS:
            n_bits = min(MOST_TARGETS, int(n - 1).bit_length())
            shares = (codes[:, None] >> np.arange(n_bits) & 1).astype(np.float64)
            names = tuple(f"bit {i} of the class's number" for i in range(n_bits))
        else:
            # Of two classes one share says all.
            shown = coder.classes[1:] if n == 2 else coder.classes
            shares = np.eye(n)[:, n - len(shown) :]
            names = tuple(f"share of {name}" for name in shown)
        zero, one = np.zeros(len(names)), np.ones(len(names))
        return cls(names, zero, one, lambda raw: shares[coder.encode(raw)])

    @classmethod
    def of_numbers(cls, low: Float64, high: Float64) -> Self:
        """Return targets of these ranges, of which the first ones count."""
        low, high = low[:MOST_TARGETS], high[:MOST_TARGETS]
        center, n = low / 2 + high / 2, len(low)
        # A power of two, so that dividing by it is exact.
        exponents = np.frexp(np.maximum(high - center, center - low))[1]
        scale = 2.0 ** np.clip(exponents, -1000, 1023)
        names = ("mean",) if n == 1 else tuple(f"mean of target {i}" for i in range(n))

        def to_numbers(raw: RawLabels) -> Float64:
            numbers = np.asarray(raw, np.float64)
            numbers = numbers[:, :n] if numbers.ndim > 1 else numbers[:, None]
            scaled: Float64 = (numbers - center) / scale
            return scaled

        # Features are in the units of y where features may be so large.
        if np.abs([low, high]).max() > MAX_UNITS:
            return cls(names, np.zeros(n), np.ones(n), to_numbers)
        return cls(names, center, scale, to_numbers)

    @classmethod
    def of_values(cls, values: AnyArray, kind: TargetKind) -> Self:
        """Return the targets of an array of labels, or of numbers (n,) or (n, t)."""
        if kind == "numbers":
            numbers = values.reshape(len(values), -1).astype(np.float64)
            return cls.of_numbers(numbers.min(axis=0), numbers.max(axis=0))
        classes = np.unique(values).tolist()
        return cls.of(LabelCoder(classes, {label: code for code, label in enumerate(classes)}))


@dataclass(frozen=True, eq=False)
class Statistics:
    """The features of a column's values: a row a value, then a gap's, then that of any other.

    ``of_others`` are those of training rows by fold, (N_FOLDS, values + 2, f), counted without
    their own fold. ``letters`` are features besides; of letters alone there are no names. Where
    there `is_cut`, values that training rows had are among the others.
    """

    values: tuple[str, ...]
    names: tuple[str, ...]
    of_all: Float64
    of_others: Float64
    letters: LetterFeatures | None = None
    is_cut: bool = False

    @classmethod
    def of_letters(cls, letters: LetterFeatures) -> Self:
        return cls((), (), np.empty((2, 0)), np.empty((N_FOLDS, 2, 0)), letters)


@dataclass(frozen=True, eq=False)
class CrossFit:
    """The statistics of training rows, of the columns that have some."""

    seed: int
    of_others: dict[str, Float64]

    def features(self, name: str, codes: Int64, first_row: int) -> Float64:
        """Return the features of rows in order, whose values are ``codes``."""
        _, folds = keys_and_folds(first_row, len(codes), self.seed)
        features: Float64 = self.of_others[name][folds, codes]
        return features


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """The different values of rows: their first letters, and the keys that they are known by.

    Those of row i are at ``codes[i]``; a gap is None.
    """

    texts: list[str | None]
    keys: list[str | None]
    codes: Int64

    @classmethod
    def of(cls, values: Any) -> Self:
        """Return the values of an Arrow column, in which 1 and 1.0 are one."""
        coded = as_text(values).dictionary_encode(null_encoding="encode")
        spelled = whole_spelled(coded.dictionary)
        texts = compute_module().utf8_slice_codeunits(spelled, 0, MOST_LETTERS)
        keys = list(map(_key_of, spelled.to_pylist()))
        return cls(texts.to_pylist(), keys, coded.indices.to_numpy().astype(np.int64))

    @classmethod
    def of_numbers(cls, numbers: Float64) -> Self:
        """Return the values of numbers, of which NaN is a gap; each has one spelling."""
        # In float32, as the same numbers may be kept in another file.
        with np.errstate(over="ignore"):
            narrow = numbers.astype(np.float32)
        return cls.of(import_arrow().array(narrow, from_pandas=True))

    def at(self, places: Mapping[str | None, int], others: int) -> Int64:
        """Return the place of each row's value, and ``others`` of values that have none."""
        value_places = [places.get(key, others) for key in self.keys]
        return np.array(value_places, np.int64)[self.codes]


def _key_of(value: str | None) -> str | None:
    if value is None or len(value) <= LONGEST:
        return value
    digest = blake2b(value.encode(), digest_size=8).hexdigest()
    return f"{value[: LONGEST - 20]}... {digest}"


class TargetSums:
    """The number of a column's rows and the sums of their targets, by value and fold."""

    def __init__(self, targets: Targets, n_columns: int) -> None:
        self.targets = targets
        width = 1 + 4 * len(targets.names)
        # Of more values the first ones are counted.
        self.most = SUMS_NBYTES // n_columns // (8 * N_FOLDS * width + VALUE_NBYTES)
        self.most_kept = min(MOST_VALUES, MOST_IN_ALL // n_columns)
        # The place of each value among the sums, None for gaps; place 0 is that of all rows.
        self.places: dict[str | None, int] = {}
        self.is_full = False
        self._sums = np.zeros((1, N_FOLDS, width), np.int64)

    def add(self, values: DistinctValues, folds: Int64, parts: Int64) -> None:
        """Add rows with their ``parts`` from `parts_of`."""
        new = list(dict.fromkeys(key for key in values.keys if key not in self.places))
        room = self.most - len(self.places)
        self.is_full |= len(new) > room
        for key in new[:room]:
            self.places[key] = len(self.places) + 1
        if len(self._sums) <= len(self.places):
            # Most columns have few values; of many the last growth reaches what is planned.
            n_rows = min(2 * len(self.places), self.most) + 1
            grown = np.zeros((n_rows, *self._sums.shape[1:]), np.int64)
            grown[: len(self._sums)] = self._sums
            self._sums = grown
        places = values.at(self.places, 0)
        counted = places > 0
        np.add.at(self._sums, (places[counted], folds[counted]), parts[counted])
        np.add.at(self._sums[0], folds, parts)

    @property
    def names_rows(self) -> bool:
        """Whether values may only name rows, as most have one of their own."""
        places = [place for key, place in self.places.items() if key is not None]
        return int(self._sums[places, :, 0].sum()) < ROWS_PER_VALUE * len(places)

    @property
    def marks(self) -> list[str]:
        """The values that are no numbers, where these may stand for missing ones among numbers."""
        known = (key for key in self.places if key is not None)
        texts = [k for k in known if not reads_as_number(k) and not WITH_COMMA.fullmatch(k)]
        are_few = len(texts) * FEW_OTHERS < len(self.places)
        return texts if are_few or all(map(NO_WORD.fullmatch, texts)) else []

    @property
    def are_dates(self) -> bool:
        """Whether most values look like dates."""
        return 2 * sum(bool(MAYBE.match(value or "")) for value in self.places) > len(self.places)

    def finish(self) -> Statistics:
        counts = self._sums[:, :, 0].sum(axis=1)
        ranked = [value for value in self.places if value is not None]
        # Of equally frequent ones the first.
        ranked.sort(key=lambda value: -counts[self.places[value]])
        is_cut = self.is_full or len(ranked) > self.most_kept
        values = tuple(sorted(ranked[: self.most_kept]))
        gap = self.places.get(None)
        at = [*(self.places[value] for value in values), *([] if gap is None else [gap])]
        sums = self._sums[[0, *at]]
        everyone = sums.sum(axis=1)
        by_fold = [everyone - sums[:, fold] for fold in range(N_FOLDS)]
        has_gap = gap is not None
        return Statistics(
            values,
            (*self.targets.names, COUNT),
            _features(everyone, self.targets, 1.0, has_gap=has_gap),
            np.stack(
                [
                    _features(fold_sums, self.targets, N_FOLDS / (N_FOLDS - 1), has_gap=has_gap)
                    for fold_sums in by_fold
                ]
            ),
            is_cut=is_cut,
        )


def _features(sums: Int64, targets: Targets, times: float, *, has_gap: bool) -> Float64:
    """Return the features of values whose sums are given, those of all rows first."""
    f = len(targets.names)
    n = sums[:, :1].astype(np.float64)
    high, low, square_high, square_low = np.split(sums[:, 1:].astype(np.float64), 4, axis=1)
    total, squares = (
        (high + low / RESOLUTION) / RESOLUTION,
        (square_high + square_low / RESOLUTION) / RESOLUTION,
    )
    known = n > 0
    mean = np.divide(total, n, out=np.zeros_like(total), where=known)
    deviations = np.maximum(squares - n * mean**2, 0)
    variance = deviations[0] / max(n[0, 0], 1)
    evidence = variance * n
    doubt = evidence + np.divide(deviations, n, out=np.zeros_like(total), where=known)
    weight = np.divide(evidence, doubt, out=np.zeros_like(total), where=doubt > 0)
    shrunk = weight * mean + (1 - weight) * mean[0]
    # Rounded, as processors of other makes differ in the last digit.
    count = np.log1p(times * n).round(12)
    features = np.hstack([targets.center + targets.scale * shrunk, count])
    none = np.array([*features[0, :f], 0.0])
    return np.vstack([features[1:], *([] if has_gap else [none]), none])


def parts_of(numbers: Float64) -> Int64:
    """Return a count of 1, and numbers in [-1, 1] and their squares in parts that are whole."""
    both = [numbers * RESOLUTION, numbers**2 * RESOLUTION]
    whole = [np.floor(values) for values in both]
    rest = [np.floor((values - w) * RESOLUTION) for values, w in zip(both, whole, strict=True)]
    columns = [whole[0], rest[0], whole[1], rest[1]]
    return np.hstack([np.ones((len(numbers), 1)), *columns]).astype(np.int64)


def keys_and_folds(first_row: int, n_rows: int, seed: int) -> tuple[Keys, Int64]:
    keys = row_keys(np.arange(first_row, first_row + n_rows), STATISTIC_FOLDS(seed))
    return keys, (keys % np.uint64(N_FOLDS)).astype(np.int64)
