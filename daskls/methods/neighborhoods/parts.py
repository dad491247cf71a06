"""What a FaLK-SVM keeps in its store: its centers, and the center of every row."""

from dataclasses import dataclass

import numpy as np

from daskls.errors import StoreError
from daskls.records import Int32, Int64, Ints, Reals
from daskls.store.checks import check_codes
from daskls.store.contents import StorePart
from daskls.store.groups import Group
from daskls.store.guard import damaged, malformed_is_damage
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

__all__ = [
    "CENTER_PARTS",
    "Centers",
    "center_rows",
    "count_cover",
    "open_centers",
    "read_centers",
    "write_centers",
]

CENTERS_GROUP = "centers"
_HERE = "methods/neighborhoods"
CENTER_PARTS = (
    StorePart("index", _HERE, "centers X cells, d; numbers int64 cells"),
    StorePart("bundles/*", _HERE, "leaf int64 cells", kind="bundles"),
    StorePart(CENTERS_GROUP, _HERE, "places int64 cells; owner int32 n"),
)
# A query reads the owners of one leaf's rows, some 16,384: mostly one chunk.
CENTER_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Centers:
    """A covering set. Centers are numbered by position, so that neighbors in number are near.

    Attributes
    ----------
    positions : int64 array, shape (c,), increasing
    n_rounds, n_searched : int. Rounds of the covering, and rows whose neighbors they searched.
    group : Group. Holds the center of each position, ``owner``: int32 (n,).
    """

    positions: Int64
    n_rounds: int
    n_searched: int
    group: Group

    def owners(self, start: int, stop: int) -> Int32:
        """Return the center of each of the positions start .. stop - 1."""
        found = self.group.read("owner", slice(start, stop), kind="i")
        if len(found) != stop - start:
            raise damaged(self.group.where(), f"it has no owners of places {start} to {stop}")
        check_codes(self.group.where("owner"), "owner", found, len(self.positions))
        return found


def write_centers(
    root: Root, positions: list[int], owner: Int32, n_rounds: int, n_searched: int
) -> Centers:
    """Number the centers by position and write them.

    Parameters
    ----------
    root : Root
    positions : list of int. Of the centers, in the order they were taken.
    owner : int array, shape (n,). Each row's center, counted in that order.
    n_rounds, n_searched : int
    """
    taken = np.array(positions, np.int64)
    order = np.argsort(taken)
    number = np.empty(len(taken), np.int32)
    number[order] = np.arange(len(taken))
    # Stores keep the name of earlier versions for positions.
    arrays: dict[str, Ints] = {"places": taken[order], "owner": number[owner]}
    counts = {"n_rounds": n_rounds, "n_searched": n_searched}
    root.write_group(CENTERS_GROUP, arrays, counts, CENTER_CHUNK_ROWS)
    written = read_centers(root)
    assert written is not None
    return written


def read_centers(root: Root) -> Centers | None:
    """Return the centers of a store, or None if they are not decided yet.

    Raises
    ------
    DamageError
    """
    group = root.find_group(CENTERS_GROUP)
    if group is None:
        return None
    with malformed_is_damage(group.where()):
        n_rounds, n_searched = (int(str(group.attrs[name])) for name in ("n_rounds", "n_searched"))
    positions = group.read("places", shape=(None,), kind="i")
    n_rows = group.shape_of("owner")[0]
    if (
        not len(positions)
        or positions[0] < 0
        or positions[-1] >= n_rows
        or (np.diff(positions) <= 0).any()
    ):
        raise damaged(group.where("places"), "places of centers do not rise inside the rows")
    return Centers(positions, n_rounds, n_searched, group)


def open_centers(reader: ModelReader) -> Centers:
    """Return a model's centers.

    Raises
    ------
    StoreError : it has none
    """
    centers = read_centers(reader.root)
    if centers is None:
        raise StoreError(
            f"The model at {reader.root.where()} lacks its centers. Copy or train it again."
        )
    return centers


def center_rows(reader: ModelReader) -> tuple[Reals, Int64]:
    """Return the features of a model's centers, (c, d), and their global row numbers."""
    shape = reader.n_cells, reader.width
    X = reader.index.read("centers", shape=shape, kind="f")
    return X, reader.index.read("numbers", shape=shape[:1], kind="i")


def count_cover(reader: ModelReader) -> dict[str, int]:
    """Return the counts of a model's covering: its rounds, and the rows searched in them."""
    centers = read_centers(reader.root)
    if centers is None:
        return {}
    return {"n_rounds": centers.n_rounds, "n_searched": centers.n_searched}
