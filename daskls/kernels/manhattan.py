"""The Laplacian kernel: it falls off with the sum of absolute differences of features."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskls.kernels.absolute import (
    TOGETHER,
    add_squared_slopes,
    fixed_distances,
    write_distances,
    write_symmetric,
)
from daskls.kernels.answers import decide_distances, decide_wide_distances, varying_columns
from daskls.kernels.distances import OfDistances
from daskls.kernels.exponential import exp_terms
from daskls.kernels.gram import DECISION_TILE_ROWS
from daskls.kernels.precision import MAX_SHIFT, sums_shift
from daskls.kernels.wide_exponential import wide_exp_terms
from daskls.records import Float32, Float64, Floats, KernelSpec, LocalModel

__all__ = ["Laplacian"]


class Laplacian(OfDistances):
    """Of the distance along the axes, as scikit-learn's `laplacian_kernel`."""

    formula = "exp(-gamma |x - z|_1)"
    width_power = 1.0
    is_raced = True
    is_euclidean = False
    # Leave-one-out squared errors of 1500 rows, at the best width of each ridge: 3e-3 loses at most
    # 0.5 % to any below it (ijcnn1 and letter; dense cells of Covtype, ijcnn1 and pendigits), 1e-2
    # as much as 1.6 %. Elsewhere the best is 3e-2 (page-blocks, satimage), 1e-1 (spambase) or 3e-1
    # (phoneme). Cells of 2000 rows stay in float32 so.
    least_ridge = 3e-3
    coarse_ridges = (3e-3, 3e-2, 3e-1)
    usual_width = 2.0

    def block(self, A: Float64, B: Float64) -> Float64:
        """See `Kernel.block`: distances."""
        out = np.empty((len(A), len(B)))
        rows, BT = padded(A, np.float64), transposed(B, np.float64)
        write_distances(rows, np.zeros(len(A)), BT, out)
        return out

    def matrix(self, A: Float64) -> Float32:
        """See `Kernel.matrix`: distances, in float32 throughout.

        No term is below 0, so that nothing cancels: what rounds is a few 1e-7 of a distance.
        """
        out = np.empty((len(A), len(A)), np.float32)
        write_symmetric(padded(A, np.float32), transposed(A, np.float32), out)
        return out

    def distances(self, A: Float64) -> Float64:
        """See `Kernel.distances`."""
        return self.block(A, A)

    def radius(self, A: Floats) -> float:
        """See `Kernel.radius`."""
        return float(np.abs(A).sum(axis=1, dtype=np.float64).max())

    def decide(self, model: LocalModel, A: Float64, out: Float64) -> None:
        """See `Kernel.decide`; in float32 if a bound of the model allows it."""
        varies = varying_columns(model.rows)
        columns, fixed = np.flatnonzero(varies), np.flatnonzero(~varies)
        # Columns in which all support rows are equal cost once a query.
        offsets = fixed_distances(A, model.rows[0].astype(np.float64), fixed)
        B = np.take(model.rows, columns, axis=1)
        kind, write, terms = self._way(model, B)
        # A query so far away that float32 has no number for it is as far from every support row.
        with np.errstate(over="ignore"):
            own, offsets = padded(np.take(A, columns, axis=1), kind), offsets.astype(kind)
        BT, base = transposed(B, kind), np.empty((DECISION_TILE_ROWS, len(B)), kind)
        for start in range(0, len(A), DECISION_TILE_ROWS):
            rows = slice(start, start + DECISION_TILE_ROWS)
            tile = base[: len(own[rows])]
            write_distances(own[rows], offsets[rows], BT, tile)
            write(tile, *terms, model.coef, model.class_ptr, out[rows])

    def _way(self, model: LocalModel, B: Float32) -> tuple[type[Any], Callable[..., None], Any]:
        """Return the dtype of distances, what decides by them, and its terms."""
        gamma, n_features = model.kernel.gamma, B.shape[1]
        shift = sums_shift(gamma, model.coef, model.class_ptr, n_features, self.radius(B))
        if shift <= MAX_SHIFT:
            return np.float32, decide_distances, exp_terms(gamma)
        return np.float64, decide_wide_distances, wide_exp_terms(gamma)

    def squared_gradients(
        self, A: Floats, alpha: Floats, K: Floats, spec: KernelSpec, at: slice
    ) -> Float64:
        """See `Kernel.squared_gradients`: along j it is gamma k sign(a_j - x_j)."""
        sums = np.zeros(A.shape[1])
        add_squared_slopes(*map(np.ascontiguousarray, (A[at], A.T, K, alpha.T)), sums)
        return sums * spec.gamma**2


def padded(A: Floats, kind: type[Any]) -> Any:
    """Return rows of a multiple of `TOGETHER` features, the new ones 0; C-contiguous.

    >>> padded(np.ones((2, 9)), np.float32).shape
    (2, 16)
    """
    m, n = A.shape
    rows = np.zeros((m, -(-n // TOGETHER) * TOGETHER), kind)
    rows[:, :n] = A
    return rows


def transposed(B: Floats, kind: type[Any]) -> Any:
    """Return rows as `padded` does, a row a feature."""
    return np.ascontiguousarray(padded(B, kind).T)
