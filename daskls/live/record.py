"""The record of a fit's progress, which every display shows, from any source of numbers.

The errors of cells in words: shares of wrong rows, or of what a constant would miss.
"""

import threading
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from daskls.records import Float64, Int64, MeasuredAs
from daskls.run.client import LeafCounts
from daskls.run.progress import STAGE_LABELS


@dataclass(frozen=True)
class Measure:
    """How the validation errors of a kind of target are told.

    Attributes
    ----------
    label : str. Of an axis or a bar of colors, with the unit.
    name : str. Of the error of one cell.
    mean_name : str. Of what is told of all rows.
    is_share : bool. Whether an error is a share of rows, told in percent.
    """

    label: str
    name: str
    mean_name: str
    is_share: bool

    @property
    def axis_label(self) -> str:
        """The label of errors as they are."""
        return self.name if self.is_share else self.label

    @property
    def factor(self) -> float:
        """What an error is multiplied by, to be a number on that axis."""
        return 100.0 if self.is_share else 1.0

    def tell(self, error: float) -> str:
        """Return the error of one cell, or of a few.

        >>> MEASURES["classes"].tell(0.123), MEASURES["numbers"].tell(0.00123456)
        ('12.30 %', '0.001235')
        """
        return f"{100 * error:.2f} %" if self.is_share else f"{error:.4g}"

    def tell_mean(self, error: float) -> str:
        """Return what is told of all rows, given their mean error.

        >>> MEASURES["classes"].tell_mean(0.123), MEASURES["numbers"].tell_mean(0.123)
        ('12.30 %', '0.8770')
        """
        return self.tell(error) if self.is_share else f"{1 - error:.4f}"


MEASURES: dict[MeasuredAs, Measure] = {
    "classes": Measure("validation error, %", "validation error", "mean validation error", True),
    # 1 minus a mean square in units of the variance is what scikit-learn calls R2.
    "numbers": Measure(
        "squared error / variance of y", "squared error / variance", "R2 of held-out rows", False
    ),
    # 1 minus a mean loss in units of the best constant's is what scikit-learn calls D2.
    "levels": Measure(
        "loss / that of a constant", "loss / that of a constant", "D2 of held-out rows", False
    ),
}


# The share of regions whose errors have colors of their own.
BELOW_TOP = 0.98


@dataclass(frozen=True)
class Header:
    """The name of a fit, for people.

    Attributes
    ----------
    estimator : str
    n_rows, n_features : int
    target : "classes", "numbers" or "levels". What is learned.
    """

    estimator: str
    n_rows: int
    n_features: int
    target: MeasuredAs = "classes"

    def __str__(self) -> str:
        return f"{self.estimator}: {self.n_rows:,} rows, {self.n_features} features"


@dataclass(frozen=True, eq=False)
class Map:
    """A picture of how rows are cut: regions of the plane, each of one leaf or a few.

    Attributes
    ----------
    polygons : list of lists of [x, y], one a region, in units of 1/1000 of the picture's sides
    region_of : list of int, one a leaf: its region; -1 where it is not drawn
    limits : ((left, right), (bottom, top)), or None. What the sides of the picture stand for; None
        where places on it have no numbers.
    names : the axes' labels
    note : str. What is drawn.
    """

    polygons: list[list[list[int]]]
    region_of: list[int]
    limits: tuple[tuple[float, float], tuple[float, float]] | None
    names: tuple[str, str]
    note: str

    def to_json(self) -> dict[str, Any]:
        """Return the picture as values that travel; `Map` takes them back as keywords."""
        return asdict(self)


@dataclass
class Stage:
    """One stage: how much of it is done, since when; ``done`` is None while it is unknown."""

    name: str
    total: int
    began: float
    done: int | None = None
    first_done: int | None = None
    ended: float | None = None

    @property
    def label(self) -> str:
        """The stage in words."""
        return STAGE_LABELS.get(self.name, self.name)

    def seconds(self, now: float) -> float:
        """Return how long it took, or has taken until now."""
        return (now if self.ended is None else self.ended) - self.began

    def left_s(self, now: float) -> float | None:
        """Return the seconds left at the pace so far; None if that is unknown."""
        if self.ended is not None:
            return 0.0
        if self.done is None or self.first_done is None or self.done <= self.first_done:
            return None
        # What an earlier fit had done tells nothing of this one's pace.
        pace = (now - self.began) / (self.done - self.first_done)
        return pace * (self.total - self.done)


@dataclass(eq=False)
class FitRecord:
    """Stages, cells and errors of one fit; threads may write and read it.

    Attributes
    ----------
    header : Header
    stages : dict name -> Stage, in their order
    map : Map, or None until rows are cut
    version : int. Counts the changes.
    ended : str, or None. How the fit ended.
    link : str, or None. Where the dashboard shows it.
    """

    header: Header
    stages: dict[str, Stage] = field(default_factory=dict)
    map: Map | None = None
    version: int = 0
    ended: str | None = None
    link: str | None = None
    _ends: float | None = None
    _bundles: set[tuple[int, int]] = field(default_factory=set)
    _counts: Float64 = field(default_factory=lambda: np.zeros((5, 0)))
    _lock: Any = field(default_factory=threading.RLock)

    def advance(
        self,
        name: str,
        done: int | None,
        total: int,
        now: float,
        seconds: float | None = None,
        left_s: float | None = None,
    ) -> None:
        """Record the progress of a stage; it ends when all is done, or with the next one.

        Parameters
        ----------
        name : str
        done : int, or None
        total : int
        now : float. The time, in seconds.
        seconds : float, or None. For how long the stage has run, where it is not seen from its
            beginning.
        left_s : float, or None. What is expected to be left of the whole fit.
        """
        with self._lock:
            self._ends = None if left_s is None else now + left_s
            stage = self.stages.get(name)
            if stage is not None and stage.ended is not None and done == total == stage.total:
                return
            if stage is None or stage.ended is not None:
                # A stage may come again, as one a round.
                self._end_stages(now)
                stage = self.stages[name] = Stage(name, total, now, first_done=done)
                self.version += 1
            if seconds is not None:
                stage.began = now - seconds
            if (stage.done, stage.total) == (done, total):
                return
            stage.done, stage.total = done, total
            stage.ended = now if done == total else None
            self.version += 1

    def _end_stages(self, now: float) -> None:
        """End the stages that run."""
        for stage in self.stages.values():
            stage.ended = now if stage.ended is None else stage.ended

    def set_map(self, drawn: Map) -> None:
        """Store the picture of the partition."""
        with self._lock:
            self.map = drawn
            self.version += 1

    def add_bundle(self, first: int, last: int, counts: LeafCounts) -> None:
        """Add the results of a bundle's cells; a bundle that is reported twice counts once."""
        with self._lock:
            if (first, last) in self._bundles:
                return
            self._bundles.add((first, last))
            leaves = np.array(counts[0], np.int64)
            missing = int(leaves.max(initial=-1)) + 1 - self._counts.shape[1]
            if missing > 0:
                self._counts = np.pad(self._counts, ((0, 0), (0, missing)))
            self._counts[:, leaves] += np.array(counts[1:], np.float64)
            self.version += 1

    def told(self) -> list[tuple[int, int]]:
        """Return the first and last leaf of each bundle that was added."""
        with self._lock:
            return sorted(self._bundles)

    def end(self, how: str, now: float) -> None:
        """Record how the fit ended."""
        with self._lock:
            self._end_stages(now)
            self.ended = how
            self.version += 1

    def left_in_all_s(self, now: float) -> float | None:
        """Return the seconds that are expected to be left of the fit; None if nothing is."""
        is_known = self._ends is not None and self.ended is None
        return max(self._ends - now, 0.0) if is_known else None  # type: ignore[operator]

    @property
    def n_cells(self) -> int:
        """The number of cells that are trained, as far as it was told."""
        return int(self._counts[0].sum())

    @property
    def measure(self) -> Measure:
        """How its errors are told."""
        return MEASURES[self.header.target]

    @property
    def error(self) -> float | None:
        """The mean validation error of the rows trained on so far; None where none is measured."""
        counts = self._counts.sum(axis=1)
        return _share(counts) if counts[2] else None

    def regions(self) -> tuple[list[int], list[float | None]]:
        """Return, region by region of the map, the cells trained in it and their error."""
        with self._lock:
            assert self.map is not None
            region_of = np.array(self.map.region_of, np.int64)[: self._counts.shape[1]]
            counts, n_regions = self._counts[:, : len(region_of)], len(self.map.polygons)
        totals = _sum_by(region_of, counts, n_regions)
        is_measured = bool(totals[2].sum())
        errors = [_share(own) if is_measured else None for own in totals.T]
        return totals[0].astype(int).tolist(), errors

    def snapshot(self, now: float) -> dict[str, Any]:
        """Return all but the map, as JSON values."""
        with self._lock:
            stages = list(self.stages.values())
            running = [stage for stage in stages if stage.ended is None]
            cells, errors = self.regions() if self.map is not None else ([], [])
            return {
                "title": str(self.header),
                "ended": self.ended,
                "link": self.link,
                "stages": [_stage_json(stage, now) for stage in stages],
                "left_s": running[-1].left_s(now) if running and self.ended is None else None,
                "left_in_all_s": self.left_in_all_s(now),
                "n_cells": self.n_cells,
                "error": self.error,
                **_words(self.measure, self.error),
                "region_cells": cells,
                "top_error": _top(errors, self.measure),
                "region_errors": errors,
            }


def _words(measure: Measure, error: float | None) -> dict[str, Any]:
    """Return how errors are told, as JSON values."""
    return {
        "error_name": measure.mean_name.capitalize() if measure.is_share else measure.mean_name,
        "error_told": None if error is None else measure.tell_mean(error),
        "error_label": measure.label,
        "is_share": measure.is_share,
    }


def _top(errors: list[float | None], measure: Measure) -> float | None:
    """Return the error of the last color: few regions may lie far beyond the others."""
    known = [error for error in errors if error is not None]
    if not known:
        return None
    top, step = float(np.quantile(known, BELOW_TOP)), 0.01
    if not measure.is_share and top > 0:
        # Squares of any size; a step is the first figure.
        step = float(10.0 ** np.floor(np.log10(top)))
    # In steps, so that not all colors change with each cell.
    return max(float(np.ceil(top / step)) * step, step)


def _stage_json(stage: Stage, now: float) -> dict[str, Any]:
    """Return a stage as JSON values."""
    return {
        "label": stage.label,
        "done": stage.done,
        "total": stage.total,
        "seconds": stage.seconds(now),
        "ended": stage.ended is not None,
    }


def _sum_by(region_of: Int64, counts: Float64, n_regions: int) -> Float64:
    """Return the sums of the leaves' counts, (5, n_regions)."""
    drawn = region_of >= 0
    own = region_of[drawn]
    return np.stack([np.bincount(own, row[drawn], n_regions) for row in counts])


def _share(counts: Float64) -> float | None:
    """Return the share of wrong rows, or the mean square; None where the error of no row is known.

    Rows of a cell of one class, or of one number, are right.
    """
    _, _, measured, pure, wrong = counts.tolist()
    known = measured + pure
    return float(wrong / known) if known else None
