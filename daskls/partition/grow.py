"""Growing a tree of full cells: a region is cut across its longest side, in whole shares.

A region of n rows needs at least q = ceil(n / cell_size) cells. It is cut where the first
floor(q / 2) of its q equal shares end, so every leaf comes out with close to n / q rows: as few
cells as the bound allows, all of them full. Where ties leave no such cut (an indicator has but two
values), the nearest gap is taken.

The cut runs across the feature of largest variance, so that a group of rows that share an indicator
stays whole; or across the principal direction, where features vary together so much that it has
more than `SLANTED` times that variance. On data with indicators, slanted cuts mix groups and cost
accuracy; on images, no single pixel cuts anything.

Further partitions of the same rows, to be averaged, draw their cuts: the number of whole shares on
the first side near the middle, and the feature with a chance in proportion to its variance (or the
principal direction, where the first partition takes one). A drawn feature that would cost more
cells than the first partition's choice is passed over. Random slanted cuts give as good an average
on Covertype, but a worse one on ijcnn1, whose indicators they mix.

Source: the recursive partition on a subsample of Thomann et al., AISTATS 2017, appendix C.
Difference: the paper finds centers by farthest-first traversal, which isolates outliers in cells
of a few rows. Each of our cuts still gives a row to the nearer of two centers, mirror images of
each other in the cut.

The cells of a leaf of any kind of partition: none is larger than ``max_rows``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from daskls.errors import MemoryPlanError
from daskls.kernels.route import center_rows, is_plain, project, take_centered
from daskls.partition.base import Partition
from daskls.partition.tree import Tree, route_rows
from daskls.records import Float64, Int32, Int64, Mask, Reals

SLANTED = 2.1
# Of a full cell, what either side of a cut has at the least, if one of so many directions gives it.
LEAST_SIDE, MOST_CUTS = 1 / 16, 8
# Rows converted at once, of types that nothing is compiled for.
TILE_ROWS = 256

# A direction, its threshold, and which rows are on the first side.
Cut = tuple[Float64, float, Mask]


def grow_tree(
    X: Reals, max_rows: int, center: Float64, seed: tuple[int, ...] | None = None
) -> Tree:
    """Grow a tree whose leaves hold at most ``max_rows`` rows of X.

    Parameters
    ----------
    X : real array, shape (m, d)
    max_rows : int, >= 1. The bound of a leaf. A leaf of equal rows is exempt.
    center : float64 array, shape (d,). Subtracted in float64; the tree's center.
    seed : tuple of int, or None. Draws the cuts; another seed gives another tree.

    Returns
    -------
    tree : Tree

    Notes
    -----
    Without a seed the result depends on the rows' values alone: an order of the rows that changes
    the rounding of their covariance may move a cut. With a seed it depends on their order too. Cost
    O(m d^2 log(m / max_rows)), and O(d^3) a cut; memory `memory.grow_nbytes`.
    """
    region = Region.of(X, center, len(X) > max_rows)
    rng = None if seed is None else np.random.default_rng(seed)
    directions: list[Float64] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    n_leaves = 0
    # Depth first, left before right: leaves are numbered from left to right. Each entry holds a
    # region's rows and the place in its parent that waits for its number.
    stack: list[tuple[Int64, int, int]] = [(np.arange(len(X)), -1, 0)]
    while stack:
        rows, parent, side = stack.pop()
        cut = _cut(region.take(rows), max_rows, rng) if len(rows) > max_rows else None
        number = ~n_leaves if cut is None else len(thresholds)
        if parent >= 0:
            children[parent][side] = number
        if cut is None:
            n_leaves += 1
            continue
        direction, threshold, first = cut
        directions.append(direction)
        thresholds.append(threshold)
        children.append([0, 0])
        stack.append((rows[~first], number, 1))
        stack.append((rows[first], number, 0))
    d = X.shape[1]
    return Tree(
        np.asarray(center, np.float64),
        np.array(directions, np.float64).reshape(-1, d),
        np.array(thresholds, np.float64),
        np.array(children, np.int32).reshape(-1, 2),
    )


@dataclass(frozen=True, eq=False)
class Region:
    """Some of the rows.

    Attributes
    ----------
    X : real array, shape (m, d). All rows.
    center : float64 array, shape (d,). Subtracted from rows wherever they are read: a centered copy
        of all of them would be as large as all else.
    rows : int array, shape (k,). The region's.
    room : float64 array, shape (m, d). To compute in: fresh memory for each region would cost as
        much as what is computed there.
    """

    X: Reals
    center: Float64
    rows: Int64
    room: Float64

    @classmethod
    def of(cls, X: Reals, center: Float64, is_cut: bool) -> "Region":
        """Return the region of all rows; what is not cut needs no room."""
        room = np.empty(X.shape if is_cut else (0, X.shape[1]))
        return cls(X, np.asarray(center, np.float64), np.arange(len(X)), room)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Int64) -> "Region":
        """Return the region of other rows, which computes in the same place."""
        return replace(self, rows=rows)

    def find_axes(self) -> "Axes":
        """Return along what rows vary."""
        own = self.room[: len(self)]
        for tile, X, rows, center in self._tiles():
            take_centered(X, rows, center, own[tile])
        spread = np.zeros(own.shape[1])
        center_rows(own, own.mean(axis=0), spread)
        scatter = own.T @ own
        return Axes(np.where(spread > 0, np.diagonal(scatter), -1.0), scatter)

    def project(self, direction: Float64) -> Float64:
        """Return the coordinates of rows along a direction; as routing computes them."""
        position = np.empty(len(self))
        (features,) = np.nonzero(direction)
        if len(features) == 1 and direction[features[0]] == 1.0:
            # The same bits: a sum with zeros has no rounding, and no negative zero.
            (j,) = features
            np.subtract(self.X[self.rows, j], self.center[j], out=position, dtype=np.float64)
            position += 0.0
            return position
        for tile, X, rows, center in self._tiles():
            project(X, rows, center, direction, position[tile])
        return position

    def _tiles(self) -> Iterator[tuple[slice, Reals, Int64, Float64]]:
        """Yield which of the region's rows, an array that compiled functions read, where, a center.

        All at once, but of types that nothing is compiled for: the bits are the same.
        """
        if is_plain(self.X):
            yield slice(None), self.X, self.rows, self.center
            return
        for start in range(0, len(self), TILE_ROWS):
            tile = slice(start, start + TILE_ROWS)
            A = np.subtract(self.X[self.rows[tile]], self.center, dtype=np.float64, order="C")
            yield tile, A, np.arange(len(A)), np.zeros_like(self.center)


def _cut(region: Region, max_rows: int, rng: np.random.Generator | None) -> Cut | None:
    """Return where to cut, or None if all rows are equal."""
    n_rows = len(region)
    n_shares = -(-n_rows // max_rows)
    axes = region.find_axes()
    if rng is None:
        cuts = _cuts(region, n_rows * (n_shares // 2) // n_shares, _directions(axes))
        return _first_even(cuts, n_rows // n_shares)
    share = int(rng.integers(-(-n_shares // 4), 3 * n_shares // 4, endpoint=True))
    n_first = n_rows * share // n_shares
    plain = next(_cuts(region, n_first, _directions(axes)), None)
    if plain is None:
        return None
    most = _count_cells(plain, max_rows)
    drawn = _cuts(region, n_first, _drawn_directions(axes, rng))
    return next((cut for cut in drawn if _count_cells(cut, max_rows) <= most), plain)


def _first_even(cuts: Iterator[Cut], share: int) -> Cut | None:
    """Return the first cut that leaves either side some rows, of a few; or else the first.

    One row whose indicator says that a value was missing is not a cell: its rows would be answered
    by a constant.
    """
    first = None
    for cut in islice(cuts, MOST_CUTS):
        first = cut if first is None else first
        if _smaller_side(cut) >= LEAST_SIDE * share:
            return cut
    return first


def _smaller_side(cut: Cut) -> int:
    n_first = int(np.count_nonzero(cut[2]))
    return min(n_first, len(cut[2]) - n_first)


def _count_cells(cut: Cut, max_rows: int) -> int:
    """Return how many cells the two sides of a cut need at least."""
    first = cut[2]
    n_first = int(np.count_nonzero(first))
    return -(-n_first // max_rows) - (n_first - len(first)) // max_rows


def _cuts(region: Region, n_first: int, directions: Iterator[Float64]) -> Iterator[Cut]:
    """Yield the cut across each direction along which rows differ."""
    for direction in directions:
        position = region.project(direction)
        threshold = _threshold(np.sort(position), n_first)
        if threshold is not None:
            yield direction, threshold, position <= threshold


@dataclass(frozen=True, eq=False)
class Axes:
    """Along what rows vary, and how much.

    Attributes
    ----------
    by_feature : array (d,). Scatter of each feature; -1 for a constant one.
    scatter : array (d, d). Of all features, symmetric.
    """

    by_feature: Float64
    scatter: Float64

    @cached_property
    def _principal(self) -> tuple[Float64, Float64]:
        """Scatter along each principal direction, increasing, and the directions as columns."""
        values, vectors = np.linalg.eigh(self.scatter)
        return values, vectors

    @property
    def values(self) -> Float64:
        """Scatter along each principal direction, increasing."""
        return self._principal[0]

    @cached_property
    def slanted(self) -> bool:
        """Whether cuts run across principal directions."""
        most = SLANTED * self.by_feature.max()
        # No principal direction has more than the root of the sum of squares: where that is too
        # little, by more than rounding, none is needed.
        if np.linalg.norm(self.scatter) <= most * (1 - 1e-9):
            return False
        return bool(self.values[-1] > most)

    def principal(self, i: int) -> Float64:
        """Return a principal direction; its sign decides which child comes first: fix it."""
        vector = self._principal[1][:, i]
        return np.ascontiguousarray(vector * np.sign(vector[np.abs(vector).argmax()]))

    def feature(self, i: int) -> Float64:
        """Return the direction of a feature."""
        axis = np.zeros(len(self.by_feature))
        axis[i] = 1.0
        return axis


def _directions(axes: Axes) -> Iterator[Float64]:
    """Yield the direction to cut across; then the features that vary, by variance.

    The second feature serves where coordinates along the first direction all round to one value.
    """
    if axes.slanted:
        yield axes.principal(-1)
    for i in np.argsort(-axes.by_feature, kind="stable"):
        if axes.by_feature[i] >= 0:
            yield axes.feature(i)


def _drawn_directions(axes: Axes, rng: np.random.Generator) -> Iterator[Float64]:
    """Yield principal directions or features, drawn one after the other by their scatter."""
    if axes.slanted:
        yield from map(axes.principal, _draw(axes.values, rng))
    else:
        yield from map(axes.feature, _draw(axes.by_feature, rng))


def _draw(weights: Float64, rng: np.random.Generator) -> list[int]:
    """Return the numbers of positive weights in an order drawn without replacement."""
    with np.errstate(divide="ignore"):
        # The largest of log w + Gumbel noise is item i with a chance of w_i over their sum.
        keys = np.log(np.maximum(weights, 0.0)) + rng.gumbel(size=len(weights))
    order = np.argsort(-keys, kind="stable")
    drawn: list[int] = order[weights[order] > 0].tolist()
    return drawn


def _threshold(position: Float64, n_first: int) -> float | None:
    """Return a cut of sorted positions that leaves ``n_first`` rows below, as near as ties allow.

    None if all positions are equal.
    """
    gaps = np.flatnonzero(position[1:] > position[:-1]) + 1
    if len(gaps) == 0:
        return None
    cut = gaps[np.abs(gaps - n_first).argmin()]
    below, above = position[cut - 1], position[cut]
    middle = below + (above - below) / 2
    # The midpoint of two adjacent floats rounds to one of them; it must not be the upper one.
    return float(middle if middle < above else below)


def cut_into_cells(
    partition: Partition, X: Reals, leaf: int, max_rows: int, seed: int | None = None
) -> tuple[Tree, Int32]:
    """Cut all rows of a leaf into cells of at most ``max_rows`` rows; equal rows stay together.

    Parameters
    ----------
    partition, X, leaf, max_rows, seed : as of `Partition.cut_leaf`

    Returns
    -------
    tree : Tree
    cells : int32 array, shape (m,). The cell of each row.

    Raises
    ------
    MemoryPlanError : when the partition left a cell larger than that, though its rows differ
    """
    tree = partition.cut_leaf(X, leaf, max_rows, seed)
    cells = route_rows(tree, X)
    sizes = np.bincount(cells, minlength=tree.n_leaves)
    for cell in np.flatnonzero(sizes > max_rows).tolist():
        _check_whole(partition, X[cells == cell], leaf, max_rows, tree.center)
    return tree, cells


def _check_whole(partition: Partition, X: Reals, leaf: int, max_rows: int, center: Float64) -> None:
    """Refuse rows of one cell, more than it may hold, unless no cut tells them apart."""
    if grow_tree(X, max_rows, center).n_leaves > 1:
        raise MemoryPlanError(
            f"Leaf {leaf} of a partition of kind {partition.kind!r} has a cell of {len(X)} rows, "
            f"but a cell may hold {max_rows}, and the plan counts on it. Raise the size of cells "
            f"to {len(X)}, or take a partition that cuts its leaves."
        )
