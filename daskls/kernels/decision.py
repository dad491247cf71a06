"""The decision values of one local model."""

import numpy as np

from daskls.kernels.answers import (
    UNROLLED,
    decide_directly,
    decide_products,
    gather_columns,
    varying_columns,
)
from daskls.kernels.gram import (
    apply_kernel,
    base_block,
    centered,
    product_tiles,
    squared_norms,
)
from daskls.kernels.votes import pair_decisions
from daskls.kernels.wide_exponential import wide_exp_terms
from daskls.records import FloatArray, LocalModel

__all__ = ["decide_pairs"]

# Features up to which differences cost no more than a product, whose tiles are padded. What
# decides is a function of the model alone: the two ways round differently.
DIRECT_FEATURES = 16


def decide_pairs(model: LocalModel, X: FloatArray) -> FloatArray:
    """Return the decision values of every pair of the classes present.

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
    n_classes = len(model.classes)
    decisions = np.empty((len(X), n_classes * (n_classes - 1) // 2))
    if model.kernel.name == "rbf":
        _decide_rbf(model, A, decisions)
    else:
        base = base_block(A, model.rows.astype(np.float64), model.kernel.name)
        K = apply_kernel(base, model.kernel, base)
        pair_decisions(K, model.coef, model.class_ptr, decisions)
    decisions += model.intercepts
    return decisions


def _decide_rbf(model: LocalModel, A: FloatArray, out: FloatArray) -> None:
    """Write the decision values of a model whose kernel is a function of distances."""
    varies = varying_columns(model.rows)
    columns, fixed = np.flatnonzero(varies), np.flatnonzero(~varies)
    # Many features of a cell are constant, indicators most of all: they cost once a query.
    n = len(columns)
    is_direct = n <= DIRECT_FEATURES
    width = -(-n // UNROLLED) * UNROLLED if is_direct else n
    own, offsets = np.zeros((len(A), width)), np.empty(len(A))
    gather_columns(A, model.rows[0].astype(np.float64), columns, fixed, own, offsets)
    B = model.rows[:, columns].astype(np.float64)
    terms = *wide_exp_terms(model.kernel.gamma), model.coef, model.class_ptr
    if is_direct:
        BT = np.zeros((width, len(B)))
        BT[:n] = B.T
        decide_directly(own, offsets, BT, *terms, out)
        return
    offsets += squared_norms(own)
    norms = squared_norms(B)
    for rows, products in product_tiles(own, B):
        decide_products(products, offsets[rows], norms, *terms, out[rows])
