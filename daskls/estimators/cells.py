"""What the classifiers of one cross-validated SVM a cell share: constraints, sizes, warnings."""

import os
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from daskls.estimators.base import LocalClassifier
from daskls.estimators.inputs import candidates
from daskls.records import SolverSpec
from daskls.solvers.registry import SOLVERS

__all__ = ["Candidates", "CellClassifier"]

Candidates = float | Sequence[float] | None


class CellClassifier(LocalClassifier):
    """A classifier of many local SVMs, each selected by cross-validation on its own rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(SOLVERS))],
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

    def _validate_params(self) -> None:
        """Refuse parameters out of range, and grids of what is no number."""
        super()._validate_params()
        if self.get_params(deep=False)["search"] == "race":
            warnings.warn(
                'search="race" is gone; search="refine" takes its place here: it tries a third of '
                "the combinations and errs as seldom. Pass it, or leave search out.",
                FutureWarning,
                stacklevel=3,
            )

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
                stacklevel=3,
            )

    def _sizes(self) -> dict[str, Any]:
        size = int(self.get_params(deep=False)[self._size_param])
        return {
            "cell_size": size,
            "sample_remedy": f"raise {self._size_param} above {size}",
            "n_folds": int(self.get_params(deep=False)["cv"]),
        }

    def _solver(self) -> SolverSpec:
        """Return what each cell is trained with."""
        params = self.get_params(deep=False)
        return SolverSpec(
            loss=params["loss"],
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
