"""The rows of a leaf in blocks of nearby rows, laid out so that distances to a block vectorize.

Distances are first computed in float32 from differences of rows, never from expanded squares: in
units of the leaf's radius around its center their relative error is bounded, wherever the rows lie.
Rows that these distances cannot exclude are measured again in float64, as in kernels/nearest.py, so
float32 rounding never affects a result.

Error bounds, with u = 2^-24, x a row and q a query in the leaf's units, and R the largest length of
a row: casting moves q and x by at most u |q| and u R, and a sum of d squared differences has a
relative error of at most (d + 2) u. The code uses twice these bounds.
"""

import numpy as np

from daskls.kernels._jit import exact_jit, inline_jit, jit
from daskls.kernels.nearest import MARGIN, count_empty, insert, squared_distance

# Rows per block: four AVX-512 vectors of float32.
BLOCK_ROWS = 64
# Rows on which the widest feature is measured.
SPREAD_ROWS = 64
# Features summed together, so that the sums are loaded and stored a quarter as often.
FEATURE_STEP = 4
UNIT_ROUNDOFF = 2.0**-24
# Squared length of a query, in the leaf's units, up to which float32 cannot overflow. Queries
# farther away visit all blocks.
FARTHEST = 1e34
# The smallest float64 above 0: a square that underflowed to 0 was at most this.
LEAST_SQUARE = 5e-324


@exact_jit
def _widest_feature(X, rows):
    """Return the feature of the largest variance in an evenly spaced sample of the rows."""
    d = X.shape[1]
    sums = np.zeros(d)
    squares = np.zeros(d)
    step = max(rows.shape[0] // SPREAD_ROWS, 1)
    n = 0
    for i in range(0, rows.shape[0], step):
        n += 1
        for j in range(d):
            value = np.float64(X[rows[i], j]) - np.float64(X[rows[0], j])
            sums[j] += value
            squares[j] += value * value
    return np.argmax(squares - sums * sums / n)


@exact_jit
def _halve(values, rows, half):
    """Quickselect: reorder values, and ``rows`` alike, so that the ``half`` smallest come first."""
    low, high = 0, values.shape[0] - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                rows[i], rows[j] = rows[j], rows[i]
                i += 1
                j -= 1
        if half <= j:
            high = j
        elif half >= i:
            low = i
        else:
            return


@exact_jit
def order_blocks(X, order):
    """Order rows in place so that runs of `BLOCK_ROWS` lie close: halve the widest feature."""
    m = order.shape[0]
    waiting = [(0, -(-m // BLOCK_ROWS))]
    values = np.empty(m)
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        half = (first + last) // 2
        rows = order[first * BLOCK_ROWS : min(last * BLOCK_ROWS, m)]
        widest = _widest_feature(X, rows)
        for i in range(rows.shape[0]):
            values[i] = X[rows[i], widest]
        _halve(values[: rows.shape[0]], rows, (half - first) * BLOCK_ROWS)
        waiting.append((first, half))
        waiting.append((half, last))


@exact_jit
def _fill_block(X, rows, center, scale, block):
    """Write some rows in the leaf's units into one block; return the largest squared length."""
    longest = 0.0
    for r in range(rows.shape[0]):
        length = 0.0
        for j in range(center.shape[0]):
            value = (np.float64(X[rows[r], j]) - center[j]) * scale
            block[j, r] = value
            length += value * value
        longest = length if length > longest else longest
    # Places without a row are infinitely far from every query.
    block[: center.shape[0], rows.shape[0] :] = np.inf
    return longest


@exact_jit
def _measure_block(block, n_rows, d, bounds, at, squares):
    """Write a block's center and box; return the largest squared distance to the center."""
    squares[:] = 0.0
    for j in range(d):
        total = 0.0
        low = high = block[j, 0]
        for r in range(n_rows):
            value = block[j, r]
            total += value
            low = value if value < low else low
            high = value if value > high else high
        middle = np.float32(total / n_rows)
        for r in range(n_rows):
            step = np.float64(block[j, r]) - np.float64(middle)
            squares[r] += step * step
        bounds[0, j, at], bounds[1, j, at], bounds[2, j, at] = middle, low, high
    return squares[:n_rows].max()


@exact_jit
def fill_blocks(X, order, center, scale, blocks, bounds, r_max):
    """Write rows in the leaf's units, block by block, with the center, box and radius of each.

    `order` is as `order_blocks` left it, `scale` a power of two. `blocks`, float32 (n, D,
    BLOCK_ROWS), D >= d, and `bounds`, float32 (3, D, N), N >= n, are zeros on entry; places after
    the last row become infinity. Returns the largest length of a row, in the leaf's units.
    """
    d = X.shape[1]
    longest = 0.0
    squares = np.empty(BLOCK_ROWS)
    for b in range(blocks.shape[0]):
        rows = order[b * BLOCK_ROWS : (b + 1) * BLOCK_ROWS]
        longest = max(longest, _fill_block(X, rows, center, scale, blocks[b]))
        farthest = _measure_block(blocks[b], rows.shape[0], d, bounds, b, squares)
        r_max[b] = np.sqrt(farthest) * (1.0 + MARGIN)
    return np.sqrt(longest) * (1.0 + MARGIN)


@exact_jit
def squares_to(rows, query, out):
    """Write a query's squared distances to rows: (D, n), (D or more,) -> (n,), of one dtype.

    D is a multiple of `FEATURE_STEP`.
    """
    for r in range(out.shape[0]):
        out[r] = 0.0
    for j in range(0, rows.shape[0], FEATURE_STEP):
        a, b, c, d = query[j], query[j + 1], query[j + 2], query[j + 3]
        for r in range(out.shape[0]):
            x = rows[j, r] - a
            y = rows[j + 1, r] - b
            z = rows[j + 2, r] - c
            w = rows[j + 3, r] - d
            out[r] += (x * x + y * y) + (z * z + w * w)


@exact_jit
def _squares_to_boxes(low, high, query, out):
    """Write a query's squared distances to boxes: float32 (D, n), (D, n), (D,) -> (n,)."""
    zero = np.float32(0.0)
    for r in range(out.shape[0]):
        out[r] = 0.0
    for j in range(low.shape[0]):
        value = query[j]
        for r in range(out.shape[0]):
            below = low[j, r] - value
            above = value - high[j, r]
            step = below if below > above else above
            step = step if step > zero else zero
            out[r] += step * step


@exact_jit
def _bound_blocks(query, bounds, r_max, share, slack, to_center, to_box, lower):
    """Write a lower bound of a query's distance to each block's rows; return the nearest block.

    ``share`` bounds the relative rounding error, ``slack`` the absolute one; others are scratch.
    """
    squares_to(bounds[0], query, to_center)
    _squares_to_boxes(bounds[1], bounds[2], query, to_box)
    home = 0
    for b in range(lower.shape[0]):
        ball = np.sqrt(np.float64(to_center[b])) * (1.0 - share) - r_max[b]
        box = np.sqrt(np.float64(to_box[b])) * (1.0 - share)
        lower[b] = (ball if ball > box else box) - slack
        home = b if to_center[b] < to_center[home] else home
    return home


@exact_jit
def _limits(key, scale, slack, share):
    """Return the distance, and the float32 square, up to which rows may enter a heap."""
    reach = np.sqrt(key) * scale * (1.0 + MARGIN)
    return reach, np.float32((reach + slack) ** 2 * (1.0 + share) + 1e-37)


@exact_jit
def offer_blocks(queries, which, leaf, X, numbers, positions, heaps):
    """Offer a leaf's rows to the heaps of the queries in `which`, nearest blocks first.

    The leaf is blocks, bounds, r_max, order, center, scale and longest of `fill_blocks`. Heaps are
    max-heaps of squared distances, numbers and positions, (n, k), updated in place. Empty slots
    come first; a heap is in no order until its last slot is filled.
    """
    blocks, bounds, r_max, order, center, scale, longest = leaf
    keys, heap_numbers, heap_positions = heaps
    d = X.shape[1]
    n_blocks = blocks.shape[0]
    query = np.zeros(blocks.shape[1], np.float32)
    to_center = np.empty(bounds.shape[2], np.float32)
    to_box = np.empty(bounds.shape[2], np.float32)
    lower = np.empty(n_blocks)
    near = np.empty(BLOCK_ROWS, np.float32)
    share = 2.0 * (d + 8) * UNIT_ROUNDOFF
    least = d * LEAST_SQUARE
    for i in which:
        top_keys = keys[i]
        heap = top_keys, heap_numbers[i], heap_positions[i]
        n_empty = count_empty(heap_numbers[i])
        exact = queries[i]
        length = 0.0
        for j in range(d):
            value = (exact[j] - center[j]) * scale
            query[j] = value
            length += value * value
        slack = 2.0 * UNIT_ROUNDOFF * (np.sqrt(length) + longest)
        home = _bound_blocks(query, bounds, r_max, share, slack, to_center, to_box, lower)
        if not length < FARTHEST:
            # Bounds may have overflowed: exclude no block.
            lower[:] = 0.0
        if top_keys.shape[0] > 1:
            visits = np.argsort(lower)
        else:
            # For a single neighbor it is enough to start with the nearest block.
            visits = np.arange(n_blocks)
            visits[0], visits[home] = home, 0
        reach, limit = _limits(top_keys[0] + least, scale, slack, share)
        for b in visits:
            if lower[b] > reach:
                continue
            squares_to(blocks[b], query, near)
            n_near = np.int32(0)
            for r in range(BLOCK_ROWS):
                n_near += np.int32(0) if near[r] > limit else np.int32(1)
            if n_near == 0:
                continue
            begin = b * BLOCK_ROWS
            for r in range(min(BLOCK_ROWS, order.shape[0] - begin)):
                if near[r] > limit:
                    continue
                row = order[begin + r]
                distance = squared_distance(exact, X[row])
                taken = insert(heap, distance, numbers[row], positions[row], n_empty)
                n_empty -= 1 if n_empty > 0 else 0
                if taken and n_empty == 0:
                    reach, limit = _limits(top_keys[0] + least, scale, slack, share)


@inline_jit
def _box_bound(query, low, high):
    """Return a lower bound of a query's squared distance to the rows in a box."""
    total = 0.0
    for j in range(query.shape[0]):
        below = low[j] - query[j]
        above = query[j] - high[j]
        step = below if below > above else above
        step = step if step > 0.0 else 0.0
        total += step * step
    return total * (1.0 - MARGIN)


@inline_jit
def _ball_bounds(query, centers, r_min, r_max, squares, bounds):
    """Write squared distances to centers, and lower bounds by the two spheres around each."""
    whole = centers.shape[0] - centers.shape[0] % FEATURE_STEP
    squares_to(centers[:whole], query, squares)
    for j in range(whole, centers.shape[0]):
        for r in range(squares.shape[0]):
            step = centers[j, r] - query[j]
            squares[r] += step * step
    for r in range(centers.shape[1]):
        distance = np.sqrt(squares[r])
        outside = distance - r_max[r]
        inside = r_min[r] - distance
        gap = (outside if outside > inside else inside) - MARGIN * (distance + r_max[r])
        gap = gap if gap > 0.0 else 0.0
        bounds[r] = gap * gap if r_max[r] < np.inf else np.inf


@inline_jit
def _raise_own(query, low, high, limit, bounds):
    for r in range(low.shape[0]):
        if bounds[r] <= limit and bounds[r] < np.inf:
            box = _box_bound(query, low[r], high[r])
            bounds[r] = box if box > bounds[r] else bounds[r]


@jit
def raise_bounds(queries, low, high, limits, bounds):
    """Raise the bounds (q, n) of near regions to those of their boxes."""
    for i in range(queries.shape[0]):
        _raise_own(queries[i], low, high, limits[i], bounds[i])


@jit
def nearest_regions(queries, centers, r_min, r_max, low, high, bounds, home):
    """Write lower bounds as `bound_distances` does, looser for far regions; and the nearest region.

    The centers are transposed (d, n). Ties go to the nearest center.
    """
    squares = np.empty(centers.shape[1])
    for i in range(queries.shape[0]):
        lb = bounds[i]
        _ball_bounds(queries[i], centers, r_min, r_max, squares, lb)
        first = 0
        for r in range(lb.shape[0]):
            closer = squares[r] < squares[first] or lb[first] == np.inf
            first = r if lb[r] < np.inf and closer else first
        box = _box_bound(queries[i], low[first], high[first])
        _raise_own(queries[i], low, high, box if box > lb[first] else lb[first], lb)
        nearest = first
        for r in range(lb.shape[0]):
            if lb[r] < lb[nearest] or (lb[r] == lb[nearest] and squares[r] < squares[nearest]):
                nearest = r
        home[i] = nearest
