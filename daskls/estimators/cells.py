"""Base classes of estimators with one local model per cell: constraints, sizes, warnings."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from daskls.errors import AdviceWarning, ParameterError, warn_user
from daskls.estimators.advice import Advice, advise_on_cells
from daskls.estimators.base import LocalClassifier, LocalEstimator, LocalRegressor
from daskls.estimators.inputs import candidates, check_unused, flat
from daskls.estimators.intervals import COVERAGE, IntervalAnswers, interval_spec
from daskls.estimators.options import (
    CLASS_CONSTRAINTS,
    COMMON_CONSTRAINTS,
    FEATURE_CODING,
    FEATURE_SCALE,
    ScalesFeatures,
    has_width,
    is_unscaled,
    scaling_of,
)
from daskls.kernels.kernel import KERNELS, find_kernel, kernels_with
from daskls.methods.cells.method import Voronoi
from daskls.partition.base import Shrinkage
from daskls.plan.bundles import usual_sizes
from daskls.records import SCORINGS, FalseAlarmSpec, ScalingSpec, SolverSpec
from daskls.solvers.registry import LOSSES, Loss, find_loss, losses_of
from daskls.store.choices import FalseAlarmBound
from daskls.store.objects import ModelHandle

GridShape = int | Sequence[int] | None
# Default rows of a cell or a chunk; losses that are chosen once for all cells have their own.
USUAL_SIZE = 2000
# An axis of a grid has two ends at least.
LEAST_GRID = 2


def grid_shape(value: int | Sequence[int] | None) -> tuple[int, int] | None:
    """Return how many values of C and of gamma a cell's own grid has; None for the default.

    >>> grid_shape(20), grid_shape([20, 5]), grid_shape(None)
    ((20, 20), (20, 5), None)
    """
    if value is None:
        return None
    counts = flat("n_grid", value).tolist()
    if len(counts) not in (1, 2) or any(type(n) is not int or n < LEAST_GRID for n in counts):
        raise ParameterError(
            f"n_grid is {value!r}; it takes one whole number, or two for C and for gamma, each at "
            f"least {LEAST_GRID}. Give n_grid=20 or n_grid=(20, 10); for a single value give C=... "
            "or gamma=... itself."
        )
    return int(counts[0]), int(counts[-1])


class CellEstimator(ScalesFeatures, LocalEstimator):
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({*KERNELS, "auto"})],
        "C": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "feature_coding": FEATURE_CODING,
        "feature_scale": FEATURE_SCALE,
        **COMMON_CONSTRAINTS,
    }

    # Whether cells are random rows from all of space.
    _is_random: ClassVar[bool] = False
    # The parameter that bounds the rows of a cell.
    _size_param: ClassVar[str]

    def _scaling(self) -> ScalingSpec | None:
        """The scale; for losses that are selected globally also what is open beside it."""
        params = self.get_params(deep=False)
        kernel = params["kernel"]
        if not has_width(kernel):
            self._check_products(kernel)
        loss, spec = self._loss(), self._solver()
        is_global = loss.is_global and has_width(kernel)
        coding = params["feature_coding"]
        if coding == "auto" and not (is_global and spec.gamma is None):
            # A given gamma is in units of the distances of uncoded features.
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
        if is_learned and not find_kernel(kernels[0]).has_slopes:
            raise ParameterError(
                f"feature_scale='learned' needs a kernel with a gradient; kernel is {kernel!r}, "
                'which has none. Pass feature_scale="spread" or None, or another kernel.'
            )
        return replace(asked or ScalingSpec(), kernels=kernels, by_chance=self._is_random)

    def _check_products(self, kernel: str) -> None:
        """Refuse what a kernel of inner products cannot be combined with, all in one error."""
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
        return advise_on_cells(self._reader, self._size_param, shrinkage)

    def _sizes(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        loss, size = self._loss(), params[self._size_param]
        # Chunks are one partition.
        n_partitions = params.get("n_partitions", 1)
        found: dict[str, Any] = {
            "cell_size": int(size or USUAL_SIZE),
            "n_partitions": int(n_partitions or 1),
            "n_folds": None if "cv" in loss.unused else self._solver().cv,
        }
        # Each cell solves one linear system.
        is_cheap = loss.is_global and not loss.costs_by_cell
        if is_cheap:
            found["usual"] = partial(
                usual_sizes,
                cell_size=size and int(size),
                n_partitions=n_partitions and int(n_partitions),
                is_number=self._kind == "numbers",
            )
        if size is not None or not is_cheap:
            found["sample_remedy"] = f"raise {self._size_param} above {found['cell_size']}"
        return found

    def _loss(self) -> Loss:
        return find_loss(self._solver())

    def _solver(self) -> SolverSpec:
        params = self.get_params(deep=False)
        return SolverSpec(
            loss=params["loss"],
            target=self._kind,
            # "auto" is the first candidate until the kernel is chosen; hinge loss stays with it.
            kernel=kernels_with("is_raced")[0] if params["kernel"] == "auto" else params["kernel"],
            C=candidates("C", params["C"]),
            gamma=candidates("gamma", params["gamma"]),
            degree=int(params["degree"]),
            coef0=float(params["coef0"]),
            fit_intercept=bool(params["fit_intercept"]),
        )


class VoronoiEstimator(CellEstimator):
    n_partitions: int | None
    _size_param = "cell_size"
    _measures_shrinkage = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellEstimator._parameter_constraints,
        "cell_size": [Interval(Integral, 2, None, closed="left"), None],
        "n_partitions": [Interval(Integral, 1, None, closed="left"), None],
    }

    def _method(self) -> Voronoi:
        return Voronoi()


class CellClassifier(CellEstimator, LocalClassifier):
    false_alarm_: FalseAlarmBound

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellEstimator._parameter_constraints,
        "loss": [StrOptions(set(losses_of("classes")))],
        "n_grid": [Interval(Integral, LEAST_GRID, None, closed="left"), "array-like", None],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "scoring": [StrOptions(set(SCORINGS)), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "search": [StrOptions({"refine", "full"})],
        "cache_size": [Interval(Real, 0, None, closed="neither"), None],
        **CLASS_CONSTRAINTS,
        "max_false_alarm": [Interval(Real, 0, 1, closed="neither"), None],
        "delta": [Interval(Real, 0, 1, closed="neither")],
    }

    def _target_fields(self) -> dict[str, Any]:
        """Add the bound on false alarms, to which ``delta`` belongs."""
        params, spec = self.get_params(deep=False), None
        rate = params["max_false_alarm"]
        if rate is None:
            check_unused(self, ["delta"], "max_false_alarm=None")
        else:
            spec = FalseAlarmSpec(float(rate), float(params["delta"]))
        return {**super()._target_fields(), "reserved_for": spec}

    def _adopt(self, handle: ModelHandle) -> Self:
        super()._adopt(handle)
        self.__dict__.pop("false_alarm_", None)
        bound = self._reader.false_alarm
        if bound is not None:
            self.false_alarm_ = bound
        return self

    def _warn_about_folds(self) -> None:
        if self._loss().is_global:
            return
        report, cv = self.fit_report_, self.get_params()["cv"]
        # A cell of one class, or of equal rows, is not cross-validated.
        small = (report.n_rows < cv) & (report.n_classes > 1) & (report.radius > 0)
        if small.any():
            warn_user(
                f"{int(small.sum())} of {len(report)} cells have fewer rows than cv={cv}; each was "
                "selected with as many folds as it has rows. fit_report_.n_rows names them. Lower "
                f"cv, or raise {self._size_param}.",
                AdviceWarning,
            )

    def _why_no_held_out(self) -> str | None:
        if not self._method().knows_held_out:
            return super()._why_no_held_out()
        name = self.get_params(deep=False)["loss"]
        loss = LOSSES.get(("classes", name))
        is_known = loss is not None and loss.knows_held_out
        return None if is_known else f"loss={name!r} has none"

    def _solver(self) -> SolverSpec:
        params = self.get_params(deep=False)
        return replace(
            super()._solver(),
            cv=int(params["cv"]),
            tol=float(params["tol"]),
            search=params["search"],
            n_grid=self._grid_shape(),
            scoring=params["scoring"],
            cache_size=self._cache_size(),
        )

    def _cache_size(self) -> float | None:
        params = self.get_params(deep=False)
        size, loss = params["cache_size"], LOSSES.get(("classes", params["loss"]))
        if size is None:
            return None
        able = loss is None or loss.caches_rows or "cache_size" in loss.unused
        if params["fit_intercept"] or not able:
            why = "fit_intercept=True" if able else f"loss={params['loss']!r}"
            raise ParameterError(
                f"cache_size={size!r} is for SVMs without offset; with {why} the kernel matrix of "
                f"a cell is held whole. Leave cache_size at None and lower {self._size_param}, or "
                'pass loss="hinge", fit_intercept=False.'
            )
        return float(size)

    def _grid_shape(self) -> tuple[int, int] | None:
        params = self.get_params(deep=False)
        shape = grid_shape(params["n_grid"])
        if shape is None:
            return None
        has_gammas = params["gamma"] is not None or not has_width(params["kernel"])
        if params["C"] is not None and has_gammas:
            raise ParameterError(
                f"n_grid={params['n_grid']!r} has no effect: C is given, and gamma is given or "
                f"kernel={params['kernel']!r} has no width. Leave n_grid at None, or C or gamma."
            )
        return shape


class CellRegressor(IntervalAnswers, CellEstimator, LocalRegressor):
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CellEstimator._parameter_constraints,
        "loss": [StrOptions(set(losses_of("numbers")))],
        "epsilon": [Interval(Real, 0, None, closed="left"), None],
        "interval": COVERAGE,
        "cv": [Interval(Integral, 2, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        loss = LOSSES.get(("numbers", self.get_params(deep=False)["loss"]))
        tags.target_tags.multi_output = loss is None or loss.takes_columns
        return tags

    def _target_fields(self) -> dict[str, Any]:
        return {**super()._target_fields(), "reserved_for": interval_spec(self.interval)}

    def _adopt(self, handle: ModelHandle) -> Self:
        super()._adopt(handle)
        self.__dict__.pop("interval_", None)
        found = self._reader.interval
        if found is not None:
            self.interval_ = found
        return self

    def _solver(self) -> SolverSpec:
        params = self.get_params(deep=False)
        epsilon = params["epsilon"]
        return replace(
            super()._solver(),
            epsilon=None if epsilon is None else float(epsilon),
            cv=int(params["cv"]),
            tol=float(params["tol"]),
        )
