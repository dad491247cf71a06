"""The finished model of L3-SVMs: linear functions of landmark projections."""

from dataclasses import dataclass

from daskls.partition.stored import read_as, stored
from daskls.partition.voronoi import VoronoiCells
from daskls.records import Float64, Table
from daskls.store.caches import kept
from daskls.store.guard import damaged
from daskls.store.joint import read_gamma, write_linear_index
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

__all__ = ["LinearModel", "read_linear_model", "write_linear_model"]


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Linear functions of landmark projections, one a cell and class, with one bias a class.

    Attributes
    ----------
    cells : VoronoiCells. Rows are projected around its center c.
    landmarks : float64 array, shape (l, d). Minus c.
    gamma : float of ``exp(-gamma |x - c - z|^2)``; None where the projection is ``(x - c) . z``
    theta : float64 array, shape (q, k, l). One problem for two classes, else one a class.
    intercepts : float64 array, shape (q,)
    """

    cells: VoronoiCells
    landmarks: Float64
    gamma: float | None
    theta: Float64
    intercepts: Float64


def write_linear_model(root: Root, model: LinearModel, report: Table) -> None:
    """Write the finished model, then set the marker.

    Parameters
    ----------
    root : Root
    model : LinearModel
    report : structured array of `CellReport.dtype`, one row a cell
    """
    arrays, attributes = stored(model.cells)
    own = {name: getattr(model, name) for name in ("landmarks", "theta", "intercepts")}
    write_linear_index(root, {**arrays, **own}, {**attributes, "gamma": model.gamma}, report)


@kept(maxsize=8)
def read_linear_model(reader: ModelReader) -> LinearModel:
    """Return the model; read once and kept with its reader.

    Raises
    ------
    DamageError : when the index holds no such model
    """
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
        read_gamma(index),
        index.read("theta", shape=shape, kind="f"),
        index.read("intercepts", shape=(n_problems,), kind="f"),
    )
