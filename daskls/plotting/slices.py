"""The slice of space that a picture shows: a plane of two features, or a line of one."""

from typing import Any

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.methods.base import method_of
from daskls.partition.space import Space, VoronoiCells
from daskls.plotting.plane import check_least
from daskls.records import Float64, Ints, Reals
from daskls.run.labels import check_numbers
from daskls.store.reader import ModelReader

# The share of a range that is left free on either side.
AXES_MARGIN = 0.03


def pixel_middles(limits: Float64, resolution: int) -> list[Float64]:
    return list(np.linspace(limits[:, 0], limits[:, 1], 2 * resolution + 1)[1::2].T)


def find_slice(
    estimator: Any, X: Reals | None, features: Any, limits: Any, resolution: int
) -> tuple[list[int], Float64, Float64]:
    """Return the features to draw, their ranges, and the centers of the pixels as rows (p, d).

    X, if given, sets the ranges, and the values of the other features: their means.
    """
    drawn = _check_features(features, estimator)
    check_least("resolution", resolution, 2)
    n_features = estimator._reader.n_columns
    if X is None and n_features > len(drawn):
        raise DataError(
            f"The model has {n_features} features and the picture {len(drawn)}: pass X, some rows, "
            "so that the others can be held at their means."
        )
    center = np.zeros(n_features) if X is None else X.mean(axis=0, dtype=np.float64)
    ends = _find_limits(estimator, X, drawn) if limits is None else np.asarray(limits, np.float64)
    if ends.size != 2 * len(drawn):
        raise ParameterError(
            f"limits has shape {ends.shape}; {len(drawn)} feature(s) are drawn, and each needs "
            f"a minimum and a maximum: pass an array ({len(drawn)}, 2)."
        )
    ends = ends.reshape(-1, 2)
    sides = pixel_middles(ends, resolution)
    points = np.tile(center, (resolution ** len(sides), 1))
    # The last axis first, as in an image.
    points[:, drawn] = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, len(sides))
    return drawn, ends, points


def _find_limits(estimator: Any, X: Reals | None, drawn: list[int]) -> Float64:
    if X is None:
        ends = np.array([_reach(estimator, feature) for feature in drawn])
    else:
        columns = X[:, drawn].astype(np.float64)
        ends = np.stack([columns.min(axis=0), columns.max(axis=0)], axis=1)
    low, high = ends.T
    # Features with a single value get a range as well. Beyond the rows a curve may go anywhere, and
    # would flatten all the rest.
    pad = AXES_MARGIN * (high - low) * (len(drawn) - 1) + (high == low)
    return np.stack([low - pad, high + pad], axis=1)


def _check_features(features: Any, estimator: Any) -> list[int]:
    n_features, of_classes = estimator._reader.n_columns, estimator._kind == "classes"
    if n_features < 2 and of_classes:
        raise DataError("The model has 1 feature, but a picture of its cells needs two.")
    drawn = list(range(min(n_features, 2)) if features is None else features)
    counts, wanted = ((2,), "two") if of_classes else ((1, 2), "one or two")
    if len(drawn) not in counts or len({*drawn} & {*range(n_features)}) != len(drawn):
        raise ParameterError(
            f"features is {features}; it must be {wanted} different numbers from 0 to "
            f"{n_features - 1}: the model has {n_features} features."
        )
    return drawn


def _reach(estimator: Any, feature: int) -> tuple[float, float]:
    """Return the range of a feature that shows the cells; of a coded one, of its training values.

    Of most cells the radii are known, not the positions: the range is that of a square, or along
    one feature of an interval, as large as all of them, each taken as a square of 2 r^2.
    """
    reader = estimator._reader
    scale, column, factor, offset = reader.resolved.scale, feature, 1.0, 0.0
    if scale is not None:
        coding = scale.coding
        if coding is not None and coding.ptr[feature] < coding.ptr[feature + 1]:
            return coding.points[coding.ptr[feature]], coding.points[coding.ptr[feature + 1] - 1]
        place = int(np.flatnonzero(scale.sources == feature)[0])
        column = int(np.searchsorted(scale.columns, place))
        factor, offset = scale.factors[place], scale.center[place]
    space: Any = space_of(reader)
    if not factor or not isinstance(space, Space):
        raise DataError(
            f"The model does not tell the range of feature {feature}: pass X, some rows, or limits."
        )
    radius = reader.report.radius[reader.report.partition == 0]
    half = np.sqrt((radius**2).sum() / 2) if reader.n_features > 1 else radius.sum()
    if isinstance(space, VoronoiCells):
        half = 1.1 * np.abs(space.points[:, column]).max()
    center = space.center[column]
    return (center - half) / factor + offset, (center + half) / factor + offset


def space_of(reader: ModelReader) -> Any:
    """Return what finds the cells of rows; None of a model without cells of space."""
    method = method_of(reader.method)
    return method.space(reader) if method.has_space(reader) else None


def check_drawn_rows(X: Any, reader: ModelReader) -> Reals:
    """Return the rows to draw, in memory, without missing values."""
    rows, n_features = np.asarray(X), reader.n_columns
    if rows.ndim != 2 or rows.shape[1] != n_features or not len(rows):
        raise DataError(
            f"X has shape {rows.shape}, but rows of {n_features} features are needed to draw it."
        )
    return rows if reader.gaps is None else reader.gaps.fill(rows)[:, :n_features]


def find_cells(reader: ModelReader, points: Float64) -> Ints | None:
    """Return the cell of each point, in the first partition; None for a model without cells."""
    space = space_of(reader)
    cells = None if space is None else space.find(reader.transform(points))
    return None if cells is None else cells[0]


def numbers_of(y: Any, rows: Reals | None, n_columns: int) -> Float64:
    """The first column, (m,)."""
    numbers, n_rows = np.asarray(y), 0 if rows is None else len(rows)
    check_numbers(numbers.dtype)
    if numbers.reshape(len(numbers), -1).shape != (n_rows, n_columns):
        raise DataError(
            f"y has shape {numbers.shape}, but X has {n_rows} rows and the model predicts "
            f"{n_columns} number(s) of each; pass one y for each row."
        )
    column: Float64 = numbers.reshape(n_rows, -1)[:, 0].astype(np.float64)
    return column


def name_numbers(estimator: Any) -> str:
    """Return the name of the numbers that are drawn: that of the column trained on, else y."""
    table, target = getattr(estimator, "table_", None), estimator._reader.target
    name = "y" if table is None or table.label is None else str(table.label)
    if isinstance(target.quantile, tuple):
        return f"{name}, level {target.quantile[0]:g}"
    return name if target.width == 1 else f"{name}, column 0"
