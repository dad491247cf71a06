"""Class probabilities, by maps from scores that are fitted to held-out rows.

Source: Platt 1999, with the formula of Lin, Lin, Weng 2007 (`daskls.solvers.evaluate`); isotonic
regression after Zadrozny, Elkan 2002, who normalize one-vs-rest maps.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from daskls.records import AnyArray, Codes, Float64, Mask
from daskls.solvers.evaluate import fit_sigmoid, sigmoid, total
from daskls.store.artifact import Artifact
from daskls.store.caches import cached
from daskls.store.errors import damaged
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

# The parameters of one map: those of a sigmoid, or knots and values.
Fitted = TypeVar("Fitted", tuple[float, float], tuple[Float64, Float64])
# The part of a store that keeps the maps.
CALIBRATION = "calibration"
# Rows that a class needs for an isotonic map of its own: with fewer, the map fits noise.
LEAST_STEPS = 1000
# The smallest probability that a value is read as: closer to 0 its error dominates.
LEAST_ODDS = 0.02
# Maps of log odds are taken only if they lower the log loss by this much: on few rows they win by
# chance. On 18 data sets any value from 2 to 8 worked.
LEAST_GAIN = 2.0


class ScoreMaps(ABC):
    """Maps from scores to probabilities: one per class, or a single one for two classes.

    `of_margins`: maps of several classes take margins instead of scores; `of_odds`: log odds.
    """

    kind: ClassVar[str]
    of_margins: bool
    of_odds: bool

    @abstractmethod
    def of(self, column: int, scores: Float64) -> Float64:
        """Return the probabilities, (m,), of one column of scores."""

    @abstractmethod
    def arrays(self) -> dict[str, AnyArray]:
        """Return the arrays to store."""


@dataclass(frozen=True, eq=False)
class Sigmoids(ScoreMaps):
    """Platt's sigmoids, 1 / (1 + exp(a f + b))."""

    a: Float64
    b: Float64
    of_margins: bool = False
    of_odds: bool = False

    kind = "sigmoid"

    def of(self, column: int, scores: Float64) -> Float64:
        return sigmoid(scores, self.a[column], self.b[column])

    def arrays(self) -> dict[str, AnyArray]:
        return {"a": self.a, "b": self.b}


@dataclass(frozen=True, eq=False)
class Isotonics(ScoreMaps):
    """Isotonic regressions, linear between knots, one after the other from ``ptr`` on."""

    knots: Float64
    values: Float64
    ptr: AnyArray
    of_margins: bool = False
    of_odds: bool = False

    kind = "isotonic"

    def of(self, column: int, scores: Float64) -> Float64:
        span = slice(self.ptr[column], self.ptr[column + 1])
        mapped: Float64 = np.interp(scores, self.knots[span], self.values[span])
        return mapped

    def arrays(self) -> dict[str, AnyArray]:
        return {"knots": self.knots, "values": self.values, "ptr": self.ptr}


def fit_maps(
    kind: str,
    scores: Float64,
    codes: Codes,
    weights: Float64,
    n_classes: int,
    *,
    of_margins: bool | None = None,
    of_odds: bool | None = False,
    least_own: int | None = None,
) -> ScoreMaps:
    """Fit a map for each class, or a single one for two classes, to held-out rows.

    Votes can be told apart by their margins only; least-squares values are nearly probabilities
    themselves. With more than two classes, maps take margins, if None whichever gives these rows
    the higher likelihood; log odds, if None where these raise it by `LEAST_GAIN`. Classes of fewer
    than ``least_own`` rows share one map.
    """
    if of_odds is None or (of_margins is None and n_classes > 2):
        args = kind, scores, codes, weights, n_classes
        each = [
            fit_maps(*args, of_margins=margins, of_odds=odds, least_own=least_own)
            for margins in _choices(of_margins if n_classes > 2 else False)
            for odds in _choices(of_odds)
        ]
        return min(each, key=lambda maps: _log_loss(maps, scores, codes, weights))
    form = bool(of_margins), of_odds
    columns = _columns(scores, *form)
    wanted = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    positive: Mask = codes[:, None] == wanted
    if kind == "sigmoid":
        pairs = _own_or_shared(fit_sigmoid, columns, positive, weights, least_own or 0)
        a, b = np.array(pairs, np.float64).T.copy()
        return Sigmoids(a, b, *form)
    steps = _own_or_shared(_steps, columns, positive, weights, least_own or LEAST_STEPS)
    knots, values = zip(*steps, strict=True)
    ptr = np.cumsum([0, *map(len, knots)]).astype(np.int64)
    return Isotonics(np.concatenate(knots), np.concatenate(values), ptr, *form)


def _log_loss(maps: ScoreMaps, scores: Float64, codes: Codes, weights: Float64) -> float:
    of_classes = probabilities(maps, scores)
    of_label = np.take_along_axis(of_classes, codes[:, None].astype(np.int64), axis=1)[:, 0]
    # A probability of 0 would make the loss infinite.
    loss = -total(weights * np.log(np.maximum(of_label, np.finfo(np.float64).tiny)))
    return loss + LEAST_GAIN * maps.of_odds


def _choices(value: bool | None) -> tuple[bool, ...]:
    return (False, True) if value is None else (value,)


def _columns(scores: Float64, of_margins: bool, of_odds: bool) -> Float64:
    if of_odds:
        scores = log_odds(scores)
    if scores.ndim == 1:
        return scores[:, None]
    return margins(scores) if of_margins else scores


def log_odds(values: Float64) -> Float64:
    """Return the log odds of values in [-1, 1], as least squares estimates probabilities.

    Near +-1 what is left is mostly error: probabilities are clipped at `LEAST_ODDS` from 0 and 1.
    """
    p = np.clip((1.0 + values) / 2.0, LEAST_ODDS, 1.0 - LEAST_ODDS)
    odds: Float64 = np.log(p / (1.0 - p))
    return odds


def margins(scores: Float64) -> Float64:
    """Return the difference of each class's score to the best of the others, (m, k)."""
    if not len(scores):
        return scores
    best = scores.argmax(axis=1)[:, None]
    others = scores.copy()
    np.put_along_axis(others, best, -np.inf, axis=1)
    margin = scores - np.take_along_axis(scores, best, axis=1)
    second = np.take_along_axis(scores, best, axis=1) - others.max(axis=1, keepdims=True)
    np.put_along_axis(margin, best, second, axis=1)
    return margin


def _own_or_shared(
    fit: Callable[[Float64, Mask, Float64], Fitted],
    columns: Float64,
    positive: Mask,
    weights: Float64,
    least_own: int,
) -> list[Fitted]:
    """Fit a map for each class with at least ``least_own`` rows, and one that all others share."""
    shared = (positive.sum(axis=0) < least_own) & (columns.shape[1] > 1)
    common: Fitted | None = None
    if shared.any():
        of_all = np.repeat(weights, shared.sum())
        common = fit(columns[:, shared].ravel(), positive[:, shared].ravel(), of_all)
    return [
        common if common and is_shared else fit(column, hits, weights)
        for column, hits, is_shared in zip(columns.T, positive.T, shared, strict=True)
    ]


def _steps(scores: Float64, positive: Mask, weights: Float64) -> tuple[Float64, Float64]:
    # Imported here, as a process that only predicts does not need it.
    from sklearn.isotonic import IsotonicRegression

    # As in Platt's targets, a finite number of rows never proves certainty.
    least = 1.0 / (float(weights.sum()) + 2.0)
    regression = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(scores, positive, weights)
    return regression.X_thresholds_.astype(np.float64), regression.y_thresholds_.astype(np.float64)


def write_maps(root: Root, maps: ScoreMaps, counts: dict[str, int]) -> None:
    form = {"kind": maps.kind, "of_margins": maps.of_margins, "of_odds": maps.of_odds}
    root.write(CALIBRATION, maps.arrays(), {**form, **counts})


def read_maps(part: Artifact) -> ScoreMaps:
    kind = part.attrs.get("kind")
    form = bool(part.attrs.get("of_margins")), bool(part.attrs.get("of_odds"))
    if kind == Sigmoids.kind:
        a = part.read("a", shape=(None,), kind="f")
        return Sigmoids(a, part.read("b", shape=(len(a),), kind="f"), *form)
    if kind == Isotonics.kind:
        knots = part.read("knots", shape=(None,), kind="f")
        values = part.read("values", shape=(len(knots),), kind="f")
        ptr = part.read("ptr", shape=(None,), kind="i")
        return Isotonics(knots, values, ptr, *form)
    raise damaged(part.where(), f"maps of kind {kind!r}")


@cached(maxsize=8)
def maps_of(reader: ModelReader) -> ScoreMaps:
    """Read once; DamageError where they are missing or damaged."""
    part = reader.root.find(CALIBRATION)
    if part is None:
        raise damaged(
            reader.root.where(CALIBRATION), "the model lacks its calibration of probabilities"
        )
    return read_maps(part)


def probabilities(maps: ScoreMaps, scores: Float64) -> Float64:
    """Return the probability of each class, (m, k); each row sums to 1.

    >>> maps = Sigmoids(np.array([-1.0]), np.array([0.0]))
    >>> probabilities(maps, np.array([0.0, 40.0])).round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    if scores.ndim == 1:
        second = maps.of(0, _columns(scores, maps.of_margins, maps.of_odds)[:, 0])
        return np.stack([1.0 - second, second], axis=1)
    columns = _columns(scores, maps.of_margins, maps.of_odds)
    return normalized(np.stack([maps.of(c, column) for c, column in enumerate(columns.T)], axis=1))


def normalized(values: Float64) -> Float64:
    """Return rows (m, k) divided by their sums; classes are equally likely where all are 0."""
    total = values.sum(axis=1, keepdims=True)
    divided = np.full_like(values, 1.0 / values.shape[1])
    np.divide(values, total, out=divided, where=total > 0)
    return divided


def shares(scores: Float64) -> Float64:
    """Return vote shares as probabilities; for two classes they come from the difference."""
    if scores.ndim == 2:
        return scores
    second = (1.0 + scores) / 2.0
    return np.stack([1.0 - second, second], axis=1)
