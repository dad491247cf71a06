"""The requests of estimators on neighborhoods and on samples: also to select C and gamma."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.estimators.param import Params, check_unused, counts, has_width, params_of, read, widths
from daskls.estimators.scales import checks_units, scaling_of
from daskls.kernels.kernel import find_kernel
from daskls.methods.neighborhoods.method import NeighborMethod
from daskls.records import SolverSpec

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice

# The papers' candidates of a selection: C, and widths as percentiles of distances.
SELECTION_C = (1.0, 4.0, 16.0, 64.0)
PERCENTILES = (1, 10, 50, 90)


def local_spec(estimator: Any, params: Params, **others: Any) -> SolverSpec:
    """Return the parameters of the solver of neighborhoods."""
    loss, target = estimator._local_loss, estimator._kind
    return read(SolverSpec, params, loss=loss, target=target, fit_intercept=True, **others)


def fit_fields(params: Params, method: NeighborMethod, spec: SolverSpec) -> dict[str, Any]:
    """Return fields of `FitRequest`; refuse kernels without a metric to search neighbors by."""
    from daskls.neighbors.search import metric_of

    scaling = scaling_of(params)
    metric_of(spec)
    return {
        "method": method,
        "spec": spec,
        "scaling": scaling,
        "checks_units": checks_units(params),
    }


def groups_of(estimator: Any, params: Params) -> int | None:
    """Return how many groups of rows a query asks; None where neighbors are exact."""
    if params["neighbors"] == "exact":
        check_unused(estimator, ["n_groups"], 'neighbors="exact"')
        return None
    if not find_kernel(params["kernel"]).is_euclidean:
        raise ParameterError(
            f'neighbors="approximate" with kernel={params["kernel"]!r}: its graphs use '
            'Euclidean distances only. Pass neighbors="exact", or another kernel.'
        )
    return int(params["n_groups"])


def one_count(estimator: Any, params: Params) -> int:
    values = counts("n_neighbors", params["n_neighbors"])
    if len(values) > 1:
        raise ParameterError(
            f"n_neighbors has {len(values)} candidates; {type(estimator).__name__} takes one. "
            "Choose with scikit-learn's GridSearchCV."
        )
    return values[0]


def inner_of(estimator: Any, params: Params) -> int | None:
    """Return how many neighbors a selection of each neighborhood judges its candidates on."""
    n_inner = params["n_inner"]
    if params["selection"] is None:
        check_unused(estimator, ["n_inner"], "selection=None")
    k = one_count(estimator, params)
    if n_inner is not None and n_inner > k:
        raise ParameterError(
            f"n_inner={n_inner} is above n_neighbors={k}; candidates are judged on neighbors only. "
            "Lower n_inner, or raise n_neighbors."
        )
    return None if n_inner is None else int(n_inner)


def check_single(
    spec: SolverSpec, remedy: str = "and choose with scikit-learn's GridSearchCV"
) -> SolverSpec:
    """Return the spec; ParameterError for candidates, which a lazy method cannot choose from."""
    for name, values in (("C", spec.C), ("gamma", spec.gamma)):
        if values is not None and len(values) > 1:
            raise ParameterError(f"{name} has {len(values)} candidates; give one value, {remedy}.")
    return spec


# The selection of C and gamma for a whole model.


def select(spec: SolverSpec) -> tuple[SolverSpec, bool, tuple[float, ...] | None]:
    """Return a given spec with the papers' candidates where it is open.

    Also whether C and gamma are to be selected, and the candidate widths, widest first, or None.
    """
    axes = [values for values in (spec.C, spec.gamma) if values]
    is_open = not axes or any(len(values) > 1 for values in axes)
    spec = replace(spec, C=spec.C or (SELECTION_C if is_open else (1.0,)))
    return spec, is_open, widths_of(spec) if is_open else None


def widths_of(spec: SolverSpec) -> tuple[float, ...] | None:
    """Return the candidate widths of a selection, widest first; None where it has none."""
    is_wide = spec.gamma is None and has_width(spec.kernel)
    return widths("percentiles", PERCENTILES) if is_wide else None


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
    spec = read(SolverSpec, params_of(estimator))
    return advise_on_selected(selected, {"C": spec.C, "gamma": spec.gamma}, who)
