"""Bounds on how far float32 moves decision values of kernels of distances, from the model alone.

Let u = 2^-24, x = gamma D with a squared distance D, and rho^2 = gamma r^2 with the length r of the
longest support row. Rounding in float32 moves x, and with it a kernel value exp(-x), by at most
exp(-x) times as much. The sum is in float64, so a decision value moves by at most the largest of
these errors times the sum of |coef|.

- The exponential itself has a relative error of 3e-7; three roundings of its argument add 3 u x.
- Distances from differences of n features in float32: each difference and its square 3 u, the sum
  of nonnegative terms n u, the offset that it begins with 2 u; together at most (n + 5) u x.
- The query a, cast to float32, moves by u |a|, at most u (sqrt(D) + r), since no support row is
  longer than r; so x moves by 2 u (x + rho sqrt(x)).

For the exponential kernel x = gamma sqrt(D) and rho = gamma r. The square root halves the relative
error of D and adds u of its own; the cast of the query moves x by u (x + rho).

For the Laplacian kernel x = gamma D with an L1 distance D, and rho = gamma r with the largest L1
norm r of a support row. Each difference rounds by u, then passes through 3 sums within its group of
eight features and one sum for each group; so does the offset, apart from its own cast. The cast of
the query moves x by u (x + rho).
"""

import math

import numpy as np

from daskls.kernels._jit import jit
from daskls.kernels.gram import TOGETHER
from daskls.records import Float32, Int64

# The most that float32 may move a decision value by.
MAX_SHIFT = 1e-3
_U = 2.0**-24
_EXP_ERROR = 3e-7
# With gammas outside of these limits, float32's underflow or its largest number would matter.
_MIN_GAMMA, _MAX_GAMMA = 1e-30, 1e26
# The largest x at which errors are evaluated, and the steps up to it: beyond x = 1 errors decrease.
_LAST, _STEPS = 2.0, 40


def exponential_shift(gamma: float, coef: Float32, class_ptr: Int64) -> float:
    """Return how far a decision value may move when only the exponential is in float32.

    Parameters
    ----------
    coef : float32 array, shape (k - 1, s)
    class_ptr : int64 array, shape (k + 1,)

    Returns
    -------
    shift : float. Infinity if gamma is out of the range for float32.
    """
    return _shift(gamma, coef, class_ptr, 3 * _U, 0.0)


def differences_shift(
    gamma: float, coef: Float32, class_ptr: Int64, n_features: int, radius: float
) -> float:
    """Return how far a decision value may move when distances, too, are in float32.

    Parameters
    ----------
    coef, class_ptr : as for `exponential_shift`
    n_features : int. Features whose differences are taken.
    radius : float. The length of the longest support row along these features.
    """
    rho = math.sqrt(gamma) * radius
    return _shift(gamma, coef, class_ptr, (n_features + 10) * _U, 2 * rho * _U)


def root_shift(
    gamma: float, coef: Float32, class_ptr: Int64, n_features: int = 0, radius: float = 0.0
) -> float:
    """Return how far a decision value of the exponential kernel may move in float32.

    Parameters
    ----------
    coef, class_ptr : as for `exponential_shift`
    n_features, radius : as for `differences_shift`; 0 if distances are computed in float64 and then
        rounded
    """
    # Squared distances pass through float32 as well, hence the square.
    if not _MIN_GAMMA <= gamma**2 <= _MAX_GAMMA:
        return math.inf
    by_x, flat = (n_features + 12) * _U, 2 * gamma * radius * _U
    return float(_largest_sum(coef, class_ptr) * _error_with(by_x, flat))


def sums_shift(
    gamma: float, coef: Float32, class_ptr: Int64, n_features: int, radius: float
) -> float:
    """Return how far a decision value of the Laplacian kernel may move in float32.

    Parameters
    ----------
    coef, class_ptr : as for `exponential_shift`
    n_features : int. Features whose differences are taken.
    radius : float. The largest L1 norm of a support row along these features.
    """
    if not _MIN_GAMMA <= gamma <= _MAX_GAMMA:
        return math.inf
    by_x = (math.ceil(n_features / TOGETHER) + 8) * _U
    return float(_largest_sum(coef, class_ptr) * _error_with(by_x, gamma * radius * _U))


def _shift(gamma: float, coef: Float32, class_ptr: Int64, by_x: float, by_root: float) -> float:
    """Return the largest error of a kernel value times the largest sum of |coef|."""
    if not _MIN_GAMMA <= gamma <= _MAX_GAMMA:
        return math.inf
    return float(_largest_sum(coef, class_ptr) * _largest_error(by_x, by_root))


def _error_with(by_x: float, flat: float) -> float:
    """Return the largest ``exp(-x) by_x x + flat + the exponential's error``."""
    # exp(-x) x is at most 1 / e.
    return by_x / math.e + flat + _EXP_ERROR


@jit
def _largest_error(by_x, by_root):
    """Return the largest ``exp(-x) (by_x x + by_root sqrt(x) + the exponential's error)``."""
    largest = 0.0
    for i in range(_STEPS + 1):
        x = i * (_LAST / _STEPS)
        error = math.exp(-x) * (by_x * x + by_root * math.sqrt(x) + _EXP_ERROR)
        largest = error if error > largest else largest
    # Between two places the maximum is less than 2 % larger.
    return 1.02 * largest


@jit
def _largest_sum(coef, class_ptr):
    """Return the largest sum of |coef| over the pairs of classes."""
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
