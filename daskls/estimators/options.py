"""The parameters ``feature_coding``, ``feature_scale`` and ``probability``."""

import os
from collections.abc import Callable, Sequence
from numbers import Real
from types import MethodType
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.kernels.frame import encoded_names
from daskls.kernels.kernel import KERNELS, find_kernel
from daskls.records import LARGEST, SMALLEST, Float64, ScalingSpec
from daskls.run.contract import default_names
from daskls.store.reader import ModelReader

FeatureCodingParam = Literal["auto", "none", "ranks", "indicators", "both"]
FEATURE_CODING: list[Any] = [StrOptions({"auto", "none", "ranks", "indicators", "both"})]
FeatureScaleParam = Literal["spread", "learned", "none"] | Sequence[float] | None
FEATURE_SCALE: list[Any] = [StrOptions({"spread", "learned", "none"}), "array-like", None]


# One value or several candidates; None: the method's own.
Candidates = float | Sequence[float] | None
# scikit-learn's constraints are in a private module, as there is no public one.
COMMON_CONSTRAINTS: dict[str, Any] = {
    "store": [str, os.PathLike, None],
    "client": "no_validation",
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
ProbabilityParam = bool | Literal["auto", "sigmoid", "isotonic"]
CLASS_CONSTRAINTS: dict[str, Any] = {
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "probability": ["boolean", StrOptions({"auto", "sigmoid", "isotonic"})],
}


def is_unscaled(feature_scale: Any) -> bool:
    """Whether features are not scaled: None, which the command line spells "none"."""
    return feature_scale is None or (isinstance(feature_scale, str) and feature_scale == "none")


def has_width(kernel: str) -> bool:
    """Whether a kernel depends on distances; all candidates of "auto" do."""
    return kernel not in KERNELS or find_kernel(kernel).has_width


def scaling_of(
    feature_scale: Any, kernel: str, coding: FeatureCodingParam = "none"
) -> ScalingSpec | None:
    """Return the choices that the data decide before space is cut; None if there are none."""
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
            f"feature_scale holds one factor per feature, but feature_coding={coding!r} makes "
            'other features of them. Pass feature_coding="none", or feature_scale="spread" or '
            '"learned".'
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


class ScalesFeatures:
    feature_scale: FeatureScaleParam
    kernel: str
    _reader: ModelReader

    def _scaling(self) -> ScalingSpec | None:
        return scaling_of(self.feature_scale, self.kernel)

    def _checks_units(self) -> bool:
        if not is_unscaled(self.feature_scale) or not has_width(self.kernel):
            return False
        return getattr(self, "feature_coding", "none") in ("auto", "none")

    @property
    def feature_scale_(self) -> Float64:
        """The factor of each of `coded_features_`, float64; a feature with factor 0 is left out.

        Shape ``(n_features_in_,)`` if features are not coded.
        """
        check_is_fitted(self)
        scale = self._reader.resolved.scale
        if scale is None:
            return np.ones(int(self._reader.meta["n_features"]))
        return scale.factors.copy()

    @property
    def coded_features_(self) -> list[str]:
        """The names of the features that distances are computed from, as in `feature_scale_`.

        Each is a feature of X, ``rank(name)`` or ``name=value``.
        """
        check_is_fitted(self)
        names = [str(own) for own in getattr(self, "feature_names_in_", ())]
        names = names or default_names(int(self._reader.meta["n_features"]))
        return encoded_names(names, self._reader.resolved.scale)

    @property
    def feature_importances_(self) -> Float64:
        """The weight of each feature in distances, shape ``(n_features_in_,)``, summing to 1.

        The factor times the spread of the feature, so that units cancel, summed over its
        indicators. A model that does not scale its features has no importances: its distances
        depend on the features' units.
        """
        check_is_fitted(self)
        resolved = self._reader.resolved
        if resolved.scale is None:
            raise AttributeError(
                "This model does not scale its features, so it has no feature importances; fit "
                'with feature_scale="learned".'
            )
        own = resolved.scale.factors * np.array(resolved.summary["spread"])
        n_features = int(self._reader.meta["n_features"])
        weights = np.bincount(resolved.scale.sources, own, n_features)
        importances: Float64 = weights / weights.sum()
        return importances


def probability_of(probability: ProbabilityParam, *, knows_held_out: bool) -> str | None:
    """Return the kind of probability maps that `FitRequest` takes; None for no probabilities.

    >>> probability_of(True, knows_held_out=False), probability_of("auto", knows_held_out=True)
    ('sigmoid', 'sigmoid')
    >>> probability_of("auto", knows_held_out=False), probability_of(False, knows_held_out=True)
    (None, None)
    """
    if probability == "auto":
        probability = knows_held_out
    if isinstance(probability, str):
        return str(probability)
    return "sigmoid" if probability else None


def check_probabilities(estimator: Any) -> None:
    """Refuse an estimator that has, or will have, none; says why, and what to pass."""
    if getattr(estimator, "_handle", None) is None:
        has = estimator._method().has_probabilities or estimator._probability() is not None
    else:
        has = estimator._fitted_method().has_probabilities
        has = has or "probability" in estimator._reader.meta
    if not has:
        raise AttributeError(_why_not(estimator))


def _why_not(estimator: Any) -> str:
    unknown, given = estimator._why_no_held_out(), estimator.probability
    remedy = "Pass probability=True, which fits the method once more, to some of the rows."
    if estimator._probability() is not None:
        why, remedy = "its model was fitted without", "Fit it again."
    elif given == "auto":
        why = f'probability="auto" needs decision values of held-out rows, and {unknown}'
    else:
        why = "it was given probability=False"
        if unknown is None:
            remedy = 'Pass probability="auto", which costs no second fit.'
    return f"{type(estimator).__name__} has no predict_proba, as {why}. {remedy}"


class Available:
    """A method that an estimator has only if a check raises no AttributeError.

    scikit-learn's ``available_if`` raises an error of its own, which hides the reason in its cause.
    """

    _method: Callable[..., Any]

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check

    def __call__(self, method: Callable[..., Any]) -> "Available":
        found = type(self)(self._check)
        found._method, found.__doc__ = method, method.__doc__
        return found

    def __get__(self, estimator: Any, owner: type[Any] | None = None) -> Any:
        if estimator is None:
            return self._method
        self._check(estimator)
        return MethodType(self._method, estimator)
