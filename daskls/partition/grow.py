"""Grows a tree of full cells: a region is cut across its longest side, in whole shares.

A region of n rows needs at least q = ceil(n / cell_size) cells. It is cut where the first floor(q /
2) of its q equal shares end, or at the gap that is nearest, so cells are as few and as full as the
bound allows.

The cut runs across the feature of largest variance, so rows that share an indicator stay together,
or across the principal direction where that has more than 2.1 times that variance. On data with
indicators, slanted cuts mix groups and cost accuracy; on images, no single pixel separates
anything.

Further partitions of the same rows, to be averaged, draw their cuts: the number of shares on the
first side is near the middle, and a feature is drawn in proportion to its variance (or a principal
direction, where the first partition takes one).

Source: the recursive partition on a subsample of Thomann et al., AISTATS 2017, appendix C.
Difference: the paper finds centers by farthest-first traversal, which isolates outliers in cells of
a few rows. Each cut here still gives a row to the nearer of two centers, mirror images of each
other in the cut.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from daskls.errors import MemoryPlanError
from daskls.kernels.route import center_rows, is_plain, project, take_centered
from daskls.partition.axes import FeatureScatter, directions, drawn_directions
from daskls.partition.base import Partition
from daskls.partition.tree import Tree, route_rows
from daskls.records import Float64, Int32, Int64, Mask, Reals

# The least share of a full cell on either side of a cut, and how many directions are tried for it.
MIN_SIDE, MAX_CUTS = 1 / 16, 8
# Rows converted at a time, for dtypes without compiled functions.
TILE_ROWS = 256

# A direction (d,), its threshold, and which rows of the region are on the first side (m,).
Cut = tuple[Float64, float, Mask]


def grow_tree(
    X: Reals, max_rows: int, center: Float64, seed: tuple[int, ...] | None = None
) -> Tree:
    """Grow a tree whose leaves hold at most ``max_rows`` rows of X; a leaf of equal rows is exempt.

    Only a seed draws the cuts. Without it the result depends on the values of the rows alone,
    except that an order which changes the rounding of their covariance may move a cut. Cost O(m d^2
    log(m / max_rows)), and per cut O(d^3), or O(d^2) from 128 features on without a seed.
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
    """Some of the rows (m, d), by their indices (k,).

    The center is subtracted whenever rows are read, into one `scratch` (m, d) that all regions
    share.
    """

    X: Reals
    center: Float64
    rows: Int64
    scratch: Float64

    @classmethod
    def of(cls, X: Reals, center: Float64, is_cut: bool) -> "Region":
        """Return the region of all rows; one that is not cut needs no scratch memory."""
        scratch = np.empty(X.shape if is_cut else (0, X.shape[1]))
        return cls(X, np.asarray(center, np.float64), np.arange(len(X)), scratch)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Int64) -> "Region":
        return replace(self, rows=rows)

    def find_axes(self) -> "FeatureScatter":
        centered = self.scratch[: len(self)]
        for tile, X, rows, center in self._tiles():
            take_centered(X, rows, center, centered[tile])
        spread = np.zeros(centered.shape[1])
        center_rows(centered, centered.mean(axis=0), spread)
        scatter = centered.T @ centered
        return FeatureScatter(np.where(spread > 0, np.diagonal(scatter), -1.0), scatter)

    def project(self, direction: Float64) -> Float64:
        """Return the coordinates of the rows along a direction, with the bits of routing."""
        position = np.empty(len(self))
        (features,) = np.nonzero(direction)
        if len(features) == 1 and direction[features[0]] == 1.0:
            # The same bits as a product: sums with zeros round nothing and leave no negative zero.
            (j,) = features
            np.subtract(self.X[self.rows, j], self.center[j], out=position, dtype=np.float64)
            position += 0.0
            return position
        for tile, X, rows, center in self._tiles():
            project(X, rows, center, direction, position[tile])
        return position

    def _tiles(self) -> Iterator[tuple[slice, Reals, Int64, Float64]]:
        """Yield pieces of the region: slice of its rows, array, rows in it, center to subtract.

        One, except for dtypes without compiled functions, which are converted in tiles.
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
        cuts = _cuts(region, n_rows * (n_shares // 2) // n_shares, directions(axes))
        return _first_balanced(cuts, n_rows // n_shares)
    share = int(rng.integers(-(-n_shares // 4), 3 * n_shares // 4, endpoint=True))
    n_first = n_rows * share // n_shares
    plain = next(_cuts(region, n_first, directions(axes)), None)
    if plain is None:
        return None
    max_cells = _count_cells(plain, max_rows)
    drawn = _cuts(region, n_first, drawn_directions(axes, rng))
    return next((cut for cut in drawn if _count_cells(cut, max_rows) <= max_cells), plain)


def _first_balanced(cuts: Iterator[Cut], share: int) -> Cut | None:
    """Return the first of a few cuts that leaves enough rows on either side, or else the first.

    A single row, whose indicator marks a missing value, should not be a cell.
    """
    first = None
    for cut in islice(cuts, MAX_CUTS):
        first = cut if first is None else first
        if _smaller_side(cut) >= MIN_SIDE * share:
            return cut
    return first


def _smaller_side(cut: Cut) -> int:
    n_first = int(np.count_nonzero(cut[2]))
    return min(n_first, len(cut[2]) - n_first)


def _count_cells(cut: Cut, max_rows: int) -> int:
    first = cut[2]
    n_first = int(np.count_nonzero(first))
    # Two quotients, rounded up.
    return -(-n_first // max_rows) - (n_first - len(first)) // max_rows


def _cuts(region: Region, n_first: int, directions: Iterator[Float64]) -> Iterator[Cut]:
    for direction in directions:
        position = region.project(direction)
        threshold = _threshold(np.sort(position), n_first)
        if threshold is not None:
            yield direction, threshold, position <= threshold


def _threshold(position: Float64, n_first: int) -> float | None:
    """Return a threshold above ``n_first`` sorted positions, as near as ties allow."""
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
    """Cut all rows of a leaf into cells of at most ``max_rows`` rows; equal rows stay together."""
    tree = partition.cut_leaf(X, leaf, max_rows, seed)
    cells = route_rows(tree, X)
    sizes = np.bincount(cells, minlength=tree.n_leaves)
    for cell in np.flatnonzero(sizes > max_rows).tolist():
        _check_equal(partition, X[cells == cell], leaf, max_rows, tree.center)
    return tree, cells


def _check_equal(partition: Partition, X: Reals, leaf: int, max_rows: int, center: Float64) -> None:
    """Raise MemoryPlanError for a cell of too many rows, unless no cut separates them."""
    if grow_tree(X, max_rows, center).n_leaves > 1:
        raise MemoryPlanError(
            f"Leaf {leaf} of a partition of kind {partition.kind!r} has a cell of {len(X)} rows, "
            f"but the plan allows {max_rows}. Raise the size of cells to {len(X)}, or take a "
            "partition that cuts its leaves."
        )
