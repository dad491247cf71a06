"""Targets of rows, and how they are stored: a class as its code, a number as itself.

The scan of y finds a fit's target; the exchange and gathered rows have a column of its dtype; the
spec of a fit says which kind it trains on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from daskls.errors import DataError
from daskls.records import Float64, Labels, MeasuredAs, TargetKind, Targets

# Of the column that carries it beside a row's features.
TARGET_DTYPES: dict[TargetKind, str] = {"classes": "<i4", "numbers": "<f8"}


@dataclass(frozen=True, eq=False)
class Target:
    """The targets of every row that counts.

    Attributes
    ----------
    kind : "classes" or "numbers"
    labels : array, shape (k,). Sorted values of y that are classes; none of numbers.
    center, scale : float64 arrays, shape (t,), scale > 0. Of numbers, of which a row has t: what
        `enter` subtracts and divides by. 0 and 1 until they are measured.
    quantile : float or tuple of float, or None. The level, or the levels, at which a model answers
        the one number of a row; None: it answers the numbers themselves.
    """

    kind: TargetKind = "classes"
    labels: Labels = field(default_factory=lambda: np.empty(0))
    center: Float64 = field(default_factory=lambda: np.zeros(1))
    scale: Float64 = field(default_factory=lambda: np.ones(1))
    quantile: float | tuple[float, ...] | None = None

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of the column."""
        return np.dtype(TARGET_DTYPES[self.kind])

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 of numbers."""
        return len(self.labels)

    @property
    def width(self) -> int:
        """The values of a row: a code, or so many numbers."""
        return 1 if self.kind == "classes" else len(self.center)

    @property
    def nbytes(self) -> int:
        """The bytes of a row's."""
        return self.width * self.dtype.itemsize

    @property
    def measured_as(self) -> MeasuredAs:
        """How errors are told."""
        return self.kind if self.quantile is None else "levels"

    @property
    def n_aims(self) -> int:
        """What least squares may have a function each for: classes, or numbers of a row."""
        return self.n_classes if self.kind == "classes" else self.width

    @property
    def n_functions(self) -> int:
        """What a model of all rows may have a function each for: levels of a number, or aims."""
        return len(self.quantile) if isinstance(self.quantile, tuple) else self.n_aims

    @property
    def score_shape(self) -> tuple[int, ...]:
        """The shape of the scores of one row: one of two classes and of one number."""
        is_one = self.n_functions == (2 if self.kind == "classes" else 1)
        return () if is_one else (self.n_functions,)

    @property
    def answer_shape(self) -> tuple[int, ...]:
        """The shape of the numbers that answer one row: of a sequence of one level (1,)."""
        return (self.n_functions,) if isinstance(self.quantile, tuple) else self.score_shape

    def encode(self, y: Labels) -> Targets:
        """Return the targets of some rows: codes of classes (m,), or numbers (m, t).

        Parameters
        ----------
        y : array, shape (m, t); of classes (m, 1)

        Raises
        ------
        DataError : a label that was not there when y was scanned

        Examples
        --------
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

    def measured(self, targets: Targets, weights: Float64) -> Self:
        """Return the target with center and scale of sampled numbers; classes have none.

        Parameters
        ----------
        targets : as of `encode`. In the order of row numbers: a sum's bits depend on it.
        weights : float64 array, shape (m,), > 0

        Examples
        --------
        >>> found = Target("numbers").measured(np.array([[1.0], [5.0]]), np.ones(2))
        >>> found.center, found.scale, found.enter(np.array([[7.0]]))
        (array([3.]), array([2.]), array([[2.]]))
        """
        if self.kind == "classes":
            return self
        center = np.average(targets, axis=0, weights=weights)
        apart = targets - center
        # In units of the largest: squares of it neither overflow nor vanish.
        largest = np.abs(apart).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)
        deviation = unit * np.sqrt(np.average((apart / unit) ** 2, axis=0, weights=weights))
        # The mean of equal numbers is not always the same number.
        is_constant = (targets == targets[0]).all(axis=0)
        center = np.where(is_constant, targets[0], center)
        scale = np.where(is_constant | (deviation == 0), 1.0, deviation)
        return replace(self, center=center, scale=scale)

    def enter(self, targets: Targets) -> Targets:
        """Return targets as solvers take them: numbers around their center, in their scale."""
        if self.kind == "classes":
            return targets
        entered: Float64 = (targets - self.center) / self.scale
        return entered

    def leave(self, values: Float64) -> Float64:
        """Return answers of solvers, (m,) or (m, t), in the units of y.

        Those of several levels are sorted, row by row: none crosses another. Summed over levels,
        the pinball loss of no row rises by it (Chernozhukov, Fernandez-Val, Galichon, Quantile and
        probability curves without crossing, Econometrica 2010).

        Examples
        --------
        >>> Target("numbers", quantile=(0.9, 0.1, 0.5)).leave(np.array([[2.0, 1.0, 3.0]]))
        array([[3., 1., 2.]])
        """
        own = slice(None) if values.ndim > 1 else 0
        left: Float64 = values * self.scale[own] + self.center[own]
        if isinstance(self.quantile, tuple):
            left = left.reshape(len(left), -1)
            left[:, np.argsort(self.quantile)] = np.sort(left, axis=1)
        return left

    def to_json(self) -> dict[str, Any]:
        """Return what a model keeps of numbers, as JSON values; classes go without saying."""
        if self.kind == "classes":
            return {}
        own = {"kind": self.kind, "center": self.center.tolist(), "scale": self.scale.tolist()}
        return {"target": own if self.quantile is None else {**own, "quantile": self.quantile}}

    @classmethod
    def from_json(cls, meta: Mapping[str, Any]) -> Self:
        """Return the target of a model, by what it keeps.

        Raises
        ------
        ValueError, TypeError, KeyError : center and scale are none
        """
        own = meta.get("target")
        if own is None:
            values = meta["classes"]
            return cls("classes", np.array(values["values"], np.dtype(values["dtype"])))
        center, scale = (np.array(own[name], np.float64) for name in ("center", "scale"))
        is_sound = own["kind"] == "numbers" and center.ndim == 1 and len(center)
        if not (is_sound and center.shape == scale.shape and (scale > 0).all()):
            raise ValueError("center and scale of its numbers are none")
        if not np.isfinite([center, scale]).all():
            raise ValueError("center and scale of its numbers are not finite")
        quantile = own.get("quantile")
        quantile = tuple(quantile) if isinstance(quantile, list) else quantile
        levels = quantile if isinstance(quantile, tuple) else (quantile,)
        if quantile is not None and not all(type(q) is float and 0 < q < 1 for q in levels):
            raise ValueError("its levels are none")
        if quantile is not None and not (len(center) == 1 and len(levels) > 0):
            raise ValueError("it has levels of no one number")
        return cls("numbers", center=center, scale=scale, quantile=quantile)

    def weigh(self, column: Targets, weights: Float64, class_weight: Float64) -> Float64:
        """Return the weights of rows times those of their classes, by code; those of numbers."""
        if self.kind == "numbers":
            return weights
        weighed: Float64 = weights * class_weight[column]
        return weighed
