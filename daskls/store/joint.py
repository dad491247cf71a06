"""What L3-SVMs keep: landmarks, the cells' states round by round, and the finished model.

``joint/<phase>-<round>/<first>-<last>.npz`` holds what one task found for some cells: the file
appears whole, and is its own marker. A round begins where the one before it ended, so that a fit
which is called again finds its way through the files of the rounds it has done.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.records import FloatArray, LinearModel, VoronoiCells
from daskls.store.files import no_space_is_store_error, replace_file
from daskls.store.layout import Root, read_array, report_to_json, write_array, write_partition

__all__ = [
    "CellStates",
    "read_landmarks",
    "read_linear_model",
    "read_states",
    "states_path",
    "write_landmarks",
    "write_linear_index",
    "write_states",
]

GROUP = "landmarks"


@dataclass(frozen=True, eq=False)
class CellStates:
    """Where some cells stand with some problems.

    Attributes
    ----------
    biases : float64 array, shape (p,). Of each problem.
    theta : float64 array, shape (c, p, l)
    deltas : float64 array, shape (c, p). The smoothing reached.
    stats : float64 array, shape (c, p, N_STATS)
    """

    biases: FloatArray
    theta: FloatArray
    deltas: FloatArray
    stats: FloatArray


def states_path(root: Path, phase: str, number: int, cells: tuple[int, int]) -> Path:
    """Return the file of some cells in one round."""
    return root / "joint" / f"{phase}-{number:03d}" / f"{cells[0]:06d}-{cells[1]:06d}.npz"


def write_states(path: Path, states: CellStates) -> None:
    """Write what a task found."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {f.name: getattr(states, f.name) for f in fields(CellStates)}
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)


def read_states(path: Path) -> CellStates | None:
    """Return what a task wrote, or None."""
    if not path.exists():
        return None
    with np.load(path) as saved:
        return CellStates(**{f.name: saved[f.name] for f in fields(CellStates)})


def write_landmarks(root: Root, landmarks: FloatArray, gamma: float | None) -> None:
    """Write the landmarks, and gamma where the projection has one."""
    with no_space_is_store_error(root.path):
        group = root.replace_group(GROUP)
        write_array(group, "rows", landmarks)
        group.attrs.update({"gamma": gamma, "complete": True})


def read_landmarks(root: Root) -> tuple[FloatArray, float | None] | None:
    """Return landmarks and gamma, or None if they are not chosen yet."""
    group = root.find_group(GROUP)
    if group is None or not group.attrs.get("complete", False):
        return None
    gamma = group.attrs["gamma"]
    return read_array(group, "rows"), None if gamma is None else float(str(gamma))


def write_linear_index(root: Root, model: LinearModel, report: FloatArray) -> None:
    """Write the finished model, then set the marker.

    Parameters
    ----------
    root : Root
    model : LinearModel
    report : structured array of `CellReport.dtype`, one row a cell
    """
    with no_space_is_store_error(root.path):
        group = root.replace_group("index")
        write_partition(group, model.cells)
        for name in ("landmarks", "theta", "intercepts"):
            write_array(group, name, getattr(model, name))
        write_array(group, "bundles", np.empty((0, 2), np.int64))
        write_array(group, "first_cell", np.array([model.cells.n_leaves], np.int64))
        group.attrs.update({"gamma": model.gamma, "report": report_to_json(report)})
        root.group.attrs["complete"] = True


def read_linear_model(index: Any) -> LinearModel:
    """Return the model of an index group.

    Raises
    ------
    StoreError : when the index holds no such model
    """
    if index.attrs.get("partition") != VoronoiCells.__name__:
        raise StoreError(f"The model at {index.store_path} has no landmarks.")
    gamma = index.attrs["gamma"]
    return LinearModel(
        VoronoiCells(read_array(index, "center"), read_array(index, "points")),
        read_array(index, "landmarks"),
        None if gamma is None else float(str(gamma)),
        read_array(index, "theta"),
        read_array(index, "intercepts"),
    )
