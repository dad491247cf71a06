"""The centers of a FaLK-SVM: how a store keeps them and each row's, and those of a query."""

from dataclasses import dataclass

import numpy as np

from daskls.errors import StoreError
from daskls.methods.base import one_leaf
from daskls.methods.neighborhoods.groups import nearest_rows, open_searched
from daskls.methods.neighborhoods.plan import NeighborSpec
from daskls.neighbors.search import find_nearest, metric_of, order_by_leaf
from daskls.records import Int32, Int64, Ints, LeafRows, Reals, Regions
from daskls.store.artifact import Artifact
from daskls.store.caches import cached
from daskls.store.contents import StorePart
from daskls.store.errors import check_codes, damaged, malformed_is_damage
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

CENTERS = "centers"
_HERE = "methods/neighborhoods"
CENTER_PARTS = (
    StorePart("index", _HERE, "centers X cells, d; numbers int64 cells"),
    StorePart("bundles/*", _HERE, "leaf int64 cells"),
    StorePart(CENTERS, _HERE, "positions int64 cells; owner int32 n"),
)


@dataclass(frozen=True, eq=False)
class Centers:
    """The covering centers, numbered by position, so consecutive centers are near each other.

    The part holds ``owner``, int32 (n,): the center of the row at each position.
    """

    positions: Int64
    n_rounds: int
    n_searched: int
    part: Artifact

    def owners(self, start: int, stop: int) -> Int32:
        """Return the center of each of the positions start .. stop - 1."""
        owner = self.part.read("owner", slice(start, stop), kind="i")
        if len(owner) != stop - start:
            raise damaged(self.part.where(), f"it has no owners of places {start} to {stop}")
        check_codes(self.part.where(), "owner", owner, len(self.positions))
        return owner


def write_centers(
    root: Root, positions: list[int], owner: Int32, n_rounds: int, n_searched: int
) -> Centers:
    """Number the centers by position and write them; `owner` has each row's index among them."""
    taken = np.array(positions, np.int64)
    order = np.argsort(taken)
    number = np.empty(len(taken), np.int32)
    number[order] = np.arange(len(taken))
    arrays: dict[str, Ints] = {"positions": taken[order], "owner": number[owner]}
    counts = {"n_rounds": n_rounds, "n_searched": n_searched}
    root.write(CENTERS, arrays, counts)
    written = read_centers(root)
    assert written is not None
    return written


def read_centers(root: Root) -> Centers | None:
    """Return the centers of a store, or None if they are not chosen yet."""
    part = root.find(CENTERS)
    if part is None:
        return None
    with malformed_is_damage(part.where()):
        n_rounds, n_searched = (int(str(part.attrs[name])) for name in ("n_rounds", "n_searched"))
    positions = part.read("positions", shape=(None,), kind="i")
    n_rows = part.shape_of("owner")[0]
    if (
        not len(positions)
        or positions[0] < 0
        or positions[-1] >= n_rows
        or (np.diff(positions) <= 0).any()
    ):
        raise damaged(part.where(), "its positions of centers are not increasing row numbers")
    return Centers(positions, n_rounds, n_searched, part)


def open_centers(reader: ModelReader) -> Centers:
    centers = read_centers(reader.root)
    if centers is None:
        raise StoreError(
            f"The model at {reader.root.where()} lacks its centers. Copy or train it again."
        )
    return centers


def center_rows(reader: ModelReader) -> tuple[Reals, Int64]:
    shape = reader.n_cells, reader.width
    X = reader.index.read("centers", shape=shape, kind="f")
    return X, reader.index.read("numbers", shape=shape[:1], kind="i")


def count_cover(reader: ModelReader) -> dict[str, int]:
    centers = read_centers(reader.root)
    if centers is None:
        return {}
    return {"n_rounds": centers.n_rounds, "n_searched": centers.n_searched}


def find_owners(method: NeighborSpec, reader: ModelReader, X: Reals) -> Int64:
    """Return the center of each query's nearest training row (equation 15)."""
    leaves = open_searched(method, reader)
    centers = _centers_of(reader)
    order = order_by_leaf(X, leaves.regions)
    neighbors = nearest_rows(method, leaves, X[order], 1, metric_of(reader.spec))
    positions = np.empty(len(X), np.int64)
    positions[order] = neighbors.positions[:, 0]
    cells = np.empty(len(X), np.int64)
    of_leaf = leaves.leaf_of(positions)
    for leaf in np.unique(of_leaf).tolist():
        in_leaf = of_leaf == leaf
        start, stop = leaves.first_positions[[leaf, leaf + 1]]
        cells[in_leaf] = centers.owners(int(start), int(stop))[positions[in_leaf] - start]
    return cells


def nearest_centers(reader: ModelReader, X: Reals, n_centers: int) -> Int64:
    """Return each query's nearest centers, (m, n_centers); ties go to the smaller row number."""
    leaf, region, number = _centers_leaf(reader)
    order = order_by_leaf(X, leaf.regions)
    neighbors = find_nearest(X[order], n_centers, region, lambda _: leaf, metric_of(reader.spec))
    cells = np.empty((len(X), n_centers), np.int64)
    cells[order] = number[neighbors.positions]
    return cells


# A model's centers, cached for its reader.
_centers_of = cached(maxsize=8)(open_centers)


@cached(maxsize=8)
def _centers_leaf(reader: ModelReader) -> tuple[LeafRows, Regions, Int64]:
    return one_leaf(*center_rows(reader))
