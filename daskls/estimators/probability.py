"""The parameter ``probability``, and whether an estimator has `predict_proba`."""

from typing import Any, Literal

from sklearn.utils._param_validation import StrOptions

__all__ = ["PROBABILITY", "ProbabilityParam", "has_probabilities", "probability_of"]

ProbabilityParam = bool | Literal["sigmoid", "isotonic"]
PROBABILITY: list[Any] = ["boolean", StrOptions({"sigmoid", "isotonic"})]


def probability_of(probability: ProbabilityParam) -> str | None:
    """Return the kind of maps that are asked for.

    >>> probability_of(True), probability_of("isotonic"), probability_of(False)
    ('sigmoid', 'isotonic', None)
    """
    if isinstance(probability, str):
        return str(probability)
    return "sigmoid" if probability else None


def has_probabilities(estimator: Any) -> bool:
    """Whether an estimator has, or will have when it is fitted, the probabilities of classes.

    Raises
    ------
    AttributeError : it has none
    """
    handle = getattr(estimator, "_handle", None)
    if handle is None:
        has = estimator._method().has_probabilities or bool(estimator.probability)
    else:
        method = estimator._fitted_method()
        has = method.has_probabilities or "probability" in estimator._reader.meta
    if not has:
        raise AttributeError(
            f"{type(estimator).__name__} has no predict_proba, as it was given probability=False. "
            "Fit with probability=True, which fits maps of decision values to held-out rows."
        )
    return True
