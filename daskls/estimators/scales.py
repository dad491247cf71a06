"""The parameter ``feature_scale``, and what a fitted model tells of it."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskls.errors import AdviceWarning, ParameterError, warn_user
from daskls.estimators.param import FeatureCoding, Params, has_width
from daskls.gaps import names_of
from daskls.kernels.frame import encoded_names
from daskls.records import LARGEST, SMALLEST, Float64, ScalingSpec


def is_unscaled(feature_scale: Any) -> bool:
    """Whether features are not scaled: None, which the command line spells "none"."""
    return feature_scale is None or (isinstance(feature_scale, str) and feature_scale == "none")


def checks_units(params: Params) -> bool:
    """Whether a fit looks for features whose units hide those of others."""
    is_plain = is_unscaled(params["feature_scale"]) and has_width(params["kernel"])
    return is_plain and params.get("feature_coding", "none") in ("auto", "none")


def scaling_of(params: Params, coding: FeatureCoding = "none") -> ScalingSpec | None:
    """Return the choices that the data decide before space is cut; None if there are none."""
    feature_scale, kernel = params["feature_scale"], params["kernel"]
    if is_unscaled(feature_scale):
        return None if coding == "none" else ScalingSpec(feature_coding=coding)
    if not has_width(kernel):
        raise ParameterError(
            f'feature_scale is for kernels of distances; kernel is {kernel!r}. Use kernel="rbf", '
            "or scale X beforehand."
        )
    if isinstance(feature_scale, str):
        return ScalingSpec(feature_scale, feature_coding=coding)  # type: ignore[arg-type]
    if coding not in ("auto", "none"):
        raise ParameterError(
            f"feature_scale holds one factor per feature, but feature_coding={coding!r} "
            'replaces these features by others. Pass feature_coding="none", or '
            'feature_scale="spread" or "learned".'
        )
    factors = np.asarray(feature_scale)
    if (
        factors.ndim != 1
        or factors.dtype.kind == "b"
        or not all(isinstance(value, Real) for value in factors.tolist())
    ):
        raise ParameterError(
            f"feature_scale must be a list of numbers, one factor per feature, got shape "
            f'{factors.shape} of dtype {factors.dtype}. Give such a list, "spread" or "learned".'
        )
    values = tuple(float(value) for value in factors)
    if not all(value == 0 or SMALLEST <= value <= LARGEST for value in values) or not any(values):
        raise ParameterError(
            "feature_scale holds a factor that is negative or not finite, or none above 0. Give "
            f"factors from {SMALLEST:g} to {LARGEST:g}; features with 0 are left out."
        )
    return ScalingSpec(values)


# The values of properties that estimators with the parameter have.


def scale_factors(estimator: Any) -> Float64:
    """The factor of each of `coded_features_`, float64; a feature with factor 0 is left out.

    One a feature if features are not coded.
    """
    check_is_fitted(estimator)
    scale = estimator._reader.resolved.scale
    if scale is None:
        return np.ones(estimator._reader.n_features)
    factors: Float64 = scale.factors.copy()
    return factors


def coded_features(estimator: Any) -> list[str]:
    """The names of the features that distances are computed from, as in `feature_scale_`.

    Each is a feature of X, ``rank(name)`` or ``name=value``.
    """
    check_is_fitted(estimator)
    reader = estimator._reader
    names = reader.feature_names or names_of(reader.n_columns, reader.gaps)
    return encoded_names(names, reader.resolved.scale)


def feature_importances(estimator: Any) -> Float64:
    """The weight of each feature in distances, shape ``(n_features_in_,)``, summing to 1.

    The factor times the spread of the feature, so that units cancel, summed over its
    indicators; of a frame with labels apart, over all features that a column became. In a scale by
    spread alone all features weigh alike; a model that does not scale them has no importances.
    """
    check_is_fitted(estimator)
    resolved = estimator._reader.resolved
    if resolved.scale is None:
        raise AttributeError(
            f"This {type(estimator).__name__} does not scale features, so it has no importances "
            "of them. Measure them on rows that the fit has not seen: "
            "sklearn.inspection.permutation_importance(model, X, y)."
        )
    factors = resolved.scale.factors * np.array(resolved.summary["spread"])
    weights = np.bincount(resolved.scale.sources, factors, estimator._reader.n_features)
    gaps = estimator._reader.gaps
    if gaps is not None:
        columns = [*range(len(gaps.medians)), *gaps.marked]
        weights = np.bincount(columns, weights)
    if estimator.n_features_in_ != len(weights):
        widths = [len(column.feature_names) for column in estimator.table_.columns]
        weights = np.bincount(np.repeat(np.arange(len(widths)), widths), weights)
    importances: Float64 = weights / (weights.sum() or 1.0)
    return importances


def warn_of_units(estimator: Any, units: tuple[int, int, float] | None) -> None:
    """Warn if two features differ so much in spread that distances ignore one of them."""
    if units is not None:
        names = estimator._reader.feature_names or range(estimator._reader.n_features)
        warn_user(
            f"The spread of feature {names[units[0]]!s} is {units[2]:.2g} times that of "
            f"feature {names[units[1]]!s}, so distances hardly depend on the latter. Pass "
            'feature_scale="learned" or "spread", or scale X beforehand.',
            AdviceWarning,
        )
