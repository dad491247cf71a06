"""A bound on how far float32 moves decision values of kernels of distances, from the model alone.

Let u = 2^-24, and x the gamma times the distance (or its square) of a kernel value exp(-x). An
error of x moves the value by at most exp(-x) times as much. The sum is in float64, so a decision
value moves by at most the largest error of a value times the sum of |coef|.

- The exponential itself has a relative error of 3e-7.
- x is rounded n times, by n u x in all, and exp(-x) x is at most 1 / e. A distance that is computed
  in float64 is rounded when it is cast, by a square root, and twice by the exponential: n = 4.
- Of a distance from differences in float32, each difference and its square round by 3 u, then pass
  through one sum for each feature; the Laplacian kernel's through 3 sums within a group of eight
  features and one sum for each group. Contributions of further features round when cast and added.
- The query a, cast to float32, moves by u |a|, at most u (distance + r) with the length r of the
  longest support row. That moves x by u (x + gamma r); by 2 u (x + sqrt(gamma x) r) where x is of
  the squared distance, and 2 exp(-x) sqrt(x) is less than 1.
"""

import math

import numpy as np

from daskls.kernels._jit import jit
from daskls.records import Float32, Int64

# The most that float32 may move a decision value by.
MAX_SHIFT = 1e-3
_U = 2.0**-24
_EXP_ERROR = 3e-7
# With gammas outside of these limits, float32's underflow or its largest number would matter.
_MIN_GAMMA, _MAX_GAMMA = 1e-15, 1e13


def largest_shift(
    gamma: float, coef: Float32, class_ptr: Int64, n_roundings: int = 4, moved: float = 0.0
) -> float:
    """Return how far a decision value may move in float32; infinity if gamma is out of its range.

    x rounds `n_roundings` times; the casts of queries move it by `moved` u beyond that.
    """
    if not _MIN_GAMMA <= gamma <= _MAX_GAMMA:
        return math.inf
    error = (n_roundings / math.e + moved) * _U + _EXP_ERROR
    return float(_largest_sum(coef, class_ptr) * error)


@jit
def _largest_sum(coef, class_ptr):
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
