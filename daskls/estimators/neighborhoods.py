"""The base of classifiers on neighborhoods: parameters and their constraints."""

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskls.errors import ParameterError
from daskls.estimators.base import LocalClassifier
from daskls.estimators.inputs import candidates, flat
from daskls.estimators.scale import FEATURE_SCALE, ScalesFeatures
from daskls.methods.neighborhoods.method import NeighborMethod
from daskls.records import SolverSpec

__all__ = ["SVM_CONSTRAINTS", "NeighborhoodClassifier", "counts"]

SVM_CONSTRAINTS: dict[str, Any] = {
    "kernel": [StrOptions({"rbf", "linear", "poly"})],
    "C": [Interval(Real, 0, None, closed="neither"), "array-like", None],
    "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "coef0": [Interval(Real, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="neither")],
}
COMMON_CONSTRAINTS: dict[str, Any] = {
    "feature_scale": FEATURE_SCALE,
    "store": [str, os.PathLike, None],
    "client": "no_validation",
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def counts(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    """Return one count or several candidate counts as an increasing tuple.

    Raises
    ------
    ParameterError : none, or one that is no whole number above 0
    """
    values = flat(name, value)
    if len(values) == 0:
        raise ParameterError(f"{name} is an empty grid; give at least one number.")
    whole = values.dtype.kind in "iu" and (values >= 1).all()
    if not whole:
        raise ParameterError(f"{name} holds {value!r}; every value must be a whole number above 0.")
    return tuple(np.unique(values).tolist())


class NeighborhoodClassifier(ScalesFeatures, LocalClassifier):
    """A classifier whose training rows are kept by leaf, so that neighbors can be found."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), "array-like"],
        **COMMON_CONSTRAINTS,
    }

    def _method(self) -> NeighborMethod:
        raise NotImplementedError

    def _sizes(self) -> dict[str, Any]:
        n_folds = self._solver().cv if self._method().selection else None
        return {**super()._sizes(), "n_folds": n_folds}


def svm_spec(estimator: Any, C: tuple[float, ...], cv: int = 5) -> SolverSpec:
    """Return the solver's part of an estimator's parameters, with an offset in every SVM."""
    return SolverSpec(
        kernel=estimator.kernel,
        C=candidates("C", estimator.C) or C,
        gamma=candidates("gamma", estimator.gamma),
        degree=int(estimator.degree),
        coef0=float(estimator.coef0),
        cv=cv,
        tol=float(estimator.tol),
        refit="cell",
        fit_intercept=True,
    )
