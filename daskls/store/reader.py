"""A finished model, opened: its index in memory, its cells read on demand."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.records import (
    CellReport,
    FloatArray,
    Forest,
    IntArray,
    LinearModel,
    LocalModel,
    Partition,
    SolverSpec,
)
from daskls.store.centers import read_centers
from daskls.store.files import disk_errors
from daskls.store.joint import read_linear_model
from daskls.store.layout import (
    Root,
    read_array,
    read_forest,
    report_from_json,
    root_stamp,
    write_array,
    write_partition,
)
from daskls.store.models import BundleModels, finished_bundles

__all__ = [
    "ModelReader",
    "Report",
    "open_model",
    "spec_from_json",
    "spec_to_json",
    "write_center_index",
    "write_index",
    "write_row_index",
    "write_single_index",
]


def spec_to_json(spec: SolverSpec) -> dict[str, Any]:
    """Return the spec as JSON values."""
    return asdict(spec)


def spec_from_json(values: dict[str, Any]) -> SolverSpec:
    """Return the spec that `spec_to_json` took apart."""
    lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
    return SolverSpec(**{**values, **lists})


def write_index(
    root: Root, partition: Partition, bundles: list[tuple[int, int]], first_cells: list[int]
) -> None:
    """Write the finished partitions, then set the marker: from here on the model is complete.

    Parameters
    ----------
    root : Root
    partition : Partition. Its leaves are the cells.
    bundles : list of (first, last) leaf, in order. Only these belong to the model.
    first_cells : list of int. The first cell of each bundle, and the number of cells last.
    """
    with disk_errors(root.path):
        group = root.replace_group("index")
        write_partition(group, partition)
        write_array(group, "bundles", np.array(bundles, np.int64))
        write_array(group, "first_cell", np.array(first_cells, np.int64))
        root.group.attrs["complete"] = True


def write_center_index(
    root: Root,
    bundles: list[tuple[int, int]],
    X: FloatArray,
    numbers: IntArray,
    gamma: float | None,
) -> None:
    """Write where each center's model is, and the centers themselves; then set the marker.

    Parameters
    ----------
    root : Root
    bundles : list of (first, last) center, in order
    X : array (c, d). The centers' features.
    numbers : int array (c,). Their global row numbers.
    gamma : float, or None where each neighborhood has its own
    """
    with disk_errors(root.path):
        group = root.replace_group("index")
        write_array(group, "bundles", np.array(bundles, np.int64))
        write_array(group, "first_cell", np.array([*(a for a, _ in bundles), len(X)], np.int64))
        write_array(group, "centers", X)
        write_array(group, "numbers", numbers)
        group.attrs["gamma"] = gamma
        root.group.attrs["complete"] = True


def write_row_index(root: Root, gamma: float | None) -> None:
    """Set the marker of a model that is its rows."""
    with disk_errors(root.path):
        group = root.replace_group("index")
        write_array(group, "bundles", np.empty((0, 2), np.int64))
        write_array(group, "first_cell", np.zeros(1, np.int64))
        group.attrs["gamma"] = gamma
        root.group.attrs["complete"] = True


def write_single_index(
    root: Root, bundle: tuple[int, int], gamma: float | None, summary: dict[str, Any]
) -> None:
    """Write which bundle's one cell is the model, and what was tried; then set the marker.

    Parameters
    ----------
    root : Root
    bundle : (int, int)
    gamma : float, or None of a kernel without
    summary : dict. JSON values: what was tried, and what was chosen.
    """
    with disk_errors(root.path):
        group = root.replace_group("index")
        write_array(group, "bundles", np.array([bundle], np.int64))
        write_array(group, "first_cell", np.array([0, 1], np.int64))
        group.attrs["gamma"] = gamma
        group.attrs["summary"] = summary
        root.group.attrs["complete"] = True


class Report(np.recarray[Any, Any]):
    """A table of cells whose columns are attributes."""

    @property
    def partition(self) -> Any:
        """The column of that name; in any other array it is a method, which compares as unequal."""
        return self["partition"]


class ModelReader:
    """Reads a complete model.

    Attributes
    ----------
    path : Path
    meta : dict. What the estimator wrote about itself.
    index : zarr.Group. What answers need to find their cells.
    """

    def __init__(self, path: Path) -> None:
        root = Root.open(path)
        if not root.is_complete:
            raise StoreError(
                f"The model at {path} is not finished. Call fit again with store={str(path)!r} "
                "and the same data and parameters: only unfinished tasks run."
            )
        self.path = path
        self.fingerprint = str(root.attributes["fingerprint"])
        self.meta: dict[str, Any] = root.attributes["meta"]
        index = root.find_group("index")
        if index is None:
            raise StoreError(f"The model at {path} lacks its index. Copy or train it again.")
        self.index = index
        self._forest = read_forest(index) if "n_nodes" in index else None
        self._first_cell = read_array(index, "first_cell").tolist()
        spec = spec_from_json(self.meta["spec"])
        listed = [(int(a), int(b)) for a, b in read_array(index, "bundles")]
        missing = sorted(set(listed) - set(finished_bundles(path)))
        if missing:
            raise StoreError(
                f"The model at {path} lacks {len(missing)} of its {len(listed)} bundles, "
                f"{missing[0][0]:06d}-{missing[0][1]:06d} first. Copy or train it again."
            )
        self.bundles = [BundleModels(path, a, b, spec) for a, b in listed]

    @property
    def n_cells(self) -> int:
        """The number of cells, of all partitions, or of centers."""
        return int(self._first_cell[-1])

    @property
    def method(self) -> dict[str, Any]:
        """What the method has written about itself; empty for one on a partition."""
        values: dict[str, Any] = self.meta.get("method", {})
        return values

    @property
    def forest(self) -> Forest:
        """The partitions: the leaves are the cells; one tree a partition.

        Raises
        ------
        StoreError : when the model is one without a partition
        """
        if self._forest is None:
            raise StoreError(
                f"The model at {self.path} is a {self.meta['estimator']}, which does not cut space "
                "into cells and has no partition tree."
            )
        return self._forest

    @cached_property
    def spec(self) -> SolverSpec:
        """What the cells were trained with; gamma as the fit found it."""
        spec = spec_from_json(self.meta["spec"])
        gamma = self.index.attrs.get("gamma")
        return spec if gamma is None else replace(spec, gamma=(float(str(gamma)),))

    @property
    def cover(self) -> dict[str, int]:
        """How the centers of neighborhoods were decided: rounds, and rows searched."""
        centers = read_centers(Root.open(self.path))
        if centers is None:
            return {}
        return {"n_rounds": centers.n_rounds, "n_searched": centers.n_searched}

    @property
    def summary(self) -> dict[str, Any]:
        """What a method of one model tried, and what it chose; empty for the others."""
        values: Any = self.index.attrs.get("summary", {})
        return dict(values)

    @cached_property
    def linear(self) -> LinearModel:
        """The whole model, where it is one on landmarks."""
        return read_linear_model(self.index)

    @cached_property
    def centers(self) -> tuple[FloatArray, IntArray]:
        """The features of the centers of neighborhoods, (c, d), and their global row numbers."""
        return read_array(self.index, "centers"), read_array(self.index, "numbers")

    def read_cells(self, cells: IntArray) -> Iterator[LocalModel]:
        """Yield the models of cells, given in increasing order, bundle by bundle.

        At most one read's support rows are in memory, besides the model in the caller's hands.
        """
        bounds = np.searchsorted(cells, self._first_cell)
        for i, bundle in enumerate(self.bundles):
            own = cells[bounds[i] : bounds[i + 1]]
            yield from bundle.read_cells(own - self._first_cell[i])

    def read_cell(self, cell: int) -> LocalModel:
        """Return one cell's model."""
        return next(self.read_cells(np.array([cell])))

    @cached_property
    def report(self) -> Report:
        """One row a cell, in the order of cells."""
        if "report" in self.index.attrs:
            return report_from_json(self.index.attrs["report"]).view(Report)
        tables = [
            bundle.numbered_report(first)
            for bundle, first in zip(self.bundles, self._first_cell, strict=False)
        ]
        if not tables:
            return np.empty(0, CellReport.dtype()).view(Report)
        return np.concatenate(tables).view(Report)


def open_model(path: str, fingerprint: str) -> ModelReader:
    """Return a model's reader, kept open for the next block that this process predicts.

    Raises
    ------
    StoreError : when another model took the path; also when it did so under an open reader
    """
    return _open_model(path, fingerprint, root_stamp(path))


@lru_cache(maxsize=8)
def _open_model(path: str, fingerprint: str, stamp: tuple[int, int]) -> ModelReader:
    """Return a reader; the stamp keeps one of replaced files from being used again."""
    reader = ModelReader(Path(path))
    if reader.fingerprint != fingerprint:
        raise StoreError(
            f"The model at {path} was replaced by another one since this prediction was set up. "
            "Load the model again and call predict again."
        )
    return reader
