"""The choices of a fit for all cells, one part of the store each.

Before space is cut: the scale of features, and parameters. From reserved rows: the threshold of a
bound on false alarms, one of their scores; the half width of intervals, one of their residuals, and
the sizes by which cells scale it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.records import (
    AnyArray,
    Codes,
    FalseAlarmSpec,
    FeatureCoding,
    FeatureScale,
    Float64,
    IntervalSpec,
    SolverSpec,
    TargetKind,
)
from daskls.store.artifact import Artifact
from daskls.store.errors import check_codes, check_counts, expect, from_json, malformed_is_damage
from daskls.store.layout import Root, spec_from_json

# Keys of the parts; those of reserved rows are named in the root's ``meta`` of models that have
# them.
SCALE, FALSE_ALARM, INTERVAL = "scale", FalseAlarmSpec.name, IntervalSpec.name
# The purpose of a part of reserved rows, and the parameter that needs it.
_PURPOSES = {FALSE_ALARM: ("threshold", "max_false_alarm"), INTERVAL: ("intervals", "interval")}


@dataclass(frozen=True, eq=False)
class ResolvedScaling:
    """The scale and the parameters that were selected on the data, once for all cells.

    The summary holds JSON values for people: what was tried, and why this was chosen.
    """

    scale: FeatureScale | None
    spec: SolverSpec
    summary: Mapping[str, Any]

    def describe_choice(self, kind: TargetKind) -> list[tuple[str, str]]:
        """Return what was chosen for all cells, as (name, text) for people; [] if nothing was."""
        candidates = candidates_of(self.summary)
        if not candidates:
            return []
        chosen = candidates[0]
        if kind == "classes":
            name, figure = "error", f"{100 * chosen['error']:.2f} %"
        else:
            name, figure = "R2", f"{1 - chosen['error']:.4f}"
        return [
            ("kernel of all cells", f"{chosen['kernel']}, width {chosen['width']:.3g}"),
            ("C of all cells", f"{1 / (2 * chosen['ridge']):.3g}"),
            (f"{name} of the choice", f"{figure} of held-out rows"),
        ]


def candidates_of(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the candidates of a fit's choice, the chosen one first: coding, scale, kernel, error.

    Empty if there was no choice.
    """
    chosen = summary.get("chosen")
    if chosen is None:
        return []
    candidates = [chosen, *summary["candidates"]]
    return [candidates[0], *(other for other in candidates[1:] if other != candidates[0])]


def write_resolved(root: Root, resolved: ResolvedScaling) -> None:
    scale = resolved.scale
    arrays: dict[str, AnyArray] = {}
    if scale is not None:
        arrays = {"center": scale.center, "factors": scale.factors}
        arrays |= {} if scale.coding is None else vars(scale.coding)
    attributes = {"spec": asdict(resolved.spec), "summary": dict(resolved.summary)}
    root.write(SCALE, arrays, attributes)


def find_resolved(root: Root) -> ResolvedScaling | None:
    part = root.find(SCALE)
    return None if part is None else _read(part, root.n_features)


def read_resolved(root: Root) -> ResolvedScaling:
    """The parameters as given if there was nothing to choose."""
    meta = root.attributes["meta"]
    if meta.get("scaling") is None:
        return ResolvedScaling(None, spec_from_json(meta["spec"]), {})
    return _read(root.part(SCALE, "the scale of its features"), root.n_features)


def width_of(root: Root) -> int:
    resolved = find_resolved(root) if root.attributes["meta"].get("scaling") else None
    if resolved is None or resolved.scale is None:
        return root.n_features
    return len(resolved.scale.columns)


def _read(part: Artifact, n_features: int) -> ResolvedScaling:
    with malformed_is_damage(part.where()):
        spec, summary = spec_from_json(part.attrs["spec"]), dict(part.attrs["summary"])
    if "factors" not in part:
        return ResolvedScaling(None, spec, summary)
    coding, n_coded = None, n_features
    if "ptr" in part:
        points = part.read("points", shape=(None,), kind="f")
        ranks = part.read("ranks", shape=points.shape, kind="f")
        ptr = part.read("ptr", shape=(n_features + 1,), kind="i")
        check_counts(part.where(), "ptr", np.diff(ptr, prepend=0), len(points))
        coding = FeatureCoding(ptr, points, ranks)
        n_coded = len(coding.sources)
    center, factors = (
        part.read(name, shape=(n_coded,), kind="f") for name in ("center", "factors")
    )
    with malformed_is_damage(part.where()):
        expect(bool((factors > 0).any()), "factors")
    return ResolvedScaling(FeatureScale(center, factors, coding), spec, summary)


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
        text = f"hold {100 * self.coverage:.3g} % of y, +- {widths} in a typical cell, "
        return [("intervals", f"{text}rank {self.rank:,} of {self.n_rows:,} held-out rows")]


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
        return from_json(FalseAlarmBound, part.attrs)


def read_reserved(root: Root) -> tuple[Float64, Codes] | None:
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
    root.write(INTERVAL, {"sizes": sizes, "residuals": residuals}, asdict(interval))


def read_interval(root: Root) -> CoveringInterval | None:
    """Return a finished model's interval, or None; StoreError where the fit stopped before it."""
    part = _reserved_part(root, INTERVAL)
    if part is None:
        return None
    with malformed_is_damage(part.where()):
        return from_json(CoveringInterval, part.attrs)


def read_sizes(root: Root, n_cells: int) -> Float64:
    """Sizes of residuals in each cell, in units of the overall size."""
    part = _reserved_part(root, INTERVAL)
    assert part is not None
    sizes: Float64 = part.read("sizes", shape=(n_cells,), kind="f")
    return sizes
