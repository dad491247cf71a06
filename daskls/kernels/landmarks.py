"""Rows projected onto landmarks, features and decisions of these, and a sample's normalization.

The center and the scale of a sample make a method independent of the features' common unit.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from daskls.kernels._jit import exact_jit
from daskls.kernels.kernel import find_kernel
from daskls.kernels.route import padded_tiles
from daskls.records import Float64, KernelSpec, Reals

# exp(-700) is 1e-304: negligible in any sum, and not subnormal.
LEAST_EXPONENT = -700.0
# Rows held in float64 at once.
NORMALIZED_ROWS = 8192
# Normalized rows are rounded to multiples of this. Clustering then sees the same bits whatever the
# unit of the features, and rows that are equally near to two centers stay so.
NORMALIZED_STEP = 2.0**-20


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A kernel's feature map of projections, projected on the span of the images of l points.

    Features are ``root k(points, m)``: points (l, l) are projections, root (l, l) is the inverse
    symmetric root of their kernel matrix.
    """

    kernel: KernelSpec
    points: Float64
    root: Float64

    def apply(self, M: Float64) -> Float64:
        """Return the features (r, l) of projections, as many in every call."""
        kernel = find_kernel(self.kernel.name)
        base = kernel.block(M, self.points)
        return kernel.apply(base, self.kernel, base) @ self.root


def project_tiles(
    X: Reals,
    center: Float64,
    landmarks: Float64,
    gamma: float | None,
    features: FeatureMap | None = None,
) -> Iterator[tuple[slice, Float64]]:
    """Yield the projections (r, l) of rows, or their features; tile by tile, each row's by itself.

    With gamma, projections are ``exp(-gamma |x - center - z|^2)``; without, ``(x - center) . z``.
    Call it with one BLAS thread.
    """
    norms = np.einsum("ij,ij->i", landmarks, landmarks)
    for rows, tile in padded_tiles(X, center):
        projected = tile @ landmarks.T
        if gamma is not None:
            projected *= -2.0
            projected += norms
            projected += np.einsum("ij,ij->i", tile, tile)[:, None]
            np.maximum(projected, 0.0, out=projected)
            projected *= -gamma
            np.maximum(projected, LEAST_EXPONENT, out=projected)
            np.exp(projected, out=projected)
        if features is not None:
            projected = features.apply(projected)
        yield rows, projected[: rows.stop - rows.start]


def project_rows(
    X: Reals,
    center: Float64,
    landmarks: Float64,
    gamma: float | None,
    features: FeatureMap | None = None,
) -> Float64:
    projected = np.empty((len(X), len(landmarks)))
    for rows, tile in project_tiles(X, center, landmarks, gamma, features):
        projected[rows] = tile
    return projected


def mean_square(
    X: Reals,
    center: Float64,
    landmarks: Float64,
    gamma: float | None,
    features: FeatureMap | None = None,
) -> float:
    tiles = project_tiles(X, center, landmarks, gamma, features)
    return math.fsum(float((tile * tile).sum()) for _, tile in tiles) / len(X)


@exact_jit
def decide_linear(M, cells, theta, intercept, out):
    """Write theta[cell] . m + intercept of each row m, summed in an order fixed by l."""
    whole = M.shape[1] - M.shape[1] % 4
    for i in range(M.shape[0]):
        coef = theta[cells[i]]
        t0 = 0.0
        t1 = 0.0
        t2 = 0.0
        t3 = 0.0
        for j in range(0, whole, 4):
            t0 += M[i, j] * coef[j]
            t1 += M[i, j + 1] * coef[j + 1]
            t2 += M[i, j + 2] * coef[j + 2]
            t3 += M[i, j + 3] * coef[j + 3]
        for j in range(whole, M.shape[1]):
            t0 += M[i, j] * coef[j]
        out[i] = (t0 + t1) + (t2 + t3) + intercept


@dataclass(frozen=True, eq=False)
class Normalization:
    """The mean of rows, and their root mean square distance from it; 1 for equal rows."""

    center: Float64
    scale: float

    def rows(self, X: Reals) -> Float64:
        """Return normalized rows, float64 (m, d), rounded to multiples of `NORMALIZED_STEP`."""
        unit = np.subtract(X, self.center, dtype=np.float64)
        unit /= self.scale
        unit /= NORMALIZED_STEP
        np.rint(unit, out=unit)
        unit *= NORMALIZED_STEP
        return unit


def find_normalization(X: Reals) -> Normalization:
    """Return the center and the scale of rows, exact under a power of two."""
    mean = X.mean(axis=0, dtype=np.float64)
    # The mean of many rows far from 0 has rounded: the small residuals around it correct that.
    residual = sum((tile.sum(axis=0) for tile in _centered(X, mean)), np.zeros(X.shape[1]))
    center = mean + residual / len(X)
    total = sum(float((tile * tile).sum()) for tile in _centered(X, center))
    return Normalization(center, float(np.sqrt(total / len(X))) or 1.0)


def _centered(X: Reals, center: Float64) -> Iterator[Float64]:
    """Yield rows minus a center in float64, tile by tile."""
    for start in range(0, len(X), NORMALIZED_ROWS):
        yield np.subtract(X[start : start + NORMALIZED_ROWS], center, dtype=np.float64)
