"""The record of a fit's progress, which every front shows, and the units of its errors."""

import threading
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from daskls.live.events import LeafCounts, find_single_class
from daskls.records import Float64, Int64, MeasuredAs
from daskls.run.progress import STAGE_LABELS


@dataclass(frozen=True)
class Measure:
    """How the validation errors of one kind of target are named and written.

    `label` is that of an axis, with the unit; `name` names the error of one cell, `mean_name` that
    of all rows, `of_cells` what a picture of cells shows.
    """

    label: str
    name: str
    mean_name: str
    of_cells: str
    is_share: bool

    @property
    def axis_label(self) -> str:
        """The label of an axis of errors that are not multiplied by `factor`."""
        return self.name if self.is_share else self.label

    @property
    def score_name(self) -> str:
        return "accuracy" if self.is_share else self.mean_name.partition(" ")[0]

    @property
    def factor(self) -> float:
        """The factor that gives an error the unit of `label`."""
        return 100.0 if self.is_share else 1.0

    def format(self, error: float) -> str:
        """Return the error of one cell, or of a few, as text.

        >>> MEASURES["classes"].format(0.123), MEASURES["numbers"].format(0.00123456)
        ('12.30 %', '0.001235')
        """
        return f"{100 * error:.2f} %" if self.is_share else f"{error:.4g}"

    def format_mean(self, error: float) -> str:
        """Return the figure for all rows as text, given their mean error.

        >>> MEASURES["classes"].format_mean(0.123), MEASURES["numbers"].format_mean(0.123)
        ('12.30 %', '0.8770')
        """
        return self.format(error) if self.is_share else f"{1 - error:.4f}"


MEASURES: dict[MeasuredAs, Measure] = {
    "classes": Measure(
        "validation error, %",
        "validation error",
        "mean validation error",
        "the share of their held-out rows that were wrong",
        is_share=True,
    ),
    # scikit-learn calls 1 - (mean squared error / variance) R2.
    "numbers": Measure(
        "squared error / variance of y",
        "squared error / variance",
        "R2 of held-out rows",
        "the mean squared error of their held-out rows, in units of the variance of y",
        is_share=False,
    ),
    # scikit-learn calls 1 - (mean loss / mean loss of the best constant) D2.
    "levels": Measure(
        "loss / that of a constant",
        "loss / that of a constant",
        "D2 of held-out rows",
        "the mean loss of their held-out rows, in units of the best constant's loss",
        is_share=False,
    ),
}

# The quantile of the regions' errors at which the colors end.
BELOW_TOP = 0.98


@dataclass(frozen=True)
class Header:
    estimator: str
    n_rows: int
    n_features: int
    target: MeasuredAs = "classes"
    # The last name of its store, by which fits of one kind are told apart; "" for none.
    store: str = ""

    def __str__(self) -> str:
        told = f"{self.estimator}: {self.n_rows:,} rows, {self.n_features} features"
        return f"{told}, in {self.store}" if self.store else told


# The units of a map along each of its sides; `view.js` has the same number.
SIDE = 1000


@dataclass(frozen=True, eq=False)
class Map:
    """A map of a partition: polygons of one leaf or a few, in units of 1/`SIDE` of its sides.

    `limits` are the features' values at the sides ((left, right), (bottom, top)), if they have
    some; `region_of` is -1 for a leaf that is not drawn.
    """

    polygons: list[list[list[int]]]
    region_of: list[int]
    limits: tuple[tuple[float, float], tuple[float, float]] | None
    names: tuple[str, str]
    note: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Stage:
    """The progress of one stage, of which ``first_done`` was done when it began here."""

    name: str
    total: int
    began: float
    done: int | None = None
    first_done: int | None = None
    ended: float | None = None

    @property
    def label(self) -> str:
        return STAGE_LABELS.get(self.name, self.name)

    def seconds(self, now: float) -> float:
        return (now if self.ended is None else self.ended) - self.began

    def left_s(self, now: float) -> float | None:
        """Return the seconds left at the pace so far; None if that is unknown."""
        if self.ended is not None:
            return 0.0
        if self.done is None or self.first_done is None or self.done <= self.first_done:
            return None
        # Leave out what an interrupted fit had done before: it says nothing about this one's pace.
        pace = (now - self.began) / (self.done - self.first_done)
        return pace * (self.total - self.done)


@dataclass(eq=False)
class FitRecord:
    """Stages, cells and errors of one fit, from any source; several threads may use it."""

    header: Header
    stages: dict[str, Stage] = field(default_factory=dict)
    map: Map | None = None
    version: int = 0
    ended: str | None = None
    link: str | None = None
    _bundles: set[tuple[int, int]] = field(default_factory=set)
    # Rows as in `live.events.COUNTED`, without the leaf's number; a column per leaf.
    _counts: Float64 = field(default_factory=lambda: np.zeros((5, 0)))
    _lock: Any = field(default_factory=threading.RLock)

    def advance(
        self,
        name: str,
        done: int | None,
        total: int,
        now: float,
        seconds: float | None = None,
    ) -> None:
        """Record the progress of a stage; it ends when all is done, or when the next one begins."""
        with self._lock:
            stage = self.stages.get(name)
            if stage is not None and stage.ended is not None and done == total == stage.total:
                return
            if stage is None or stage.ended is not None:
                # A stage may run again, once per round.
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
        for stage in self.stages.values():
            stage.ended = now if stage.ended is None else stage.ended

    def set_map(self, drawn: Map) -> None:
        with self._lock:
            self.map = drawn
            self.version += 1

    def add_bundle(self, first: int, last: int, counts: LeafCounts) -> None:
        """Add the results of a bundle's cells; one that is reported twice counts once."""
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

    def known_bundles(self) -> list[tuple[int, int]]:
        """Return the first and last leaf of each bundle that was added."""
        with self._lock:
            return sorted(self._bundles)

    def end(self, how: str, now: float) -> None:
        with self._lock:
            self._end_stages(now)
            self.ended = how
            self.version += 1

    @property
    def n_cells(self) -> int:
        return int(self._counts[0].sum())

    @property
    def measure(self) -> Measure:
        return MEASURES[self.header.target]

    @property
    def error(self) -> float | None:
        """The mean validation error over the rows of trained cells; None where none is measured."""
        counts = self._counts.sum(axis=1)
        return _mean_error(counts) if counts[2] else None

    def regions(self) -> tuple[list[int], list[float | None]]:
        """Return the number of trained cells, and their mean error, in each region of the map."""
        with self._lock:
            assert self.map is not None
            region_of = np.array(self.map.region_of, np.int64)[: self._counts.shape[1]]
            counts, n_regions = self._counts[:, : len(region_of)], len(self.map.polygons)
        totals = _sum_by(region_of, counts, n_regions)
        is_measured = bool(totals[2].sum())
        errors = [_mean_error(column) if is_measured else None for column in totals.T]
        return totals[0].astype(int).tolist(), errors

    def snapshot(self, now: float) -> dict[str, Any]:
        """Return everything but the map, as JSON values."""
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
                "error": self.error,
                **_error_texts(self.measure, self.error),
                "n_cells": self.n_cells,
                "region_cells": cells,
                "top_error": _top_error(errors, self.measure),
                "region_errors": errors,
            }


def _error_texts(measure: Measure, error: float | None) -> dict[str, Any]:
    return {
        "error_name": measure.mean_name.capitalize() if measure.is_share else measure.mean_name,
        "error_told": None if error is None else measure.format_mean(error),
        "error_label": measure.label,
        "is_share": measure.is_share,
    }


def _top_error(errors: list[float | None], measure: Measure) -> float | None:
    """Return the error of the last color: not the largest one, as a few may lie far beyond."""
    known = [error for error in errors if error is not None]
    if not known:
        return None
    top, step = float(np.quantile(known, BELOW_TOP)), 0.01
    if not measure.is_share and top > 0:
        # These errors may be of any size: round to their first digit.
        step = float(10.0 ** np.floor(np.log10(top)))
    # Rounded, so that not all colors change with each cell.
    return max(float(np.ceil(top / step)) * step, step)


def _stage_json(stage: Stage, now: float) -> dict[str, Any]:
    return {
        "label": stage.label,
        "done": stage.done,
        "total": stage.total,
        "seconds": stage.seconds(now),
        "ended": stage.ended is not None,
    }


def _sum_by(region_of: Int64, counts: Float64, n_regions: int) -> Float64:
    drawn = region_of >= 0
    regions = region_of[drawn]
    return np.stack([np.bincount(regions, row[drawn], n_regions) for row in counts])


def mean_error(report: Any) -> float | None:
    """Return the mean validation error over a report's rows, as far as it was measured."""
    is_measured = np.isfinite(report.validation_error)
    if not is_measured.any():
        return None
    errors, weights = np.nan_to_num(report.validation_error), report.n_rows
    return float(np.average(errors, weights=weights * (is_measured | find_single_class(report))))


def _mean_error(counts: Float64) -> float | None:
    _, _, measured, pure, wrong = counts.tolist()
    known = measured + pure
    return float(wrong / known) if known else None
