"""Choices made by a fit of L3-SVMs: the number of clusters, candidates of C, and C."""

from collections.abc import Sequence

from daskls.records import Mask

__all__ = ["COST_SHARES", "MOST_CLUSTERS", "count_clusters", "edge_of", "pick_cost"]

# Candidates of C times the mean squared norm of the projected rows. Small sets and hundreds of
# features take 0.3 to 300, ijcnn1 and letter 3000 to 30,000, covtype the last.
COST_SHARES = (0.03, 0.3, 3.0, 30.0, 300.0, 3e3, 3e4, 3e5)
# The paper's number of clusters on sets of 3000 to 60,000 rows; and the rows at which there would
# be one. Few rows bear few clusters, and each of many may be smaller: with less than some 300 rows
# a cluster 500 to 1600 rows lose to a linear SVM, while 7000 rows of 10 classes want 80 clusters.
MOST_CLUSTERS = 100
ROWS_OF_ONE = 400


def count_clusters(n_rows: int) -> int:
    """Return how many clusters so many rows are cut into where no number is given.

    Examples
    --------
    >>> [count_clusters(n) for n in (10, 500, 3000, 7000, 1_000_000)]
    [2, 2, 20, 73, 100]
    """
    return min(max(int((n_rows / ROWS_OF_ONE) ** 1.5), 2), MOST_CLUSTERS)


def pick_cost(errors: Sequence[float], unsolved: Mask, told: Mask) -> int:
    """Return which candidate of C is best.

    Parameters
    ----------
    errors : sequence of float, one a candidate, in increasing order of C
    unsolved : bool array. Whose problems ended above ``tol``: their errors are ignored, unless all
        are unsolved.
    told : bool array. Candidates whose predictions within some held-out fold differ.

    Notes
    -----
    Of equal errors, candidates that predict one class for all rows come last; if all do, the
    largest C is taken. Then candidates inside the grid come first, so that a choice on its edge
    means that it was better; then the smallest C.
    """
    solved = [i for i in range(len(errors)) if not unsolved[i]] or list(range(len(errors)))
    least = min(errors[i] for i in solved)
    tied = [i for i in solved if errors[i] == least]
    tellers = [i for i in tied if told[i]]
    if not tellers:
        return tied[-1]
    return next((i for i in tellers if 0 < i < len(errors) - 1), tellers[0])


def edge_of(C: float, candidates: Sequence[float]) -> str:
    """Say whether the choice lies on the edge of its candidates."""
    return "C" if len(candidates) > 2 and C in (min(candidates), max(candidates)) else ""
