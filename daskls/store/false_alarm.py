"""The bound on false alarms of a finished model: its threshold, and the scores it is one of."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskls.records import Codes, FalseAlarmSpec, Float64
from daskls.store.checks import check_codes
from daskls.store.groups import Group
from daskls.store.guard import damaged, malformed_is_damage
from daskls.store.layout import Root
from daskls.store.reserved import reserved_group

__all__ = ["FALSE_ALARM", "FalseAlarmBound", "read_bound", "read_reserved", "write_bound"]

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


def _group(root: Root) -> Group | None:
    """Return what a finished model keeps of its bound; None of a model without one."""
    return reserved_group(root, FALSE_ALARM, "threshold yet, which max_false_alarm")


def read_bound(root: Root) -> FalseAlarmBound | None:
    """Return the bound of a finished model; None of a model without one.

    Raises
    ------
    StoreError : the fit was stopped before its threshold
    DamageError
    """
    group = _group(root)
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
    group = _group(root)
    if group is None:
        return None
    scores = group.read("scores", shape=(None,), kind="f")
    codes = group.read("codes", shape=scores.shape, kind="i")
    check_codes(group.where("codes"), "codes", codes, 2)
    return scores, codes
