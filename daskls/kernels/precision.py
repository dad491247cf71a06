"""A bound on how far float32 moves decision values of distances, from the model alone.

With u = 2^-24, x = gamma D of a squared distance D, and rho^2 = gamma r^2 of the longest support
row: what rounds in float32 moves x, and so a kernel value exp(-x) by at most exp(-x) times that.
The sum is in float64, so a decision value moves by at most the largest of these times the sum of
|coef|.

- The exponential itself: a relative error of 3e-7, with the three roundings of its argument 3 u x.
- Distances from differences of n features in float32: each difference and its square 3 u, the sum
  of terms that are all positive n u, the offset it begins with 2 u; (n + 5) u x at the most.
- The query a, cast to float32: it moves by u |a|, at most u (sqrt(D) + r), since a support row is
  at most r long; so x moves by 2 u (x + rho sqrt(x)).

Of the exponential kernel x = gamma sqrt(D) and rho = gamma r. The square root halves the relative
error of D and adds u of its own; the cast of the query moves x by u (x + rho).

Of the Laplacian kernel x = gamma D of a sum D of absolute differences, and rho = gamma r of the
largest such sum of a support row. Each difference rounds by u, and passes through 3 sums of its
eight and one sum for each eight of features; so does the offset, but for its own cast. The cast of
the query moves x by u (x + rho).
"""

import math

import numpy as np

from daskls.kernels._jit import jit
from daskls.kernels.gram import TOGETHER
from daskls.records import Float32, Int64

# No decision value may move by more.
MAX_SHIFT = 1e-3

_U = 2.0**-24
_EXP_ERROR = 3e-7
# What float32 cannot tell from 0, and gammas with which that, or its largest number, would count.
_MIN_GAMMA, _MAX_GAMMA = 1e-30, 1e26
# All errors fall with x beyond 1.
_LAST, _STEPS = 2.0, 40


@jit
def _largest_sum(coef, class_ptr):
    """Return the largest sum of |coef| of a pair of classes."""
    n_classes = class_ptr.shape[0] - 1
    largest = 0.0
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            total = 0.0
            for j in range(class_ptr[a], class_ptr[a + 1]):
                total += abs(np.float64(coef[b - 1, j]))
            for j in range(class_ptr[b], class_ptr[b + 1]):
                total += abs(np.float64(coef[a, j]))
            largest = total if total > largest else largest
    return largest


@jit
def _largest_error(by_x, by_root):
    """Return the largest ``exp(-x) (by_x x + by_root sqrt(x) + the exponential's error)``."""
    largest = 0.0
    for i in range(_STEPS + 1):
        x = i * (_LAST / _STEPS)
        error = math.exp(-x) * (by_x * x + by_root * math.sqrt(x) + _EXP_ERROR)
        largest = error if error > largest else largest
    # Between two places it is larger by less.
    return 1.02 * largest


def exponential_shift(gamma: float, coef: Float32, class_ptr: Int64) -> float:
    """Return how far a decision value moves when the exponential alone is in float32.

    Parameters
    ----------
    gamma : float
    coef : float32 array, shape (k - 1, s)
    class_ptr : int64 array, shape (k + 1,)

    Returns
    -------
    shift : float; infinity where float32 does not reach
    """
    return _shift(gamma, coef, class_ptr, 3 * _U, 0.0)


def root_shift(
    gamma: float, coef: Float32, class_ptr: Int64, n_features: int = 0, radius: float = 0.0
) -> float:
    """Return how far a decision value of the exponential kernel moves in float32.

    Parameters
    ----------
    gamma, coef, class_ptr : as for `exponential_shift`
    n_features, radius : as for `differences_shift`; 0 where distances are taken in float64, and
        rounded then
    """
    # Squares of distances pass through float32, too.
    if not _MIN_GAMMA <= gamma**2 <= _MAX_GAMMA:
        return math.inf
    by_x, flat = (n_features + 12) * _U, 2 * gamma * radius * _U
    return float(_largest_sum(coef, class_ptr) * _error_with(by_x, flat))


def sums_shift(
    gamma: float, coef: Float32, class_ptr: Int64, n_features: int, radius: float
) -> float:
    """Return how far a decision value of the Laplacian kernel moves in float32.

    Parameters
    ----------
    gamma, coef, class_ptr : as for `exponential_shift`
    n_features : int. Of which differences are taken.
    radius : float. The largest sum of absolute values of a support row along these.
    """
    if not _MIN_GAMMA <= gamma <= _MAX_GAMMA:
        return math.inf
    by_x = (math.ceil(n_features / TOGETHER) + 8) * _U
    return float(_largest_sum(coef, class_ptr) * _error_with(by_x, gamma * radius * _U))


def _error_with(by_x: float, flat: float) -> float:
    """Return the largest ``exp(-x) by_x x + flat + the exponential's error``."""
    # exp(-x) x is at most 1 / e.
    return by_x / math.e + flat + _EXP_ERROR


def differences_shift(
    gamma: float, coef: Float32, class_ptr: Int64, n_features: int, radius: float
) -> float:
    """Return how far a decision value moves when distances are in float32 too.

    Parameters
    ----------
    gamma, coef, class_ptr : as for `exponential_shift`
    n_features : int. Of which differences are taken.
    radius : float. The length of the longest support row along these.
    """
    rho = math.sqrt(gamma) * radius
    return _shift(gamma, coef, class_ptr, (n_features + 10) * _U, 2 * rho * _U)


def _shift(gamma: float, coef: Float32, class_ptr: Int64, by_x: float, by_root: float) -> float:
    """Return the largest error of a kernel value times the largest sum of |coef|."""
    if not _MIN_GAMMA <= gamma <= _MAX_GAMMA:
        return math.inf
    return float(_largest_sum(coef, class_ptr) * _largest_error(by_x, by_root))
