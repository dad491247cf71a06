"""A finished model, opened: its index in memory, its cells read on demand."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.kernels.frame import scaled
from daskls.records import (
    AnyArray,
    CellReport,
    Float64,
    Int64,
    Ints,
    LocalModel,
    Reals,
    RowNumbers,
    SolverSpec,
)
from daskls.store.artifacts import Location
from daskls.store.asked import asked_bundles
from daskls.store.caches import kept
from daskls.store.centers import read_centers
from daskls.store.checks import spec_from_json, spec_to_json
from daskls.store.guard import damaged, malformed_is_damage
from daskls.store.layout import (
    Root,
    report_from_json,
    root_stamp,
)
from daskls.store.models import BundleModels, finished_bundles
from daskls.store.scale import read_resolved

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


def _write_index(
    root: Root,
    bundles: list[tuple[int, int]],
    first_cells: list[int],
    arrays: Mapping[str, AnyArray],
    attributes: Mapping[str, Any],
) -> None:
    """Write the index, then set the marker: from here on the model is complete."""
    own = {
        "bundles": np.array(bundles, np.int64).reshape(-1, 2),
        "first_cell": np.array(first_cells, np.int64),
    }
    root.write_group("index", {**arrays, **own}, attributes)
    root.update(complete=True)


def write_index(
    root: Root,
    arrays: Mapping[str, AnyArray],
    attributes: Mapping[str, Any],
    bundles: list[tuple[int, int]],
    first_cells: list[int],
) -> None:
    """Write the finished partitions, then set the marker: from here on the model is complete.

    Parameters
    ----------
    root : Root
    arrays, attributes : what the finished partitions are. Their leaves are the cells.
    bundles : list of (first, last) leaf, in order. Only these belong to the model.
    first_cells : list of int. The first cell of each bundle, and the number of cells last.
    """
    _write_index(root, bundles, first_cells, arrays, attributes)


def write_center_index(
    root: Root,
    bundles: list[tuple[int, int]],
    X: Reals,
    numbers: RowNumbers,
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
    first_cells = [*(a for a, _ in bundles), len(X)]
    _write_index(root, bundles, first_cells, {"centers": X, "numbers": numbers}, {"gamma": gamma})


def write_row_index(root: Root, selected: Mapping[str, float | None]) -> None:
    """Set the marker of a model that is its rows; queries are answered by what was selected."""
    _write_index(root, [], [0], {}, selected)


def write_single_index(
    root: Root,
    bundle: tuple[int, int],
    selected: Mapping[str, float | None],
    summary: dict[str, Any],
) -> None:
    """Write which bundle's one cell is the model, and what was tried; then set the marker.

    Parameters
    ----------
    root : Root
    bundle : (int, int)
    selected : dict. C, and gamma or None of a kernel without.
    summary : dict. JSON values: what was tried, and what was chosen.
    """
    _write_index(root, [bundle], [0, 1], {}, {**selected, "summary": summary})


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
    path : Path. Its folder.
    meta : dict. What the estimator wrote about itself.
    stage_s : dict. Seconds of each stage of the fit that finished it.
    index : Group. The arrays by which predictions find their cells.
    resolved : Resolved. The scale of features, and what all cells were trained with.
    target : Target. Classes, or center and scale of numbers.
    """

    def __init__(self, location: Location) -> None:
        root = Root.open(location)
        path = root.path
        if not root.is_complete:
            raise StoreError(
                f"The model at {path} is not finished. Call fit again with store={str(path)!r} "
                "and the same data and parameters: only unfinished tasks run."
            )
        self.path, self._store = path, root.store
        self.fingerprint = str(root.attributes["fingerprint"])
        self.meta: dict[str, Any] = root.attributes["meta"]
        # Models of before this was kept have none.
        self.stage_s: dict[str, float] = root.attributes.get("stage_s", {})
        index = root.find_group("index")
        if index is None:
            raise damaged(root.store.where("index"), "the model lacks its index")
        self.index = index
        listed = [(int(a), int(b)) for a, b in index.read("bundles", shape=(None, 2), kind="i")]
        self._first_cell = self._read_first_cells(len(listed))
        self.resolved = read_resolved(root)
        # By name only: a bundle is opened when one of its cells is asked.
        missing = sorted(set(listed) - set(finished_bundles(root.store)))
        if missing:
            raise StoreError(
                f"The model at {path} lacks {len(missing)} of its {len(listed)} bundles, "
                f"{missing[0][0]:06d}-{missing[0][1]:06d} first. Copy or train it again."
            )
        self.target = root.target
        spec, n_functions = self.resolved.spec, self.target.n_functions
        counts = np.diff(self._first_cell).tolist()
        self.bundles = [
            BundleModels(root.store, a, b, spec, n_cells, self.width, n_functions)
            for (a, b), n_cells in zip(listed, counts, strict=False)
        ]

    def _read_first_cells(self, n_bundles: int) -> list[int]:
        """Return the first cell of each bundle, and the number of cells last."""
        # A model of rows or of landmarks has no bundles.
        found: list[int] = self.index.read("first_cell", shape=(n_bundles + 1,), kind="i").tolist()
        if found[0] * n_bundles or any(a >= b for a, b in pairwise(found)):
            raise damaged(self.index.where("first_cell"), "the cells of bundles do not rise from 0")
        return found

    @property
    def n_cells(self) -> int:
        """The number of cells, of all partitions, or of centers."""
        return int(self._first_cell[-1])

    @property
    def width(self) -> int:
        """The number of scaled features: those that cells and partition use."""
        scale = self.resolved.scale
        return int(self.meta["n_features"]) if scale is None else len(scale.columns)

    def enter(self, X: Reals) -> Reals:
        """Return rows as the model uses them: scaled, where it has a scale of features."""
        scale = self.resolved.scale
        return X if scale is None else scaled(X, scale)

    @property
    def n_classes(self) -> int:
        """The number of classes of the whole model; 0 of numbers."""
        return self.target.n_classes

    @property
    def method(self) -> dict[str, Any]:
        """The method's description of itself; empty for one on a partition."""
        values: dict[str, Any] = self.meta.get("method", {})
        return values

    @cached_property
    def spec(self) -> SolverSpec:
        """Parameters that the cells were trained with; C and gamma as the fit found them."""
        spec, C, gamma = self.resolved.spec, self.selected("C"), self.selected("gamma")
        spec = spec if C is None else replace(spec, C=(C,))
        return spec if gamma is None else replace(spec, gamma=(gamma,))

    def selected(self, name: str) -> float | None:
        """Return the value of a parameter that the fit has selected for the whole model, if any."""
        with malformed_is_damage(self.index.where()):
            value = self.index.attrs.get(name)
            return None if value is None else float(str(value))

    @property
    def cover(self) -> dict[str, int]:
        """Counts of the covering by centers of neighborhoods: rounds, and rows searched."""
        centers = read_centers(Root.open(self._store))
        if centers is None:
            return {}
        return {"n_rounds": centers.n_rounds, "n_searched": centers.n_searched}

    @property
    def summary(self) -> dict[str, Any]:
        """The values that a method of one model tried, and its choice; empty for the others."""
        with malformed_is_damage(self.index.where()):
            return dict(self.index.attrs.get("summary", {}))

    @cached_property
    def centers(self) -> tuple[Reals, Int64]:
        """The features of the centers of neighborhoods, (c, d), and their global row numbers."""
        shape = self.n_cells, self.width
        X = self.index.read("centers", shape=shape, kind="f")
        return X, self.index.read("numbers", shape=shape[:1], kind="i")

    def read_cells(self, cells: Ints) -> Iterator[LocalModel]:
        """Yield the models of cells, given in increasing order, bundle by bundle.

        At most one read's support rows are in memory, besides the model in the caller's hands.
        """
        for i, own in asked_bundles(cells, self._first_cell):
            yield from self.bundles[i].read_cells(own)

    def read_cell(self, cell: int) -> LocalModel:
        """Return one cell's model."""
        return next(self.read_cells(np.array([cell])))

    def grid_errors(self, n_points: int) -> Float64:
        """Return the validation error of each combination in each cell, (n_cells, n_points).

        NaN of what a cell has not tried to the end, and of models of before it was kept.
        """
        found = np.full((self.n_cells, n_points), np.nan)
        for bundle, first in zip(self.bundles, self._first_cell, strict=False):
            errors = bundle.grid_errors()
            if errors is not None and errors.shape[1] == n_points:
                found[first : first + len(errors)] = np.where(errors < 0, np.nan, errors)
        return found

    @cached_property
    def report(self) -> Report:
        """One row a cell, in the order of cells."""
        if "report" in self.index.attrs:
            return report_from_json(self.index, self.n_cells).view(Report)
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


@kept(maxsize=8)
def _open_model(path: str, fingerprint: str, stamp: Hashable) -> ModelReader:
    """Return a reader; the stamp keeps one of replaced files from being used again."""
    reader = ModelReader(path)
    if reader.fingerprint != fingerprint:
        raise StoreError(
            f"The model at {path} was replaced by another one since this prediction was set up. "
            "Load the model again and call predict again."
        )
    return reader
