"""The parts of an L3-SVM in its store, and its predictions.

``joint/<phase>-<round>/<first>-<last>`` is the result of one task for some cells: the states, from
which the next round starts, and the statistics, written last, which name the attempt whose states
are valid. A resumed fit replays its finished rounds from their statistics.
"""

from dataclasses import dataclass, fields

import numpy as np

from daskls.kernels.landmarks import decide_linear, project_tiles
from daskls.partition.space import VoronoiCells
from daskls.partition.stored import read_as, stored
from daskls.records import Float64, Reals, Table
from daskls.store.artifacts import Location, open_store
from daskls.store.backend import attempt_key, draw_attempt
from daskls.store.caches import cached
from daskls.store.contents import FINISH, POINT_ARRAYS, StorePart
from daskls.store.files import damaged, malformed_is_damage
from daskls.store.groups import Group
from daskls.store.layout import Root, report_to_json
from daskls.store.packs import read_pack, write_pack
from daskls.store.reader import ModelReader, write_index

LANDMARKS_GROUP, JOINT = "landmarks", "joint"
_HERE = "methods/landmarks"
# A round starts where the one before ended, whose states may have been dropped.
PHASE = ("{series}-*",)
LANDMARK_PARTS = (
    StorePart(
        "index",
        _HERE,
        f"center float64 d; {POINT_ARRAYS}; landmarks float64 l, d; theta float64 p, cells, l; "
        "intercepts float64 p",
    ),
    StorePart(
        LANDMARKS_GROUP,
        _HERE,
        "rows float64 l, d",
        follows=(JOINT, "index"),
        forgets=("selected",),
    ),
    StorePart(
        f"{JOINT}/*/*.states",
        f"{_HERE}, before its marker",
        "biases float64 p; theta float64 cells, p, l; deltas float64 cells, p",
        "no round returns to them",
        "packs",
        PHASE,
    ),
    StorePart(
        f"{JOINT}/*/*.stats",
        f"{_HERE}: the marker",
        "stats float64 cells, p, statistics; attempt int64",
        FINISH,
        "packs",
        PHASE,
    ),
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
    """Write the result of a task; the statistics (c, p, N_STATS) last, as they are the marker."""
    store, attempt = open_store(root), draw_attempt()
    key, marker = _keys(phase, number, cells)
    key = attempt_key(key, attempt)
    write_pack(store, key, {f.name: getattr(states, f.name) for f in fields(CellStates)})
    if not write_pack(store, marker, {"stats": stats, "attempt": np.array(attempt)}):
        # Another attempt wrote its marker first, which names that attempt's states.
        store.drop(key)


def read_stats(root: Location, phase: str, number: int, cells: tuple[int, int]) -> Float64 | None:
    store, marker = open_store(root), _keys(phase, number, cells)[1]
    return read_pack(store, marker, ["stats"])["stats"] if store.exists(marker) else None


def read_states(root: Location, phase: str, number: int, cells: tuple[int, int]) -> CellStates:
    store, (key, marker) = open_store(root), _keys(phase, number, cells)
    attempt = int(read_pack(store, marker, ["attempt"])["attempt"])
    names = [f.name for f in fields(CellStates)]
    return CellStates(**read_pack(store, attempt_key(key, attempt), names))


def count_rounds(root: Root) -> int:
    return len(root.store.names(JOINT))


def drop_states(root: Location, phase: str, number: int) -> None:
    open_store(root).drop(f"{JOINT}/{phase}-{number:03d}/*.states")


def drop_phase(root: Location, phase: str) -> None:
    open_store(root).drop(f"{JOINT}/{phase}-*")


def write_landmarks(root: Root, landmarks: Float64, gamma: float | None) -> None:
    root.write_group(LANDMARKS_GROUP, {"rows": landmarks}, {"gamma": gamma})


def read_landmarks(root: Root) -> tuple[Float64, float | None] | None:
    """Return the landmarks and gamma, or None if they are not chosen yet."""
    group = root.find_group(LANDMARKS_GROUP)
    if group is None:
        return None
    return group.read("rows", shape=(None, root.n_features), kind="f"), _read_gamma(group)


def _read_gamma(group: Group) -> float | None:
    with malformed_is_damage(group.where()):
        gamma = group.attrs["gamma"]
        return None if gamma is None else float(str(gamma))


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Linear functions of landmark projections: one per cell and problem; one bias per problem.

    Theta is (q, k, l); gamma None where the projection is linear.
    """

    cells: VoronoiCells
    landmarks: Float64
    gamma: float | None
    theta: Float64
    intercepts: Float64


def write_linear_model(root: Root, model: LinearModel, report: Table) -> None:
    arrays, attributes = stored(model.cells)
    own = {name: getattr(model, name) for name in ("landmarks", "theta", "intercepts")}
    values = {**attributes, "gamma": model.gamma, "report": report_to_json(report)}
    write_index(root, {**arrays, **own}, values, [], [len(report)])


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
        index.read("theta", shape=shape, kind="f"),
        index.read("intercepts", shape=(n_problems,), kind="f"),
    )


def score_linearly(reader: ModelReader, X: Reals) -> Float64:
    model = read_linear_model(reader)
    cells = model.cells.nearest(X)
    scores = np.empty((len(model.theta), len(X)))
    for rows, seen in project_tiles(X, model.cells.center, model.landmarks, model.gamma):
        for problem, theta in enumerate(model.theta):
            bias = float(model.intercepts[problem])
            decide_linear(seen, cells[rows], theta, bias, scores[problem, rows])
    return scores[0] if len(scores) == 1 else np.ascontiguousarray(scores.T)
