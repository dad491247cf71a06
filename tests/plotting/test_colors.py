"""Colors of classes: apart as they are, without red or green, and in gray."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from daskls.plotting.plane import CLASS_COLORS

# Machado, Oliveira and Fernandes 2009, severity 1: of linear RGB.
PROTAN = [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
]
DEUTAN = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.011820, 0.042940, 0.968881],
]
GRAY = [[0.2126, 0.7152, 0.0722]] * 3
XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def lab(color, view):
    """Return a color as somebody sees it, in CIE Lab."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.array(XYZ) @ np.clip(np.array(view) @ linear, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(seen > 0.008856, np.cbrt(seen), 7.787 * seen + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize(
    ("view", "least"), [(np.eye(3), 35), (PROTAN, 20), (DEUTAN, 15), (GRAY, 10)]
)
def test_classes_are_told_apart_by_everybody(view, least):
    pairs = combinations([lab(color, view) for color in CLASS_COLORS], 2)
    assert min(np.linalg.norm(a - b) for a, b in pairs) > least
