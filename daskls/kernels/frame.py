"""Rows in a model's coordinates, and its decision values: shared by training and prediction."""

from dataclasses import replace

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.records import (
    LARGEST_FEATURE,
    FeatureCoding,
    FeatureScale,
    Float32,
    Float64,
    Frame,
    Int64,
    LocalModel,
    Reals,
)

# The value of an indicator that is set: rows of different values are then 1 apart in L1, as are
# the lowest and the highest rank.
INDICATOR = 0.5

# Rows held in float64 at once.
SCALED_ROWS = 4096


def frame_rows(X: Reals, frame: Frame) -> Float64:
    """Return rows minus a frame's center, divided by its scale: float64 (m, d), C-contiguous."""
    A = np.subtract(X, frame.center, dtype=np.float64, order="C")
    # Most frames have no scale: dividing by 1 would cost a pass over the rows.
    if frame.scale is not None:
        A /= frame.scale
    return A


def coded(X: Reals, coding: FeatureCoding, columns: Int64) -> Float64:
    """Return the coded features ``columns`` of rows, float64 (m, n).

    Ranks are interpolated between the knots, and constant beyond. Indicators compare values as
    float32; a value that no training row had becomes zeros.

    >>> colors = FeatureCoding(np.array([0, 0, 2]), np.array([3.0, 7.0]), np.full(2, -1.0))
    >>> coded(np.array([[0.1, 7.0], [0.2, 5.0]]), colors, np.array([0, 1, 2])).tolist()
    [[0.1, 0.0, 0.5], [0.2, 0.0, 0.0]]
    """
    out = np.empty((len(X), len(columns)))
    sources, is_indicated = coding.sources, coding.is_indicated
    first = np.searchsorted(sources, np.arange(coding.n_features))
    for at, column in enumerate(columns.tolist()):
        source = sources[column]
        lo, hi = coding.ptr[source], coding.ptr[source + 1]
        if is_indicated[source]:
            value = np.float32(coding.points[lo + column - first[source]])
            out[:, at] = (X[:, source].astype(np.float32) == value) * INDICATOR
        elif hi > lo:
            out[:, at] = np.interp(X[:, source], coding.points[lo:hi], coding.ranks[lo:hi])
        else:
            out[:, at] = X[:, source]
    return out


def scaled(X: Reals, scale: FeatureScale) -> Float32:
    """Return rows coded and scaled, float32 (m, d'), of the d' features that the scale keeps.

    Values are clipped to `LARGEST_FEATURE`: a query far away is equally far from all rows.
    """
    columns = scale.columns
    center, factors = scale.center[columns], scale.factors[columns]
    out = np.empty((len(X), len(columns)), np.float32)
    for start in range(0, len(X), SCALED_ROWS):
        rows = X[start : start + SCALED_ROWS]
        if scale.coding is None:
            tile = rows[:, columns].astype(np.float64)
        else:
            tile = coded(rows, scale.coding, columns)
        # The center is subtracted in float64: it may be large compared to the spread of values.
        tile -= center
        tile *= factors
        out[start : start + SCALED_ROWS] = np.clip(
            tile, -LARGEST_FEATURE, LARGEST_FEATURE, out=tile
        )
    return out


def encoded_names(names: list[str], scale: FeatureScale | None) -> list[str]:
    """Return the names of coded features: ``name``, ``rank(name)`` or ``name=value``.

    >>> coding = FeatureCoding(np.array([0, 0, 2]), np.array([3.0, 7.5]), np.full(2, -1.0))
    >>> encoded_names(["age", "color"], FeatureScale(np.zeros(3), np.ones(3), coding))
    ['age', 'color=3', 'color=7.5']
    """
    if scale is None or scale.coding is None:
        return list(names)
    coding, encoded = scale.coding, []
    for name, lo, hi, is_indicated in zip(
        names, coding.ptr[:-1], coding.ptr[1:], coding.is_indicated, strict=True
    ):
        if is_indicated:
            encoded += [f"{name}={value:g}" for value in coding.points[lo:hi]]
        else:
            encoded.append(f"rank({name})" if hi > lo else name)
    return encoded


def decide_pairs(model: LocalModel, X: Reals) -> Float64:
    """Return the decisions (m, r) of every function of a model, which is no constant.

    One-vs-one: a column per pair of classes, positive for the second class of the pair.
    One-vs-rest: a column per class, or one for the second of two classes. Kernel values are in
    float32 only where a bound from the model says that no decision value moves by more than
    `MAX_SHIFT`; sums are always in float64. A row's result does not depend on the other rows.
    """
    if not len(model.rows):
        # A regression of equal numbers has its offsets alone.
        return np.repeat(model.intercepts[None], len(X), axis=0)
    A = frame_rows(X, model.frame)
    n_functions = len(model.intercepts)
    if model.decision != "ovo":
        model = as_pairs(model)
    n_classes = len(model.class_ptr) - 1
    decisions = np.empty((len(X), n_classes * (n_classes - 1) // 2))
    find_kernel(model.kernel.name).decide(model, A, decisions)
    decisions = decisions[:, :n_functions]
    decisions += model.intercepts
    return decisions


def as_pairs(model: LocalModel) -> LocalModel:
    """Return a model of one function per class as one of pairs: the first class gets all rows."""
    ptr = np.full(len(model.coef) + 2, len(model.rows), np.int64)
    ptr[0] = 0
    return replace(model, class_ptr=ptr)
