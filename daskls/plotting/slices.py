"""The plane, or the line, of a space that a picture shows: its features, limits and pixels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.plotting.plane import check_least, pad_limits, pixel_grid
from daskls.records import Float64, Reals

__all__ = ["Slice", "axis_names", "check_drawn_rows", "find_slice"]

Reach = Callable[[tuple[int, ...]], tuple[Float64, Float64]]


@dataclass(frozen=True, eq=False)
class Slice:
    """Points of a space that differ in the drawn features alone.

    Attributes
    ----------
    features : tuple of one or two int. Those that are drawn.
    point : float64 array, shape (d,). The values of the others.
    limits : float64 array, shape (1 or 2, 2). The drawn range of each axis.
    resolution : int. Pixels along a side.
    """

    features: tuple[int, ...]
    point: Float64
    limits: Float64
    resolution: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array of pixels."""
        return (self.resolution,) * len(self.features)

    @property
    def is_line(self) -> bool:
        """Whether one feature is drawn."""
        return len(self.features) == 1

    def pixels(self) -> Float64:
        """Return the pixels' centers as rows of all features."""
        pixels = np.tile(self.point, (self.resolution ** len(self.features), 1))
        if self.is_line:
            low, high = self.limits[0].tolist()
            pixels[:, self.features[0]] = np.linspace(low, high, self.resolution)
        else:
            grid = pixel_grid(self.limits, self.resolution)
            pixels[:, self.features] = grid.reshape(2, -1).T
        return pixels

    @property
    def note(self) -> str:
        """What is drawn of a space of more features; nothing where all are drawn."""
        n_drawn = len(self.features)
        n_held = len(self.point) - n_drawn
        if not n_held:
            return ""
        held = "the third feature" if n_drawn == 2 else "the other feature"
        if n_held > 1:
            held = f"the other {n_held} features"
        return f"slice: {held} at the mean{'s' if n_held > 1 else ''} of X"


def find_slice(
    estimator: Any,
    X: Reals | None,
    features: tuple[int, ...] | None,
    limits: Any,
    resolution: int,
    reach: Reach | None = None,
) -> Slice:
    """Return what is drawn of an estimator's space.

    Parameters
    ----------
    estimator : fitted estimator
    X : array (m, d), or None. What gives the range of the axes, and the point of the others.
    features : one or two int, or None: the first two, or the only one
    limits : array (k, 2), or None
    resolution : int
    reach : returns the least and greatest values of features that are worth showing; of use, and
        needed, without X

    Raises
    ------
    ParameterError : features that the space does not have, or too few pixels
    DataError : classes of one feature; or features that are not drawn, and no X
    """
    n_features = estimator.n_features_in_
    drawn = _check_features(features, estimator)
    check_least("resolution", resolution, 2)
    point = _point(X, n_features, len(drawn))
    if limits is not None:
        return Slice(drawn, point, _check_limits(limits, len(drawn)), resolution)
    if X is None:
        assert reach is not None
        low, high = reach(drawn)
    else:
        own = X[:, drawn]
        low, high = own.min(axis=0).astype(float), own.max(axis=0).astype(float)
    # Beyond the rows a curve may go anywhere, and would leave no room to where they are.
    ends = np.stack([low, high + (high == low)], axis=1) if len(drawn) == 1 else None
    return Slice(drawn, point, pad_limits(low, high) if ends is None else ends, resolution)


def _check_features(features: tuple[int, ...] | None, estimator: Any) -> tuple[int, ...]:
    """Refuse what the estimator's space does not have; numbers may be drawn along one feature."""
    n_features, is_of_classes = estimator.n_features_in_, hasattr(estimator, "classes_")
    if n_features < 2 and is_of_classes:
        raise DataError("The model has 1 feature, but a picture of its cells needs two.")
    if features is None:
        return tuple(range(min(n_features, 2)))
    features = tuple(features)
    wanted = "two different numbers" if is_of_classes else "one or two different numbers"
    counts = (2,) if is_of_classes else (1, 2)
    is_sound = len(features) in counts and len(set(features)) == len(features)
    if not is_sound or not all(0 <= f < n_features for f in features):
        raise ParameterError(
            f"features is {features}; it must be {wanted} from 0 to {n_features - 1}: the model "
            f"has {n_features} features."
        )
    return features


def _check_limits(limits: Any, n_drawn: int) -> Float64:
    """Return the range of each axis."""
    given = np.asarray(limits, np.float64)
    if given.size != 2 * n_drawn:
        raise ParameterError(
            f"limits has shape {given.shape}; {n_drawn} feature(s) are drawn, and each has a "
            f"least and a greatest value: pass an array ({n_drawn}, 2)."
        )
    return given.reshape(n_drawn, 2)


def check_drawn_rows(X: Any, n_features: int) -> Reals:
    """Return the rows to draw in memory.

    Raises
    ------
    DataError : none, or of another width
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_features or not len(rows):
        raise DataError(
            f"X has shape {rows.shape}, but rows of {n_features} features are needed to draw it."
        )
    return rows


def _point(X: Reals | None, n_features: int, n_drawn: int) -> Float64:
    """Return the point that gives the features which are not drawn their values."""
    if X is not None:
        point: Float64 = X.mean(axis=0, dtype=np.float64)
        return point
    if n_features > n_drawn:
        raise DataError(
            f"The model has {n_features} features and the picture {n_drawn}: pass X, some rows, so "
            "that the others can be held at their means."
        )
    return np.zeros(n_features)


def axis_names(features: tuple[int, ...], feature_names: Any, estimator: Any) -> tuple[str, ...]:
    """Return the axes' labels: the given ones, else the names of the columns trained on."""
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is None:
        return tuple(f"feature {feature}" for feature in features)
    return tuple(str(feature_names[feature]) for feature in features)
