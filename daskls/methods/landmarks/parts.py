"""The parts of an L3-SVM in its store, and its predictions.

``joint/<phase>-<round>/<first>-<last>`` is the result of one task for some cells: the states, from
which the next round starts, and the statistics, which are written last. A resumed fit replays its
finished rounds from their statistics. The states of a round are dropped when no problem can return
to them.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from daskls.kernels.kernel import KERNELS
from daskls.kernels.landmarks import FeatureMap, decide_linear, project_tiles
from daskls.partition.space import VoronoiCells
from daskls.partition.stored import read_as, stored
from daskls.records import Float64, KernelSpec, Reals, Table
from daskls.store.artifact import Artifact, read_arrays, write_artifact
from daskls.store.caches import cached
from daskls.store.contents import FINISH, POINT_ARRAYS, REPORT_ARRAY, StorePart
from daskls.store.errors import damaged, expect, from_json, malformed_is_damage
from daskls.store.layout import REPORT, Root
from daskls.store.objects import Location, open_store
from daskls.store.reader import ModelReader, write_index

CHOSEN, JOINT = "landmarks", "joint"
_HERE = "methods/landmarks"
# Only where the kernel is not linear.
MAP_ARRAYS = "map_points float64 l, l; map_root float64 l, l"
# A round starts where the one before ended, whose states may have been dropped.
PHASE = ("{series}-*",)
LANDMARK_PARTS = (
    StorePart(
        "index",
        _HERE,
        f"center float64 d; {POINT_ARRAYS}; landmarks float64 l, d; theta float64 p, cells, l; "
        f"intercepts float64 p; {REPORT_ARRAY}; {MAP_ARRAYS}",
    ),
    StorePart(
        CHOSEN,
        _HERE,
        f"rows float64 l, d; {MAP_ARRAYS}",
        follows=(JOINT, "index"),
        forgets=("selected",),
    ),
    StorePart(
        f"{JOINT}/*/*.states",
        f"{_HERE}, before its statistics",
        "biases float64 p; theta float64 cells, p, l; deltas float64 cells, p",
        "no round returns to them",
        PHASE,
    ),
    StorePart(f"{JOINT}/*/*.stats", _HERE, "stats float64 cells, p, statistics", FINISH, PHASE),
)


@dataclass(frozen=True, eq=False)
class CellStates:
    """The states of c cells in p problems: biases (p,), theta (c, p, l) and deltas (c, p)."""

    biases: Float64
    theta: Float64
    deltas: Float64


def _keys(phase: str, number: int, cells: tuple[int, int]) -> tuple[str, str]:
    name = f"{JOINT}/{phase}-{number:03d}/{cells[0]:06d}-{cells[1]:06d}"
    return f"{name}.states", f"{name}.stats"


def write_states(
    root: Location,
    phase: str,
    number: int,
    cells: tuple[int, int],
    states: CellStates,
    stats: Float64,
) -> None:
    """Write the result of a task; the statistics (c, p, N_STATS) last, as they say it is there."""
    key, last = _keys(phase, number, cells)
    write_artifact(root, key, {f.name: getattr(states, f.name) for f in fields(CellStates)})
    write_artifact(root, last, {"stats": stats})


def read_stats(root: Location, phase: str, number: int, cells: tuple[int, int]) -> Float64 | None:
    """Return the statistics of a task, or None if it is not finished."""
    store, (_, key) = open_store(root), _keys(phase, number, cells)
    return read_arrays(store, key)["stats"] if store.exists(key) else None


def read_states(root: Location, phase: str, number: int, cells: tuple[int, int]) -> CellStates:
    """Return the states that a finished task reached."""
    return CellStates(**read_arrays(root, _keys(phase, number, cells)[0]))


def count_rounds(root: Root) -> int:
    return len(root.store.names(JOINT))


def drop_states(root: Location, phase: str, number: int) -> None:
    open_store(root).drop(f"{JOINT}/{phase}-{number:03d}/*.states")


def drop_phase(root: Location, phase: str) -> None:
    open_store(root).drop(f"{JOINT}/{phase}-*")


def write_landmarks(
    root: Root, landmarks: Float64, gamma: float | None, features: FeatureMap | None
) -> None:
    arrays, kernel = _stored_map(features)
    root.write(CHOSEN, {"rows": landmarks, **arrays}, {"gamma": gamma, **kernel})


def read_landmarks(root: Root) -> tuple[Float64, float | None, FeatureMap | None] | None:
    """Return the landmarks, gamma and the feature map, or None if they are not chosen yet."""
    part = root.find(CHOSEN)
    if part is None:
        return None
    landmarks = part.read("rows", shape=(None, root.n_features), kind="f")
    return landmarks, _read_gamma(part), _read_map(part, len(landmarks))


def _read_gamma(part: Artifact) -> float | None:
    with malformed_is_damage(part.where()):
        gamma = part.attrs["gamma"]
        return None if gamma is None else float(str(gamma))


def _stored_map(features: FeatureMap | None) -> tuple[dict[str, Float64], dict[str, Any]]:
    if features is None:
        return {}, {}
    arrays = {"map_points": features.points, "map_root": features.root}
    return arrays, {"kernel": asdict(features.kernel)}


def _read_map(part: Artifact, n_landmarks: int) -> FeatureMap | None:
    if "kernel" not in part.attrs:
        return None
    with malformed_is_damage(part.where()):
        kernel = from_json(KernelSpec, dict(part.attrs["kernel"]))
        expect(kernel.name in KERNELS, "kernel")
    shape = n_landmarks, n_landmarks
    points, root = (part.read(name, shape=shape, kind="f") for name in ("map_points", "map_root"))
    return FeatureMap(kernel, points, root)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Linear functions of landmark projections: one per cell and problem; one bias per problem.

    Theta is (q, k, l); gamma None where the projection is linear, features where the kernel is.
    """

    cells: VoronoiCells
    landmarks: Float64
    gamma: float | None
    features: FeatureMap | None
    theta: Float64
    intercepts: Float64


def write_linear_model(root: Root, model: LinearModel, report: Table) -> None:
    arrays, attributes = stored(model.cells)
    linear = {name: getattr(model, name) for name in ("landmarks", "theta", "intercepts")}
    mapped, kernel = _stored_map(model.features)
    values = {**attributes, "gamma": model.gamma, **kernel}
    write_index(root, {**arrays, **linear, **mapped, REPORT: report}, values, [], [len(report)])


@cached(maxsize=8)
def read_linear_model(reader: ModelReader) -> LinearModel:
    """Read once, and cached for its reader."""
    index, d = reader.index, reader.meta["n_features"]
    cells = read_as(VoronoiCells, index)
    if len(cells.center) != d:
        raise damaged(index.where(), f"its clusters are of {len(cells.center)} features")
    n_problems = 1 if reader.n_classes == 2 else reader.n_classes
    landmarks = index.read("landmarks", shape=(None, d), kind="f")
    shape = n_problems, cells.n_leaves, len(landmarks)
    return LinearModel(
        cells,
        landmarks,
        _read_gamma(index),
        _read_map(index, len(landmarks)),
        index.read("theta", shape=shape, kind="f"),
        index.read("intercepts", shape=(n_problems,), kind="f"),
    )


def score_linearly(reader: ModelReader, X: Reals) -> Float64:
    model = read_linear_model(reader)
    cells = model.cells.nearest(X)
    scores = np.empty((len(model.theta), len(X)))
    seen_by = model.cells.center, model.landmarks, model.gamma, model.features
    for rows, seen in project_tiles(X, *seen_by):
        for problem, theta in enumerate(model.theta):
            bias = float(model.intercepts[problem])
            decide_linear(seen, cells[rows], theta, bias, scores[problem, rows])
    return scores[0] if len(scores) == 1 else np.ascontiguousarray(scores.T)
