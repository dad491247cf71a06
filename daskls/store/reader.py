"""A finished model, opened: its index is in memory, its cells are read on demand."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.gaps import Gaps
from daskls.kernels.frame import scaled
from daskls.records import (
    F8,
    AnyArray,
    CellReport,
    Float64,
    Int64,
    Ints,
    LocalModel,
    Reals,
    SolverSpec,
)
from daskls.store.artifact import OPENED_NBYTES
from daskls.store.caches import SizedCache, cached
from daskls.store.choices import (
    CoveringInterval,
    FalseAlarmBound,
    read_bound,
    read_interval,
    read_resolved,
    read_sizes,
)
from daskls.store.errors import damaged, malformed_is_damage
from daskls.store.layout import REPORT, Root, read_report, root_stamp
from daskls.store.models import BundleModels, finished_bundles
from daskls.store.objects import Location

# Bytes of the bundles that a process keeps open; and of what it keeps of a cell, beside its center.
OPEN_NBYTES = 64 << 20
CELL_NBYTES = 400


def write_index(
    root: Root,
    arrays: Mapping[str, AnyArray],
    attributes: Mapping[str, Any],
    bundles: list[tuple[int, int]],
    first_cells: list[int],
) -> None:
    """Write the index, then mark the model complete.

    The method defines the arrays and attributes. Only the bundles (first, last), of leaves or
    centers, in order, belong to the model; `first_cells` has the first cell of each, and the number
    of cells last.
    """
    common = {
        "bundles": np.array(bundles, np.int64).reshape(-1, 2),
        "first_cell": np.array(first_cells, np.int64),
    }
    root.write("index", {**arrays, **common}, attributes)
    root.update(complete=True)


class Report(np.recarray[Any, Any]):
    """A table of cells whose columns are attributes."""

    @property
    def partition(self) -> Any:
        """The column of that name, which hides the method of all arrays."""
        return self["partition"]


class ModelReader:
    """Reads a complete model.

    Attributes
    ----------
    root : Root. Opened once, and passed on to whatever reads more of the model.
    meta : dict. The estimator's description of itself.
    stage_s : dict. Seconds of each stage of the fit that finished the model.
    index : Artifact. The arrays by which predictions find their cells.
    resolved : ResolvedScaling. The scale of features, and the parameters that all cells share.
    target : Target. Classes, or center and scale of numbers.
    """

    def __init__(self, location: Location, fingerprint: str | None = None) -> None:
        root = Root.open(location, fingerprint)
        where = root.where()
        if not root.is_complete:
            raise StoreError(
                f"The model at {where} is not finished. Call fit again with store={where!r} "
                "and the same data and parameters: only unfinished tasks run."
            )
        self.root = root
        self.fingerprint = root.fingerprint
        self.meta: dict[str, Any] = root.attributes["meta"]
        # Set after the model is complete: a client that died between left none.
        self.stage_s: dict[str, float] = root.attributes.get("stage_s", {})
        self.index = index = root.part("index", "its index")
        listed = [(int(a), int(b)) for a, b in index.read("bundles", shape=(None, 2), kind="i")]
        # Models of rows or landmarks have no bundles; their one entry is the number of cells.
        first_cell = index.read("first_cell", shape=(len(listed) + 1,), kind="i")
        if (first_cell[0] and listed) or (np.diff(first_cell) < 1).any():
            raise damaged(index.where(), "the first cells do not increase from 0")
        self._first_cell: list[int] = first_cell.tolist()
        self.resolved = read_resolved(root)
        # By name only: a bundle is opened when one of its cells is read.
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
        self._opened = SizedCache(OPEN_NBYTES)

    def _open(self, number: int) -> BundleModels:
        """Return a bundle; those read last stay open, up to `OPEN_NBYTES`."""
        bundle: BundleModels | None = self._opened.get(number)
        if bundle is None:
            bundle = replace(self.bundles[number])
            n_cells = self._first_cell[number + 1] - self._first_cell[number]
            head = 0 if self.root.store.local() is not None else OPENED_NBYTES
            nbytes = head + n_cells * (CELL_NBYTES + 2 * F8 * self.width)
            self._opened.put(number, bundle, nbytes)
        return bundle

    @property
    def n_cells(self) -> int:
        """The number of cells of all partitions, or of centers."""
        return int(self._first_cell[-1])

    @property
    def n_features(self) -> int:
        """The number of features, for a table after its encoding; with marks of gaps."""
        return int(self.meta["n_features"])

    @cached_property
    def gaps(self) -> Gaps | None:
        """The replacements of missing values of arrays; None where they are refused."""
        gaps = self.meta.get("gaps")
        return None if gaps is None else Gaps(tuple(gaps["medians"]), tuple(gaps["marked"]))

    @property
    def n_columns(self) -> int:
        """The number of features of X, without marks of missing values."""
        return self.n_features - (0 if self.gaps is None else len(self.gaps.marked))

    @property
    def feature_names(self) -> list[str] | None:
        names: list[str] | None = self.meta.get("feature_names")
        return names

    @property
    def width(self) -> int:
        """The number of scaled features, which cells and partition use."""
        scale = self.resolved.scale
        return self.n_features if scale is None else len(scale.columns)

    def transform(self, X: Reals) -> Reals:
        """Return rows without gaps, scaled as the model expects; unchanged if it has no scale."""
        X = X if self.gaps is None else self.gaps.fill(X)
        scale = self.resolved.scale
        return X if scale is None else scaled(X, scale)

    @property
    def n_classes(self) -> int:
        return self.target.n_classes

    @property
    def method(self) -> dict[str, Any]:
        """The method's description of itself; empty for a method on a partition."""
        values: dict[str, Any] = self.meta["method"]
        return values

    @cached_property
    def false_alarm(self) -> FalseAlarmBound | None:
        """The bound on false alarms, with the threshold between classes; None for most models."""
        return read_bound(self.root)

    @cached_property
    def interval(self) -> CoveringInterval | None:
        return read_interval(self.root)

    @cached_property
    def interval_sizes(self) -> Float64:
        return read_sizes(self.root, self.n_cells)

    @cached_property
    def spec(self) -> SolverSpec:
        """The parameters that the cells were trained with; C and gamma as the fit selected them."""
        spec, C, gamma = self.resolved.spec, self.selected("C"), self.selected("gamma")
        spec = spec if C is None else replace(spec, C=(C,))
        return spec if gamma is None else replace(spec, gamma=(gamma,))

    def selected(self, name: str) -> float | None:
        """Return the value that the fit selected for a parameter of the whole model, or None."""
        with malformed_is_damage(self.index.where()):
            value = self.index.attrs.get(name)
            return None if value is None else float(str(value))

    @property
    def summary(self) -> dict[str, Any]:
        """The values that a method of one model tried, and its choice; empty for other methods."""
        with malformed_is_damage(self.index.where()):
            return dict(self.index.attrs.get("summary", {}))

    def bundles_of(self, cells: Ints) -> Int64:
        return np.searchsorted(self._first_cell, cells, side="right") - 1

    def read_cells(self, cells: Ints) -> Iterator[LocalModel]:
        """Yield the models of cells, given in increasing order, bundle by bundle.

        Support rows of at most one read are in memory, beside the model that the caller has.
        """
        for i, bundle_cells in split_by_bundle(cells, self._first_cell):
            yield from self._open(i).read_cells(bundle_cells)

    def read_cell(self, cell: int) -> LocalModel:
        return next(self.read_cells(np.array([cell])))

    def each_bundle(self) -> Iterator[BundleModels]:
        """Yield all bundles in order; those read last stay open."""
        for i in range(len(self.bundles)):
            yield self._open(i)

    def grid_errors(self, n_points: int) -> Float64:
        """Return the validation error of each combination in each cell, (n_cells, n_points).

        NaN for combinations that a cell did not try to the end, and for models that stored none.
        """
        table = np.full((self.n_cells, n_points), np.nan)
        for i, first in enumerate(self._first_cell[:-1]):
            errors = self._open(i).grid_errors()
            if errors is not None and errors.shape[1] == n_points:
                table[first : first + len(errors)] = np.where(errors < 0, np.nan, errors)
        return table

    @cached_property
    def report(self) -> Report:
        """One row per cell, in the order of cells; read from all bundles when first needed."""
        if REPORT in self.index:
            return read_report(self.index, self.n_cells).view(Report)
        return self._tables(range(len(self.bundles)))

    def report_of_some(self, most_cells: int) -> Report:
        """Return the rows of about ``most_cells`` cells, or all, from evenly spaced bundles."""
        if self.n_cells <= most_cells or REPORT in self.index:
            return self.report
        return self._tables(range(0, len(self.bundles), -(-self.n_cells // most_cells)))

    def _tables(self, bundles: range) -> Report:
        tables = [self._open(i).report(self._first_cell[i]) for i in bundles]
        joined = np.concatenate(tables) if tables else np.empty(0, CellReport.dtype())
        return joined.view(Report)


def open_model(location: str, fingerprint: str) -> ModelReader:
    """Return a model's reader, kept open for the next block that this process predicts.

    StoreError when another model took its place, also if a reader was open.
    """
    return _open_model(location, fingerprint, root_stamp(location))


@cached(maxsize=8)
def _open_model(location: str, fingerprint: str, stamp: Hashable) -> ModelReader:
    """Return a reader; the stamp makes the cache miss once the files are replaced."""
    return ModelReader(location, fingerprint)


def split_by_bundle(cells: Ints, first_cells: Sequence[int]) -> Iterator[tuple[int, Ints]]:
    """Yield each bundle that holds some of the cells, with these cells, counted from its first.

    `first_cells` has the number of cells last.

    >>> [(i, own.tolist()) for i, own in split_by_bundle(np.array([1, 7, 8]), [0, 3, 7, 9])]
    [(0, [1]), (2, [0, 1])]
    """
    bounds = np.searchsorted(cells, first_cells)
    for bundle in np.flatnonzero(np.diff(bounds)).tolist():
        yield bundle, cells[bounds[bundle] : bounds[bundle + 1]] - first_cells[bundle]
