"""What the classifiers on neighborhoods share: parameters, requests and the call of the fit."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskls.errors import ParameterError
from daskls.estimators.base import LocalClassifier
from daskls.estimators.inputs import candidates, draw_seed, flat, saved_params
from daskls.plan import CELL_ROWS
from daskls.records import NeighborSpec, SolverSpec
from daskls.run.identity import FitRequest

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
    "store": [str, os.PathLike, None],
    "client": "no_validation",
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def counts(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    """Return a count, or candidates of it, increasing.

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


class NeighborhoodClassifier(LocalClassifier):
    """A classifier whose training rows are kept by leaf, so that neighbors can be found."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), "array-like"],
        **COMMON_CONSTRAINTS,
    }
    store: Any
    random_state: Any
    verbose: int
    class_weight: Any = None

    def _neighbors(self) -> NeighborSpec:
        """Return what the method does."""
        raise NotImplementedError

    def _solver(self) -> SolverSpec:
        """Return what each neighborhood is trained with."""
        raise NotImplementedError

    def _validate_params(self) -> None:
        """Refuse parameters out of range, and those that do not go together."""
        super()._validate_params()
        self._neighbors()
        self._solver()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Gather the training rows by leaf, train what the method trains beforehand.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array or of a data set
        y : array (n,) of labels, of any of these kinds; None if X is the path of a data set
        sample_weight : array (n,), >= 0, or None. Multiplies C (and votes); rows of weight 0 are
            as if they were not there.

        Returns
        -------
        self

        Raises
        ------
        DataError : data that cannot be trained on, with the first bad row's number
        MemoryPlanError : the largest task would not fit a worker
        StoreError : the store belongs to another fit, workers cannot see it, or its disk is full
        """
        # Here, so that a process which only predicts never loads the trainers.
        from daskls.methods.neighborhoods.fit import run_neighbor_fit

        self._validate_params()
        neighbors, spec = self._neighbors(), self._solver()
        request = FitRequest(
            estimator=type(self).__name__,
            params=saved_params(self),
            spec=spec,
            cell_size=CELL_ROWS,
            n_partitions=1,
            seed=draw_seed(self.random_state),
            class_weight=self.class_weight,
            method=asdict(neighbors),
            n_folds=spec.cv if neighbors.selection else None,
        )
        run = partial(run_neighbor_fit, neighbors)
        return self._fit_with(run, request, X, y, sample_weight)


def svm_spec(estimator: Any, C: tuple[float, ...], cv: int = 5) -> SolverSpec:
    """Return the solver's part of an estimator's parameters; every SVM has an offset."""
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
