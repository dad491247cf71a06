"""The record of a fit's progress, which every display shows, and the units of its errors."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskls.cluster import in_task
from daskls.records import CellReport, Float64, Ints, MeasuredAs, Table
from daskls.run.progress import STAGE_LABELS

# The units of errors


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
        """Return the error of one cell, or of a few, as text: 12.30 %, or 0.001235."""
        return f"{100 * error:.2f} %" if self.is_share else f"{error:.4g}"

    def format_mean(self, error: float) -> str:
        """Return the figure for all rows as text, given their mean error: of numbers the R2."""
        return self.format(error) if self.is_share else f"{1 - error:.4f}"


MEASURES: dict[MeasuredAs, Measure] = {
    "classes": Measure(
        *("validation error, %", "validation error", "mean validation error"),
        "the share of their held-out rows that were wrong",
        is_share=True,
    ),
    # scikit-learn calls 1 - (mean squared error / variance) R2.
    "numbers": Measure(
        *("squared error / variance of y", "squared error / variance", "R2 of held-out rows"),
        "the mean squared error of their held-out rows, in units of the variance of y",
        is_share=False,
    ),
    # scikit-learn calls 1 - (mean loss / mean loss of the best constant) D2.
    "levels": Measure(
        *("loss / that of a constant", "loss / that of a constant", "D2 of held-out rows"),
        "the mean loss of their held-out rows, in units of the best constant's loss",
        is_share=False,
    ),
}


# The topic of events on the scheduler.
TOPIC = "daskls"
# Per leaf: its number, its cells, their rows, the rows of cells whose error was measured, those of
# cells of one class or one number, and the rows that were wrong, or sums of squared errors.
COUNTED = ("leaf", "cells", "rows", "measured", "pure", "wrong")
# One list per name in `COUNTED`, each with one value per leaf.
LeafCounts = list[list[float]]
# First leaf, last leaf, and counts of each.
Bundles = list[tuple[int, int, LeafCounts]]


def report_cells(root: str, first: int, last: int, reports: Iterable[CellReport]) -> None:
    """Report a bundle that this task has written to the scheduler, under the fit's store."""
    if not in_task():
        return
    from distributed import get_worker

    table = np.array([report.as_tuple() for report in reports], CellReport.dtype())
    get_worker().log_event(TOPIC, {"bundles": [[root, first, last, count_leaves(table)]]})


def count_leaves(table: Table) -> LeafCounts:
    leaves, inverse = np.unique(table["leaf"], return_inverse=True)
    return [leaves.tolist(), *_sum_by(inverse, count_cells(table), len(leaves)).tolist()]


def count_cells(table: Table) -> Float64:
    """Return what is counted of each cell, as in `COUNTED`, without the leaf's number: (5, n)."""
    rows, errors = table["n_rows"].astype(np.float64), table["validation_error"]
    n_classes = table["n_classes"]
    # A single class or number is predicted without an error.
    pure = np.where(n_classes == 0, table["n_trained"] == 0, n_classes == 1)
    parts = np.ones(len(rows)), rows, rows * np.isfinite(errors), rows * pure
    return np.stack([*parts, rows * np.nan_to_num(errors)])


def mean_errors(counts: Float64) -> Float64:
    """Return the mean error over the rows of each column of counts (5, n); NaN: not known."""
    _, _, measured, pure, wrong = counts
    # Cells of one class tell nothing of a fit that measures no errors.
    known = (measured + pure) * bool(measured.any())
    errors: Float64 = np.divide(wrong, known, out=np.full(len(wrong), np.nan), where=known > 0)
    return errors


def mean_error(report: Any) -> float | None:
    """Return the mean validation error over a report's rows, as far as it was measured."""
    return _known(mean_errors(count_cells(report).sum(axis=1, keepdims=True)))[0]


def region_errors(region_of: list[int], report: Any, n_regions: int) -> Float64:
    """Return the mean error over the rows of each region of a map; NaN: not known."""
    return mean_errors(_sum_by(np.array(region_of)[report.cell], count_cells(report), n_regions))


def _sum_by(numbers: Ints, counts: Float64, n: int) -> Float64:
    """Sum columns of counts by their number; those below 0 are left out."""
    drawn = numbers >= 0
    return np.stack([np.bincount(numbers[drawn], row[drawn], n) for row in counts])


def _known(errors: Float64) -> list[float | None]:
    return [None if np.isnan(error) else error for error in errors.tolist()]


# The units of a map along each of its sides.
SIDE = 1000


@dataclass(frozen=True, eq=False)
class Map:
    """A map of a partition: polygons of one leaf or a few, in units of 1/`SIDE` of its sides.

    `limits` are the features' values at the sides [[left, right], [bottom, top]], if they have
    some; `region_of` is -1 for a leaf that is not drawn.
    """

    polygons: list[list[list[int]]]
    region_of: list[int]
    limits: list[list[float]] | None
    names: tuple[str, str]
    note: str


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

    title: str
    target: MeasuredAs = "classes"
    stages: dict[str, Stage] = field(default_factory=dict)
    map: Map | None = None
    ended: str | None = None
    link: str | None = None
    _bundles: set[tuple[int, int]] = field(default_factory=set)
    # Rows as in `COUNTED`, without the leaf's number; a column per leaf.
    _counts: Float64 = field(default_factory=lambda: np.zeros((5, 0)))
    _lock: Any = field(default_factory=threading.RLock)

    def advance(
        self, name: str, done: int | None, total: int, now: float, seconds: float | None = None
    ) -> None:
        """Record the progress of a stage; it ends when all is done, or when the next one begins."""
        with self._lock:
            stage = self.stages.get(name)
            if stage is not None and stage.ended is not None and done == total == stage.total:
                return
            if stage is None or stage.ended is not None:
                # A stage may run again, once per round.
                self.end(self.ended, now)
                stage = self.stages[name] = Stage(name, total, now, first_done=done)
            if seconds is not None:
                stage.began = now - seconds
            if (stage.done, stage.total) == (done, total):
                return
            stage.done, stage.total = done, total
            stage.ended = now if done == total else None

    def set_map(self, drawn: Map) -> None:
        with self._lock:
            self.map = drawn

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

    def known_bundles(self) -> list[tuple[int, int]]:
        """Return the first and last leaf of each bundle that was added."""
        with self._lock:
            return sorted(self._bundles)

    def end(self, how: str | None, now: float) -> None:
        """End all stages, and the fit if ``how`` is given."""
        with self._lock:
            self.ended = how
            for stage in self.stages.values():
                stage.ended = now if stage.ended is None else stage.ended

    @property
    def n_cells(self) -> int:
        return int(self._counts[0].sum())

    @property
    def measure(self) -> Measure:
        return MEASURES[self.target]

    @property
    def error(self) -> float | None:
        """The mean validation error over the rows of trained cells; None where none is measured."""
        return _known(mean_errors(self._counts.sum(axis=1, keepdims=True)))[0]

    def regions(self) -> tuple[list[int], list[float | None]]:
        """Return the number of trained cells, and their mean error, in each region of the map."""
        with self._lock:
            assert self.map is not None
            region_of = np.array(self.map.region_of, np.int64)[: self._counts.shape[1]]
            counts, n_regions = self._counts[:, : len(region_of)], len(self.map.polygons)
        totals = _sum_by(region_of, counts, n_regions)
        return totals[0].astype(int).tolist(), _known(mean_errors(totals))
