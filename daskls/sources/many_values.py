"""The second pass over a table: columns of many values, read with the label.

Each becomes statistics of its targets, letters, or both, as held-out rows of a sample decide; text
that names each row becomes letters, or is left out. A number of which few values are common, as a
gain that most people have none of, may get statistics of its values beside it.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from daskls.blas import one_blas_thread
from daskls.errors import listed, warn_user
from daskls.records import AnyArray, Float64, Int64, Keys
from daskls.sources.arrow import as_numbers, as_text, column_of, import_arrow
from daskls.sources.base import TableSource
from daskls.sources.labels import raw_labels
from daskls.sources.letters import N_DIRECTIONS, LetterFeatures
from daskls.sources.signs import without_blanks
from daskls.sources.statistics import (
    N_FOLDS,
    DistinctValues,
    Statistics,
    Targets,
    TargetSums,
    keys_and_folds,
    parts_of,
)

# Rows on which the features of a column are compared.
SAMPLED_ROWS = 8192
# Further features must explain this share of what is left.
LEAST_SHARE = 0.01
# The weight of a ridge penalty, for features of variance 1.
PENALTY = 1.0
# Steps of a number, among its different values, that its statistics must do better than.
N_STEPS = 32
# Columns of the sample: of the rows, and of each column of text.
FOLD_OF_ROW, NUMBERS_OF_ROW = 0, 1


class RowSample:
    """The rows of least keys, which do not depend on how rows are dealt to blocks."""

    def __init__(self) -> None:
        self.keys: Keys = np.empty(0, np.uint64)
        self.columns: dict[Hashable, AnyArray] = {}

    def add(self, keys: Keys, columns: Mapping[Hashable, AnyArray]) -> None:
        near = np.ones(len(keys), bool)
        if len(self.keys) == SAMPLED_ROWS:
            near = keys < self.keys.max()
        keys = np.concatenate([self.keys, keys[near]])
        least = np.argsort(keys, kind="stable")[:SAMPLED_ROWS]
        for name, values in columns.items():
            held = self.columns.get(name, values[:0])
            self.columns[name] = np.concatenate([held, values[near]])[least]
        self.keys = keys[least]


class ManyValues:
    """Sums of targets by value, and a sample of rows, of several columns."""

    def __init__(
        self, texts: Sequence[str], numbers: Sequence[str], seed: int, *, with_sums: bool
    ) -> None:
        self.numbers = frozenset(numbers if with_sums else ())
        self.names, self.seed, self.with_sums = [*texts, *sorted(self.numbers)], seed, with_sums
        self.sums: dict[str, TargetSums] = {}
        self._sample = RowSample()

    def read(
        self, source: TableSource, label: str | AnyArray, targets: Targets, weight: str | None
    ) -> None:
        """Read the columns with the label, a column or an array; rows of weight 0 do not count."""
        self.sums = {name: TargetSums(targets, len(self.names)) for name in self.names}
        row, extra = 0, [name for name in (label, weight) if isinstance(name, str)]
        for batch in source.batches([*self.sums, *extra]):
            keys, folds = keys_and_folds(row, batch.num_rows, self.seed)
            raw = (
                raw_labels(column_of(batch, label), source)
                if isinstance(label, str)
                else label[row : row + batch.num_rows]
            )
            numbers = targets.to_numbers(raw)
            counted = np.ones(batch.num_rows, bool)
            if weight is not None:
                counted = as_numbers(column_of(batch, weight), weight, row) > 0
            folds, numbers = folds[counted], numbers[counted]
            parts = parts_of(numbers)
            sampled: dict[Hashable, AnyArray] = {FOLD_OF_ROW: folds, NUMBERS_OF_ROW: numbers}
            for name, sums in self.sums.items():
                values = without_blanks(column_of(batch, name))
                if name in self.numbers:
                    distinct = DistinctValues.of_numbers(as_numbers(values, name, row)[counted])
                else:
                    distinct = DistinctValues.of(
                        as_text(values).filter(import_arrow().array(counted))
                    )
                sums.add(distinct, folds, parts)
                sampled[name, "text"] = np.array(distinct.texts, object)[distinct.codes]
                sampled[name, "key"] = np.array(distinct.keys, object)[distinct.codes]
            self._sample.add(keys[counted], sampled)
            row += batch.num_rows

    @property
    def texts(self) -> dict[str, Sequence[str]]:
        """The texts of the sample, by column."""
        rows = {name: self._sample.columns[name, "text"] for name in self.sums}
        return {name: [*filter(None, rows[name])] for name in {*rows} - self.numbers}

    def finish(self, where: str) -> dict[str, Statistics]:
        """Return the statistics of columns; those that only name rows are left out, and told."""
        chosen = {name: self._choose(name) for name in self.sums}
        names = [name for name, item in chosen.items() if item is None and name not in self.numbers]
        if names:
            left_out = listed([*map(repr, names)])
            why = "most rows have a value of their own, which tells nothing of others"
            if not self.with_sums:
                why = "max_false_alarm allows no statistics of labels, and letters tell nothing"
            warn_user(f"{where}: left out {left_out}: {why}.", UserWarning)
        return {name: item for name, item in chosen.items() if item is not None}

    def _choose(self, name: str) -> Statistics | None:
        """Return the features that explain most on held-out rows of the sample."""
        columns = self._sample.columns
        folds, numbers = columns[FOLD_OF_ROW], columns[NUMBERS_OF_ROW]
        texts = columns[name, "text"].tolist()
        options: list[tuple[Statistics | None, Float64]] = []
        if name in self.numbers:
            options.append((None, _steps(np.array(texts, np.float64))))
        elif self.sums[name].names_rows or not self.with_sums:
            options.append((None, np.empty((len(texts), 0))))
        if self.with_sums:
            statistics = self.sums[name].finish()
            codes = {key: code for code, key in enumerate(statistics.values)}
            places = [-2 if key is None else codes.get(key, -1) for key in columns[name, "key"]]
            options.append((statistics, statistics.of_others[folds, places]))
        distinct = sorted({text for text in texts if text is not None})
        if len(distinct) > N_DIRECTIONS and name not in self.numbers:
            letters = LetterFeatures.fit(distinct, self.seed)
            positions = letters.positions(texts)
            options.append((Statistics.of_letters(letters), positions))
            if self.with_sums:
                both = np.hstack([options[-2][1], positions])
                options.append((replace(statistics, letters=letters), both))
        chosen, least = options[0][0], _error(options[0][1], numbers, folds)
        for option, X in options[1:]:
            error = _error(X, numbers, folds)
            if error < (1 - LEAST_SHARE) * least:
                chosen, least = option, error
        return chosen


def _steps(numbers: Float64) -> Float64:
    """Return numbers as features of which each says whether they reach a step."""
    known = numbers[~np.isnan(numbers)]
    places = np.linspace(0, 1, N_STEPS + 1)[1:]
    steps: Float64 = np.empty(0)
    if len(known):
        steps = np.unique(np.quantile(np.unique(known), places, method="lower"))
    return np.column_stack([np.isnan(numbers), *(numbers >= step for step in steps)]).astype(float)


def _error(X: Float64, numbers: Float64, folds: Int64) -> float:
    """Return the squared error of ridge regression on held-out folds, over the variance."""
    # First to [-1, 1], as squares may overflow.
    X = X / np.maximum(np.abs(X).max(axis=0, initial=0), np.finfo(np.float64).tiny)
    spread = X.std(axis=0)
    X = np.hstack([(X - X.mean(axis=0)) / np.where(spread > 0, spread, 1), np.ones((len(X), 1))])
    error = np.zeros(numbers.shape[1])
    with one_blas_thread():
        for fold in range(N_FOLDS):
            in_fold, others = folds == fold, folds != fold
            products = X[others].T @ X[others] + PENALTY * np.eye(X.shape[1])
            weights = np.linalg.solve(products, X[others].T @ numbers[others])
            error += ((numbers[in_fold] - X[in_fold] @ weights) ** 2).sum(axis=0)
    variance = numbers.var(axis=0)
    return float((error / np.where(variance > 0, variance, 1)).sum())
