"""The decision values of one local model."""

from dataclasses import replace

import numpy as np

from daskls.kernels.frame import framed
from daskls.kernels.registry import find_kernel
from daskls.records import Float64, LocalModel, Reals

__all__ = ["decide_pairs"]


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
