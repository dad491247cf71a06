"""Stores of L3-SVMs: landmarks, the cells' states round by round, and the finished model.

``joint/<phase>-<round>/<first>-<last>`` holds what one task found for some cells: states, which the
next round begins from, and statistics, which come last, name the states by their attempt, and are
the marker. A fit that is called again finds its way through the statistics of the rounds it has
done. States of a round go when no problem can return to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from daskls.records import AnyArray, Float64, Table
from daskls.store.artifacts import Location, attempt_key, draw_attempt, open_store
from daskls.store.groups import Group
from daskls.store.guard import malformed_is_damage
from daskls.store.layout import Root, report_to_json
from daskls.store.packs import read_pack, write_pack

__all__ = [
    "CellStates",
    "drop_phase",
    "drop_states",
    "read_gamma",
    "read_landmarks",
    "read_states",
    "read_stats",
    "write_landmarks",
    "write_linear_index",
    "write_states",
]

LANDMARKS_GROUP = "landmarks"


@dataclass(frozen=True, eq=False)
class CellStates:
    """The state of some cells in some problems.

    Attributes
    ----------
    biases : float64 array, shape (p,). Of each problem.
    theta : float64 array, shape (c, p, l)
    deltas : float64 array, shape (c, p). The smoothing reached.
    """

    biases: Float64
    theta: Float64
    deltas: Float64


def _keys(phase: str, number: int, cells: tuple[int, int]) -> tuple[str, str]:
    """Return the keys of some cells' packs in one round: of states, and of statistics."""
    name = f"joint/{phase}-{number:03d}/{cells[0]:06d}-{cells[1]:06d}"
    return f"{name}.states", f"{name}.stats"


def write_states(
    root: Location,
    phase: str,
    number: int,
    cells: tuple[int, int],
    states: CellStates,
    stats: Float64,
) -> None:
    """Write what a task found; the statistics last, they are the marker.

    Parameters
    ----------
    root, phase, number, cells : name the task
    states : CellStates
    stats : float64 array, shape (c, p, N_STATS)
    """
    store, attempt = open_store(root), draw_attempt()
    key, marker = _keys(phase, number, cells)
    key = attempt_key(key, attempt)
    write_pack(store, key, {f.name: getattr(states, f.name) for f in fields(CellStates)})
    if not write_pack(store, marker, {"stats": stats, "attempt": np.array(attempt)}):
        # Another attempt was first, and its marker names its own states.
        store.drop(key)


def read_stats(root: Location, phase: str, number: int, cells: tuple[int, int]) -> Float64 | None:
    """Return the statistics of a task that is done, or None.

    Raises
    ------
    DamageError : they are not what was written
    """
    store, marker = open_store(root), _keys(phase, number, cells)[1]
    return read_pack(store, marker, ["stats"])["stats"] if store.exists(marker) else None


def read_states(root: Location, phase: str, number: int, cells: tuple[int, int]) -> CellStates:
    """Return the states that a task reached.

    Raises
    ------
    DamageError : they are gone, or not what was written
    """
    store, (key, marker) = open_store(root), _keys(phase, number, cells)
    # Statistics of before name no attempt.
    attempt = int(read_pack(store, marker).get("attempt", 0))
    names = [f.name for f in fields(CellStates)]
    return CellStates(**read_pack(store, attempt_key(key, attempt), names))


def drop_states(root: Location, phase: str, number: int) -> None:
    """Remove the states of a round from which no solve continues; its statistics stay."""
    open_store(root).drop(f"joint/{phase}-{number:03d}/*.states")


def drop_phase(root: Location, phase: str) -> None:
    """Remove all rounds of a phase."""
    open_store(root).drop(f"joint/{phase}-*")


def write_landmarks(root: Root, landmarks: Float64, gamma: float | None) -> None:
    """Write the landmarks, and gamma where the projection has one."""
    root.write_group(LANDMARKS_GROUP, {"rows": landmarks}, {"gamma": gamma})


def read_landmarks(root: Root) -> tuple[Float64, float | None] | None:
    """Return landmarks and gamma, or None if they are not chosen yet.

    Raises
    ------
    DamageError
    """
    group = root.find_group(LANDMARKS_GROUP)
    if group is None:
        return None
    return group.read("rows", shape=(None, root.n_features), kind="f"), read_gamma(group)


def read_gamma(group: Group) -> float | None:
    """Return the width that a group keeps, or None where the projection has none."""
    with malformed_is_damage(group.where()):
        gamma = group.attrs["gamma"]
        return None if gamma is None else float(str(gamma))


def write_linear_index(
    root: Root,
    arrays: Mapping[str, AnyArray],
    attributes: Mapping[str, Any],
    report: Table,
) -> None:
    """Write the finished model, then set the marker.

    Parameters
    ----------
    root : Root
    arrays, attributes : what the model is
    report : structured array of `CellReport.dtype`, one row a cell
    """
    own = {
        "bundles": np.empty((0, 2), np.int64),
        "first_cell": np.array([len(report)], np.int64),
    }
    values = {**attributes, "report": report_to_json(report)}
    root.write_group("index", {**arrays, **own}, values)
    root.update(complete=True)
