"""The parameter ``probability``, and methods that are there only where it gives probabilities."""

from typing import Any, Literal

from sklearn.utils._param_validation import StrOptions

from daskls.run.contract import HELD_OUT

__all__ = [
    "PROBABILITY",
    "ProbabilityParam",
    "check_probabilities",
    "probability_of",
]

ProbabilityParam = bool | Literal["auto", "sigmoid", "isotonic"]
PROBABILITY: list[Any] = ["boolean", StrOptions({"auto", "sigmoid", "isotonic"})]


def probability_of(probability: ProbabilityParam, *, knows_held_out: bool) -> str | None:
    """Return the kind of maps that are asked for, as `FitRequest` has it.

    >>> probability_of(True, knows_held_out=False), probability_of("auto", knows_held_out=True)
    ('sigmoid', 'held_out')
    >>> probability_of("auto", knows_held_out=False), probability_of(False, knows_held_out=True)
    (None, None)
    """
    if probability == "auto":
        return HELD_OUT if knows_held_out else None
    if isinstance(probability, str):
        return str(probability)
    return "sigmoid" if probability else None


def check_probabilities(estimator: Any) -> None:
    """Refuse an estimator that has no probabilities, or will have none when it is fitted.

    Raises
    ------
    AttributeError : saying why, and what to pass
    """
    if getattr(estimator, "_handle", None) is None:
        has = estimator._method().has_probabilities or estimator._probability() is not None
    else:
        has = estimator._fitted_method().has_probabilities
        has = has or "probability" in estimator._reader.meta
    if not has:
        raise AttributeError(_why_not(estimator))


def _why_not(estimator: Any) -> str:
    """Return why an estimator has no probabilities, and what to pass."""
    unknown, given = estimator._why_no_held_out(), estimator.probability
    remedy = "Pass probability=True, which fits the method once more, to some of the rows."
    if estimator._probability() is not None:
        why, remedy = "its model was fitted without", "Fit it again."
    elif given == "auto":
        why = f'probability="auto" needs values of rows that were held out, and {unknown}'
    else:
        why = "it was given probability=False"
        if unknown is None:
            remedy = 'Pass probability="auto", which costs no second fit.'
    return f"{type(estimator).__name__} has no predict_proba, as {why}. {remedy}"
