"""Targets of rows, and how they are stored: a class as its code, a number as itself.

The scan of y finds a fit's target; the exchange and gathered rows have a column of its dtype; the
spec of a fit says which kind it trains on.
"""

from dataclasses import dataclass, field

import numpy as np

from daskls.errors import DataError
from daskls.records import Float64, Labels, TargetKind, Targets

__all__ = ["TARGET_DTYPES", "Target"]

# Of the column that carries it beside a row's features.
TARGET_DTYPES: dict[TargetKind, str] = {"classes": "<i4", "numbers": "<f8"}


@dataclass(frozen=True, eq=False)
class Target:
    """The targets of every row that counts.

    Attributes
    ----------
    kind : "classes" or "numbers"
    labels : array, shape (k,). Sorted values of y that are classes; none of numbers.
    """

    kind: TargetKind = "classes"
    labels: Labels = field(default_factory=lambda: np.empty(0))

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of the column."""
        return np.dtype(TARGET_DTYPES[self.kind])

    @property
    def n_classes(self) -> int:
        """The number of classes; 0 of numbers."""
        return len(self.labels)

    def encode(self, y: Labels) -> Targets:
        """Return the column of some rows, shape (m,): codes of classes, or numbers.

        Raises
        ------
        DataError : a label that was not there when y was scanned

        Examples
        --------
        >>> Target("classes", np.array([3, 8])).encode(np.array([8, 3, 8]))
        array([1, 0, 1], dtype=int32)
        >>> Target("numbers").encode(np.array([8, 3]))
        array([8., 3.])
        """
        if self.kind == "numbers":
            return y.astype(self.dtype)
        codes = np.minimum(np.searchsorted(self.labels, y), len(self.labels) - 1)
        codes = codes.astype(self.dtype)
        if not (self.labels[codes] == y).all():
            raise DataError(
                "y gave a label at the second reading that it did not give at the first. A Dask "
                "array must compute the same values each time: seed it, or write it to Zarr."
            )
        return codes

    def weigh(self, column: Targets, weights: Float64, class_weight: Float64) -> Float64:
        """Return the weights of rows times those of their classes, by code; numbers have none."""
        if self.kind == "numbers":
            return weights
        weighed: Float64 = weights * class_weight[column]
        return weighed
