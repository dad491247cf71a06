"""Base classes of estimators on neighborhoods: constraints, and the selection of C and gamma."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.estimators.base import LocalClassifier, LocalEstimator, LocalRegressor
from daskls.estimators.inputs import candidates, flat
from daskls.estimators.options import (
    COMMON_CONSTRAINTS,
    FEATURE_SCALE,
    Candidates,
    ScalesFeatures,
    has_width,
)
from daskls.kernels.kernel import find_kernel, kernels_with
from daskls.methods.neighborhoods.method import Falk, NeighborMethod
from daskls.methods.neighborhoods.parts import count_cover
from daskls.records import SolverSpec

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice

# The papers' candidates of a selection: C, and widths as percentiles of distances.
SELECTION_C = (1.0, 4.0, 16.0, 64.0)
PERCENTILES = (1, 10, 50, 90)

SVM_CONSTRAINTS: dict[str, Any] = {
    "kernel": [StrOptions(set(kernels_with("is_everywhere")))],
    "C": [Interval(Real, 0, None, closed="neither"), "array-like", None],
    "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "coef0": [Interval(Real, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="neither")],
}


class NeighborhoodEstimator(ScalesFeatures, LocalEstimator):
    # The loss of the models of neighborhoods.
    _local_loss: ClassVar[str]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "feature_scale": FEATURE_SCALE,
        **COMMON_CONSTRAINTS,
    }

    def _method(self) -> NeighborMethod:
        raise NotImplementedError

    def _spec(self, C: tuple[float, ...], cv: int = 5) -> SolverSpec:
        """Return the solver's parameters; ``C`` are the candidates where none are given."""
        return replace(svm_spec(self, C, cv), target=self._kind, loss=self._local_loss)

    def _validate_params(self) -> None:
        """Refuse parameters out of range, and kernels without a metric to search neighbors by."""
        from daskls.neighbors.search import metric_of

        super()._validate_params()
        metric_of(SolverSpec(kernel=self.kernel))

    def _sizes(self) -> dict[str, Any]:
        n_folds = self._solver().cv if self._method().selection else None
        return {**super()._sizes(), "n_folds": n_folds}

    def _advice(self, shrinkage: Any = None) -> "Iterable[Advice]":
        return advice_on_selection(self, "The one choice for all neighborhoods")


class NeighborhoodClassifier(NeighborhoodEstimator, LocalClassifier):
    _local_loss: ClassVar[str] = "hinge"


class NeighborhoodRegressor(NeighborhoodEstimator, LocalRegressor):
    _local_loss: ClassVar[str] = "squared_error"
    # Every specification has a tolerance and folds. A linear system is solved exactly, and a
    # selection leaves rows out one at a time.
    tol, cv = 1e-3, 5

    def _sizes(self) -> dict[str, Any]:
        return {**super()._sizes(), "n_folds": None}


class FalkEstimator(NeighborhoodEstimator):
    n_neighbors: int | Sequence[int]
    n_assigned: int | None
    assign: Literal["point", "center", "k_centers"]
    selection: Literal["local", "each"] | None
    n_centers: int
    C: Candidates
    gamma: Candidates
    percentiles: Sequence[float]
    cv: int
    # Candidates of C of a selection where none are given.
    _c_candidates: ClassVar[tuple[float, ...]]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NeighborhoodEstimator._parameter_constraints,
        **SVM_CONSTRAINTS,
        "n_assigned": [Interval(Integral, 1, None, closed="left"), None],
        "assign": [StrOptions({"point", "center", "k_centers"})],
        "selection": [StrOptions({"local", "each"}), None],
        "n_centers": [Interval(Integral, 1, None, closed="left")],
        "percentiles": ["array-like"],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def _solver(self) -> SolverSpec:
        spec = self._spec(self._c_candidates if self.selection else (1.0,), int(self.cv))
        if self.selection is None:
            for name, values in (("C", spec.C), ("gamma", spec.gamma)):
                if values is not None and len(values) > 1:
                    raise ParameterError(
                        f"{name} has {len(values)} candidates but selection is None; give one "
                        'value, or a selection: "local" or "each".'
                    )
        is_euclidean = find_kernel(self.kernel).is_euclidean
        if not is_euclidean and spec.gamma is not None and len(spec.gamma) > 1:
            raise ParameterError(
                f"gamma has {len(spec.gamma)} candidates, but which rows are near each other in a "
                f"{self.kernel} kernel's feature space depends on it; give one value."
            )
        return spec

    def _method(self) -> Falk:
        candidates = counts("n_neighbors", self.n_neighbors)
        if self.n_assigned is not None and self.n_assigned > candidates[0]:
            raise ParameterError(
                f"n_assigned={self.n_assigned} is above n_neighbors={candidates[0]}; a center "
                "covers only rows that it is trained on. Lower n_assigned, or raise n_neighbors."
            )
        if len(candidates) > 1 and self.selection != "local":
            raise ParameterError(
                f"n_neighbors has {len(candidates)} candidates, which selection="
                f'{self.selection!r} cannot choose from; give one, or selection="local".'
            )
        local_widths = self.selection and self.gamma is None and has_width(self.kernel)
        return Falk(
            n_neighbors=candidates,
            n_assigned=None if self.n_assigned is None else int(self.n_assigned),
            assign=self.assign,
            n_centers=int(self.n_centers),
            selection=None if self._is_given(candidates) else self.selection,
            percentiles=widths(self.percentiles) if local_widths else None,
        )

    def _is_given(self, candidates: tuple[int, ...]) -> bool:
        """Whether every parameter that "local" would choose has one value: nothing to select."""
        spec = self._solver()
        open_values = (candidates, spec.C or (), spec.gamma or ())
        return self.selection == "local" and all(len(values) == 1 for values in open_values)

    @property
    def selected_(self) -> dict[str, Any] | None:
        """The selected parameters, with the errors of all candidates; None without a selection."""
        return selection_of(self)

    @property
    def cover_(self) -> dict[str, int]:
        """Counts of the covering: ``n_rounds``, and ``n_searched`` rows."""
        check_is_fitted(self)
        return count_cover(self._reader)


def svm_spec(estimator: Any, C: tuple[float, ...], cv: int = 5) -> SolverSpec:
    return SolverSpec(
        kernel=estimator.kernel,
        C=candidates("C", estimator.C) or C,
        gamma=candidates("gamma", estimator.gamma),
        degree=int(estimator.degree),
        coef0=float(estimator.coef0),
        cv=cv,
        tol=float(estimator.tol),
        fit_intercept=True,
    )


# The selection of C and gamma for a whole model.


def selects(estimator: Any) -> bool:
    values = [candidates(name, getattr(estimator, name)) for name in ("C", "gamma")]
    return values == [None, None] or any(len(value) > 1 for value in values if value)


def selecting_spec(estimator: Any) -> SolverSpec:
    """Return the solver's parameters, with the papers' candidates of C in a selection."""
    return svm_spec(estimator, SELECTION_C if selects(estimator) else (1.0,))


def candidate_percentiles(estimator: Any) -> tuple[float, ...] | None:
    """Return a selection's candidate widths, widest first; None where there are none."""
    is_open = estimator.gamma is None and has_width(estimator.kernel)
    return widths(PERCENTILES) if selects(estimator) and is_open else None


def selection_of(estimator: Any) -> dict[str, Any] | None:
    check_is_fitted(estimator)
    root = estimator._reader.root
    selected: dict[str, Any] | None = root.attributes.get("selected")
    return selected


def advice_on_selection(estimator: Any, who: str) -> "Iterable[Advice]":
    # Imported here, as a process that only predicts does not need it.
    from daskls.estimators.advice import advise_on_selected

    selected = selection_of(estimator)
    if selected is None:
        return ()
    given = {name: candidates(name, getattr(estimator, name)) for name in ("C", "gamma")}
    return advise_on_selected(selected, given, who)


# Parameters of several values.


def counts(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    """Return one count or several candidate counts as an increasing tuple."""
    values = flat(name, value)
    if len(values) == 0:
        raise ParameterError(f"{name} is an empty grid; give at least one number.")
    whole = values.dtype.kind in "iu" and (values >= 1).all()
    if not whole:
        raise ParameterError(f"{name} holds {value!r}; every value must be a whole number above 0.")
    return tuple(np.unique(values).tolist())


def widths(percentiles: Sequence[float]) -> tuple[float, ...]:
    """Return percentiles in decreasing order: the widest kernel first."""
    values = sorted({float(p) for p in percentiles}, reverse=True)
    if not values or not all(0 <= p <= 100 for p in values):
        raise ParameterError(
            f"percentiles is {list(percentiles)!r}; give at least one value between 0 and 100."
        )
    return tuple(values)
