"""What a finished model made of the rows that its fit reserved, in a group of its own.

The bound on false alarms of a finished model: its threshold, and the scores it is one of.

The intervals of a finished model: their half width, what scales it, and what it was taken of.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.records import Codes, FalseAlarmSpec, Float64, IntervalSpec
from daskls.store.checks import check_codes
from daskls.store.files import damaged, malformed_is_damage
from daskls.store.groups import Group
from daskls.store.layout import Root


def reserved_group(root: Root, name: str, lacks: str) -> Group | None:
    """Return what a finished model keeps of its reserved rows; None of a model without such.

    Parameters
    ----------
    root : Root
    name : str. Of the group, and of what the model says of itself.
    lacks : str. What a model without the group does not have yet, and which parameter needs it.

    Raises
    ------
    StoreError : the fit was stopped before it
    """
    if name not in root.attributes["meta"]:
        return None
    group = root.find_group(name)
    if group is None:
        raise StoreError(
            f"The model at {root.where()} has no {lacks} needs. Call "
            f"fit again with store={root.where()!r} and the same data and parameters: nothing else "
            "runs."
        )
    return group


# Of a store; and in what a model says of itself, where it has a bound.
FALSE_ALARM = FalseAlarmSpec.name


@dataclass(frozen=True)
class FalseAlarmBound:
    """The threshold of a classifier of two classes, and what it was taken from.

    Attributes
    ----------
    rate : float. What ``max_false_alarm`` was: the share of ``classes_[0]`` that may be predicted
        as ``classes_[1]``.
    delta : float. The probability that more are: the rank's, at most what was asked for.
    n_negatives : int. Rows of ``classes_[0]`` that were held out of everything.
    n_positives : int. Rows of ``classes_[1]`` that were; no threshold is made of them.
    rank : int. Which of the negatives' scores the threshold is; 1 is the smallest.
    threshold : float. What is subtracted from decision values.
    """

    rate: float
    delta: float
    n_negatives: int
    n_positives: int
    rank: int
    threshold: float

    def told(self, classes: Sequence[Any]) -> list[tuple[str, str]]:
        """Return the bound and how its threshold came to be, as names and values for people.

        >>> bound = FalseAlarmBound(0.1, 0.037, 637, 9, 587, 0.1806)
        >>> print(*(f"{name}: {value}" for name, value in bound.told(["a", "b"])), sep=chr(10))
        false alarms: at most 10 % of a as b, but for 3.7 % of fits
        threshold: 0.1806, score 587 of 637 rows of a held out
        """
        of, named = map(str, classes)
        rates = f"at most {100 * self.rate:.3g} % of {of} as {named}, "
        rates += f"but for {100 * self.delta:.2g} % of fits"
        rank = f"score {self.rank:,} of {self.n_negatives:,} rows of {of} held out"
        return [("false alarms", rates), ("threshold", f"{self.threshold:.4g}, {rank}")]


def write_bound(root: Root, bound: FalseAlarmBound, scores: Float64, codes: Codes) -> None:
    """Write a bound and the scores of reserved rows; the group appears whole."""
    root.write_group(FALSE_ALARM, {"scores": scores, "codes": codes}, asdict(bound))


def _bound_group(root: Root) -> Group | None:
    """Return what a finished model keeps of its bound; None of a model without one."""
    return reserved_group(root, FALSE_ALARM, "threshold yet, which max_false_alarm")


def read_bound(root: Root) -> FalseAlarmBound | None:
    """Return the bound of a finished model; None of a model without one.

    Raises
    ------
    StoreError : the fit was stopped before its threshold
    DamageError
    """
    group = _bound_group(root)
    if group is None:
        return None
    with malformed_is_damage(group.where()):
        kept = group.attrs
        bound = FalseAlarmBound(
            rate=float(kept["rate"]),
            delta=float(kept["delta"]),
            n_negatives=int(kept["n_negatives"]),
            n_positives=int(kept["n_positives"]),
            rank=int(kept["rank"]),
            threshold=float(kept["threshold"]),
        )
    if not 1 <= bound.rank <= bound.n_negatives or not np.isfinite(bound.threshold):
        raise damaged(group.where(), "its rank or its threshold cannot be")
    return bound


def read_reserved(root: Root) -> tuple[Float64, Codes] | None:
    """Return the scores and the classes of reserved rows; None of a model without a bound.

    Raises
    ------
    StoreError : the fit was stopped before its threshold
    DamageError
    """
    group = _bound_group(root)
    if group is None:
        return None
    scores = group.read("scores", shape=(None,), kind="f")
    codes = group.read("codes", shape=scores.shape, kind="i")
    check_codes(group.where("codes"), "codes", codes, 2)
    return scores, codes


# Of a store; and in what a model says of itself, where it has intervals.
INTERVAL = IntervalSpec.name


@dataclass(frozen=True)
class CoveringInterval:
    """The interval around each answer of a regressor, and what it was taken from.

    Attributes
    ----------
    coverage : float. What ``interval`` was: the probability that y of one more row lies within.
    n_rows : int. Rows that were held out of everything.
    rank : int. Which of their residuals the half width is; 1 is the smallest.
    half_widths : tuple of float, in the units of y, one a column. Of a cell whose residuals are of
        the size of all; other cells' are in proportion.
    """

    coverage: float
    n_rows: int
    rank: int
    half_widths: tuple[float, ...]

    def told(self) -> list[tuple[str, str]]:
        """Return the interval and how it came to be, as names and values for people.

        >>> CoveringInterval(0.9, 1000, 901, (0.25,)).told()
        [('intervals', 'of 90 % of y, +- 0.25 in the usual cell, rank 901 of 1,000 rows held out')]
        """
        widths = ", ".join(f"{width:.4g}" for width in self.half_widths)
        own = f"of {100 * self.coverage:.3g} % of y, +- {widths} in the usual cell, "
        return [("intervals", f"{own}rank {self.rank:,} of {self.n_rows:,} rows held out")]


def write_interval(
    root: Root, interval: CoveringInterval, sizes: Float64, residuals: Float64
) -> None:
    """Write an interval, the size of each cell and scaled residuals; the group appears whole."""
    root.write_group(INTERVAL, {"sizes": sizes, "residuals": residuals}, asdict(interval))


def _interval_group(root: Root) -> Group | None:
    """Return what a finished model keeps of its intervals; None of a model without such."""
    return reserved_group(root, INTERVAL, "intervals yet, which interval")


def read_interval(root: Root) -> CoveringInterval | None:
    """Return the interval of a finished model; None of a model without one.

    Raises
    ------
    StoreError : the fit was stopped before its intervals
    DamageError
    """
    group = _interval_group(root)
    if group is None:
        return None
    with malformed_is_damage(group.where()):
        kept = group.attrs
        found = CoveringInterval(
            coverage=float(kept["coverage"]),
            n_rows=int(kept["n_rows"]),
            rank=int(kept["rank"]),
            half_widths=tuple(map(float, kept["half_widths"])),
        )
    widths = np.array(found.half_widths)
    is_sound = 1 <= found.rank <= found.n_rows and widths.shape == (root.target.width,)
    if not is_sound or not (np.isfinite(widths) & (widths >= 0)).all():
        raise damaged(group.where(), "its rank or its half widths cannot be")
    return found


def read_sizes(root: Root, n_cells: int) -> Float64:
    """Return the size of residuals in each cell, in units of that of all, float64 (n_cells,).

    Of a model with intervals.

    Raises
    ------
    StoreError, DamageError : as `read_interval`
    """
    group = _interval_group(root)
    assert group is not None
    sizes: Float64 = group.read("sizes", shape=(n_cells,), kind="f")
    if not (sizes > 0).all():
        raise damaged(group.where("sizes"), "a size is not positive")
    return sizes
