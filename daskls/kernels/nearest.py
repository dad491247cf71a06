"""The k nearest rows of each query, kept in a heap: approximate distances first, exact ones last.

What gives the approximate distances (kernels/blocks.py, or a GEMM for those of a polynomial kernel)
is right but for a bounded rounding error. A row whose approximate distance cannot be among the k
smallest is passed over; for the others the distance is summed anew, feature by feature in float64.
The order is that of (exact squared distance, row number): no two rows share a rank in it, so the
result does not depend on the order in which rows are offered.

Percentiles of the distances in a matrix, without an index of pairs and without a sort of all.
"""

import numpy as np

from daskls.kernels._jit import exact_jit, jit
from daskls.records import Float64, Int64, RowNumbers

# The number of a slot in a heap that holds no row yet: it comes after every row's.
EMPTY = np.iinfo(np.int64).max
# By how much bounds are widened, relative to the lengths they are made of: far above what float64
# rounds, far below what anybody would notice.
MARGIN = 1e-9


@exact_jit
def squared_distance(a, b):
    """Return the squared distance of two rows, summed in the order of the features."""
    total = 0.0
    for j in range(a.shape[0]):
        step = np.float64(a[j]) - np.float64(b[j])
        total += step * step
    return total


@exact_jit
def _power(base, degree):
    """Return ``base`` to a whole power, by repeated products in a fixed order."""
    result = 1.0
    for _ in range(degree):
        result *= base
    return result


@exact_jit
def polynomial_distance(a, b, gamma, coef0, degree):
    """Return the squared distance of two rows in the feature space of a polynomial kernel.

    Source: Segata and Blanzieri 2009, equations 4 and 5.
    """
    aa = 0.0
    bb = 0.0
    ab = 0.0
    for j in range(a.shape[0]):
        x = np.float64(a[j])
        z = np.float64(b[j])
        aa += x * x
        bb += z * z
        ab += x * z
    distance = (
        _power(gamma * aa + coef0, degree)
        + _power(gamma * bb + coef0, degree)
        - 2.0 * _power(gamma * ab + coef0, degree)
    )
    return distance if distance > 0.0 else 0.0


@jit
def bound_distances(queries, centers, r_min, r_max, low, high, out):
    """Write what the squared distance of each query to any row of each region is at least.

    A region's rows lie between two spheres around its center, and in a box.

    Parameters
    ----------
    queries : float64 array, shape (q, d)
    centers, low, high : float64 arrays, shape (n, d)
    r_min, r_max : float64 arrays, shape (n,)
    out : float64 array, shape (q, n). Overwritten.
    """
    d = queries.shape[1]
    for i in range(queries.shape[0]):
        q = queries[i]
        for r in range(centers.shape[0]):
            to_center = 0.0
            to_box = 0.0
            for j in range(d):
                x = q[j]
                step = x - centers[r, j]
                to_center += step * step
                below = low[r, j] - x
                above = x - high[r, j]
                out_of = below if below > above else above
                out_of = out_of if out_of > 0.0 else 0.0
                to_box += out_of * out_of
            distance = np.sqrt(to_center)
            outside = distance - r_max[r]
            inside = r_min[r] - distance
            gap = (outside if outside > inside else inside) - MARGIN * (distance + r_max[r])
            gap = gap if gap > 0.0 else 0.0
            to_box *= 1.0 - MARGIN
            out[i, r] = gap * gap if gap * gap > to_box else to_box


@exact_jit
def sink(keys, numbers, positions, top):
    """Restore a max-heap whose entry at ``top`` may be too small."""
    n = keys.shape[0]
    while True:
        child = 2 * top + 1
        if child >= n:
            return
        other = child + 1
        if other < n and (
            keys[other] > keys[child]
            or (keys[other] == keys[child] and numbers[other] > numbers[child])
        ):
            child = other
        if keys[child] < keys[top] or (keys[child] == keys[top] and numbers[child] <= numbers[top]):
            return
        keys[top], keys[child] = keys[child], keys[top]
        numbers[top], numbers[child] = numbers[child], numbers[top]
        positions[top], positions[child] = positions[child], positions[top]
        top = child


@exact_jit
def count_empty(numbers):
    """Return how many slots of a heap hold no row yet: they are its first ones."""
    n = 0
    while n < numbers.shape[0] and numbers[n] == EMPTY:
        n += 1
    return n


@exact_jit
def insert(heap, distance, number, position, n_empty):
    """Put a row into a heap whose first ``n_empty`` slots hold none; return whether it went in.

    Nothing is in order until the last slot is filled: that costs less than a heap of the first
    rows.
    """
    keys, numbers, positions = heap
    if n_empty == 0 and (distance > keys[0] or (distance == keys[0] and number > numbers[0])):
        return False
    top = n_empty - 1 if n_empty > 0 else 0
    keys[top], numbers[top], positions[top] = distance, number, position
    if n_empty == 1:
        for node in range(keys.shape[0] // 2 - 1, -1, -1):
            sink(keys, numbers, positions, node)
    elif n_empty == 0:
        sink(keys, numbers, positions, 0)
    return True


@exact_jit
def offer_rows(queries, approximate, slack, X, numbers, positions, kernel, heaps):
    """Offer rows to the heaps of some queries, by distances in a polynomial's feature space.

    Parameters
    ----------
    queries : real array, shape (q, d)
    approximate : float64 array, shape (q, m). Squared distances, each wrong by ``slack`` at most.
    slack : float64 array, shape (q,)
    X : real array, shape (m, d), C-contiguous
    numbers : int64 array, shape (m,). Global row numbers.
    positions : int64 array, shape (m,). Where the rows stand in the store.
    kernel : tuple of int, float, float. Its degree, gamma and coef0.
    heaps : tuple of float64, int64, int64 arrays, shape (n, k), and the int64 array (q,) of the
        heap of each query: squared distances, numbers and positions, as max-heaps. Updated in
        place.
    """
    keys, held, kept, which = heaps
    degree, gamma, coef0 = kernel
    for i in range(queries.shape[0]):
        heap = which[i]
        own_keys, own_numbers, own_positions = keys[heap], held[heap], kept[heap]
        row = approximate[i]
        query = queries[i]
        limit = own_keys[0] + slack[i]
        for j in range(row.shape[0]):
            if row[j] > limit:
                continue
            distance = polynomial_distance(query, X[j], gamma, coef0, degree)
            if distance < own_keys[0] or (distance == own_keys[0] and numbers[j] < own_numbers[0]):
                own_keys[0] = distance
                own_numbers[0] = numbers[j]
                own_positions[0] = positions[j]
                sink(own_keys, own_numbers, own_positions, 0)
                limit = own_keys[0] + slack[i]


def sort_heaps(
    keys: Float64, numbers: RowNumbers, positions: Int64
) -> tuple[Float64, Int64, Int64]:
    """Return the heaps' entries in the order of (distance, number), row by row."""
    order = np.argsort(keys, axis=1)
    ranked = np.take_along_axis(keys, order, axis=1)
    # Where distances are tied, two stable sorts: by the minor key, then by the major one. They
    # take ten times as long.
    tied = np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1))
    minor = np.argsort(numbers[tied], axis=1, kind="stable")
    major = np.take_along_axis(keys[tied], minor, axis=1).argsort(axis=1, kind="stable")
    order[tied] = np.take_along_axis(minor, major, axis=1)
    numbers, positions = (
        np.take_along_axis(values, order, axis=1) for values in (numbers, positions)
    )
    return ranked, numbers, positions


@exact_jit
def mark_inside(queries, limits, X, inside):
    """Mark the rows whose squared distance to each query is at most the query's limit.

    Sums feature by feature as `squared_distance` does, and stops where the limit is passed: sums
    of squares never fall again.

    Parameters
    ----------
    queries : float64 array, shape (q, d)
    limits : float64 array, shape (q,). Squared radii.
    X : real array, shape (m, d), C-contiguous
    inside : bool array, shape (q, m). Overwritten.
    """
    for i in range(queries.shape[0]):
        query = queries[i]
        limit = limits[i]
        for r in range(X.shape[0]):
            row = X[r]
            total = 0.0
            for j in range(query.shape[0]):
                step = query[j] - np.float64(row[j])
                total += step * step
                if total > limit:
                    break
            inside[i, r] = total <= limit


# Values are counted in so many bins of equal width; those of the wanted bins alone are sorted.
N_RANK_BINS = 4096
LEAST_RANGE = 1e-300


@exact_jit
def pair_values(squared, positions, strides, noise):
    """Return the values of pairs of rows: row i with row i + s, around the end, for every stride s.

    Parameters
    ----------
    squared : float array, shape (m, m)
    positions : int64 array, shape (m,). Where row i stands in the matrix.
    strides : int64 array, shape (n,), >= 1. None at all: every pair, once.
    noise : float, >= 0. Values up to this become 0.

    Returns
    -------
    values : float array, shape (m n,) or (m (m - 1) / 2,), >= 0, by the first row
    """
    m, n = positions.shape[0], strides.shape[0]
    values = np.empty(m * n if n else m * (m - 1) // 2, squared.dtype)
    at = 0
    for i in range(m):
        # All strides of one row together: its values are in the cache.
        row = squared[positions[i]]
        for s in range(n if n else m - 1 - i):
            j = i + (strides[s] if n else s + 1)
            value = row[positions[j if j < m else j - m]]
            values[at] = value if value > noise else 0.0
            at += 1
    return values


@exact_jit
def ranked_values(values, ranks):
    """Return the values that would stand at some positions if all were sorted.

    Parameters
    ----------
    values : float array, shape (n,), n >= 1, >= 0, finite
    ranks : int64 array, shape (k,), not decreasing. Positions, from 0.

    Returns
    -------
    ranked : float array, shape (k,)

    Notes
    -----
    Cost: two passes, unless nearly all values are in one bin.
    """
    largest = np.float64(values.max())
    # Smaller ones share a bin: their inverse overflows.
    scale = (N_RANK_BINS - 1) / largest if largest > LEAST_RANGE else 0.0
    counts = np.zeros(N_RANK_BINS, np.int64)
    for value in values:
        # Never decreasing in the value, so that bins are in order.
        counts[int(value * scale)] += 1
    ranked = np.empty(ranks.shape[0], values.dtype)
    begin = 0
    k = 0
    for b in range(N_RANK_BINS):
        end = begin + counts[b]
        if k < ranks.shape[0] and ranks[k] < end:
            own = np.empty(counts[b], values.dtype)
            at = 0
            for value in values:
                if int(value * scale) == b:
                    own[at] = value
                    at += 1
            own.sort()
            while k < ranks.shape[0] and ranks[k] < end:
                ranked[k] = own[ranks[k] - begin]
                k += 1
        begin = end
    return ranked
