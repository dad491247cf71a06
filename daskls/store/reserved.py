"""What a finished model learned from the rows that its fit reserved, each in a part of its own.

A bound on false alarms is a threshold, one of the scores of the reserved rows. Intervals are a half
width, one of their residuals, and the sizes by which cells scale it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.records import Codes, FalseAlarmSpec, Float64, IntervalSpec
from daskls.store.artifact import Artifact
from daskls.store.checks import check_codes
from daskls.store.errors import damaged, malformed_is_damage
from daskls.store.layout import Root

# Keys of the parts, and names of the entries in the root's ``meta`` of models that have them.
FALSE_ALARM, INTERVAL = FalseAlarmSpec.name, IntervalSpec.name
# What a part makes available, and the parameter that needs it.
_PURPOSES = {FALSE_ALARM: ("threshold", "max_false_alarm"), INTERVAL: ("intervals", "interval")}


@dataclass(frozen=True)
class FalseAlarmBound:
    """The threshold of a classifier of two classes, and how it was chosen.

    Attributes
    ----------
    rate : float. The given ``max_false_alarm``: the share of ``classes_[0]`` that may be predicted
        as ``classes_[1]``.
    delta : float. The probability of a larger share, as the rank gives it: at most the requested
        one.
    n_negatives : int. Reserved rows of ``classes_[0]``.
    n_positives : int. Reserved rows of ``classes_[1]``; the threshold does not depend on them.
    rank : int. Which of the negatives' scores the threshold is; 1 is the smallest.
    threshold : float. Subtracted from decision values.
    """

    rate: float
    delta: float
    n_negatives: int
    n_positives: int
    rank: int
    threshold: float

    def describe(self, classes: Sequence[Any]) -> list[tuple[str, str]]:
        """Return the bound and the origin of its threshold, as (name, text) for people.

        >>> bound = FalseAlarmBound(0.1, 0.037, 637, 9, 587, 0.1806)
        >>> print(*(f"{name}: {value}" for name, value in bound.describe(["a", "b"])), sep=chr(10))
        false alarms: at most 10 % of a predicted as b, except in 3.7 % of fits
        threshold: 0.1806, score 587 of 637 rows of a held out
        """
        of, named = map(str, classes)
        rates = f"at most {100 * self.rate:.3g} % of {of} predicted as {named}, "
        rates += f"except in {100 * self.delta:.2g} % of fits"
        rank = f"score {self.rank:,} of {self.n_negatives:,} rows of {of} held out"
        return [("false alarms", rates), ("threshold", f"{self.threshold:.4g}, {rank}")]


@dataclass(frozen=True)
class CoveringInterval:
    """The interval around each prediction of a regressor, and how it was chosen.

    Attributes
    ----------
    coverage : float. The given ``interval``: the probability that it contains y of a new row.
    n_rows : int. Reserved rows.
    rank : int. Which of their residuals the half width is; 1 is the smallest.
    half_widths : tuple of float, one per column of y, in its units. For a cell with residuals of
        the overall size; those of other cells are in proportion.
    """

    coverage: float
    n_rows: int
    rank: int
    half_widths: tuple[float, ...]

    def describe(self) -> list[tuple[str, str]]:
        """Return the interval and its origin, as (name, text) for people.

        >>> CoveringInterval(0.9, 100, 91, (0.25,)).describe()
        [('intervals', 'hold 90 % of y, +- 0.25 in a typical cell, rank 91 of 100 held-out rows')]
        """
        widths = ", ".join(f"{width:.4g}" for width in self.half_widths)
        own = f"hold {100 * self.coverage:.3g} % of y, +- {widths} in a typical cell, "
        return [("intervals", f"{own}rank {self.rank:,} of {self.n_rows:,} held-out rows")]


def _reserved_part(root: Root, name: str) -> Artifact | None:
    """Return a part of reserved rows, or None; StoreError where the fit stopped before it."""
    if name not in root.attributes["meta"]:
        return None
    part = root.find(name)
    if part is None:
        what, parameter = _PURPOSES[name]
        raise StoreError(
            f"The model at {root.where()} has no {what} yet, which {parameter} needs. Call "
            f"fit again with store={root.where()!r} and the same data and parameters: nothing else "
            "runs."
        )
    return part


def write_bound(root: Root, bound: FalseAlarmBound, scores: Float64, codes: Codes) -> None:
    """Write a bound with the scores and codes of the reserved rows; the part appears whole."""
    root.write(FALSE_ALARM, {"scores": scores, "codes": codes}, asdict(bound))


def read_bound(root: Root) -> FalseAlarmBound | None:
    """Return a finished model's bound, or None; StoreError where the fit stopped before it."""
    part = _reserved_part(root, FALSE_ALARM)
    if part is None:
        return None
    with malformed_is_damage(part.where()):
        kept = part.attrs
        bound = FalseAlarmBound(
            rate=float(kept["rate"]),
            delta=float(kept["delta"]),
            n_negatives=int(kept["n_negatives"]),
            n_positives=int(kept["n_positives"]),
            rank=int(kept["rank"]),
            threshold=float(kept["threshold"]),
        )
    if not 1 <= bound.rank <= bound.n_negatives or not np.isfinite(bound.threshold):
        raise damaged(part.where(), "its rank or its threshold is impossible")
    return bound


def read_reserved(root: Root) -> tuple[Float64, Codes] | None:
    """Return the scores and class codes of the reserved rows; None without a bound."""
    part = _reserved_part(root, FALSE_ALARM)
    if part is None:
        return None
    scores = part.read("scores", shape=(None,), kind="f")
    codes = part.read("codes", shape=scores.shape, kind="i")
    check_codes(part.where(), "codes", codes, 2)
    return scores, codes


def write_interval(
    root: Root, interval: CoveringInterval, sizes: Float64, residuals: Float64
) -> None:
    """Write an interval with each cell's size and the scaled residuals; it appears whole."""
    root.write(INTERVAL, {"sizes": sizes, "residuals": residuals}, asdict(interval))


def read_interval(root: Root) -> CoveringInterval | None:
    """Return a finished model's interval, or None; StoreError where the fit stopped before it."""
    part = _reserved_part(root, INTERVAL)
    if part is None:
        return None
    with malformed_is_damage(part.where()):
        kept = part.attrs
        found = CoveringInterval(
            coverage=float(kept["coverage"]),
            n_rows=int(kept["n_rows"]),
            rank=int(kept["rank"]),
            half_widths=tuple(map(float, kept["half_widths"])),
        )
    widths = np.array(found.half_widths)
    is_sound = 1 <= found.rank <= found.n_rows and widths.shape == (root.target.width,)
    if not is_sound or not (np.isfinite(widths) & (widths >= 0)).all():
        raise damaged(part.where(), "its rank or its half widths are impossible")
    return found


def read_sizes(root: Root, n_cells: int) -> Float64:
    """Sizes of residuals in each cell of a model with intervals, in units of the overall size."""
    part = _reserved_part(root, INTERVAL)
    assert part is not None
    sizes: Float64 = part.read("sizes", shape=(n_cells,), kind="f")
    if not (sizes > 0).all():
        raise damaged(part.where(), "a size is not positive")
    return sizes
