"""Copies among the rows of a neighborhood: rows of equal features and an equal target are one unit.

A unit is trained on once, with the weight of all its copies, and no split parts it.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from daskls.kernels.copies import find_copies
from daskls.records import Float64, Int64
from daskls.solvers.base import Neighborhood
from daskls.solvers.rows import LocalRows


class CopyGroups(NamedTuple):
    """The first copy of each unit; those with a copy among the inner rows come first."""

    first: Int64
    weights: Float64
    n_inner: int

    def of(self, local: LocalRows) -> LocalRows:
        if len(self.first) == len(local.rows):
            return local
        rows, present = local.rows[self.first], local.present[self.first]
        return replace(local, rows=rows, present=present, weights=self.weights)


def find_units(near: Neighborhood) -> CopyGroups:
    copies = find_copies(near.X, near.targets)
    if copies is None:
        return CopyGroups(np.arange(len(near.X)), near.weights, near.n_inner)
    first, unit = copies
    n_inner = int(unit[: near.n_inner].max(initial=-1)) + 1
    weights: Float64 = np.bincount(unit, near.weights).astype(np.float64, copy=False)
    return CopyGroups(first, weights, n_inner)
