"""The parameter ``interval``, and the prediction intervals that it gives a regressor."""

import os
from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from daskls.estimators.options import Available
from daskls.estimators.predictions import NumberAnswers
from daskls.methods.predict import INTERVALS, OF_NUMBERS
from daskls.records import IntervalSpec
from daskls.store.choices import INTERVAL, CoveringInterval

COVERAGE: list[Any] = [Interval(Real, 0, 1, closed="neither"), None]


def interval_spec(coverage: float | None) -> IntervalSpec | None:
    return None if coverage is None else IntervalSpec(float(coverage))


def check_intervals(estimator: Any) -> None:
    """Refuse an estimator that has no intervals, or will have none when it is fitted."""
    if getattr(estimator, "_handle", None) is None:
        has = estimator.interval is not None
    else:
        has = INTERVAL in estimator._reader.meta
    if not has:
        why, remedy = "it was given interval=None", "Pass interval=0.9, for nine tenths of y."
        if estimator.interval is not None:
            why, remedy = "its model was fitted without", "Fit it again."
        raise AttributeError(
            f"{type(estimator).__name__} has no predict_interval, as {why}. {remedy}"
        )


class IntervalAnswers(NumberAnswers):
    interval: float | None
    interval_: CoveringInterval

    @Available(check_intervals)
    def predict_interval(self, X: Any) -> Any:
        """Return an interval for each row that holds its y with the probability ``interval``.

        Parameters
        ----------
        X : array (n, d), or a table, as for `predict`

        Returns
        -------
        ends : float64 array (n, 2), lower and upper, or (n, t, 2) where y had t columns; around
            the answers of `predict`. NumPy for NumPy and for tables; else a lazy Dask array in
            X's row chunks.

        Raises
        ------
        AttributeError : the model has no intervals; the message says why, and what to pass
        DataError : as `predict`

        Notes
        -----
        The probability is over draws of the held-out rows and the query together, all from one
        distribution: it holds on average, not for each x nor for a part of space. With several
        columns it holds for each of them, not for all at once.
        """
        return self._answer(X, INTERVALS)

    def predict_to_zarr(
        self,
        X: Any,
        path: str | os.PathLike[str],
        on_progress: Any = None,
        *,
        interval: bool = False,
    ) -> None:
        """Write the number, or the numbers, of each row into a new Zarr array, block by block.

        Parameters
        ----------
        X : Zarr array or its path, or Dask array: (n, d); or a table, as for `fit`
        path : where to write; must not exist
        on_progress : called with a `Progress` as blocks finish, or None
        interval : bool. Write the intervals instead, (n, 2) or (n, t, 2).

        Raises
        ------
        AttributeError : ``interval`` is True, but the model has no intervals
        DataError : as `predict`
        StoreError : when ``path`` exists or its disk is full
        """
        check_is_fitted(self)
        if interval:
            check_intervals(self)
        self._write_to_zarr(X, path, INTERVALS if interval else OF_NUMBERS, on_progress)
