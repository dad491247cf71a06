"""What L3-SVMs keep: landmarks, the cells' states round by round, and the finished model.

``joint/<phase>-<round>/<first>-<last>`` holds what one task found for some cells: states, which the
next round begins from, and statistics, which come last and are the marker. A fit that is called
again finds its way through the statistics of the rounds it has done. States of a round go when no
problem can return to them.
"""

import shutil
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from daskls.records import FloatArray, LinearModel, VoronoiCells
from daskls.store.groups import Group
from daskls.store.guard import damaged, malformed_is_damage
from daskls.store.layout import Root, partition_arrays, partition_attributes, report_to_json
from daskls.store.packs import read_pack, write_pack

__all__ = [
    "CellStates",
    "drop_phase",
    "drop_states",
    "read_landmarks",
    "read_linear_model",
    "read_states",
    "read_stats",
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
    """

    biases: FloatArray
    theta: FloatArray
    deltas: FloatArray


def round_path(root: Path, phase: str, number: int) -> Path:
    """Return the folder of a round."""
    return root / "joint" / f"{phase}-{number:03d}"


def _places(phase: str, number: int, cells: tuple[int, int]) -> tuple[str, str]:
    """Return the places of some cells' files in one round: of states, and of statistics."""
    name = f"joint/{phase}-{number:03d}/{cells[0]:06d}-{cells[1]:06d}"
    return f"{name}.states", f"{name}.stats"


def write_states(
    root: Path,
    phase: str,
    number: int,
    cells: tuple[int, int],
    states: CellStates,
    stats: FloatArray,
) -> None:
    """Write what a task found; the statistics last, they are the marker.

    Parameters
    ----------
    root, phase, number, cells : name the task
    states : CellStates
    stats : float64 array, shape (c, p, N_STATS)
    """
    place, marker = _places(phase, number, cells)
    write_pack(root, place, {f.name: getattr(states, f.name) for f in fields(CellStates)})
    write_pack(root, marker, {"stats": stats})


def read_stats(root: Path, phase: str, number: int, cells: tuple[int, int]) -> FloatArray | None:
    """Return the statistics of a task that is done, or None.

    Raises
    ------
    DamageError : they are not what was written
    """
    marker = _places(phase, number, cells)[1]
    return read_pack(root, marker, ["stats"])["stats"] if (root / marker).exists() else None


def read_states(root: Path, phase: str, number: int, cells: tuple[int, int]) -> CellStates:
    """Return the states that a task reached.

    Raises
    ------
    DamageError : they are gone, or not what was written
    """
    place = _places(phase, number, cells)[0]
    return CellStates(**read_pack(root, place, [f.name for f in fields(CellStates)]))


def drop_states(root: Path, phase: str, number: int) -> None:
    """Remove the states of a round from which nothing goes on; its statistics stay."""
    for path in round_path(root, phase, number).glob("*.states"):
        path.unlink(missing_ok=True)


def drop_phase(root: Path, phase: str) -> None:
    """Remove all rounds of a phase."""
    for folder in (root / "joint").glob(f"{phase}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def write_landmarks(root: Root, landmarks: FloatArray, gamma: float | None) -> None:
    """Write the landmarks, and gamma where the projection has one."""
    root.write_group(GROUP, {"rows": landmarks}, {"gamma": gamma})


def read_landmarks(root: Root) -> tuple[FloatArray, float | None] | None:
    """Return landmarks and gamma, or None if they are not chosen yet.

    Raises
    ------
    DamageError
    """
    group = root.find_group(GROUP)
    if group is None:
        return None
    return group.read("rows", shape=(None, root.n_features), kind="f"), _gamma(group)


def _gamma(group: Group) -> float | None:
    """Return the width that a group keeps, or None where the projection has none."""
    with malformed_is_damage(group.description):
        gamma = group.attrs["gamma"]
        return None if gamma is None else float(str(gamma))


def write_linear_index(root: Root, model: LinearModel, report: FloatArray) -> None:
    """Write the finished model, then set the marker.

    Parameters
    ----------
    root : Root
    model : LinearModel
    report : structured array of `CellReport.dtype`, one row a cell
    """
    arrays = {
        **partition_arrays(model.cells),
        **{name: getattr(model, name) for name in ("landmarks", "theta", "intercepts")},
        "bundles": np.empty((0, 2), np.int64),
        "first_cell": np.array([model.cells.n_leaves], np.int64),
    }
    attributes = {"gamma": model.gamma, "report": report_to_json(report)}
    root.write_group("index", arrays, {**partition_attributes(model.cells), **attributes})
    root.update(complete=True)


def read_linear_model(index: Group, n_features: int, n_classes: int) -> LinearModel:
    """Return the model of an index group.

    Raises
    ------
    DamageError : when the index holds no such model
    """
    if index.attrs.get("partition") != VoronoiCells.__name__:
        raise damaged(index.description, "the model has no landmarks")
    n_problems = 1 if n_classes == 2 else n_classes
    center = index.read("center", shape=(n_features,), kind="f")
    points = index.read("points", shape=(None, n_features), kind="f")
    landmarks = index.read("landmarks", shape=(None, n_features), kind="f")
    shape = n_problems, len(points), len(landmarks)
    return LinearModel(
        VoronoiCells(center, points),
        landmarks,
        _gamma(index),
        index.read("theta", shape=shape, kind="f"),
        index.read("intercepts", shape=(n_problems,), kind="f"),
    )
