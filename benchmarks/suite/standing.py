"""How contenders stand beside each other: means over the splits that all of them have, ranks.

Records have the fields ``part``, ``set``, ``estimator`` and ``seed``; what was ended has a failure
that begins with TOO_SLOW, and the largest error there is. Other failures are as not measured.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.suite.defaults import LIMIT_S
from benchmarks.suite.journal import TOO_SLOW, Journal, Record
from benchmarks.suite.tables import mean_of, table

__all__ = [
    "Beside", "beside", "board", "common", "done", "error_of", "every", "is_ended", "mean",
    "mean_ranks", "of_field", "paired", "sets", "spread", "wide",
]  # fmt: skip

Splits = Mapping[str, Sequence[Record]]


def sets(journal: Journal, part: str) -> list[str]:
    """Return the sets of a part, those of few rows first."""
    rows = {r["set"]: r["train_rows"] for r in journal.where(part=part)}
    return sorted(rows, key=lambda name: (rows[name], name))


def done(journal: Journal, part: str, name: str, contender: str) -> dict[int, Record]:
    """Return what was measured of a contender on a set, or was ended, by seed."""
    found = journal.where(part=part, set=name, estimator=contender)
    return {r["seed"]: r for r in found if "error" in r or is_ended(r)}


def is_ended(record: Record) -> bool:
    return str(record.get("failure", "")).startswith(TOO_SLOW)


def common(
    journal: Journal, part: str, name: str, contenders: Iterable[str]
) -> dict[str, list[Record]]:
    """Return the records of each contender on the splits that all of them have."""
    found = {c: done(journal, part, name, c) for c in contenders}
    seeds = sorted(set.intersection(*(set(own) for own in found.values())))
    return {c: [own[seed] for seed in seeds] for c, own in found.items()}


def every(journal: Journal, part: str, contenders: Collection[str]) -> dict[str, Splits]:
    """Return for each set of a part what is known of each contender, which may be nothing."""
    return {
        name: {c: list(done(journal, part, name, c).values()) for c in contenders}
        for name in sets(journal, part)
    }


def board(journal: Journal, part: str, contenders: Iterable[str]) -> dict[str, Splits]:
    """Return for each set that all contenders have done their records on it."""
    contenders = list(contenders)
    found = {name: common(journal, part, name, contenders) for name in sets(journal, part)}
    return {name: own for name, own in found.items() if all(own.values())}


def of_field(records: Iterable[Record], field: str, ended: float = np.inf) -> np.ndarray:
    """Return the values of a field, ``ended`` for what was ended."""
    return np.array([r.get(field, ended) for r in records], float)


def mean(records: Iterable[Record], field: str, ended: float = np.inf) -> float:
    """Return the mean of a field, rounded: means of as many wrong rows are equal.

    >>> of = lambda errors: [{"error": error} for error in errors]
    >>> mean(of([0.1, 0.2, 0.3]), "error") == mean(of([0.3, 0.2, 0.1]), "error")
    True
    """
    return round(float(of_field(records, field, ended).mean()), 9)


def mean_ranks(boards: Mapping[str, Splits], field: str = "error") -> dict[str, float]:
    """Return mean ranks by the mean error of each set; equal ones share theirs, who is ended last.

    Of another field likewise: the least is the first.

    >>> fit = lambda error: [{"error": error}]
    >>> mean_ranks({"a": {"x": fit(1), "y": fit(2)}, "b": {"x": fit(3), "y": [{}]}})
    {'x': 1.0, 'y': 2.0}
    """
    errors = [[mean(records, field) for records in own.values()] for own in boards.values()]
    if not errors:
        return {}
    contenders = next(iter(boards.values()))
    ranks = rankdata(errors, axis=1).mean(axis=0)
    return dict(zip(contenders, ranks.tolist(), strict=True))


def paired(new: Iterable[Record], old: Iterable[Record]) -> np.ndarray:
    """Return the differences of error, new less old, of the seeds that both have."""
    before = {r["seed"]: r["error"] for r in old}
    return np.array([r["error"] - before[r["seed"]] for r in new if r["seed"] in before])


def error_of(values: Sequence[float] | np.ndarray) -> float:
    """Return the standard error of a mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


class Beside(NamedTuple):
    """A contender beside the best of the others on one set.

    Attributes
    ----------
    best : str. Who has the least mean error among the others.
    difference : float. Points of error, the contender's less the best one's.
    two_errors : float. Two paired standard errors of that; 0 where there is one split.
    ratio : float. The contender's error over the best one's.
    """

    best: str
    difference: float
    two_errors: float
    ratio: float

    def is_worse(self, share: float, points: float) -> bool:
        """Whether the difference is above that share of the best, two errors and some points."""
        return self.ratio > 1 + share and self.difference > max(self.two_errors, points)


def beside(own: Splits, ours: str, field: str = "error") -> Beside:
    """Compare the errors of a contender, or another field, with those of the best of the others."""
    errors = {c: of_field(records, field) for c, records in own.items()}
    best = min((c for c in errors if c != ours), key=lambda c: errors[c].mean())
    mine, theirs = errors[ours], errors[best]
    if not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
        # Nothing is less certain where one of them was ended.
        worse = np.inf if np.isfinite(theirs).all() else 0.0
        return Beside(best, worse, 0.0, 1 + worse)
    difference = mine - theirs
    error = error_of(difference) if len(difference) > 1 else 0.0
    return Beside(best, float(difference.mean()), 2 * error, ratio(mine.mean(), theirs.mean()))


def ratio(mine: float, theirs: float) -> float:
    """Return a share, 1 of two zeros."""
    if theirs == 0:
        return 1.0 if mine == 0 else float("inf")
    return float(mine / theirs)


# Tables


def wide(found: Mapping[str, Splits], columns: str, show: Callable[[Sequence[Record]], str]) -> str:
    """Return a table of a row a set and a column a contender, with what is shown of its records.

    The columns before those see the first record of a set, and how many ``splits`` it has.
    """
    lines = []
    for name, own in found.items():
        first = next((r for records in own.values() for r in records), {})
        splits = max(map(len, own.values()))
        shown = {c: show(records) for c, records in own.items()}
        lines.append({**first, "set": name, "splits": splits, **shown})
    contenders = next(iter(found.values()), {})
    return table(" | ".join([columns, *(f"{c} = r[{c!r}]" for c in contenders)]), lines)


def spread(records: Sequence[Record], of: Callable[[Record], float], digits: int) -> str:
    """Return mean and deviation of a value of each record; or why there is none."""
    values = [of(r) for r in records if "error" in r]
    if values:
        return mean_of(values, digits, ddof=1)
    return f"> {LIMIT_S} s" if any(map(is_ended, records)) else "not measured"
