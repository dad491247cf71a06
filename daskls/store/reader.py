"""A finished model, opened: its index in memory, its cells read on demand."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.kernels.frame import scaled
from daskls.records import (
    F8,
    AnyArray,
    CellReport,
    Float64,
    Ints,
    LocalModel,
    Reals,
    SolverSpec,
)
from daskls.store.artifacts import Location
from daskls.store.caches import kept
from daskls.store.files import damaged, malformed_is_damage
from daskls.store.layout import (
    Root,
    asked_bundles,
    report_from_json,
    root_stamp,
)
from daskls.store.models import BundleModels, finished_bundles
from daskls.store.reserved import (
    CoveringInterval,
    FalseAlarmBound,
    read_bound,
    read_interval,
    read_sizes,
)
from daskls.store.scale import read_resolved

# Of the bundles that a process keeps open: their tables of cells as JSON values, and small arrays.
OPEN_NBYTES = 64 << 20
CELL_NBYTES = 1500


def write_index(
    root: Root,
    arrays: Mapping[str, AnyArray],
    attributes: Mapping[str, Any],
    bundles: list[tuple[int, int]],
    first_cells: list[int],
) -> None:
    """Write the index, then set the marker: from here on the model is complete.

    Parameters
    ----------
    root : Root
    arrays, attributes : what queries are answered by beside the bundles, in the method's own terms
    bundles : list of (first, last) leaf, or center, in order. Only these belong to the model.
    first_cells : list of int. The first cell of each bundle, and the number of cells last.
    """
    own = {
        "bundles": np.array(bundles, np.int64).reshape(-1, 2),
        "first_cell": np.array(first_cells, np.int64),
    }
    root.write_group("index", {**arrays, **own}, attributes)
    root.update(complete=True)


class Report(np.recarray[Any, Any]):
    """A table of cells whose columns are attributes."""

    @property
    def partition(self) -> Any:
        """The column of that name; in any other array it is a method, which compares as unequal."""
        return self["partition"]


class OpenBundles:
    """The bundles of a model, of which those read last stay open, up to so many bytes.

    Parameters
    ----------
    bundles : list of BundleModels
    n_cells : list of int. Of each bundle.
    cell_nbytes : int. What an open bundle holds of a cell.
    """

    def __init__(self, bundles: list[BundleModels], n_cells: list[int], cell_nbytes: int) -> None:
        self._bundles, self._n_cells = bundles, n_cells
        self._left = OPEN_NBYTES // cell_nbytes
        self._open: OrderedDict[int, None] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, number: int) -> BundleModels:
        """Return a bundle, to be read at once."""
        with self._lock:
            if number not in self._open:
                self._left -= self._n_cells[number]
            self._open[number] = None
            self._open.move_to_end(number)
            while self._left < 0 and len(self._open) > 1:
                oldest, _ = self._open.popitem(last=False)
                self._left += self._n_cells[oldest]
                # Who reads it in another thread still holds what it has read.
                self._bundles[oldest].close()
        return self._bundles[number]


class ModelReader:
    """Reads a complete model.

    Attributes
    ----------
    root : Root. Opened once; what reads more of the model is handed it.
    meta : dict. What the estimator wrote about itself.
    stage_s : dict. Seconds of each stage of the fit that finished it.
    index : Group. The arrays by which predictions find their cells.
    resolved : Resolved. The scale of features, and what all cells were trained with.
    target : Target. Classes, or center and scale of numbers.
    """

    def __init__(self, location: Location) -> None:
        root = Root.open(location)
        where = root.where()
        if not root.is_complete:
            raise StoreError(
                f"The model at {where} is not finished. Call fit again with store={where!r} "
                "and the same data and parameters: only unfinished tasks run."
            )
        self.root = root
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
                f"The model at {where} lacks {len(missing)} of its {len(listed)} bundles, "
                f"{missing[0][0]:06d}-{missing[0][1]:06d} first. Copy or train it again."
            )
        self.target = root.target
        spec, n_functions = self.resolved.spec, self.target.n_functions
        counts = np.diff(self._first_cell).tolist()
        self.bundles = [
            BundleModels(root.store, a, b, spec, n_cells, self.width, n_functions)
            for (a, b), n_cells in zip(listed, counts, strict=False)
        ]
        self._open = OpenBundles(self.bundles, counts, CELL_NBYTES + 2 * F8 * self.width)

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
    def false_alarm(self) -> FalseAlarmBound | None:
        """The bound on false alarms, whose threshold parts the classes; None of most models."""
        return read_bound(self.root)

    @cached_property
    def interval(self) -> CoveringInterval | None:
        """The interval around answers; None of most models."""
        return read_interval(self.root)

    @cached_property
    def interval_sizes(self) -> Float64:
        """The size of residuals in each cell, of a model with intervals."""
        return read_sizes(self.root, self.n_cells)

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
    def summary(self) -> dict[str, Any]:
        """The values that a method of one model tried, and its choice; empty for the others."""
        with malformed_is_damage(self.index.where()):
            return dict(self.index.attrs.get("summary", {}))

    def read_cells(self, cells: Ints) -> Iterator[LocalModel]:
        """Yield the models of cells, given in increasing order, bundle by bundle.

        At most one read's support rows are in memory, besides the model in the caller's hands.
        """
        for i, own in asked_bundles(cells, self._first_cell):
            yield from self._open.find(i).read_cells(own)

    def read_cell(self, cell: int) -> LocalModel:
        """Return one cell's model."""
        return next(self.read_cells(np.array([cell])))

    def each_bundle(self) -> Iterator[BundleModels]:
        """Yield all bundles in order; those read last stay open."""
        for i in range(len(self.bundles)):
            yield self._open.find(i)

    def grid_errors(self, n_points: int) -> Float64:
        """Return the validation error of each combination in each cell, (n_cells, n_points).

        NaN of what a cell has not tried to the end, and of models of before it was kept.
        """
        found = np.full((self.n_cells, n_points), np.nan)
        for i, first in enumerate(self._first_cell[:-1]):
            errors = self._open.find(i).grid_errors()
            if errors is not None and errors.shape[1] == n_points:
                found[first : first + len(errors)] = np.where(errors < 0, np.nan, errors)
        return found

    @cached_property
    def report(self) -> Report:
        """One row a cell, in the order of cells; read from all bundles when it is first asked."""
        if "report" in self.index.attrs:
            return report_from_json(self.index, self.n_cells).view(Report)
        return self._tables(range(len(self.bundles)))

    def report_of_some(self, most_cells: int) -> Report:
        """Return the rows of about so many cells, of evenly spaced bundles; of fewer cells all."""
        if self.n_cells <= most_cells or "report" in self.index.attrs:
            return self.report
        return self._tables(range(0, len(self.bundles), -(-self.n_cells // most_cells)))

    def _tables(self, bundles: range) -> Report:
        """Return one row a cell of some bundles."""
        found = [self._open.find(i).numbered_report(self._first_cell[i]) for i in bundles]
        joined = np.concatenate(found) if found else np.empty(0, CellReport.dtype())
        return joined.view(Report)


def open_model(location: str, fingerprint: str) -> ModelReader:
    """Return a model's reader, kept open for the next block that this process predicts.

    Raises
    ------
    StoreError : when another model took its place; also when it did so under an open reader
    """
    return _open_model(location, fingerprint, root_stamp(location))


@kept(maxsize=8)
def _open_model(location: str, fingerprint: str, stamp: Hashable) -> ModelReader:
    """Return a reader; the stamp keeps one of replaced files from being used again."""
    reader = ModelReader(location)
    if reader.fingerprint != fingerprint:
        raise StoreError(
            f"The model at {location} was replaced by another one since this prediction was set "
            "up. Load the model again and call predict again."
        )
    return reader
