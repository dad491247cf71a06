"""The parameter ``feature_scale``, and the fitted attributes that describe the scale."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.kernels.registry import KERNELS, find_kernel
from daskls.records import LARGEST, SMALLEST, Float64, ScalingSpec
from daskls.store.reader import ModelReader

__all__ = [
    "FEATURE_SCALE",
    "FeatureScaleParam",
    "ScalesFeatures",
    "has_width",
    "is_unscaled",
    "scaling_of",
]

FeatureScaleParam = Literal["spread", "learned", "none"] | Sequence[float] | None
FEATURE_SCALE: list[Any] = [StrOptions({"spread", "learned", "none"}), "array-like", None]


def is_unscaled(feature_scale: Any) -> bool:
    """Whether rows stay as they are: None, which the command line spells "none"."""
    return feature_scale is None or (isinstance(feature_scale, str) and feature_scale == "none")


def has_width(kernel: str) -> bool:
    """Whether a kernel is of distances, which features have a scale in; all in question are."""
    return kernel not in KERNELS or find_kernel(kernel).has_width


def scaling_of(feature_scale: Any, kernel: str) -> ScalingSpec | None:
    """Return the choices that a fit makes before space is cut; None if there are none.

    Raises
    ------
    ParameterError : a scale for a kernel of inner products, or factors that are no scale
    """
    if is_unscaled(feature_scale):
        return None
    if not has_width(kernel):
        raise ParameterError(
            f'feature_scale is for kernels of distances; kernel is {kernel!r}. Use kernel="rbf", '
            "or scale X beforehand."
        )
    if isinstance(feature_scale, str):
        return ScalingSpec(feature_scale)  # type: ignore[arg-type]
    factors = np.asarray(feature_scale)
    if (
        factors.ndim != 1
        or factors.dtype.kind == "b"
        or not all(isinstance(value, Real) for value in factors.tolist())
    ):
        raise ParameterError(
            f"feature_scale must be a list of numbers, one factor a feature, got shape "
            f'{factors.shape} of dtype {factors.dtype}. Give such a list, "spread" or "learned".'
        )
    values = tuple(float(value) for value in factors)
    if not all(value == 0 or SMALLEST <= value <= LARGEST for value in values) or not any(values):
        raise ParameterError(
            "feature_scale holds a factor that is negative or not finite, or none above 0. Give "
            f"factors from {SMALLEST:g} to {LARGEST:g}; features with 0 are left out."
        )
    return ScalingSpec(values)


class ScalesFeatures:
    """Estimators that take ``feature_scale``: the request, and the fitted scale."""

    feature_scale: FeatureScaleParam
    kernel: str
    _reader: ModelReader

    def _scaling(self) -> ScalingSpec | None:
        """As of `LocalClassifier`."""
        return scaling_of(self.feature_scale, self.kernel)

    def _minds_units(self) -> bool:
        """As of `LocalClassifier`."""
        return is_unscaled(self.feature_scale) and has_width(self.kernel)

    @property
    def feature_scale_(self) -> Float64:
        """The factor of each feature, shape ``(n_features_in_,)``; 0: it is left out."""
        check_is_fitted(self)
        scale = self._reader.resolved.scale
        if scale is None:
            return np.ones(int(self._reader.meta["n_features"]))
        return scale.factors.copy()

    @property
    def feature_importances_(self) -> Float64:
        """The weight of each feature in distances, shape ``(n_features_in_,)``, summing to 1.

        Its factor times its spread, so that units cancel. A model that does not
        scale its features has no importances: its distances depend on the features' units.
        """
        check_is_fitted(self)
        resolved = self._reader.resolved
        if resolved.scale is None:
            raise AttributeError(
                "This model does not scale its features, so it has no feature importances; fit "
                'with feature_scale="learned".'
            )
        weights = resolved.scale.factors * np.array(resolved.summary["spread"])
        importances: Float64 = weights / weights.sum()
        return importances
