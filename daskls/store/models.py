"""The bundles of a store, and the models of a bundle's cells as flat arrays.

A bundle is written as a whole, and read back cell by cell.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import get_args

import numpy as np

from daskls.errors import StoreError
from daskls.records import (
    AnyArray,
    BundleReport,
    CellReport,
    Decision,
    Float32,
    Float64,
    Frame,
    Int64,
    Ints,
    KernelSpec,
    LocalModel,
    SolverSpec,
    Table,
)
from daskls.store.artifact import Artifact, open_artifact, write_artifact
from daskls.store.errors import check_codes, check_counts, damaged, malformed_is_damage
from daskls.store.layout import REPORT, read_report
from daskls.store.objects import Location, open_store

NAME = re.compile(r"(\d{6,})-(\d{6,})")
# Support rows read at once: enough to make a read worth its overhead, few enough for any worker.
READ_NBYTES = 8 << 20

# The array of the validation errors of the grid's combinations.
ERRORS = "errors"
# The report of models read for prediction, which needs none.
UNREPORTED = CellReport(0, 0, 0, 0, 0.0)


def bundle_key(first_leaf: int, last_leaf: int, kind: str = "bundles") -> str:
    """Return the key of a bundle's models (or of its leaves' rows, if ``kind`` is "rows")."""
    return f"{kind}/{first_leaf:06d}-{last_leaf:06d}"


def finished_bundles(root: Location, kind: str = "bundles") -> list[tuple[int, int]]:
    """Return (first, last) leaf of every bundle on disk, in order."""
    names = open_store(root).names(kind)
    # Other files, such as those of file managers, are skipped.
    matches = [match for match in map(NAME.fullmatch, names) if match]
    return sorted((int(match[1]), int(match[2])) for match in matches)


def has_bundle(root: Location, first_leaf: int, last_leaf: int, kind: str = "bundles") -> bool:
    """Whether a bundle is on disk, without listing the others."""
    return open_store(root).exists(bundle_key(first_leaf, last_leaf, kind))


def missing_bundles(
    root: Location, bundles: Sequence[tuple[int, int]], kind: str = "bundles"
) -> list[tuple[int, int]]:
    """Return those of all bundles that are not on disk; others are removed.

    Others are left by a fit of another version, or of draws that follow a task's memory.
    """
    finished = set(finished_bundles(root, kind))
    open_store(root).drop(*(bundle_key(*bundle, kind) for bundle in finished - set(bundles)))
    return [bundle for bundle in bundles if bundle not in finished]


def find_bundles(root: Location, n: int, kind: str = "bundles") -> list[tuple[int, int]] | None:
    """Return the bundles on disk if each of n leaves (or centers) is in one of them, else None."""
    bundles = finished_bundles(root, kind)
    starts = [0, *(last + 1 for _, last in bundles)]
    return bundles if starts == [*(first for first, _ in bundles), n] else None


def all_bundles(root: Location, n: int, kind: str = "bundles") -> list[tuple[int, int]]:
    """Return the bundles of n leaves (or centers), all of which were written.

    StoreError where they are gone.
    """
    bundles = find_bundles(root, n, kind)
    if bundles is None:
        raise StoreError(
            f"{open_store(root).where(kind)} lacks bundles that were finished: something removed "
            "them. Call fit again on the same store: only what is missing is done."
        )
    return bundles


def write_bundle(
    root: Location,
    first_leaf: int,
    last_leaf: int,
    models: Sequence[LocalModel],
    extra: dict[str, AnyArray],
) -> BundleReport:
    """Write the models of a bundle; they appear whole, unless another task wrote them first.

    The leaves may be centers; models are in the order of cells; the method keeps `extra` beside
    them.
    """
    d = len(models[0].center)
    report = np.array([m.report.as_tuple() for m in models], CellReport.dtype())
    arrays = {
        "center": np.stack([m.center for m in models]),
        **_scale_arrays([m.frame for m in models]),
        "rows": np.concatenate([m.rows.reshape(-1, d) for m in models]),
        "coef": np.concatenate([m.coef.ravel() for m in models]),
        "intercepts": np.concatenate([m.intercepts for m in models]),
        "classes": np.concatenate([m.classes for m in models]),
        "n_support": np.concatenate([np.diff(m.class_ptr) for m in models]),
        # The only place that stores a local model's gamma; the root stores the rest of its kernel.
        "gamma": np.array([m.kernel.gamma for m in models], np.float64),
        "n_kept": np.array([len(m.classes) for m in models]),
        REPORT: report,
        **extra,
    }
    key = bundle_key(first_leaf, last_leaf)
    write_artifact(root, key, arrays, {"decision": models[0].decision})
    return BundleReport(
        first_leaf,
        last_leaf,
        n_cells=len(models),
        n_rows=sum(m.report.n_rows for m in models),
        n_support=sum(m.report.n_support for m in models),
        seconds=sum(m.report.seconds for m in models),
    )


def grid_arrays(models: Sequence[LocalModel]) -> dict[str, AnyArray]:
    """Return the errors of the grid's combinations for `write_bundle`; -1 for cells without any."""
    known = [model.errors for model in models if model.errors is not None]
    if not known:
        return {}
    none = np.full_like(known[0], -1.0)
    errors = [none if model.errors is None else model.errors for model in models]
    return {ERRORS: np.stack(errors).reshape(len(models), -1)}


def _layout(n_kept: Int64, decision: Decision) -> tuple[Int64, Int64]:
    """Return the numbers of decision functions and of rows of ``coef``, by each cell's classes."""
    if decision == "values":
        return n_kept, n_kept
    if decision == "ovo":
        return n_kept * (n_kept - 1) // 2, n_kept - 1
    # Two classes share one function; a single class has none.
    functions = np.where(n_kept > 2, n_kept, n_kept - 1)
    return functions, functions


def _scale_arrays(frames: Sequence[Frame]) -> dict[str, AnyArray]:
    """Return the scales of frames as an array (n_cells, d); no array if none has one."""
    if all(frame.scale is None for frame in frames):
        return {}
    ones = np.ones(len(frames[0].center))
    return {"scale": np.stack([ones if f.scale is None else f.scale for f in frames])}


@dataclass(frozen=True)
class BundleModels:
    """Reads one bundle's models; only small arrays are kept, support rows are read on demand.

    ``n_cells``, ``n_features`` and ``n_functions`` are those of the model's index; None if there is
    no index yet.
    """

    root: Location
    first_leaf: int
    last_leaf: int
    spec: SolverSpec
    n_cells: int | None = None
    n_features: int | None = None
    n_functions: int | None = None

    @cached_property
    def part(self) -> Artifact:
        """The bundle's part, which may hold arrays of the method beside the models."""
        return open_artifact(self.root, bundle_key(self.first_leaf, self.last_leaf))

    def close(self) -> None:
        """Drop what was read; it is read again when it is needed."""
        for name in vars(self).keys() - {field.name for field in fields(self)}:
            vars(self).pop(name, None)

    def report(self, first_cell: int = 0) -> Table:
        table = read_report(self.part, self.n_cells)
        table["cell"] = first_cell + np.arange(len(table))
        return table

    def count_cells(self) -> int:
        n_cells = self.part.shape_of("center")[0]
        if self.n_cells not in (None, n_cells):
            where = self.part.where()
            raise damaged(where, f"it holds {n_cells} cells, and the index {self.n_cells}")
        return n_cells

    @cached_property
    def _cells(self) -> dict[str, AnyArray]:
        """Small arrays of all cells, and where each cell's part of the large ones begins."""
        part, where, n_cells = self.part, self.part.where(), self.count_cells()
        n_kept = part.read("n_kept", shape=(n_cells,), kind="i")
        n_codes = part.shape_of("classes")[0] if self.n_functions is None else self.n_functions
        # Checked first, as sums of what a stranger counted may overflow.
        check_codes(where, "n_kept", n_kept - 1, n_codes)
        n_functions, n_rows = _layout(n_kept, self.decision)
        function_ptr, class_ptr = (check_counts(where, "n_kept", n) for n in (n_functions, n_kept))
        support = part.read("n_support", shape=(class_ptr[-1],), kind="i")
        support_ptr = check_counts(where, "n_support", support, part.shape_of("rows")[0])
        row_ptr = support_ptr[class_ptr]
        classes = part.read("classes", shape=(class_ptr[-1],), kind="i")
        if self.n_functions is not None:
            check_codes(where, "classes", classes, n_codes)
        return {
            "center": part.read("center", shape=(n_cells, self.n_features), kind="f"),
            "classes": classes,
            "intercepts": part.read("intercepts", shape=(function_ptr[-1],), kind="f"),
            "gamma": part.read("gamma", shape=(n_cells,), kind="f"),
            "function_ptr": function_ptr,
            "class_ptr": class_ptr,
            "support_ptr": support_ptr,
            "row_ptr": row_ptr,
            "coef_ptr": check_counts(where, "n_support", np.diff(row_ptr) * n_rows),
        }

    def grid_errors(self) -> Float32 | None:
        """Return the errors that cells found, (n_cells, n), -1 if none; None if there are none."""
        if ERRORS not in self.part:
            return None
        return self.part.read(ERRORS, shape=(self.n_cells, None), kind="f")

    @cached_property
    def decision(self) -> Decision:
        with malformed_is_damage(self.part.where()):
            decision: Decision = self.part.attrs["decision"]
            if decision not in get_args(Decision):
                raise ValueError(f"its functions are {decision!r}")
        return decision

    @cached_property
    def _scales(self) -> Float64 | None:
        """The scale of each cell's frame, (n_cells, d); None if there are none."""
        if "scale" not in self.part:
            return None
        return self.part.read("scale", shape=self._cells["center"].shape, kind="f")

    def read_cells(self, cells: Ints) -> Iterator[LocalModel]:
        """Yield the models of cells, counted from the bundle's first, in increasing order.

        Support rows of adjacent cells are read together, up to `READ_NBYTES`.
        """
        small, part = self._cells, self.part
        width = small["center"].shape[1]
        row_ptr, coef_ptr = small["row_ptr"], small["coef_ptr"]
        of_rows, of_coef = (row_ptr[-1], width), (coef_ptr[-1],)
        for run in adjacent_runs(cells, row_ptr, max(READ_NBYTES // (4 * width), 1)):
            first, last = run[0], run[-1] + 1
            at = slice(int(row_ptr[first]), int(row_ptr[last]))
            rows = part.read("rows", at, shape=of_rows, kind="f")
            at = slice(int(coef_ptr[first]), int(coef_ptr[last]))
            coef = part.read("coef", at, shape=of_coef, kind="f")
            for cell in run:
                own_rows = slice(*(row_ptr[cell : cell + 2] - row_ptr[first]))
                own_coef = slice(*(coef_ptr[cell : cell + 2] - coef_ptr[first]))
                yield self._model(cell, rows[own_rows], coef[own_coef])

    def _model(self, cell: int, rows: Float32, coef: Float32) -> LocalModel:
        small, spec = self._cells, self.spec
        first, last = small["class_ptr"][cell : cell + 2]
        class_ptr = small["support_ptr"][first : last + 1]
        scale = None if self._scales is None else self._scales[cell]
        return LocalModel(
            frame=Frame(small["center"][cell], scale),
            rows=rows,
            # Without rows NumPy cannot infer the number of functions.
            coef=coef.reshape(-1, len(rows)) if len(rows) else coef.reshape(0, 0),
            classes=small["classes"][first:last],
            class_ptr=class_ptr - class_ptr[0],
            intercepts=small["intercepts"][slice(*small["function_ptr"][cell : cell + 2])],
            kernel=KernelSpec(spec.kernel, float(small["gamma"][cell]), spec.degree, spec.coef0),
            report=UNREPORTED,
            decision=self.decision,
        )


def adjacent_runs(cells: Ints, row_ptr: Int64, max_rows: int) -> Iterator[list[int]]:
    """Split increasing cells into runs of adjacent cells with at most ``max_rows`` support rows.

    A cell with more rows is a run of its own.
    """
    run: list[int] = []
    for cell in cells.tolist():
        adjacent = run and cell == run[-1] + 1
        if run and not (adjacent and row_ptr[cell + 1] - row_ptr[run[0]] <= max_rows):
            yield run
            run = []
        run.append(cell)
    if run:
        yield run
