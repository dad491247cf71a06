"""Estimators with one local model a cell: what their parameters ask a fit for, and advice."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from daskls.errors import AdviceWarning, ParameterError, warn_user
from daskls.estimators.advice import Advice, advise_on_cells
from daskls.estimators.base import LocalEstimator
from daskls.estimators.param import Params, check_unused, has_width, read
from daskls.estimators.scales import (
    checks_units,
    coded_features,
    is_unscaled,
    scale_factors,
    scaling_of,
)
from daskls.kernels.kernel import find_kernel, kernels_with
from daskls.methods.cells.method import CellMethod
from daskls.partition.base import Shrinkage
from daskls.plan.bundles import usual_sizes
from daskls.records import FalseAlarmSpec, IntervalSpec, ReserveSpec, ScalingSpec, SolverSpec
from daskls.run.contract import FitRequest
from daskls.solvers.registry import LOSSES, find_loss, losses_of

# Default rows of a cell or a chunk; losses that are chosen once for all cells have their own.
USUAL_SIZE = 2000


class CellEstimator(LocalEstimator):
    _method_class: ClassVar[type[CellMethod]] = CellMethod
    # The parameter that bounds the rows of a cell.
    _size_param: ClassVar[str] = "cell_size"

    feature_scale_ = property(scale_factors)
    coded_features_ = property(coded_features)

    def _fit_fields(self, params: Params) -> dict[str, Any]:
        spec, method = self._spec(params), self._method_class()
        loss, size = find_loss(spec), params[self._size_param]
        # Chunks are one partition.
        n_partitions = params.get("n_partitions", 1)
        cell_size, usual = int(size or USUAL_SIZE), None
        # Each cell solves one linear system.
        is_cheap = loss.is_global and not loss.costs_by_cell
        if is_cheap:
            usual = partial(
                usual_sizes,
                cell_size=size and int(size),
                n_partitions=n_partitions and int(n_partitions),
            )
        is_settled = size is not None or not is_cheap
        return {
            "method": method,
            "spec": spec,
            "cell_size": cell_size,
            "n_partitions": int(n_partitions or 1),
            "usual": usual,
            "sample_remedy": f"raise {self._size_param} above {cell_size}" if is_settled else "",
            "n_folds": None if "cv" in loss.unused else spec.cv,
            "scaling": self._scaling(params, spec),
            "checks_units": checks_units(params),
            "measures_shrinkage": method.is_local,
            "reserved_for": self._reserved(params),
        }

    def _spec(self, params: Params) -> SolverSpec:
        # "auto" is the first candidate until the kernel is chosen; hinge loss stays with it.
        kernel = params["kernel"]
        kernel = kernels_with("is_raced")[0] if kernel == "auto" else kernel
        spec = read(SolverSpec, params, target=self._kind, kernel=kernel)
        if spec.n_grid is not None:
            _check_grid(params)
        if spec.cache_size is not None:
            _check_cache(params, spec, self._size_param)
        return spec

    def _scaling(self, params: Params, spec: SolverSpec) -> ScalingSpec | None:
        """The scale; for losses that are selected globally also what is open beside it."""
        kernel, loss = params["kernel"], find_loss(spec)
        if not has_width(kernel):
            _check_products(params, spec)
        is_global = loss.is_global and has_width(kernel)
        coding = params["feature_coding"]
        if coding == "auto" and not (is_global and spec.gamma is None):
            # A given gamma is in units of the distances of uncoded features.
            coding = "none"
        scaling = scaling_of(params, coding)
        unused = [name for name in loss.unused if name in params]
        check_unused(self, unused, f"loss={spec.loss!r}")
        if not is_global:
            return scaling
        axes = (spec.gamma,) if loss.costs_by_cell else (spec.C, spec.gamma)
        if kernel != "auto" and all(values is not None and len(values) == 1 for values in axes):
            return scaling
        kernels = kernels_with("is_raced") if kernel == "auto" else (kernel,)
        is_learned = scaling is not None and scaling.feature_scale == "learned"
        if is_learned and not find_kernel(kernels[0]).has_slopes:
            raise ParameterError(
                f"feature_scale='learned' needs a kernel with a gradient; kernel is {kernel!r}, "
                'which has none. Pass feature_scale="spread" or None, or another kernel.'
            )
        by_chance = not self._method_class.is_local
        return replace(scaling or ScalingSpec(), kernels=kernels, by_chance=by_chance)

    def _reserved(self, params: Params) -> ReserveSpec | None:
        """Return what rows are held out for: a bound on false alarms, or intervals."""
        rate, coverage = params.get("max_false_alarm"), params.get("interval")
        if rate is not None:
            return FalseAlarmSpec(float(rate), float(params["delta"]))
        if "delta" in params:
            check_unused(self, ["delta"], "max_false_alarm=None")
        return None if coverage is None else IntervalSpec(float(coverage))

    def _advice(self, shrinkage: Shrinkage | None = None) -> Iterable[Advice]:
        return advise_on_cells(self._reader, self._size_param, shrinkage)

    def _warn_about_folds(self, request: FitRequest) -> None:
        if find_loss(request.spec).is_global:
            return
        report, cv = self._reader.report, request.spec.cv
        # A cell of one class, or of equal rows, is not cross-validated.
        small = (report.n_rows < cv) & (report.n_classes > 1) & (report.radius > 0)
        if small.any():
            warn_user(
                f"{int(small.sum())} of {len(report)} cells have fewer rows than cv={cv}; each was "
                "selected with as many folds as it has rows. fit_report_.n_rows names them. Lower "
                f"cv, or raise {self._size_param}.",
                AdviceWarning,
            )


def _check_grid(params: Params) -> None:
    has_gammas = params["gamma"] is not None or not has_width(params["kernel"])
    if params["C"] is not None and has_gammas:
        raise ParameterError(
            f"n_grid={params['n_grid']!r} has no effect: C is given, and gamma is given or "
            f"kernel={params['kernel']!r} has no width. Leave n_grid at None, or C or gamma."
        )


def _check_cache(params: Params, spec: SolverSpec, size_param: str) -> None:
    loss = LOSSES.get((spec.target, spec.loss))
    able = loss is None or loss.caches_rows or "cache_size" in loss.unused
    if spec.fit_intercept or not able:
        why = "fit_intercept=True" if able else f"loss={spec.loss!r}"
        raise ParameterError(
            f"cache_size={params['cache_size']!r} is for SVMs without offset; with {why} the "
            f"kernel matrix of a cell is held whole. Leave cache_size at None and lower "
            f'{size_param}, or pass loss="hinge", fit_intercept=False.'
        )


def _check_products(params: Params, spec: SolverSpec) -> None:
    """Refuse what a kernel of inner products cannot be combined with, all in one error."""
    loss = find_loss(spec)
    is_open = len(spec.gamma or (1,)) > 1
    is_open |= not loss.costs_by_cell and (spec.C is None or len(spec.C) > 1)
    wrong, remedies = [], []
    if not is_unscaled(params["feature_scale"]):
        wrong.append("feature_scale")
        remedies.append("feature_scale=None")
    if params["feature_coding"] not in ("auto", "none"):
        wrong.append("feature_coding")
        remedies.append('feature_coding="none"')
    if loss.is_global and is_open:
        wrong.append(f"the choice of C and gamma by loss={spec.loss!r}")
        names = losses_of(spec.target)
        by_cell = [f'loss="{n}"' for n in names if not LOSSES[spec.target, n].is_global]
        one = "one C and one gamma" if find_kernel(spec.kernel).has_gamma else "one C"
        remedies.append(" or ".join([*by_cell, one]))
    if wrong:
        raise ParameterError(
            f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} for kernels of "
            f"distances; kernel is {spec.kernel!r}. Pass {' and '.join(remedies)}."
        )
