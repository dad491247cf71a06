"""The k nearest rows of each query, kept in heaps; and percentiles of the distances in a matrix.

Approximate distances (from kernels/blocks.py, or from a GEMM for a polynomial kernel) have a
bounded rounding error. A row whose approximate distance cannot be among the k smallest is skipped;
the distance of any other is summed again, feature by feature in float64. Rows are ordered by (exact
squared distance, row number): no two rows tie, so the result does not depend on the order in which
rows are offered.

Percentiles are taken without an index of pairs and without sorting all distances.
"""

import numpy as np

from daskls.kernels._jit import exact_jit, jit
from daskls.records import Float64, Int64, RowNumbers

# The row number of an empty slot in a heap: larger than that of any row.
EMPTY = np.iinfo(np.int64).max
# Bounds are widened by this share of the lengths that they are made of: far above the rounding of
# float64, and far too little to be noticed.
MARGIN = 1e-9
# Bins of equal width in which values are counted; only those of the wanted bins are sorted.
N_RANK_BINS = 4096
# If the largest value is smaller, all share a bin: the inverse would overflow.
LEAST_RANGE = 1e-300


@exact_jit
def offer_rows(queries, approximate, slack, X, numbers, positions, kernel, heaps):
    """Offer rows to the heaps of some queries, by distances in a polynomial kernel's feature space.

    Approximate squared distances (q, m) are off by ``slack`` (q,) at most. Heaps are max-heaps of
    squared distances, numbers and positions, (n, k), updated in place.
    """
    keys, heap_numbers, heap_positions, which = heaps
    degree, gamma, coef0 = kernel
    for i in range(queries.shape[0]):
        heap = which[i]
        top_keys = keys[heap]
        top_numbers, top_positions = heap_numbers[heap], heap_positions[heap]
        row = approximate[i]
        query = queries[i]
        limit = top_keys[0] + slack[i]
        for j in range(row.shape[0]):
            if row[j] > limit:
                continue
            distance = polynomial_distance(query, X[j], gamma, coef0, degree)
            if distance < top_keys[0] or (distance == top_keys[0] and numbers[j] < top_numbers[0]):
                top_keys[0] = distance
                top_numbers[0] = numbers[j]
                top_positions[0] = positions[j]
                sink(top_keys, top_numbers, top_positions, 0)
                limit = top_keys[0] + slack[i]


@exact_jit
def insert(heap, distance, number, position, n_empty):
    """Put a row into a heap; return whether it went in.

    The heap is built when its last slot is filled: that costs less than keeping rows in order.
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
    """Return the number of empty slots of a heap, which come first."""
    n = 0
    while n < numbers.shape[0] and numbers[n] == EMPTY:
        n += 1
    return n


def sort_heaps(
    keys: Float64, numbers: RowNumbers, positions: Int64
) -> tuple[Float64, Int64, Int64]:
    """Return the entries of each heap in the order of (distance, number)."""
    order = np.argsort(keys, axis=1)
    ranked = np.take_along_axis(keys, order, axis=1)
    # Heaps with tied distances are sorted twice, by the minor key and then, stably, by the major
    # one. That takes ten times as long, so it is not done for all.
    tied = np.flatnonzero((ranked[:, 1:] == ranked[:, :-1]).any(axis=1))
    minor = np.argsort(numbers[tied], axis=1, kind="stable")
    major = np.take_along_axis(keys[tied], minor, axis=1).argsort(axis=1, kind="stable")
    order[tied] = np.take_along_axis(minor, major, axis=1)
    numbers, positions = (
        np.take_along_axis(values, order, axis=1) for values in (numbers, positions)
    )
    return ranked, numbers, positions


@exact_jit
def squared_distance(a, b):
    """Return the squared distance of two rows in float64, summed in the order of the features."""
    total = 0.0
    for j in range(a.shape[0]):
        step = np.float64(a[j]) - np.float64(b[j])
        total += step * step
    return total


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


@exact_jit
def _power(base, degree):
    """Return ``base ** degree`` by repeated products in a fixed order, for an integer degree."""
    result = 1.0
    for _ in range(degree):
        result *= base
    return result


@jit
def bound_distances(queries, centers, r_min, r_max, low, high, out):
    """Write lower bounds (q, n) of squared distances, by spheres around centers and a box."""
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
def mark_inside(queries, limits, X, inside):
    """Mark the rows (q, m) whose squared distance to each query is at most its limit."""
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


@exact_jit
def pair_values(squared, positions, strides, noise):
    """Return the values of pairs of rows: row i with row i + s, modulo m, for every stride s >= 1.

    Without strides every pair is taken once; values up to `noise` become 0.
    """
    m, n = positions.shape[0], strides.shape[0]
    values = np.empty(m * n if n else m * (m - 1) // 2, squared.dtype)
    at = 0
    for i in range(m):
        # All strides of one row together, while its values are in the cache.
        row = squared[positions[i]]
        for s in range(n if n else m - 1 - i):
            j = i + (strides[s] if n else s + 1)
            value = row[positions[j if j < m else j - m]]
            values[at] = value if value > noise else 0.0
            at += 1
    return values


@exact_jit
def ranked_values(values, ranks):
    """Return the values of given, non-decreasing ranks, without sorting all values >= 0."""
    largest = np.float64(values.max())

    scale = (N_RANK_BINS - 1) / largest if largest > LEAST_RANGE else 0.0
    counts = np.zeros(N_RANK_BINS, np.int64)
    for value in values:
        # Bin numbers never decrease as values grow, rounding included: the bins are in order.
        counts[int(value * scale)] += 1
    ranked = np.empty(ranks.shape[0], values.dtype)
    begin = 0
    k = 0
    for b in range(N_RANK_BINS):
        end = begin + counts[b]
        if k < ranks.shape[0] and ranks[k] < end:
            bin_values = np.empty(counts[b], values.dtype)
            at = 0
            for value in values:
                if int(value * scale) == b:
                    bin_values[at] = value
                    at += 1
            bin_values.sort()
            while k < ranks.shape[0] and ranks[k] < end:
                ranked[k] = bin_values[ranks[k] - begin]
                k += 1
        begin = end
    return ranked
