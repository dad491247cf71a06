"""The base of estimators with one local model a cell: constraints, sizes, warnings."""

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from daskls.errors import AdviceWarning, ParameterError
from daskls.estimators.advice import Advice, advise_on_cells
from daskls.estimators.base import LocalClassifier, LocalEstimator, LocalRegressor
from daskls.estimators.inputs import candidates, check_unused
from daskls.estimators.probability import PROBABILITY
from daskls.estimators.scale import (
    FEATURE_CODING,
    FEATURE_SCALE,
    ScalesFeatures,
    has_width,
    is_unscaled,
    scaling_of,
)
from daskls.kernels.registry import KERNELS, find_kernel, kernels_with
from daskls.partition.shrink import Shrinkage
from daskls.plan import usual_cells
from daskls.records import ScalingSpec, SolverSpec
from daskls.solvers.registry import LOSSES, Loss, find_loss, losses_of

__all__ = ["Candidates", "CellClassifier", "CellRegressor"]

Candidates = float | Sequence[float] | None
# Rows of a cell or a chunk where nobody says: of SVMs that choose for themselves.
USUAL_SIZE = 2000


class CellEstimator(ScalesFeatures, LocalEstimator):
    """An estimator of many local models, each of the rows of one cell."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({*KERNELS, "auto"})],
        "C": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "feature_coding": FEATURE_CODING,
        "feature_scale": FEATURE_SCALE,
        "store": [str, os.PathLike, None],
        "client": "no_validation",
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # Whether cells are drawn from all of space.
    _by_chance: ClassVar[bool] = False
    # What bounds the rows of a cell.
    _size_param: ClassVar[str]

    def _scaling(self) -> ScalingSpec | None:
        """Return what is decided for all cells: a scale; of least squares what is not given."""
        params = self.get_params(deep=False)
        kernel = params["kernel"]
        if not has_width(kernel):
            self._check_products(kernel)
        loss, spec = self._loss(), self._solver()
        is_global = loss.is_global and has_width(kernel)
        coding = params["feature_coding"]
        if coding == "auto" and not (is_global and spec.gamma is None):
            # A gamma is one of distances that are known.
            coding = "none"
        asked = scaling_of(params["feature_scale"], kernel, coding)
        unused = [name for name in loss.unused if name in params]
        check_unused(self, unused, f"loss={params['loss']!r}")
        if not is_global:
            return asked
        given = (spec.gamma,) if loss.costs_by_cell else (spec.C, spec.gamma)
        if kernel != "auto" and all(own is not None and len(own) == 1 for own in given):
            return asked
        kernels = kernels_with("is_raced") if kernel == "auto" else (kernel,)
        is_learned = asked is not None and asked.feature_scale == "learned"
        if is_learned and not find_kernel(kernels[0]).has_gradient:
            raise ParameterError(
                f"feature_scale='learned' takes a kernel with a derivative; kernel is {kernel!r}, "
                'which gives none. Pass feature_scale="spread" or None, or another kernel.'
            )
        return replace(asked or ScalingSpec(), kernels=kernels, by_chance=self._by_chance)

    def _check_products(self, kernel: str) -> None:
        """Refuse what a kernel of inner products cannot be combined with, all at once.

        Raises
        ------
        ParameterError
        """
        spec = self._solver()
        loss = find_loss(spec)
        is_open = len(spec.gamma or (1,)) > 1
        is_open |= not loss.costs_by_cell and (spec.C is None or len(spec.C) > 1)
        wrong, remedies = [], []
        if loss.is_global and is_open:
            wrong.append(f"the choice of C and gamma by loss={spec.loss!r}")
            names = losses_of(spec.target)
            by_cell = [f'loss="{n}", or ' for n in names if not LOSSES[spec.target, n].is_global]
            remedies.append(f"{''.join(by_cell)}one C and one gamma")
        if not is_unscaled(self.get_params(deep=False)["feature_scale"]):
            wrong.append("feature_scale")
            remedies.append("feature_scale=None")
        if self.get_params(deep=False)["feature_coding"] not in ("auto", "none"):
            wrong.append("feature_coding")
            remedies.append('feature_coding="none"')
        if wrong:
            raise ParameterError(
                f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} for kernels of "
                f"distances; kernel is {kernel!r}. Pass {' and '.join(remedies)}."
            )

    def _advice(self, shrinkage: Shrinkage | None = None) -> Iterable[Advice]:
        """Return what choices on edges, cells of one class and too many dimensions call for."""
        return advise_on_cells(self._reader, self._size_param, shrinkage)

    def _sizes(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        loss, size = self._loss(), params[self._size_param]
        is_global = loss.is_global and not loss.costs_by_cell
        found: dict[str, Any] = {"n_folds": None if is_global else self._solver().cv}
        if size is None and is_global:
            return {**found, "cell_size": USUAL_SIZE, "count_cells": usual_cells}
        size = USUAL_SIZE if size is None else int(size)
        return {
            **found,
            "cell_size": size,
            "sample_remedy": f"raise {self._size_param} above {size}",
        }

    def _loss(self) -> Loss:
        """Return the entry of the loss."""
        return find_loss(self._solver())

    def _solver(self) -> SolverSpec:
        """Return what each cell is trained with."""
        params = self.get_params(deep=False)
        return SolverSpec(
            loss=params["loss"],
            target=self._kind,
            # Of SVMs, and until a kernel is chosen, the first of those in question.
            kernel=kernels_with("is_raced")[0] if params["kernel"] == "auto" else params["kernel"],
            C=candidates("C", params["C"]),
            gamma=candidates("gamma", params["gamma"]),
            degree=int(params["degree"]),
            coef0=float(params["coef0"]),
            fit_intercept=bool(params["fit_intercept"]),
        )


class CellClassifier(CellEstimator, LocalClassifier):
    """A classifier of many local SVMs, each selected by cross-validation on its own rows."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellEstimator._parameter_constraints,
        "loss": [StrOptions(set(losses_of("classes")))],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "search": [StrOptions({"refine", "full", "race"}, deprecated={"race"})],
        "refit": [StrOptions({"folds", "cell"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "probability": PROBABILITY,
    }

    def _validate_params(self) -> None:
        """Refuse parameters out of range, and grids of what is no number."""
        super()._validate_params()
        if self.get_params(deep=False)["search"] == "race":
            warnings.warn(
                'search="race" was removed and search="refine" is used: it trains a third of the '
                'combinations at the same error. Pass search="refine", or leave search out.',
                FutureWarning,
                stacklevel=3,
            )

    def _warn_about_folds(self) -> None:
        """Say how many cells hold fewer rows than folds, if any do."""
        if self._loss().is_global:
            return
        report, cv = self.fit_report_, self.get_params()["cv"]
        # A cell of one class, or of equal rows, deals no folds.
        small = (report.n_rows < cv) & (report.n_classes > 1) & (report.radius > 0)
        if small.any():
            warnings.warn(
                f"{int(small.sum())} of {len(report)} cells have fewer rows than cv={cv}; each was "
                "selected with as many folds as it has rows. fit_report_.n_rows names them. Lower "
                f"cv, or raise {self._size_param}.",
                AdviceWarning,
                stacklevel=3,
            )

    def _why_no_held_out(self) -> str | None:
        """Return why a fit knows no values of rows without them; None where it does."""
        if not self._method().knows_held_out:
            return super()._why_no_held_out()
        name = self.get_params(deep=False)["loss"]
        loss = LOSSES.get(("classes", name))
        is_known = loss is not None and loss.knows_held_out
        return None if is_known else f"loss={name!r} knows none"

    def _solver(self) -> SolverSpec:
        """As of `CellEstimator`, with what the search of a cell is asked for."""
        params = self.get_params(deep=False)
        return replace(
            super()._solver(),
            cv=int(params["cv"]),
            tol=float(params["tol"]),
            refit=params["refit"],
            search="refine" if params["search"] == "race" else params["search"],
        )


class CellRegressor(CellEstimator, LocalRegressor):
    """A regressor of many local models."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellEstimator._parameter_constraints,
        "loss": [StrOptions(set(losses_of("numbers")))],
        "epsilon": [Interval(Real, 0, None, closed="left"), None],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        loss = LOSSES.get(("numbers", self.get_params(deep=False)["loss"]))
        tags.target_tags.multi_output = loss is None or loss.takes_columns
        return tags

    def _solver(self) -> SolverSpec:
        """As of `CellEstimator`, with what support vector regression is asked for."""
        params = self.get_params(deep=False)
        epsilon = params["epsilon"]
        return replace(
            super()._solver(),
            epsilon=None if epsilon is None else float(epsilon),
            cv=int(params["cv"]),
            tol=float(params["tol"]),
        )
