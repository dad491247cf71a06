"""Decision values of kernels of distances, compiled: distance, value and sums, a query at a time.

Nothing of the size of queries times support rows is written. Each query goes through the same
instructions regardless of its position in the batch: its bits depend on itself and the model.

One-vs-one: pairwise decision values from coefficients, and class scores from their votes.
"""

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.exponential import exp_row, wide_exp_row
from daskls.records import Codes, Float64

# A class that is absent from a cell scores this: below the lowest possible score of one present
# (0 votes minus a third), and finite.
ABSENT_SCORE = -1.0


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs (a, b), a < b, in scikit-learn's order.

    >>> pairs_of(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]


@inline_jit
def pair_row(row, coef, class_ptr, out):
    """Write one query's decision values of every pair of classes, as `pair_decisions` does.

    Parameters
    ----------
    row : array, shape (s,). The kernel values of the query and all support rows.
    coef, class_ptr : as for `pair_decisions`
    out : float64 array, shape (k (k - 1) / 2,). Overwritten.
    """
    n_classes = class_ptr.shape[0] - 1
    p = 0
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            total = 0.0
            c = coef[b - 1]
            for j in range(class_ptr[a], class_ptr[a + 1]):
                total += np.float64(row[j]) * np.float64(c[j])
            c = coef[a]
            for j in range(class_ptr[b], class_ptr[b + 1]):
                total += np.float64(row[j]) * np.float64(c[j])
            out[p] = total
            p += 1


@jit
def pair_decisions(K, coef, class_ptr, out):
    """Write the decision values of every pair of classes, summed in a fixed order of rows.

    Parameters
    ----------
    K : float64 array, shape (m, s), C-contiguous. Kernel values of queries and support rows.
    coef : float32 array, shape (k - 1, s)
    class_ptr : int64 array, shape (k + 1,)
    out : float64 array, shape (m, k (k - 1) / 2). Overwritten; positive values are votes for the
        second class of a pair, as in scikit-learn's binary decision function.
    """
    for i in range(K.shape[0]):
        pair_row(K[i], coef, class_ptr, out[i])


class Ballot:
    """The votes of one-vs-one decisions, pair by pair, so that no array of all pairs is needed."""

    def __init__(self, n_rows: int, n_classes: int) -> None:
        self.votes = np.zeros((n_rows, n_classes))
        self.confidence = np.zeros((n_rows, n_classes))

    def add(self, a: int, b: int, decisions: Float64) -> None:
        """Count one pair's decision values, shape (n_rows,); positive votes for class b."""
        second = decisions > 0
        self.votes[:, b] += second
        self.votes[:, a] += ~second
        self.confidence[:, b] += decisions
        self.confidence[:, a] -= decisions

    def scores(self) -> Float64:
        """Return the votes plus the summed confidence squeezed into (-1/3, 1/3).

        The largest wins; equal votes go to the larger confidence, then to the first class, as in
        scikit-learn's OneVsOneClassifier.
        """
        return self.votes + self.confidence / (3 * (np.abs(self.confidence) + 1))


def vote_scores(decisions: Float64, n_classes: int) -> Float64:
    """Return one score a class, shape (m, k), from all decision values, shape (m, k (k - 1) / 2).

    The columns come in the order of `pairs_of`; see `Ballot.scores`.
    """
    ballot = Ballot(decisions.shape[0], n_classes)
    for p, (a, b) in enumerate(pairs_of(n_classes)):
        ballot.add(a, b, decisions[:, p])
    return ballot.scores()


def spread_pairs(decisions: Float64 | None, classes: Codes, n_classes: int) -> Float64:
    """Spread clipped decision values over all pairs of ``n_classes`` classes.

    Parameters
    ----------
    decisions : float64 array, shape (m, k (k - 1) / 2), of the k classes present; or None for a
        cell of one class, which has no decision function
    classes : int array, shape (k,). The codes of those present, increasing.
    n_classes : int

    Returns
    -------
    spread : float64 array, shape (m, n_classes (n_classes - 1) / 2), in [-1, 1]; (1, ...) without
        decisions. A class present wins by 1 against one absent; of two absent ones, none does.
    """
    present = np.zeros(n_classes)
    present[classes] = 1.0
    pairs = np.array(pairs_of(n_classes))
    one_sided = present[pairs[:, 1]] - present[pairs[:, 0]]
    if decisions is None:
        return one_sided[None]
    spread = np.tile(one_sided, (len(decisions), 1))
    both = np.flatnonzero(present[pairs].all(axis=1))
    spread[:, both] = np.clip(decisions, -1.0, 1.0)
    return spread


def rest_scores(values: Float64 | None, classes: Codes, n_classes: int) -> Float64:
    """Return the values of one-vs-rest functions as scores of all classes.

    Parameters
    ----------
    values : float64 array, shape (m, r), of the k classes present: r = k, or 1 of two; or None for
        a cell of one class, which has no decision function
    classes : int array, shape (k,). The codes of those present, increasing.
    n_classes : int

    Returns
    -------
    scores : float64 array, shape (m,) for two classes, (m, n_classes) for more; (1, ...) without
        values. A class that is absent has -1, and those present more.
    """
    if n_classes == 2:
        return np.array([2.0 * classes[0] - 1]) if values is None else values[:, 0]
    scores = np.full((1 if values is None else len(values), n_classes), ABSENT_SCORE)
    if values is None:
        scores[:, classes] = 1.0
        return scores
    if len(classes) == 2:
        values = np.hstack([-values, values])
    if len(classes) < n_classes:
        values = np.maximum(values, np.nextafter(ABSENT_SCORE, 0.0))
    scores[:, classes] = values
    return scores


def class_scores(scores: Float64, classes: Codes, n_classes: int) -> Float64:
    """Spread the scores of the classes present over all ``n_classes`` columns."""
    spread = np.full((scores.shape[0], n_classes), ABSENT_SCORE)
    spread[:, classes] = scores
    return spread


@jit
def winners_of(parts, offsets, winners):
    """Write the class that wins the votes of one-vs-one decisions, for several solutions at once.

    Parameters
    ----------
    parts : float32 array, shape (k, n, k - 1, h). What the rows of each class add to the decisions
        of its pairs, the other classes in increasing order, for n solutions and h queries.
    offsets : float32 array, shape (n, k (k - 1) / 2), in the order of `pairs_of`
    winners : int64 array, shape (n, h). Overwritten; see `Ballot.scores`.
    """
    k, n, _, h = parts.shape
    votes = np.empty((k, h), np.float32)
    confidence = np.empty((k, h))
    for s in range(n):
        votes[:] = 0.0
        confidence[:] = 0.0
        p = 0
        for a in range(k):
            for b in range(a + 1, k):
                first = parts[a, s, b - 1]
                second = parts[b, s, a]
                for t in range(h):
                    value = first[t] + second[t] + offsets[s, p]
                    yes = np.float32(1.0) if value > 0 else np.float32(0.0)
                    votes[b, t] += yes
                    votes[a, t] += np.float32(1.0) - yes
                    confidence[b, t] += value
                    confidence[a, t] -= value
                p += 1
        for t in range(h):
            best = -1.0
            for c in range(k):
                x = confidence[c, t]
                score = votes[c, t] + x / (3.0 * (abs(x) + 1.0))
                if c == 0 or score > best:
                    best = score
                    winners[s, t] = c


# Features that `decide_directly` takes together: their number is padded to a multiple.
UNROLLED = 4


@jit
def varying_columns(rows):
    """Return which columns of support rows, shape (s, d), hold more than one value."""
    s, d = rows.shape
    varies = np.zeros(d, np.bool_)
    for i in range(1, s):
        for j in range(d):
            varies[j] |= rows[i, j] != rows[0, j]
    return varies


@jit
def gather_columns(A, row, columns, fixed, out, offsets):
    """Write the columns of queries that tell support rows apart, and what the others add.

    Parameters
    ----------
    A : float64 array, shape (m, d). Queries, centered.
    row : float array, shape (d,). Any support row, in A's dtype.
    columns : int64 array, shape (n,). The columns to gather.
    fixed : int64 array, shape (d - n,). The others, in which all support rows are equal.
    out : float64 array, shape (m, n or more). Overwritten in its first n columns.
    offsets : float64 array, shape (m,). Overwritten: the squared distance along ``fixed``.
    """
    for i in range(A.shape[0]):
        for j in range(columns.shape[0]):
            out[i, j] = A[i, columns[j]]
        total = 0.0
        for j in range(fixed.shape[0]):
            difference = A[i, fixed[j]] - row[fixed[j]]
            total += difference * difference
        offsets[i] = total


@inline_jit
def _distance_row(a, offset, BT, out):
    """Write one query's squared distances to all support rows, from differences."""
    s = BT.shape[1]
    for j in range(s):
        out[j] = offset
    # Four features at once: the sums are then loaded and stored a quarter as often.
    for k in range(0, BT.shape[0], UNROLLED):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = BT[k], BT[k + 1], BT[k + 2], BT[k + 3]
        for j in range(s):
            d0 = a0 - b0[j]
            d1 = a1 - b1[j]
            d2 = a2 - b2[j]
            d3 = a3 - b3[j]
            out[j] += d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3


@inline_jit
def _root_row(x):
    """Replace one row by its square roots."""
    for j in range(x.shape[0]):
        x[j] = np.sqrt(x[j])


@jit
def decide_directly(A, offsets, BT, factor, last, coef, class_ptr, out):
    """Write decision values of all pairs of classes, from differences of features; in float32.

    Parameters
    ----------
    A : float32 array, shape (m, n), n a multiple of `UNROLLED`
    offsets : float32 array, shape (m,). Added to each of a query's squared distances.
    BT : float32 array, shape (n, s). Support rows, a row a feature.
    factor, last : float32. See `exp_terms`.
    coef : float32 array, shape (k - 1, s)
    class_ptr : int64 array, shape (k + 1,)
    out : float64 array, shape (m, k (k - 1) / 2). Overwritten; summed in float64.
    """
    row = np.empty(BT.shape[1], np.float32)
    for i in range(A.shape[0]):
        _distance_row(A[i], offsets[i], BT, row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@inline_jit
def _squared_row(products, norm_a, norms_b, out):
    """Write one query's squared distances, in the dtype of ``out``; no less than 0."""
    for j in range(products.shape[0]):
        squared = norm_a + norms_b[j] - 2.0 * products[j]
        out[j] = squared if squared > 0.0 else 0.0


@jit
def decide_products(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Write decision values of all pairs of classes, from inner products; all in float64.

    Parameters
    ----------
    products : float64 array, shape (m or more, s), C-contiguous. Of queries and support rows;
        overwritten.
    norms_a : float64 array, shape (m,). Squared lengths of queries, offsets included.
    norms_b : float64 array, shape (s,). Of support rows.
    factor, last : float. See `wide_exp_terms`.
    coef, class_ptr, out : as for `decide_directly`
    """
    for i in range(norms_a.shape[0]):
        row = products[i]
        _squared_row(row, norms_a[i], norms_b, row)
        wide_exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_products_narrowly(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Do as `decide_products`, with the exponential in float32; ``factor, last``: `exp_terms`."""
    row = np.empty(products.shape[1], np.float32)
    for i in range(norms_a.shape[0]):
        _squared_row(products[i], norms_a[i], norms_b, row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_roots_directly(A, offsets, BT, factor, last, coef, class_ptr, out):
    """Do as `decide_directly`, the kernel being a function of the distance, not of its square."""
    row = np.empty(BT.shape[1], np.float32)
    for i in range(A.shape[0]):
        _distance_row(A[i], offsets[i], BT, row)
        _root_row(row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_roots(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Do as `decide_products`, the kernel being a function of the distance, not of its square."""
    for i in range(norms_a.shape[0]):
        row = products[i]
        _squared_row(row, norms_a[i], norms_b, row)
        _root_row(row)
        wide_exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_roots_narrowly(products, norms_a, norms_b, factor, last, coef, class_ptr, out):
    """Do as `decide_roots`, from the square on in float32; ``factor, last``: `exp_terms`."""
    row = np.empty(products.shape[1], np.float32)
    for i in range(norms_a.shape[0]):
        _squared_row(products[i], norms_a[i], norms_b, row)
        _root_row(row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_distances(distances, factor, last, coef, class_ptr, out):
    """Write decision values of all pairs of classes, from distances; in float32.

    Parameters
    ----------
    distances : float32 array, shape (m, s). Of queries and support rows; overwritten.
    factor, last, coef, class_ptr, out : as for `decide_directly`
    """
    for i in range(distances.shape[0]):
        exp_row(distances[i], factor, last, distances[i])
        pair_row(distances[i], coef, class_ptr, out[i])


@jit
def decide_wide_distances(distances, factor, last, coef, class_ptr, out):
    """Do as `decide_distances` in float64; ``factor, last``: `wide_exp_terms`."""
    for i in range(distances.shape[0]):
        wide_exp_row(distances[i], factor, last, distances[i])
        pair_row(distances[i], coef, class_ptr, out[i])
