"""Rows in the frame of a model: training and prediction share these functions."""

import numpy as np

from daskls.records import LARGEST_FEATURE, FeatureScale, Float32, Float64, Frame, Reals

__all__ = ["framed", "scaled"]

# Rows whose differences are held in float64 at once.
SCALED_ROWS = 4096


def framed(X: Reals, frame: Frame) -> Float64:
    """Return rows around a frame's center in its scale, float64 (m, d), C-contiguous."""
    A = np.subtract(X, frame.center, dtype=np.float64, order="C")
    # Most frames have no scale: then a division would cost a pass over the rows for nothing.
    if frame.scale is not None:
        A /= frame.scale
    return A


def scaled(X: Reals, scale: FeatureScale) -> Float32:
    """Return rows in a model's scale of features, float32 (m, d'), d' the features it keeps.

    Values are clipped to `LARGEST_FEATURE`, which a query far away may exceed: it is then equally
    far from all rows.
    """
    columns = scale.columns
    center, factors = scale.center[columns], scale.factors[columns]
    out = np.empty((len(X), len(columns)), np.float32)
    for start in range(0, len(X), SCALED_ROWS):
        # The center goes in float64: offsets may be large beside what varies.
        tile = X[start : start + SCALED_ROWS, columns].astype(np.float64) - center
        tile *= factors
        out[start : start + SCALED_ROWS] = np.clip(
            tile, -LARGEST_FEATURE, LARGEST_FEATURE, out=tile
        )
    return out
