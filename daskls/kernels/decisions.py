"""Decision values of kernels of distances, and the class scores that they vote for.

Compiled functions take one query at a time, and each goes through the same instructions: its bits
depend on itself and the model, not on its place in the batch.
"""

import numpy as np

from daskls.kernels._jit import inline_jit, jit
from daskls.kernels.exponential import exp_row, wide_exp_row
from daskls.kernels.steps import ZERO
from daskls.records import Codes, Float64

# The score of a class that is absent from a cell: finite, and below the lowest possible score of a
# class that is present (0 votes minus a third).
ABSENT_SCORE = -1.0


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs (a, b), a < b, in scikit-learn's order.

    >>> pairs_of(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]


class VoteCounts:
    """The votes of one-vs-one decisions, counted pair by pair without an array of all pairs."""

    def __init__(self, n_rows: int, n_classes: int) -> None:
        self.votes = np.zeros((n_rows, n_classes))
        self.confidence = np.zeros((n_rows, n_classes))

    def add(self, a: int, b: int, decisions: Float64) -> None:
        """Count the votes of one pair, shape (n_rows,); a positive decision value votes for b."""
        second = decisions > 0
        self.votes[:, b] += second
        self.votes[:, a] += ~second
        self.confidence[:, b] += decisions
        self.confidence[:, a] -= decisions

    def scores(self) -> Float64:
        """Return the votes plus the summed confidence squeezed into (-1/3, 1/3), (n_rows, k).

        The largest wins: most votes, then confidence, then the first class, as in scikit-learn.
        """
        return self.votes + self.confidence / (3 * (np.abs(self.confidence) + 1))


def vote_scores(decisions: Float64, n_classes: int) -> Float64:
    """Return scores (m, k) from decision values (m, k (k - 1) / 2), as `VoteCounts.scores`."""
    ballot = VoteCounts(decisions.shape[0], n_classes)
    for p, (a, b) in enumerate(pairs_of(n_classes)):
        ballot.add(a, b, decisions[:, p])
    return ballot.scores()


def expand_pairs(decisions: Float64 | None, classes: Codes, n_classes: int) -> Float64:
    """Expand clipped decision values of the k classes present to all pairs of classes.

    None stands for a cell of one class, of one row. A present class wins by 1 against an absent
    one; between two absent ones the value is 0.
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
    """Return the scores of all classes from the values (m, r) of one-vs-rest functions.

    r is the number k of classes present, or 1 if k is 2; None for a cell of one class. Scores are
    (m,) for two classes, (m, n_classes) for more. An absent class scores -1, a present one more.
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


def expand_scores(scores: Float64, classes: Codes, n_classes: int) -> Float64:
    """Return scores of all classes, shape (m, n_classes): `ABSENT_SCORE` of absent ones."""
    spread = np.full((scores.shape[0], n_classes), ABSENT_SCORE)
    spread[:, classes] = scores
    return spread


@jit
def write_winners(parts, offsets, winners):
    """Write the winner of each query's one-vs-one votes, for several solutions at once.

    `parts`, float32 (k, n, k - 1, h), holds the contribution of each class's rows to the decisions
    of its pairs, the other classes in increasing order, for n solutions and h queries. `offsets`
    (n, pairs) are in the order of `pairs_of`, `winners` (n, h) as of `VoteCounts.scores`.
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


@jit
def pair_decisions(K, coef, class_ptr, out):
    """Write the decision values of every pair of classes, summed in a fixed order of support rows.

    K, float64 (m, s), is C-contiguous; in `out`, (m, k (k - 1) / 2), a positive value is a vote for
    the second class of a pair.
    """
    for i in range(K.shape[0]):
        pair_row(K[i], coef, class_ptr, out[i])


@inline_jit
def pair_row(row, coef, class_ptr, out):
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
def varying_columns(rows):
    """Return which columns of support rows, shape (s, d), hold more than one value: bool (d,)."""
    s, d = rows.shape
    varies = np.zeros(d, np.bool_)
    for i in range(1, s):
        for j in range(d):
            varies[j] |= rows[i, j] != rows[0, j]
    return varies


@jit
def gather_columns(A, row, columns):
    """Return some columns of A less those of one row: several times as fast as numpy does."""
    out = np.empty((A.shape[0], columns.shape[0]))
    for i in range(A.shape[0]):
        for j in range(columns.shape[0]):
            out[i, j] = A[i, columns[j]] - row[columns[j]]
    return out


@jit
def decide_narrowly(base, norms_a, norms_b, times, of_roots, factor, last, coef, class_ptr, out):
    """Write decision values (m, pairs), by the exponential in float32, summed in float64.

    It is taken of ``norms_a[i] + norms_b[j] + times base[i, j]``, clipped at 0, or of the root.
    `factor` and `last` are those of `exp_terms`; the base may have more than m rows.
    """
    row = np.empty(base.shape[1], np.float32)
    for i in range(out.shape[0]):
        _distance_row(base[i], norms_a[i], norms_b, times, of_roots, row)
        exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@jit
def decide_widely(base, norms_a, norms_b, times, of_roots, factor, last, coef, class_ptr, out):
    """Like `decide_narrowly`, in float64; ``factor, last``: `wide_exp_terms`."""
    row = np.empty(base.shape[1])
    for i in range(out.shape[0]):
        _distance_row(base[i], norms_a[i], norms_b, times, of_roots, row)
        wide_exp_row(row, factor, last, row)
        pair_row(row, coef, class_ptr, out[i])


@inline_jit
def _distance_row(products, norm, norms_b, times, of_roots, out):
    for j in range(out.shape[0]):
        value = norm + norms_b[j] + times * products[j]
        out[j] = value if value > ZERO else ZERO
    if of_roots:
        for j in range(out.shape[0]):
            out[j] = np.sqrt(out[j])
