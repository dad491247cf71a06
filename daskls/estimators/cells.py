"""What the classifiers of one cross-validated SVM a cell share: constraints and the call of fit."""

import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions

from daskls.estimators.base import LocalClassifier
from daskls.estimators.inputs import candidates, draw_seed, saved_params
from daskls.records import SolverSpec
from daskls.run.identity import FitRequest

__all__ = ["Candidates", "CellClassifier"]

Candidates = float | Sequence[float] | None


class CellClassifier(LocalClassifier):
    """A classifier of many local SVMs, each selected by cross-validation on its own rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"rbf", "linear", "poly"})],
        "C": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "search": [StrOptions({"refine", "full", "race"}, deprecated={"race"})],
        "refit": [StrOptions({"folds", "cell"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "store": [str, os.PathLike, None],
        "client": "no_validation",
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # What bounds the rows of a cell.
    _size_param: ClassVar[str]

    def _cut(self) -> dict[str, Any]:
        """Return how rows are cut: what `FitRequest` wants of it."""
        raise NotImplementedError

    def _validate_params(self) -> None:
        """Refuse parameters out of range, and grids of what is no number."""
        super()._validate_params()
        self._solver()
        if self.get_params(deep=False)["search"] == "race":
            warnings.warn(
                'search="race" is gone; search="refine" takes its place here: it tries a third of '
                "the combinations and errs as seldom. Pass it, or leave search out.",
                FutureWarning,
                stacklevel=3,
            )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cut the rows into cells, train one SVM a cell, keep a handle on the models.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array or of a data set
        y : array (n,) of labels, of any of these kinds; None if X is the path of a data set
        sample_weight : array (n,), >= 0, or None. Multiplies C, and weighs validation errors;
            rows of weight 0 are as if they were not there.

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
        from daskls.methods.cells.fit import run_fit

        self._validate_params()
        request = self._request()
        return self._fit_with(run_fit, request, X, y, sample_weight)

    def _warn_about_folds(self) -> None:
        """Say how many cells hold fewer rows than folds, if any do."""
        report, cv = self.fit_report_, self.get_params()["cv"]
        # A cell of one class, or of equal rows, deals no folds.
        small = (report.n_rows < cv) & (report.n_classes > 1) & (report.radius > 0)
        if small.any():
            warnings.warn(
                f"{int(small.sum())} of {len(report)} cells have fewer rows than cv={cv}; each was "
                "selected with as many folds as it has rows. fit_report_.n_rows names them. Lower "
                f"cv, or raise {self._size_param}.",
                stacklevel=4,
            )

    def _request(self) -> FitRequest:
        """Return the parameters as the graph takes them."""
        spec = self._solver()
        return FitRequest(
            estimator=type(self).__name__,
            params=saved_params(self),
            spec=spec,
            seed=draw_seed(self.get_params(deep=False)["random_state"]),
            class_weight=self.class_weight,
            n_folds=spec.cv,
            **self._cut(),
        )

    def _solver(self) -> SolverSpec:
        """Return what each cell is trained with."""
        params = self.get_params(deep=False)
        return SolverSpec(
            kernel=params["kernel"],
            C=candidates("C", params["C"]),
            gamma=candidates("gamma", params["gamma"]),
            degree=int(params["degree"]),
            coef0=float(params["coef0"]),
            cv=int(params["cv"]),
            tol=float(params["tol"]),
            refit=params["refit"],
            search="refine" if params["search"] == "race" else params["search"],
            fit_intercept=bool(params["fit_intercept"]),
        )
