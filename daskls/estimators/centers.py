"""The base of estimators of local models on the neighborhoods of a covering set of centers."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.estimators.neighborhoods import (
    SVM_CONSTRAINTS,
    NeighborhoodEstimator,
    counts,
    selection_of,
)
from daskls.estimators.scale import has_width
from daskls.kernels.registry import find_kernel
from daskls.methods.neighborhoods.method import Falk
from daskls.methods.neighborhoods.parts import count_cover
from daskls.records import SolverSpec

__all__ = ["Candidates", "FalkEstimator"]

Candidates = float | Sequence[float] | None


class FalkEstimator(NeighborhoodEstimator):
    """An estimator of local models on the neighborhoods of a covering set of centers."""

    n_neighbors: int | Sequence[int]
    n_assigned: int | None
    assign: Literal["point", "center", "k_centers"]
    selection: Literal["local", "grid", "each"] | None
    n_centers: int
    C: Candidates
    gamma: Candidates
    percentiles: Sequence[float]
    n_selected: int
    cv: int
    # Candidates of C where there is a selection and none are given.
    _costs: ClassVar[tuple[float, ...]]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NeighborhoodEstimator._parameter_constraints,
        **SVM_CONSTRAINTS,
        "n_assigned": [Interval(Integral, 1, None, closed="left"), None],
        "assign": [StrOptions({"point", "center", "k_centers"})],
        "selection": [StrOptions({"local", "grid", "each"}), None],
        "n_centers": [Interval(Integral, 1, None, closed="left")],
        "percentiles": ["array-like"],
        "n_selected": [Interval(Integral, 1, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def _solver(self) -> SolverSpec:
        spec = self._spec(self._costs if self.selection else (1.0,), int(self.cv))
        if self.selection is None:
            for name, values in (("C", spec.C), ("gamma", spec.gamma)):
                if values is not None and len(values) > 1:
                    raise ParameterError(
                        f"{name} has {len(values)} candidates but selection is None; give one "
                        'value, or a selection: "local", "grid" or "each".'
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
        if len(candidates) > 1 and self.selection not in ("local", "grid"):
            raise ParameterError(
                f"n_neighbors has {len(candidates)} candidates, which selection="
                f'{self.selection!r} cannot choose from; give one, or selection="local" or "grid".'
            )
        local_widths = self.selection and self.gamma is None and has_width(self.kernel)
        return Falk(
            n_neighbors=candidates,
            n_assigned=None if self.n_assigned is None else int(self.n_assigned),
            assign=self.assign,
            n_centers=int(self.n_centers),
            selection=None if self._is_given(candidates) else self.selection,
            percentiles=widths(self.percentiles) if local_widths else None,
            n_selected=int(self.n_selected),
        )

    def _is_given(self, candidates: tuple[int, ...]) -> bool:
        """Whether all that "local" would choose is given, so that no fold has to be made."""
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


def widths(percentiles: Sequence[float]) -> tuple[float, ...]:
    """Return percentiles from large to small: widest first.

    Raises
    ------
    ParameterError : none, or one outside of 0 to 100
    """
    values = sorted({float(p) for p in percentiles}, reverse=True)
    if not values or not all(0 <= p <= 100 for p in values):
        raise ParameterError(
            f"percentiles is {list(percentiles)!r}; give at least one value between 0 and 100."
        )
    return tuple(values)
