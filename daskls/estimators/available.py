"""Methods that an estimator has only where its model can answer them."""

from collections.abc import Callable
from types import MethodType
from typing import Any

__all__ = ["Available"]


class Available:
    """A method that an estimator has only where a check passes; else the error says why.

    scikit-learn's ``available_if`` raises an error of its own, which hides the reason in its cause.

    Parameters
    ----------
    check : called with the estimator; raises AttributeError
    """

    def __init__(self, check: Callable[[Any], None]) -> None:
        self._check = check

    def __call__(self, method: Callable[..., Any]) -> "Available":
        """Return a descriptor of the method, with its documentation."""
        found = type(self)(self._check)
        found._method, found.__doc__ = method, method.__doc__
        return found

    def __get__(self, estimator: Any, owner: type[Any] | None = None) -> Any:
        if estimator is None:
            return self._method
        self._check(estimator)
        return MethodType(self._method, estimator)

    _method: Callable[..., Any]
