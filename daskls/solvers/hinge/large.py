"""One SVM on any number of rows, by scikit-learn's SVC.

Of the hinge loss, the kernel matrix is never held whole. The dual of the squared hinge, ``C sum w
max(0, 1 - y f)^2``, has no upper bounds, and ``K + diag(1 / (2 C w))``, which is held, for K.

Source of the latter: Cristianini, Shawe-Taylor: An introduction to support vector machines, 2000,
section 6.1.2.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np

from daskls.errors import DataError
from daskls.kernels.frame import frame_rows
from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.kernel import find_kernel
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
from daskls.solvers.registry import LARGE_LOSSES
from daskls.solvers.rows import LocalRows, kernel_of

# As in libsvm: a solve is given up after this many steps, or steps per row.
MAX_LARGE_STEPS = 10_000_000
STEPS_PER_ROW = 100
# float32 holds smaller values with fewer digits, or as 0.
SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)
# A smaller cache costs more time than it saves memory.
MIN_CACHE_NBYTES = 8 * MIB
# A row's alpha, 2 C w times its slack, is at most 2 C sqrt(w sum w): 0 has the objective C sum w.
UNREACHED = 4.0


def fit_large(
    X: Reals,
    codes: Ints,
    weights: Float64,
    spec: SolverSpec,
    report: CellReport,
    cache_nbytes: int,
    loss: str = "hinge",
) -> tuple[LocalModel, Int64]:
    """Train one SVM; return it as a local model, with its support rows, increasing.

    Pass rows by increasing number: their order affects bits. The spec has one C and one gamma; its
    tol is libsvm's. The cache changes only the time.
    """
    local = LocalRows.of(X, codes, weights, spec)
    report = local.described(report)
    if len(local.classes) == 1 or (X[0] == X).all():
        return local.constant(report), np.empty(0, np.int64)
    _check_spread(X, local)
    kernel = kernel_of(spec, spec.gamma[0] if spec.gamma else 1.0)
    cost = float((spec.C or (1.0,))[0])
    svc, most = _train(local, kernel, cost, spec.tol, cache_nbytes, loss)
    # With more than two classes, scikit-learn's values are positive for the first class of a pair.
    sign = 1.0 if len(local.classes) == 2 else -1.0
    steps = np.atleast_1d(svc.n_iter_)
    report = replace(
        report,
        C=cost,
        gamma=kernel.gamma,
        n_steps=int(steps.sum()),
        n_at_limit=int((steps >= most).sum()),
        n_support=len(svc.support_),
        n_trained=len(svc.intercept_),
        seconds=time.perf_counter() - local.started,
    )
    model = LocalModel(
        frame=local.frame,
        rows=local.rows[svc.support_],
        coef=np.ascontiguousarray(sign * svc.dual_coef_, np.float32),
        classes=local.classes.astype(np.int32),
        class_ptr=np.r_[0, np.cumsum(svc.n_support_)].astype(np.int64),
        intercepts=sign * svc.intercept_,
        kernel=kernel,
        report=report,
    )
    return model, np.sort(svc.support_).astype(np.int64)


def _check_spread(X: Reals, local: LocalRows) -> None:
    if local.radius < SMALLEST_NORMAL:
        spread = float(np.abs(frame_rows(X, local.frame)).max())
        of = "their mean" if local.frame.center.any() else "the origin"
        raise DataError(
            f"The features of the {len(X)} rows that one SVM trains on are within {spread:.3g} of "
            f"{of}, but models keep them as float32, which is inexact below {SMALLEST_NORMAL:.3g}. "
            "Scale the features, as to unit variance."
        )


def _train(
    local: LocalRows, kernel: KernelSpec, cost: float, tol: float, cache_nbytes: int, loss: str
) -> tuple[Any, int]:
    # Imported here so that a process that only predicts never loads it.
    from sklearn.svm import SVC

    m = len(local.rows)
    most = max(MAX_LARGE_STEPS, STEPS_PER_ROW * m)
    svc = SVC(
        C=cost,
        kernel=kernel.name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        tol=tol,
        # More than all kernel values is never used.
        cache_size=max(min(cache_nbytes, 4 * m * m + MIB), MIN_CACHE_NBYTES) / MIB,
        max_iter=most,
    )
    # The report counts solves at the limit, and the estimator warns. Warnings are silenced here, as
    # a filter would change the whole process, in which other threads train too.
    svc._warn_from_fit_status = lambda: None
    rows, codes = local.rows.astype(np.float64), local.classes[local.present]
    if LARGE_LOSSES[loss]:
        bound = UNREACHED * cost * float(np.sqrt(local.weights.max() * local.weights.sum()))
        svc.set_params(kernel="precomputed", C=bound).fit(_ridged(rows, kernel, local, cost), codes)
    else:
        svc.fit(rows, codes, local.weights)
    return svc, most


def _ridged(rows: Float64, kernel: KernelSpec, local: LocalRows, cost: float) -> Float64:
    """Return the kernel matrix with the ridge of each row's weight."""
    function = find_kernel(kernel.name)
    base = function.block(rows, rows)
    K = function.apply(base, kernel, base)
    K.flat[:: len(K) + 1] += 0.5 / (cost * local.weights)
    return K


def solution_nbytes(sizes: Sizes, n_rows: int) -> int:
    m, d, k = n_rows, sizes.n_features, sizes.n_classes
    return m * d * F4 + m * ROW_TEMPORARIES + m * (k - 1) * (2 * F8 + F4)


def large_nbytes(sizes: Sizes, n_rows: int, loss: str) -> int:
    # libsvm gets the rows in float64, and copies them; or the matrix, which is made in tiles.
    matrix = n_rows * (n_rows + 2 * GRAM_TILE_ROWS) * F8 if LARGE_LOSSES[loss] else 0
    rows = n_rows * sizes.n_features * 2 * F8
    return solution_nbytes(sizes, n_rows) + rows + matrix + MIN_CACHE_NBYTES
