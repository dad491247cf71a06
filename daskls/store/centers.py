"""The centers of FaLK-SVM in the store: their places, and the center of every row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr

from daskls.records import IntArray
from daskls.store.files import disk_errors
from daskls.store.layout import Root, open_member, read_array, read_values, write_array

__all__ = ["Centers", "read_centers", "write_centers"]

GROUP = "centers"
CHUNK_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Centers:
    """A covering set. Centers are numbered by place, so that neighbors in number are near.

    Attributes
    ----------
    places : int64 array, shape (c,), increasing
    n_rounds, n_searched : int. Rounds of the covering, and rows whose neighbors they searched.
    owner : zarr.Array, int32 (n,). The center of each place.
    """

    places: IntArray
    n_rounds: int
    n_searched: int
    owner: "zarr.Array[Any]"

    def owners(self, start: int, stop: int) -> IntArray:
        """Return the center of each of the places start .. stop - 1."""
        return read_values(self.owner, slice(start, stop))


def write_centers(
    root: Root, places: list[int], owner: IntArray, n_rounds: int, n_searched: int
) -> Centers:
    """Number the centers by place and write them.

    Parameters
    ----------
    root : Root
    places : list of int. Of the centers, in the order they were taken.
    owner : int array, shape (n,). Each row's center, counted in that order.
    n_rounds, n_searched : int
    """
    taken = np.array(places, np.int64)
    order = np.argsort(taken)
    number = np.empty(len(taken), np.int32)
    number[order] = np.arange(len(taken))
    with disk_errors(root.path):
        group = root.replace_group(GROUP)
        write_array(group, "places", taken[order])
        write_array(group, "owner", number[owner], CHUNK_ROWS)
        group.attrs.update({"n_rounds": n_rounds, "n_searched": n_searched, "complete": True})
    return Centers(taken[order], n_rounds, n_searched, open_member(group, "owner"))


def read_centers(root: Root) -> Centers | None:
    """Return the centers of a store, or None if they are not decided yet."""
    group = root.find_group(GROUP)
    if group is None or not group.attrs.get("complete", False):
        return None
    n_rounds, n_searched = (int(str(group.attrs[name])) for name in ("n_rounds", "n_searched"))
    owner = open_member(group, "owner")
    return Centers(read_array(group, "places"), n_rounds, n_searched, owner)
