"""A covering set of centers: every row is among the k' nearest rows of at least one of them.

The rows come in one fixed order; each that no center before it has covered becomes a center and
covers its own k' nearest rows. The order takes centers far from each other first: a farthest-first
traversal of a seeded sample of the rows, then all other rows by a seeded hash of their numbers. It
depends on the data and the seed alone, not on how the rows are stored.

Centers are decided in rounds. A round takes the next uncovered rows of the order, finds the
neighbors of all of them at once, and goes through them in order: one that a center before it in
the round covers is none. So the result is that of taking one row after the other.

Source: Segata and Blanzieri 2009, equations 10 to 14. Difference: the paper's levels are those of a
cover tree over all rows; the traversal of a sample decides the order of the far-off centers, which
are few, and a hash that of the others. On ijcnn1 and Covertype that gives 4 to 14 % fewer centers
than a random order, on a checkerboard 2 to 4 %.
"""

from dataclasses import dataclass

import numpy as np

from daskls.kernels.blocks import FEATURE_STEP, UNIT_ROUNDOFF, squares_to
from daskls.partition.shuffle import row_keys
from daskls.records import Float64, Int32, Int64, Ints, Reals, RowNumbers
from daskls.seeds import CENTER_ORDER

# Sampled rows a center that is expected, and at the most: their traversal costs the square.
RANKED_PER_CENTER = 16
MAX_RANKED = 4096
# Rounds are as large as lets few of their rows be covered by one another.
FIRST_ROUND = 64
MAX_ROUND = 8192
FEW_COVERED, MANY_COVERED = 0.15, 0.3


def n_ranked_rows(n_rows: int, n_assigned: int) -> int:
    """Return how many rows the farthest-first traversal ranks.

    >>> n_ranked_rows(1000, 500), n_ranked_rows(10**6, 500)
    (32, 4096)
    """
    return min(n_rows, MAX_RANKED, max(RANKED_PER_CENTER * n_rows // max(n_assigned, 1), 1))


def farthest_first(X: Reals) -> Int64:
    """Return the rows so that each is as far as possible from all before it; the first one first.

    Ties go to the earlier row. Cost O(m^2 d), memory O(m d).
    """
    rows = X.astype(np.float64)
    nearest = np.full(len(rows), np.inf)
    order = np.empty(len(rows), np.int64)
    ball = _NearerRows(rows)
    current = 0
    for i in range(len(rows)):
        order[i] = current
        near = ball.find(current)
        steps = rows[near] - rows[current]
        nearest[near] = np.minimum(nearest[near], np.einsum("ij,ij->i", steps, steps))
        nearest[current] = -1.0
        ball.shrink(near, nearest[near])
        current = int(nearest.argmax())
    return order


class _NearerRows:
    """Preselect the rows that may be nearer to a row than to those taken, by float32 distances.

    What is lost to float32 is bounded as in kernels/blocks.py.
    """

    def __init__(self, rows: Float64) -> None:
        m, d = rows.shape
        center = rows.mean(axis=0)
        extent = float(np.abs(rows - center).max())
        # Far from what overflows or vanishes in float32; of equal rows any unit will do.
        self.scale = 1.0 / extent if 1e-290 < extent < 1e290 else 0.0
        own = (rows - center) * self.scale
        self.columns = np.zeros((-(-d // FEATURE_STEP) * FEATURE_STEP, m), np.float32)
        self.columns[:d] = own.T
        self.slack = 4.0 * UNIT_ROUNDOFF * float(np.sqrt(np.einsum("ij,ij->i", own, own).max()))
        self.share = 1.0 + 2.0 * (d + 8) * UNIT_ROUNDOFF
        self.limits = np.full(m, np.inf, np.float32)
        self.squares = np.empty(m, np.float32)

    def find(self, row: int) -> Int64:
        """Return the rows that may be nearer to one than their limit, increasing."""
        squares_to(self.columns, np.ascontiguousarray(self.columns[:, row]), self.squares)
        return np.flatnonzero(self.squares <= self.limits)

    def shrink(self, rows: Int64, nearest: Float64) -> None:
        """Take squared distances to the nearest row as limits; a negative one: never again."""
        limits = np.full(len(rows), np.inf)
        if self.scale > 0.0:
            reach = np.sqrt(np.maximum(nearest, 0.0)) * self.scale + self.slack
            limits = reach**2 * self.share + 1e-37
        self.limits[rows] = np.where(nearest < 0.0, -1.0, limits)


def order_rows(numbers: RowNumbers, seed: int, sampled: Int64, X: Reals, n_ranked: int) -> Int64:
    """Return the positions of all rows in the order in which they may become centers.

    Parameters
    ----------
    numbers : int64 array, shape (n,). The global row number of each position.
    seed : int
    sampled : int64 array, shape (s,). Global numbers of sampled rows, increasing.
    X : real array, shape (s, d). The sampled rows.
    n_ranked : int. So many of the sampled rows are ranked, those of the smallest keys.

    Returns
    -------
    order : int64 array, shape (n,)
    """
    chosen = np.argsort(row_keys(sampled, CENTER_ORDER(seed)), kind="stable")[:n_ranked]
    ranked = sampled[chosen][farthest_first(X[chosen])]
    order = np.argsort(row_keys(numbers, CENTER_ORDER(seed)), kind="stable")
    by_number = np.argsort(ranked, kind="stable")
    # Where a row's number stands among the ranked ones, if it does.
    found = np.searchsorted(ranked[by_number], numbers[order])
    found = np.minimum(found, len(ranked) - 1)
    is_ranked = ranked[by_number][found] == numbers[order]
    first = np.empty(len(ranked), np.int64)
    first[by_number[found[is_ranked]]] = order[is_ranked]
    return np.concatenate([first, order[~is_ranked]])


@dataclass
class Cover:
    """The state of the covering: which rows are covered, by which center, at which rank.

    Attributes
    ----------
    order : int array, shape (m,). Positions, in the order in which they may become centers.
    n_positions : int, or None for m. The number n of all, of which ``order`` may be a part.
    centers : list of int. Positions of the centers, in the order they were taken.
    owner : int32 array, shape (n,). For each position the center, counted in ``centers``, in whose
        list it has the smallest rank; of equal ranks the center of the smaller row number. -1: not
        covered; below: that of the position -2 - owner, see `resolved_owner`.
    n_rounds, n_searched : int
    """

    order: Int64
    n_assigned: int
    n_positions: int | None = None

    def __post_init__(self) -> None:
        n = self.n_positions or len(self.order)
        self.centers: list[int] = []
        self.owner = np.full(n, -1, np.int32)
        self.n_rounds = self.n_searched = 0
        self._rank = np.full(n, np.iinfo(np.int32).max, np.int32)
        self._owner_number = np.full(n, -1, np.int64)
        self._cursor = 0
        self._size = FIRST_ROUND

    @property
    def n_covered(self) -> int:
        """The number of rows that are covered."""
        return int((self.owner != -1).sum())

    def next_round(self) -> Int64:
        """Return the positions whose neighbors the next round needs; none when all is covered."""
        order, owner = self.order, self.owner
        taken: list[Int64] = []
        missing = self._size
        cursor = self._cursor
        while missing > 0 and cursor < len(order):
            # Twice as far as needed, if all were uncovered; the next round begins where the first
            # row of this one is.
            piece = order[cursor : cursor + max(2 * missing, 4096)]
            free = piece[owner[piece] == -1][:missing]
            if not taken and len(free) == 0:
                self._cursor = cursor + len(piece)
            cursor += len(piece)
            taken.append(free)
            missing -= len(free)
        return np.concatenate(taken) if taken else np.empty(0, np.int64)

    def take_round(self, positions: Int64, numbers: RowNumbers, lists: Ints) -> None:
        """Decide a round's rows one after the other.

        Parameters
        ----------
        positions : int array, shape (r,). As `next_round` gave them.
        numbers : int64 array, shape (r,). Their global row numbers.
        lists : int array, shape (r, n_assigned). The positions of their nearest rows, in order.
        """
        n_before = len(self.centers)
        for position, number, nearest in zip(
            positions.tolist(), numbers.tolist(), lists, strict=True
        ):
            if self.owner[position] != -1:
                continue
            if (nearest == position).any():
                self._take(position, number, nearest)
            else:
                # More equal rows of smaller numbers than the list holds. All of them have this same
                # list, so another center would bring the same model: it follows the first of them.
                self.owner[position] = -2 - nearest[0]
        self.n_rounds += 1
        self.n_searched += len(positions)
        covered = 1.0 - (len(self.centers) - n_before) / len(positions)
        if covered < FEW_COVERED:
            self._size = min(2 * self._size, MAX_ROUND)
        elif covered > MANY_COVERED:
            self._size = max(self._size // 2, FIRST_ROUND)

    def _take(self, position: int, number: int, nearest: Ints) -> None:
        """Make a row a center and let it cover its nearest rows."""
        center = len(self.centers)
        self.centers.append(position)
        ranks = np.arange(len(nearest), dtype=np.int32)
        better = ranks < self._rank[nearest]
        same = (ranks == self._rank[nearest]) & (number < self._owner_number[nearest])
        won = nearest[better | same]
        self._rank[won] = ranks[better | same]
        self.owner[won], self._owner_number[won] = center, number

    def resolved_owner(self) -> Int32:
        """Return each position's center, int32 (n,), when all are covered.

        A row that is not among its own k' nearest, for there are more rows equal to it, has the
        center of the first of them.
        """
        owner = self.owner.copy()
        # A row follows one of a smaller number, which may follow another: distances that are
        # rounded to 0 are not transitive.
        while len(follows := np.flatnonzero(owner < -1)):
            owner[follows] = owner[-2 - owner[follows]]
        return owner
