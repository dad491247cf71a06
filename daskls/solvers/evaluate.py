"""Evaluate the model of one cell: the one module of this package that prediction imports."""

import numpy as np

from daskls.kernels.decision import decide_pairs
from daskls.kernels.votes import vote_scores
from daskls.records import Float64, LocalModel, Reals

__all__ = ["cell_scores"]


def cell_scores(model: LocalModel, X: Reals) -> Float64:
    """Evaluate one cell's model: one GEMM and one vectorized pass of the kernel.

    Parameters
    ----------
    model : LocalModel
    X : real array, shape (m, d). Queries, as they are.

    Returns
    -------
    scores : float64 array. For two classes present shape (m,), positive for the second; for more,
        shape (m, k), one vote score a class present; for one class shape (m,), all 0.

    Notes
    -----
    In float32 only where no decision value moves by more than 1e-3; see `kernels.precision`.
    A row's result does not depend on the other rows.
    """
    n_classes = len(model.classes)
    if n_classes == 1:
        return np.zeros(len(X))
    decisions = decide_pairs(model, X)
    return decisions[:, 0] if n_classes == 2 else vote_scores(decisions, n_classes)
