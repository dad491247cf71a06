"""The decision values of one local model."""

from dataclasses import replace

import numpy as np

from daskls.kernels.answers import (
    UNROLLED,
    decide_directly,
    decide_products,
    decide_products_narrowly,
    decide_roots,
    decide_roots_directly,
    decide_roots_narrowly,
    gather_columns,
    varying_columns,
)
from daskls.kernels.exponential import exp_terms
from daskls.kernels.frame import framed
from daskls.kernels.gram import (
    apply_kernel,
    base_block,
    product_tiles,
    squared_norms,
)
from daskls.kernels.precision import MAX_SHIFT, differences_shift, exponential_shift, root_shift
from daskls.kernels.votes import pair_decisions
from daskls.kernels.wide_exponential import wide_exp_terms
from daskls.records import DISTANCE_KERNELS, Float64, Floats, LocalModel, Reals

__all__ = ["decide_pairs"]

# Features up to which differences in float32 cost less than a product in float64. What decides is
# a function of the model alone: the ways round differently.
DIRECT_FEATURES = 24
# Rows of a product: whole tiles of OpenBLAS, few of them padding where a cell has few queries.
DECISION_TILE_ROWS = 48


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
    if model.decision == "ovr":
        model = as_pairs(model)
    n_classes = len(model.class_ptr) - 1
    decisions = np.empty((len(X), n_classes * (n_classes - 1) // 2))
    if model.kernel.name in DISTANCE_KERNELS:
        _decide_by_distance(model, A, decisions)
    else:
        base = base_block(A, model.rows.astype(np.float64), model.kernel.name)
        K = apply_kernel(base, model.kernel, base)
        pair_decisions(K, model.coef, model.class_ptr, decisions)
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


def _decide_by_distance(model: LocalModel, A: Float64, out: Float64) -> None:
    """Write the decision values of a model whose kernel is a function of distances."""
    varies = varying_columns(model.rows)
    # Many features of a cell are constant, indicators most of all: they cost once a query.
    columns, fixed = np.flatnonzero(varies), np.flatnonzero(~varies)
    own, offsets = np.empty((len(A), len(columns))), np.empty(len(A))
    gather_columns(A, model.rows[0].astype(np.float64), columns, fixed, own, offsets)
    B = model.rows[:, columns].astype(np.float64)
    norms = squared_norms(B)
    if _is_narrow(model, len(columns), norms):
        _decide_directly(model, own, offsets, B, out)
        return
    offsets += squared_norms(own)
    gamma, coef, class_ptr = model.kernel.gamma, model.coef, model.class_ptr
    is_rbf = model.kernel.name == "rbf"
    decide, terms = decide_products if is_rbf else decide_roots, wide_exp_terms(gamma)
    shift = exponential_shift if is_rbf else root_shift
    if shift(gamma, coef, class_ptr) <= MAX_SHIFT:
        decide = decide_products_narrowly if is_rbf else decide_roots_narrowly
        terms = exp_terms(gamma)
    for rows, products in product_tiles(own, B, DECISION_TILE_ROWS):
        decide(products, offsets[rows], norms, *terms, coef, class_ptr, out[rows])


def _is_narrow(model: LocalModel, n_features: int, norms: Float64) -> bool:
    """Whether float32 serves the distances too, and differences are the quickest way to them."""
    if n_features > DIRECT_FEATURES:
        return False
    gamma, radius = model.kernel.gamma, float(np.sqrt(norms.max()))
    bound = differences_shift if model.kernel.name == "rbf" else root_shift
    return bound(gamma, model.coef, model.class_ptr, n_features, radius) <= MAX_SHIFT


def _decide_directly(
    model: LocalModel, A: Float64, offsets: Floats, B: Float64, out: Float64
) -> None:
    """Write decision values from differences of features in float32."""
    n = B.shape[1]
    width = -(-n // UNROLLED) * UNROLLED
    BT, narrow = np.zeros((width, len(B)), np.float32), np.zeros((len(A), width), np.float32)
    BT[:n] = B.T
    # A query so far away that float32 has no number for it is as far from every support row.
    with np.errstate(over="ignore"):
        narrow[:, :n] = A
        offsets = offsets.astype(np.float32)
    terms = exp_terms(model.kernel.gamma)
    decide = decide_directly if model.kernel.name == "rbf" else decide_roots_directly
    decide(narrow, offsets, BT, *terms, model.coef, model.class_ptr, out)
