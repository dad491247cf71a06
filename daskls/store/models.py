"""Models of a bundle's cells as flat arrays, written whole; and read back cell by cell."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from daskls.errors import StoreError
from daskls.records import (
    BundleReport,
    CellReport,
    FloatArray,
    IntArray,
    KernelSpec,
    LocalModel,
    SolverSpec,
    Tree,
)
from daskls.store.files import replace_folder
from daskls.store.layout import read_array, report_from_json, report_to_json, write_array

# Support rows read at once: enough to make a read worth its overhead, few enough for any worker.
READ_NBYTES = 8 << 20

__all__ = [
    "BundleModels",
    "branch_arrays",
    "bundle_path",
    "disjoint_bundles",
    "done_mask",
    "drop_others",
    "find_tiles",
    "finished_bundles",
    "tile_leaves",
    "write_bundle",
]


def bundle_path(root: Path, first_leaf: int, last_leaf: int, kind: str = "bundles") -> Path:
    """Return the folder of a bundle's models (or, in "rows", of its leaves' rows)."""
    return root / kind / f"{first_leaf:06d}-{last_leaf:06d}"


def finished_bundles(root: Path, kind: str = "bundles") -> list[tuple[int, int]]:
    """Return (first, last) leaf of every bundle on disk, in order.

    A bundle's folder appears by rename when all of it is written: it is its own marker.
    """
    folder = root / kind
    names = [p.name for p in folder.iterdir() if p.name[0] != "."] if folder.exists() else []
    return sorted((int(first), int(last)) for first, last in (name.split("-") for name in names))


def tile_leaves(bundles: list[tuple[int, int]], n_leaves: int) -> list[tuple[int, int]] | None:
    """Return bundles that hold each leaf exactly once, or None if there are no such.

    Bundles may overlap where a task of an earlier, lost client finished late: it grouped the
    leaves in another way. The models of a leaf are the same in all of them.

    >>> tile_leaves([(0, 2), (3, 3), (3, 4), (4, 4)], 5)
    [(0, 2), (3, 3), (4, 4)]
    """
    reached: dict[int, list[tuple[int, int]]] = {0: []}
    for first, last in sorted(bundles):
        if first in reached:
            reached[last + 1] = [*reached[first], (first, last)]
    return reached.get(n_leaves)


def disjoint_bundles(bundles: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return bundles of which no two share a leaf: each that begins after the last one taken."""
    taken: list[tuple[int, int]] = []
    for first, last in sorted(bundles):
        if not taken or first > taken[-1][1]:
            taken.append((first, last))
    return taken


def done_mask(root: Path, n: int, kind: str = "bundles") -> list[bool]:
    """Return which of n leaves (or centers) some bundle on disk holds."""
    done = [False] * n
    for first, last in disjoint_bundles(finished_bundles(root, kind)):
        done[first : last + 1] = [True] * (last + 1 - first)
    return done


def find_tiles(root: Path, n: int, kind: str = "bundles") -> list[tuple[int, int]]:
    """Return bundles on disk that hold each of n leaves (or centers) exactly once.

    Raises
    ------
    StoreError : when there are no such: what was finished is gone
    """
    tiles = tile_leaves(finished_bundles(root, kind), n)
    if tiles is None:
        raise StoreError(
            f"{root / kind} lacks bundles that were finished: something removed them. Call fit "
            "again on the same store: only what is missing is done."
        )
    return tiles


def drop_others(root: Path, tiles: list[tuple[int, int]], kind: str = "bundles") -> None:
    """Remove the bundles that a finished model does not use: those of lost clients' late tasks."""
    for bundle in set(finished_bundles(root, kind)) - set(tiles):
        shutil.rmtree(bundle_path(root, *bundle, kind), ignore_errors=True)


def branch_arrays(branches: Sequence[Tree]) -> dict[str, FloatArray]:
    """Return the trees that cut a bundle's leaves into cells, as flat arrays."""
    return {
        "branch_nodes": np.array([len(b.thresholds) for b in branches]),
        "directions": np.concatenate([b.directions for b in branches]),
        "thresholds": np.concatenate([b.thresholds for b in branches]),
        "children": np.concatenate([b.children for b in branches]),
    }


def write_bundle(
    root: Path,
    first_leaf: int,
    last_leaf: int,
    models: Sequence[LocalModel],
    extra: dict[str, FloatArray],
) -> BundleReport:
    """Write the models of a bundle; the folder appears whole.

    Parameters
    ----------
    root : Path. The model's folder.
    first_leaf, last_leaf : int. The bundle's name: its leaves, or its centers.
    models : sequence of LocalModel, in the order of cells
    extra : dict of arrays that the method keeps beside them

    Returns
    -------
    report : BundleReport
    """
    target = bundle_path(root, first_leaf, last_leaf)
    d = len(models[0].center)
    with replace_folder(target, root) as folder:
        group = zarr.create_group(folder, zarr_format=3)
        arrays = {
            "report": np.array([m.report.as_tuple() for m in models], CellReport.dtype()),
            "center": np.stack([m.center for m in models]),
            "rows": np.concatenate([m.rows.reshape(-1, d) for m in models]),
            "coef": np.concatenate([m.coef.ravel() for m in models]),
            "intercepts": np.concatenate([m.intercepts for m in models]),
            "classes": np.concatenate([m.classes for m in models]),
            "n_support": np.concatenate([np.diff(m.class_ptr) for m in models]),
            **extra,
        }
        report = arrays.pop("report")
        for name, values in arrays.items():
            write_array(group, name, values)
        group.attrs["report"] = report_to_json(report)
    return BundleReport(
        first_leaf,
        last_leaf,
        n_cells=len(models),
        n_rows=sum(m.report.n_rows for m in models),
        n_support=sum(m.report.n_support for m in models),
        seconds=sum(m.report.seconds for m in models),
    )


def _runs(cells: IntArray, row_ptr: IntArray, max_rows: int) -> Iterator[list[int]]:
    """Cut increasing cells into runs of adjacent cells with few support rows in all."""
    run: list[int] = []
    for cell in cells.tolist():
        adjacent = run and cell == run[-1] + 1
        if run and not (adjacent and row_ptr[cell + 1] - row_ptr[run[0]] <= max_rows):
            yield run
            run = []
        run.append(cell)
    if run:
        yield run


@dataclass(frozen=True)
class BundleModels:
    """Reads one bundle's models; only small arrays are kept, support rows are read on demand."""

    root: Path
    first_leaf: int
    last_leaf: int
    spec: SolverSpec

    @cached_property
    def _group(self) -> zarr.Group:
        path = bundle_path(self.root, self.first_leaf, self.last_leaf)
        try:
            return zarr.open_group(path, mode="r", zarr_format=3)
        except (FileNotFoundError, ValueError) as error:
            raise StoreError(
                f"The model's bundle {path} is missing or damaged ({error}). "
                "Copy or train it again."
            ) from error

    def report(self) -> np.ndarray[Any, Any]:
        """Return the structured table of the bundle's cells, numbered from 0."""
        return report_from_json(self._group.attrs["report"])

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self._group.attrs["report"])

    def branches(self, center: FloatArray) -> list[Tree]:
        """Return the tree inside each of the bundle's leaves."""
        counts = read_array(self._group, "branch_nodes")
        stops = np.cumsum(counts)
        directions, thresholds, children = (
            read_array(self._group, name) for name in ("directions", "thresholds", "children")
        )
        return [
            Tree(center, directions[a:b], thresholds[a:b], children[a:b])
            for a, b in zip(stops - counts, stops, strict=True)
        ]

    @cached_property
    def _cells(self) -> dict[str, FloatArray]:
        """Small arrays of all cells, and where each cell's part of the large ones begins."""
        report = self.report()
        n_classes = report["n_classes"]
        # A constant model keeps one class, whatever its cell held.
        n_kept = np.where(report["n_support"] > 0, n_classes, 1)
        return {
            "report": report,
            "center": read_array(self._group, "center"),
            "classes": read_array(self._group, "classes"),
            "support": read_array(self._group, "n_support"),
            "intercepts": read_array(self._group, "intercepts"),
            "pair_ptr": np.r_[0, np.cumsum(n_kept * (n_kept - 1) // 2)],
            "class_ptr": np.r_[0, np.cumsum(n_kept)],
            "row_ptr": np.r_[0, np.cumsum(report["n_support"])],
            "coef_ptr": np.r_[0, np.cumsum(report["n_support"] * (n_kept - 1))],
        }

    def read_cells(self, cells: IntArray) -> Iterator[LocalModel]:
        """Yield the models of cells, counted from the bundle's first, in increasing order.

        Support rows of adjacent cells are read at once, up to `READ_NBYTES`.
        """
        width = self._cells["center"].shape[1]
        row_ptr, coef_ptr = self._cells["row_ptr"], self._cells["coef_ptr"]
        for run in _runs(cells, row_ptr, max(READ_NBYTES // (4 * width), 1)):
            first, last = run[0], run[-1] + 1
            rows = read_array(self._group, "rows", slice(row_ptr[first], row_ptr[last]))
            coef = read_array(self._group, "coef", slice(coef_ptr[first], coef_ptr[last]))
            for cell in run:
                own_rows = slice(*(row_ptr[cell : cell + 2] - row_ptr[first]))
                own_coef = slice(*(coef_ptr[cell : cell + 2] - coef_ptr[first]))
                yield self._model(cell, rows[own_rows], coef[own_coef])

    def _model(self, cell: int, rows: FloatArray, coef: FloatArray) -> LocalModel:
        """Return one cell's model around its support rows and coefficients."""
        small = self._cells
        kept = slice(*small["class_ptr"][cell : cell + 2])
        classes = small["classes"][kept]
        report = CellReport(*small["report"][cell].item())
        return LocalModel(
            center=small["center"][cell],
            rows=rows,
            coef=coef.reshape(len(classes) - 1, report.n_support),
            classes=classes,
            class_ptr=np.r_[0, np.cumsum(small["support"][kept])],
            intercepts=small["intercepts"][slice(*small["pair_ptr"][cell : cell + 2])],
            kernel=KernelSpec(
                self.spec.kernel,
                report.gamma if report.gamma == report.gamma else 1.0,
                self.spec.degree,
                self.spec.coef0,
            ),
            report=report,
        )

    def numbered_report(self, first_cell: int) -> np.ndarray[Any, Any]:
        """Return the report with cells numbered from ``first_cell``."""
        table = self.report()
        table["cell"] = first_cell + np.arange(len(table))
        return table
