"""Targets of rows and how they are stored: a class as its code, a number as itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from daskls.errors import DataError, listed
from daskls.records import Float64, Labels, MeasuredAs, TargetKind, Targets

# The dtype of the target's column in the exchange and in gathered rows.
TARGET_DTYPES: dict[TargetKind, str] = {"classes": "<i4", "numbers": "<f8"}
# The most numbers of a row that a description lists.
MOST_COLUMNS = 4
# The deviation of normal numbers, in units of their median distance to the median.
DEVIATION_OF_MEDIAN = 1.4826


def _medians(columns: Targets, weights: Float64) -> Float64:
    medians = np.quantile(columns, 0.5, axis=0, weights=weights, method="inverted_cdf")
    return np.asarray(medians, np.float64)


@dataclass(frozen=True, eq=False)
class Target:
    """The kind, the labels and the scale of a fit's targets.

    `standardize` subtracts `center` and divides by `scale`, both (t,): 0 and 1 until they are
    measured. `quantile` is the level, or the levels, that are predicted of the one number of a row.
    """

    kind: TargetKind = "classes"
    labels: Labels = field(default_factory=lambda: np.empty(0))
    center: Float64 = field(default_factory=lambda: np.zeros(1))
    scale: Float64 = field(default_factory=lambda: np.ones(1))
    quantile: float | tuple[float, ...] | None = None

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return np.dtype(TARGET_DTYPES[self.kind])

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    @property
    def width(self) -> int:
        """The stored values per row: one code, or t numbers."""
        return 1 if self.kind == "classes" else len(self.center)

    @property
    def nbytes(self) -> int:
        return self.width * self.dtype.itemsize

    @property
    def measured_as(self) -> MeasuredAs:
        return self.kind if self.quantile is None else "levels"

    @property
    def n_targets(self) -> int:
        """The outputs of least squares: one per class, or one per number of a row."""
        return self.n_classes if self.kind == "classes" else self.width

    @property
    def n_functions(self) -> int:
        """The outputs of a model: one per level of a number; otherwise `n_targets`."""
        return len(self.quantile) if isinstance(self.quantile, tuple) else self.n_targets

    @property
    def score_shape(self) -> tuple[int, ...]:
        """The shape of the scores of one row: () for two classes and for one number."""
        is_one = self.n_functions == (2 if self.kind == "classes" else 1)
        return () if is_one else (self.n_functions,)

    @property
    def answer_shape(self) -> tuple[int, ...]:
        """The shape of the prediction for one row: that of its scores; (1,) for a tuple of one."""
        return (self.n_functions,) if isinstance(self.quantile, tuple) else self.score_shape

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels that are predicted; empty where the numbers themselves are."""
        if self.quantile is None:
            return ()
        return self.quantile if isinstance(self.quantile, tuple) else (self.quantile,)

    def describe(self) -> tuple[str, str]:
        """Return what is predicted, as (name, text) for people.

        >>> Target("classes", np.array(["a", "b"])).describe()
        ('classes', '2: a, b')
        >>> Target("numbers", quantile=(0.1, 0.9)).describe()
        ('numbers', 'center 0, spread 1; predicted at levels 0.1, 0.9')
        """
        if self.kind == "classes":
            return "classes", f"{self.n_classes}: {listed([*map(str, self.labels.tolist())])}"
        columns = zip(self.center.tolist(), self.scale.tolist(), strict=True)
        texts = [f"center {center:.5g}, spread {scale:.4g}" for center, scale in columns]
        text = listed(texts, MOST_COLUMNS, "; ")
        if self.width > 1:
            text = f"{self.width} per row: {text}"
        if self.levels:
            levels = listed([f"{level:g}" for level in self.levels])
            text += f"; predicted at level{'s' * (len(self.levels) > 1)} {levels}"
        return "numbers", text

    def encode(self, y: Labels) -> Targets:
        """Return int32 class codes (m,), or float64 numbers (m, t).

        >>> Target("classes", np.array([3, 8])).encode(np.array([[8], [3], [8]]))
        array([1, 0, 1], dtype=int32)
        >>> Target("numbers").encode(np.array([[8], [3]]))
        array([[8.],
               [3.]])
        """
        if self.kind == "numbers":
            return y.astype(self.dtype)
        y = y[:, 0]
        codes = np.minimum(np.searchsorted(self.labels, y), len(self.labels) - 1)
        codes = codes.astype(self.dtype)
        if not (self.labels[codes] == y).all():
            raise DataError(
                "y gave a label at the second reading that it did not give at the first. A Dask "
                "array must compute the same values each time: seed it, or write it to Zarr."
            )
        return codes

    def measured(self, targets: Targets, weights: Float64, *, robustly: bool = False) -> Self:
        """Return the target with the center and scale of sampled numbers; classes have none.

        The robust scale is the median distance to the median, in the units of a normal deviation,
        unless half of all numbers are equal.

        >>> found = Target("numbers").measured(np.array([[1.0], [5.0]]), np.ones(2))
        >>> found.center, found.scale, found.standardize(np.array([[7.0]]))
        (array([3.]), array([2.]), array([[2.]]))
        >>> outlier = np.array([[1.0], [2.0], [3.0], [4.0], [1e9]])
        >>> found = Target("numbers").measured(outlier, np.ones(5), robustly=True)
        >>> found.center, found.scale
        (array([3.]), array([1.4826]))
        """
        if self.kind == "classes":
            return self
        center = np.average(targets, axis=0, weights=weights)
        apart = targets - center
        # In units of the largest deviation, whose square can neither overflow nor underflow.
        largest = np.abs(apart).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        deviation = unit * np.sqrt(np.average((apart / unit) ** 2, axis=0, weights=weights))
        # By rounding, the mean of equal numbers can differ from them.
        is_constant = (targets == targets[0]).all(axis=0)
        center = np.where(is_constant, targets[0], center)
        scale = np.where(is_constant | (deviation == 0), 1.0, deviation)
        if robustly:
            center = _medians(targets, weights)
            apart = _medians(np.abs(targets - center), weights) * DEVIATION_OF_MEDIAN
            scale = np.where(apart > 0, apart, scale)
        return replace(self, center=center, scale=scale)

    def standardize(self, targets: Targets) -> Targets:
        if self.kind == "classes":
            return targets
        entered: Float64 = (targets - self.center) / self.scale
        return entered

    def inverse_transform(self, values: Float64) -> Float64:
        """Return predictions of solvers, (m,) or (m, t), in the units of y; inverts `standardize`.

        Several levels are sorted within each row, so that they do not cross (Chernozhukov,
        Fernandez-Val, Galichon, Econometrica 2010).

        >>> target = Target("numbers", quantile=(0.9, 0.1, 0.5))
        >>> target.inverse_transform(np.array([[2.0, 1.0, 3.0]]))
        array([[3., 1., 2.]])
        """
        columns = slice(None) if values.ndim > 1 else 0
        left: Float64 = values * self.scale[columns] + self.center[columns]
        if isinstance(self.quantile, tuple):
            left = left.reshape(len(left), -1)
            left[:, np.argsort(self.quantile)] = np.sort(left, axis=1)
        return left

    def to_json(self) -> dict[str, Any]:
        """Return what a model stores of numbers, as JSON values; classes have their own entry."""
        if self.kind == "classes":
            return {}
        entry = {"kind": self.kind, "center": self.center.tolist(), "scale": self.scale.tolist()}
        return {"target": entry if self.quantile is None else {**entry, "quantile": self.quantile}}

    @classmethod
    def from_json(cls, meta: Mapping[str, Any]) -> Self:
        entry = meta.get("target")
        if entry is None:
            values = meta["classes"]
            return cls("classes", np.array(values["values"], np.dtype(values["dtype"])))
        center, scale = (np.array(entry[name], np.float64) for name in ("center", "scale"))
        is_sound = entry["kind"] == "numbers" and center.ndim == 1 and len(center)
        if not (is_sound and center.shape == scale.shape and (scale > 0).all()):
            raise ValueError("center and scale of its numbers are malformed")
        if not np.isfinite([center, scale]).all():
            raise ValueError("center and scale of its numbers are not finite")
        quantile = entry.get("quantile")
        quantile = tuple(quantile) if isinstance(quantile, list) else quantile
        levels = quantile if isinstance(quantile, tuple) else (quantile,)
        if quantile is not None and not all(type(q) is float and 0 < q < 1 for q in levels):
            raise ValueError("its levels are not numbers between 0 and 1")
        if quantile is not None and not (len(center) == 1 and len(levels) > 0):
            raise ValueError("it has levels, but not of exactly one number")
        return cls("numbers", center=center, scale=scale, quantile=quantile)

    def weigh(self, column: Targets, weights: Float64, class_weight: Float64) -> Float64:
        """Return the weights (m,) times those of classes, (k,) by code; numbers have no classes."""
        if self.kind == "numbers":
            return weights
        weighed: Float64 = weights * class_weight[column]
        return weighed
