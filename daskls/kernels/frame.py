"""Rows in the frame of a model: training and answers put them there in one way."""

import numpy as np

from daskls.records import Float64, Frame, Reals

__all__ = ["framed"]


def framed(X: Reals, frame: Frame) -> Float64:
    """Return rows around a frame's center in its scale, float64 (m, d), C-contiguous."""
    A = np.subtract(X, frame.center, dtype=np.float64, order="C")
    # Most frames have no scale: then a division would cost a pass over the rows for nothing.
    if frame.scale is not None:
        A /= frame.scale
    return A
