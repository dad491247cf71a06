"""The base of estimators on neighborhoods: parameters and their constraints."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.estimators.base import LocalClassifier, LocalEstimator, LocalRegressor
from daskls.estimators.inputs import candidates, flat
from daskls.estimators.scale import FEATURE_SCALE, ScalesFeatures, has_width
from daskls.kernels.registry import kernels_with
from daskls.methods.neighborhoods.method import NeighborMethod
from daskls.records import SolverSpec

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice

__all__ = [
    "SELECTION_COSTS",
    "SVM_CONSTRAINTS",
    "NeighborhoodClassifier",
    "NeighborhoodEstimator",
    "NeighborhoodRegressor",
    "advice_on_selection",
    "counts",
    "open_widths",
    "selecting_spec",
    "selection_of",
    "selects",
    "svm_spec",
]

# The papers' candidates of a selection: C, and widths as percentiles of distances, widest first.
SELECTION_COSTS = (1.0, 4.0, 16.0, 64.0)
SELECTION_PERCENTILES = (90.0, 50.0, 10.0, 1.0)

SVM_CONSTRAINTS: dict[str, Any] = {
    "kernel": [StrOptions(set(kernels_with("is_everywhere")))],
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


class NeighborhoodEstimator(ScalesFeatures, LocalEstimator):
    """An estimator whose training rows are kept by leaf, so that neighbors can be found."""

    # What models of neighborhoods are trained by.
    _local_loss: ClassVar[str]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), "array-like"],
        **COMMON_CONSTRAINTS,
    }

    def _method(self) -> NeighborMethod:
        raise NotImplementedError

    def _spec(self, C: tuple[float, ...], cv: int = 5) -> SolverSpec:
        """Return the solver's part of the parameters, with these C where none is given."""
        return replace(svm_spec(self, C, cv), target=self._kind, loss=self._local_loss)

    def _validate_params(self) -> None:
        """Refuse parameters out of range, and kernels that neighbors cannot be searched by."""
        from daskls.neighbors.search import metric_of

        super()._validate_params()
        metric_of(SolverSpec(kernel=self.kernel))

    def _sizes(self) -> dict[str, Any]:
        n_folds = self._solver().cv if self._method().selection else None
        return {**super()._sizes(), "n_folds": n_folds}

    def _advice(self, shrinkage: Any = None) -> "Iterable[Advice]":
        """Return what the selection calls for."""
        return advice_on_selection(self, "The one choice for all neighborhoods")


class NeighborhoodClassifier(NeighborhoodEstimator, LocalClassifier):
    """A classifier on neighborhoods."""

    _local_loss: ClassVar[str] = "hinge"


class NeighborhoodRegressor(NeighborhoodEstimator, LocalRegressor):
    """A regressor on neighborhoods."""

    _local_loss: ClassVar[str] = "squared_error"
    # What every spec has and a linear system does not need.
    tol = 1e-3


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


def selects(estimator: Any) -> bool:
    """Whether C and gamma are selected: neither is given, or several candidates are."""
    values = [candidates(name, getattr(estimator, name)) for name in ("C", "gamma")]
    return values == [None, None] or any(len(value) > 1 for value in values if value)


def selecting_spec(estimator: Any) -> SolverSpec:
    """Return the solver's part of an estimator that selects C and gamma where they are open."""
    return svm_spec(estimator, SELECTION_COSTS if selects(estimator) else (1.0,))


def open_widths(estimator: Any) -> tuple[float, ...] | None:
    """Return the candidate widths of a selection, as percentiles; None where gamma is given."""
    is_open = estimator.gamma is None and has_width(estimator.kernel)
    return SELECTION_PERCENTILES if selects(estimator) and is_open else None


def selection_of(estimator: Any) -> dict[str, Any] | None:
    """Return what a fit has selected for the whole model; None where all was given."""
    check_is_fitted(estimator)
    root = estimator._reader.root
    selected: dict[str, Any] | None = root.attributes.get("selected")
    return selected


def advice_on_selection(estimator: Any, who: str) -> "Iterable[Advice]":
    """Return what the selection of C and gamma calls for; nothing where nothing was selected."""
    # Here, as a process that only predicts does not need it.
    from daskls.estimators.advice import advise_on_selected

    selected = selection_of(estimator)
    if selected is None:
        return ()
    given = {name: candidates(name, getattr(estimator, name)) for name in ("C", "gamma")}
    return advise_on_selected(selected, given, who)
