"""The parameters of estimators: the values that each may have, and the records that they become.

A parameter is said in the signature of its estimator: its type here holds its constraints, and
`read` hands on what `SolverSpec`, or the record of the method, has a field for.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from inspect import get_annotations, signature
from numbers import Integral, Real
from types import MethodType, NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import numpy as np

# scikit-learn's constraints are in a private module, as there is no public one.
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from daskls.errors import ParameterError
from daskls.kernels.kernel import KERNELS, find_kernel, kernels_with
from daskls.records import LARGEST, SMALLEST, AnyArray
from daskls.solvers.registry import LARGE_LOSSES, losses_of

# An axis of a grid has two ends at least.
LEAST_GRID = 2
# Parameters that do not describe the model.
NOT_SAVED = ("client", "store", "verbose")
Params = Mapping[str, Any]
T = TypeVar("T")


def _at_least(least: int) -> Interval:
    return Interval(Integral, least, None, closed="left")


POSITIVE = Interval(Real, 0, None, closed="neither")
INSIDE = Interval(Real, 0, 1, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")

# Types that hold their constraints; where None is a value, it is the method's own choice.
Count = Annotated[int, _at_least(1)]
Counts = Annotated[int | Sequence[int], _at_least(1), "array-like"]
# A method that takes no candidates refuses a sequence in its own words.
OneCount = Annotated[int, _at_least(1), "array-like"]
MaybeCount = Annotated[int | None, _at_least(1), None]
CellSize = Annotated[int | None, _at_least(2), None]
Folds = Annotated[int, _at_least(2)]
GridShape = Annotated[int | Sequence[int] | None, _at_least(LEAST_GRID), "array-like", None]
Positive = Annotated[float, POSITIVE]
MaybePositive = Annotated[float | None, POSITIVE, None]
NotNegative = Annotated[float, NOT_NEGATIVE]
Epsilon = Annotated[float | None, NOT_NEGATIVE, None]
Probability = Annotated[float, INSIDE]
MaybeProbability = Annotated[float | None, INSIDE, None]
Levels = Annotated[float | Sequence[float], INSIDE, "array-like"]
Percentiles = Annotated[Sequence[float], "array-like"]
Share = Annotated[float, Interval(Real, 0, 1, closed="both")]
MaybeShare = Annotated[float | None, Interval(Real, 0, 1, closed="right"), None]
# One value, or several candidates.
Candidates = Annotated[float | Sequence[float] | None, POSITIVE, "array-like", None]
CellKernel = Annotated[str, StrOptions({*KERNELS, "auto"})]
SearchedKernel = Annotated[str, StrOptions(set(kernels_with("is_everywhere")))]
NeighborSearch = Literal["exact", "approximate"]
ClassLoss = Annotated[str, StrOptions(set(losses_of("classes")))]
SampleLoss = Annotated[str, StrOptions(set(LARGE_LOSSES))]
NumberLoss = Annotated[str, StrOptions(set(losses_of("numbers")))]
LevelLoss = Annotated[str, StrOptions(set(losses_of("numbers", of_levels=True)))]
FeatureCoding = Literal["auto", "none", "ranks", "indicators", "both"]
FeatureScale = Annotated[
    Literal["spread", "learned", "none"] | Sequence[float] | None,
    *(StrOptions({"spread", "learned", "none"}), "array-like", None),
]
ClassWeight = Annotated[
    dict[Any, float] | Literal["balanced"] | None, StrOptions({"balanced"}), dict, None
]
ProbabilityMaps = Annotated[
    bool | Literal["auto", "sigmoid", "isotonic"],
    *("boolean", StrOptions({"auto", "sigmoid", "isotonic"})),
]
LocalProbability = Annotated[
    bool | Literal["auto", "sigmoid", "isotonic", "each"],
    *("boolean", StrOptions({"auto", "sigmoid", "isotonic", "each"})),
]
Store = Annotated[str | os.PathLike[str] | None, str, os.PathLike, None]
RandomState = Annotated[Any, "random_state"]
Verbose = Annotated[int, "verbose"]


def constraints_of(estimator: type[Any]) -> dict[str, Any]:
    """Return scikit-learn's constraints of the parameters, which their types hold."""
    types = get_annotations(estimator.__init__, eval_str=True)
    return {name: _constraint(kind) for name, kind in types.items() if name != "return"}


def _constraint(kind: Any) -> Any:
    if kind is Any:
        return "no_validation"
    if kind is bool:
        return ["boolean"]
    if hasattr(kind, "__metadata__"):
        return list(kind.__metadata__)
    choices = [part for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
    words = {word for choice in choices for word in get_args(choice)}
    return [StrOptions(words), *([None] if NoneType in get_args(kind) else [])]


def keep(arguments: dict[str, Any]) -> None:
    """Keep the arguments of an ``__init__``, its ``locals()``, as scikit-learn wants them."""
    # A call of super() puts the class among them.
    params = {name: value for name, value in arguments.items() if name not in ("self", "__class__")}
    vars(arguments["self"]).update(params)


def params_of(estimator: Any) -> dict[str, Any]:
    """Return all parameters of an estimator, also those that a subclass does not take."""
    names = type(estimator)._parameter_constraints
    attributes = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    params: dict[str, Any] = estimator.get_params(deep=False)
    return {**attributes, **params}


# Records of parameters.


def read(record: type[T], params: Params, **others: Any) -> T:
    """Return a record whose fields are the parameters of their names, but those of `others`."""
    values = {
        field.name: _as_field(field.name, params[field.name], field.type)
        for field in fields(record)  # type: ignore[arg-type]
        if field.name in params and field.name not in others
    }
    return record(**values, **others)


def _as_field(name: str, value: Any, kind: Any) -> Any:
    """Return a parameter as Python's number, which JSON can hold, or as a tuple of them."""
    kinds = (kind, *get_args(kind))
    if any(get_origin(part) is tuple for part in kinds):
        return TUPLES[name](name, value)
    numbers = [part for part in kinds if part in (bool, int, float)]
    return numbers[0](value) if numbers and value is not None else value


def candidates(name: str, value: float | Sequence[float] | None) -> tuple[float, ...] | None:
    """Return a parameter's candidates in increasing order, or None for the method's own grid."""
    if value is None:
        return None
    values = _flat(name, value, np.float64)
    if len(values) == 0:
        raise ParameterError(
            f"{name} is an empty grid; give at least one value, or None for the method's own grid."
        )
    bad = values[~((values >= SMALLEST) & (values <= LARGEST))]
    if len(bad):
        raise ParameterError(
            f"{name} holds {bad[0]:g}; every value must be positive and finite, from "
            f"{SMALLEST:g} to {LARGEST:g}."
        )
    return tuple(np.unique(values).tolist())


def grid_shape(name: str, value: int | Sequence[int] | None) -> tuple[int, int] | None:
    """Return how many values of C and of gamma a cell's own grid has; None for the default.

    >>> [grid_shape("n_grid", value) for value in (20, [20, 5], None)]
    [(20, 20), (20, 5), None]
    """
    if value is None:
        return None
    counts = _flat(name, value).tolist()
    if len(counts) not in (1, 2) or any(type(n) is not int or n < LEAST_GRID for n in counts):
        raise ParameterError(
            f"{name} is {value!r}; it takes one whole number, or two for C and for gamma, each at "
            f"least {LEAST_GRID}. Give n_grid=20 or n_grid=(20, 10); for a single value give C=... "
            "or gamma=... itself."
        )
    return int(counts[0]), int(counts[-1])


def levels_of(name: str, value: float | Sequence[float]) -> float | tuple[float, ...]:
    """Return a level, or several in the given order.

    >>> levels_of("quantile", 0.5), levels_of("quantile", [0.9, 0.1])
    (0.5, (0.9, 0.1))
    """
    values = _flat(name, value, np.float64)
    bad = values[~((values > 0) & (values < 1))]
    if not len(values) or len(bad):
        got = f"holds {bad[0]:g}" if len(bad) else "is empty"
        raise ParameterError(
            f"{name} {got}; it takes one level or several, above 0 and below 1. Give 0.5 for the "
            "median, or (0.1, 0.5, 0.9)."
        )
    if len(np.unique(values)) < len(values):
        raise ParameterError(
            f"{name} is {value!r}, where a level comes twice; give each level once."
        )
    return tuple(values.tolist()) if np.ndim(value) else float(values[0])


def counts(name: str, value: int | Sequence[int]) -> tuple[int, ...]:
    """Return one count or several candidate counts as an increasing tuple."""
    values = _flat(name, value)
    if len(values) == 0:
        raise ParameterError(f"{name} is an empty grid; give at least one number.")
    whole = values.dtype.kind in "iu" and (values >= 1).all()
    if not whole:
        raise ParameterError(f"{name} holds {value!r}; every value must be a whole number above 0.")
    return tuple(np.unique(values).tolist())


def widths(name: str, percentiles: Sequence[float]) -> tuple[float, ...]:
    """Return percentiles in decreasing order: the widest kernel first."""
    values = sorted({float(p) for p in percentiles}, reverse=True)
    if not values or not all(0 <= p <= 100 for p in values):
        raise ParameterError(
            f"{name} is {list(percentiles)!r}; give at least one value between 0 and 100."
        )
    return tuple(values)


def _flat(name: str, value: Any, dtype: type | None = None) -> AnyArray:
    try:
        values = np.atleast_1d(np.asarray(value, dtype))
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim > 1:
        raise ParameterError(f"{name} is {value!r}; give a number, or a flat list of numbers.")
    return values


# How parameters of several values are read.
TUPLES: dict[str, Callable[[str, Any], Any]] = {
    "C": candidates,
    "gamma": candidates,
    "n_grid": grid_shape,
    "n_neighbors": counts,
    "percentiles": widths,
    "quantile": levels_of,
}


def has_width(kernel: str) -> bool:
    """Whether a kernel depends on distances; all candidates of "auto" do."""
    return kernel not in KERNELS or find_kernel(kernel).has_width


def check_class_weight(class_weight: Any) -> None:
    for label, value in class_weight.items() if isinstance(class_weight, dict) else ():
        if not (isinstance(value, Real) and SMALLEST <= float(value) <= LARGEST):
            raise ParameterError(
                f"class_weight of {label!r} is {value!r}; it must be a number from {SMALLEST:g} to "
                f"{LARGEST:g}. Leave rows that should not count out, or give them sample_weight 0."
            )


def check_unused(estimator: Any, names: Iterable[str], why: str) -> None:
    """Refuse parameters that have no effect, unless they have their default value."""
    for name in names:
        value, default = getattr(estimator, name), _default(type(estimator), name)
        if np.any(value != default):
            raise ParameterError(
                f"{name}={value!r} has no effect with {why}. Leave {name} at its default, "
                f"{default!r}."
            )


def _default(estimator: type[Any], name: str) -> Any:
    """Return a parameter's default; a subclass need not take it."""
    kinds = (base for base in estimator.__mro__ if "__init__" in vars(base))
    signatures = (signature(base).parameters for base in kinds)
    return next(parameters[name].default for parameters in signatures if name in parameters)


def draw_seed(random_state: Any) -> int | None:
    """Return the integer seed of a fit; None if the user gives none."""
    if random_state is None:
        return None
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


# The parameters that a saved model shows.


def saved_params(params: Params) -> dict[str, Any]:
    return {name: _json(value) for name, value in params.items() if name not in NOT_SAVED}


def _json(value: Any) -> Any:
    """Return a parameter as a JSON value; None for an object that has none."""
    if isinstance(value, dict):
        return {"__items__": [[_json(k), _json(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray | tuple | list):
        return [_json(v) for v in np.asarray(value).tolist()]
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else None


def params_from_json(params: dict[str, Any]) -> dict[str, Any]:
    return {
        name: dict(value["__items__"]) if isinstance(value, dict) else value
        for name, value in params.items()
    }


class Available:
    """A method that an estimator has only if a check raises no AttributeError.

    scikit-learn's ``available_if`` raises an error of its own, which hides the reason in its cause.
    """

    _method: Callable[..., Any]

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check

    def __call__(self, method: Callable[..., Any]) -> "Available":
        available = type(self)(self._check)
        available._method, available.__doc__ = method, method.__doc__
        return available

    def __get__(self, estimator: Any, owner: type[Any] | None = None) -> Any:
        if estimator is None:
            return self._method
        self._check(estimator)
        return MethodType(self._method, estimator)
