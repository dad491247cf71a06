"""One SVM on rows of any number, by scikit-learn's SVC: no matrix of all rows is held."""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.kernels.frame import framed
from daskls.records import (
    F4,
    F8,
    MIB,
    CellReport,
    Float64,
    Int64,
    Ints,
    KernelSpec,
    LocalModel,
    Reals,
    SolverSpec,
)
from daskls.solvers.base import ROW_TEMPORARIES, Sizes
from daskls.solvers.rows import LocalRows, kernel_of

# As in libsvm: beyond so many steps, or so many a row, a solve is given up.
MAX_LARGE_STEPS = 10_000_000
STEPS_PER_ROW = 100
# float32 holds what is smaller with fewer digits, or as 0.
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
# What a cache below costs in time is more than it saves in memory.
MIN_CACHE_NBYTES = 8 * MIB


def fit_large(
    X: Reals,
    codes: Ints,
    weights: Float64,
    spec: SolverSpec,
    report: CellReport,
    cache_nbytes: int,
) -> tuple[LocalModel, Int64]:
    """Train one SVM and lay it out as a local model.

    Parameters
    ----------
    X : real array, shape (m, d). Their order decides bits, so it should be that of row numbers.
    codes : int array, shape (m,)
    weights : float64 array, shape (m,), > 0. They multiply C.
    spec : SolverSpec of one C and one gamma. Its tol is libsvm's: the largest violation of the
        optimality conditions.
    report : CellReport. Carries the cell's number; the rest is filled in.
    cache_nbytes : int. Of kernel values; changes the time only.

    Returns
    -------
    model : LocalModel. A constant where one class is present, or all rows are equal.
    support : int64 array, increasing. The support rows; none of a constant.

    Raises
    ------
    DataError : rows that differ by less than float32 resolves

    Notes
    -----
    Kernels are taken as of `LocalRows.of_neighbors`. One-vs-one.
    """
    own = LocalRows.of_neighbors(X, codes, weights, spec)
    report = own.described(report)
    if len(own.classes) == 1 or (X[0] == X).all():
        return own.constant(report), np.empty(0, np.int64)
    _check_spread(X, own)
    kernel = kernel_of(spec, spec.gamma[0] if spec.gamma else 1.0)
    cost = float((spec.C or (1.0,))[0])
    svc, most = _train(own, kernel, cost, spec.tol, cache_nbytes)
    # scikit-learn's values of more than two classes speak for the first class of a pair.
    sign = 1.0 if len(own.classes) == 2 else -1.0
    steps = np.atleast_1d(svc.n_iter_)
    report = replace(
        report,
        C=cost,
        gamma=kernel.gamma,
        n_steps=int(steps.sum()),
        n_at_limit=int((steps >= most).sum()),
        n_support=len(svc.support_),
        n_trained=len(svc.intercept_),
        seconds=time.perf_counter() - own.started,
    )
    model = LocalModel(
        frame=own.frame,
        rows=own.rows[svc.support_],
        coef=np.ascontiguousarray(sign * svc.dual_coef_, np.float32),
        classes=own.classes.astype(np.int32),
        class_ptr=np.r_[0, np.cumsum(svc.n_support_)].astype(np.int64),
        intercepts=sign * svc.intercept_,
        kernel=kernel,
        report=report,
    )
    return model, np.sort(svc.support_).astype(np.int64)


def _check_spread(X: Reals, own: LocalRows) -> None:
    """Refuse rows that differ, but are nearly or all 0 in the float32 that models keep.

    Raises
    ------
    DataError
    """
    if own.radius < SMALLEST_NORMAL:
        spread = float(np.abs(framed(X, own.frame)).max())
        of = "their mean" if own.frame.center.any() else "the origin"
        raise DataError(
            f"The features of the {len(X)} rows that one SVM trains on are within {spread:.3g} of "
            f"{of}, but models keep them as float32, which is inexact below {SMALLEST_NORMAL:.3g}. "
            "Scale the features, as to unit variance."
        )


def _train(
    own: LocalRows, kernel: KernelSpec, cost: float, tol: float, cache_nbytes: int
) -> tuple[Any, int]:
    """Return the trained SVC, and the most steps that each of its solves had."""
    # Here, so that a process which only predicts never loads it.
    from sklearn.svm import SVC

    m = len(own.rows)
    most = max(MAX_LARGE_STEPS, STEPS_PER_ROW * m)
    svc = SVC(
        C=cost,
        kernel=kernel.name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        tol=tol,
        # More than all kernel values there are is never used.
        cache_size=max(min(cache_nbytes, 4 * m * m + MIB), MIN_CACHE_NBYTES) / MIB,
        max_iter=most,
    )
    # Counted in the report, from which the estimator warns. Not by a filter of warnings: those are
    # the process's, and its other threads train too.
    svc._warn_from_fit_status = lambda: None
    svc.fit(own.rows.astype(np.float64), own.classes[own.present], own.weights)
    return svc, most


def held_nbytes(sizes: Sizes, n_rows: int) -> int:
    """Return the bytes of centered rows and of a solution in which all are support rows."""
    m, d, k = n_rows, sizes.n_features, sizes.n_classes
    return m * d * F4 + m * ROW_TEMPORARIES + m * (k - 1) * (2 * F8 + F4)


def large_nbytes(sizes: Sizes, n_rows: int) -> int:
    """Return the bytes that `fit_large` adds to those of the rows it is given: the least cache."""
    # The rows go to libsvm as float64, which copies them.
    return held_nbytes(sizes, n_rows) + n_rows * sizes.n_features * 2 * F8 + MIN_CACHE_NBYTES
