"""Rows in the frame of a model: training and prediction share these functions.

The decision values of one local model.
"""

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

# Of a row's own value: rows of two values are then 1 apart in L1, as the ends of a feature in
# ranks are.
INDICATOR = 0.5

# Rows whose differences are held in float64 at once.
SCALED_ROWS = 4096


def framed(X: Reals, frame: Frame) -> Float64:
    """Return rows around a frame's center in its scale, float64 (m, d), C-contiguous."""
    A = np.subtract(X, frame.center, dtype=np.float64, order="C")
    # Most frames have no scale: then a division would cost a pass over the rows for nothing.
    if frame.scale is not None:
        A /= frame.scale
    return A


def coded(X: Reals, coding: FeatureCoding, columns: Int64) -> Float64:
    """Return some coded features of rows, float64 (m, n).

    Ranks are a piecewise linear map by the knots, and end where these end. Values are told apart as
    float32, so that a query need not be of the dtype that a model was trained on; one that no
    training row had is zeros.

    Examples
    --------
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
    """Return rows in a model's scale of features, float32 (m, d'), d' the features it keeps.

    Values are clipped to `LARGEST_FEATURE`, which a query far away may exceed: it is then equally
    far from all rows.
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
        # The center goes in float64: offsets may be large beside what varies.
        tile -= center
        tile *= factors
        out[start : start + SCALED_ROWS] = np.clip(
            tile, -LARGEST_FEATURE, LARGEST_FEATURE, out=tile
        )
    return out


def coded_names(names: list[str], scale: FeatureScale | None) -> list[str]:
    """Return the names of coded features: that of a feature, ``rank(name)``, ``name=value``.

    >>> coding = FeatureCoding(np.array([0, 0, 2]), np.array([3.0, 7.5]), np.full(2, -1.0))
    >>> coded_names(["age", "color"], FeatureScale(np.zeros(3), np.ones(3), coding))
    ['age', 'color=3', 'color=7.5']
    """
    if scale is None or scale.coding is None:
        return list(names)
    coding, found = scale.coding, []
    for name, lo, hi, is_indicated in zip(
        names, coding.ptr[:-1], coding.ptr[1:], coding.is_indicated, strict=True
    ):
        if is_indicated:
            found += [f"{name}={value:g}" for value in coding.points[lo:hi]]
        else:
            found.append(f"rank({name})" if hi > lo else name)
    return found


def decide_pairs(model: LocalModel, X: Reals) -> Float64:
    """Return the values of every decision function of a model.

    Parameters
    ----------
    model : LocalModel with coefficients: of classes, two at least
    X : real array, shape (m, d). Queries, as they are.

    Returns
    -------
    decisions : float64 array, shape (m, r): of one-vs-one one of each pair of classes, in the order
        of `votes.pairs_of`, positive for its second class; of one-vs-rest one of each class, or of
        the second of two

    Notes
    -----
    With large C a decision value is a small difference of large sums: only where a bound of the
    model says that none moves by more than `MAX_SHIFT` are kernel values in float32; the sums never
    are. A row's result does not depend on the other rows.
    """
    A = framed(X, model.frame)
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
    """Return a model of one function a class as one of pairs: a first class has all rows.

    The first decisions are then those of the pairs of that class with each other one, which have
    no rows: the functions themselves. All others are 0.
    """
    ptr = np.full(len(model.coef) + 2, len(model.rows), np.int64)
    ptr[0] = 0
    return replace(model, class_ptr=ptr)
