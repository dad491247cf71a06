"""The decision values of one local model."""

import numpy as np

from daskls.kernels.gram import apply_kernel, base_block, centered
from daskls.kernels.votes import pair_decisions
from daskls.records import FloatArray, LocalModel

__all__ = ["decide_pairs"]


def decide_pairs(model: LocalModel, X: FloatArray) -> FloatArray:
    """Return the decision values of every pair of the classes present: one GEMM, one kernel pass.

    Parameters
    ----------
    model : LocalModel of k classes, k >= 2
    X : real array, shape (m, d). Queries, not centered.

    Returns
    -------
    decisions : float64 array, shape (m, k (k - 1) / 2), in the order of `votes.pairs_of`;
        positive speaks for the second class of a pair

    Notes
    -----
    All in float64: with C in the hundreds a decision value is a small difference of large sums.
    A row's result does not depend on the other rows.
    """
    A = centered(X, model.center)
    base = base_block(A, model.rows.astype(np.float64), model.kernel.name)
    K = apply_kernel(base, model.kernel, base)
    n_classes = len(model.classes)
    decisions = np.empty((len(X), n_classes * (n_classes - 1) // 2))
    pair_decisions(K, model.coef, model.class_ptr, decisions)
    decisions += model.intercepts
    return decisions
