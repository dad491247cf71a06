"""Sums that are rounded once: equal sums are equal floats, regardless of the order of the terms."""

import math

import numpy as np

from daskls.records import Float64

__all__ = ["total", "totals"]


def total(values: Float64) -> float:
    """Return the sum of all values.

    >>> total(np.array([0.1, 0.2, 0.3])) == total(np.array([0.3, 0.2, 0.1])) == 0.6
    True
    """
    return math.fsum(values[values != 0].tolist())


def totals(values: Float64) -> Float64:
    """Return the sums along the first axis."""
    columns = np.moveaxis(values, 0, -1).reshape(-1, len(values))
    return np.array([total(column) for column in columns]).reshape(values.shape[1:])
