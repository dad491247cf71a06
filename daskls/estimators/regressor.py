"""The base of all regressors: numbers, R2, and intervals around the numbers."""

import os
from typing import Any, ClassVar

from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from daskls.estimators.base import LocalEstimator
from daskls.estimators.param import Available
from daskls.estimators.predictions import answer_to_zarr
from daskls.methods.predict import INTERVALS, OF_NUMBERS, Wanted
from daskls.records import AnyArray, Float64, Labels
from daskls.run.labels import check_numbers
from daskls.solvers.registry import LOSSES
from daskls.store.choices import INTERVAL


class LocalRegressor(RegressorMixin, LocalEstimator):  # type: ignore[misc]
    _kind = "numbers"
    _local_loss: ClassVar[str] = "squared_error"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        loss = LOSSES.get((self._kind, getattr(self, "loss", self._local_loss)))
        tags.target_tags.multi_output = loss is None or loss.takes_columns
        return tags

    def predict(self, X: Any) -> Any:
        """Return the number, or the numbers, of each row.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array. It may have no rows only
            if it is not in memory: the lazy result is then empty. Or a table, as `fit` takes it,
            whose columns are found by name.

        Returns
        -------
        numbers : float64 array (n,); (n, t) if y had t > 1 columns; (n, q) for a sequence of q
            levels, in its order. In the units of y. NumPy for NumPy and for tables; else a lazy
            Dask array in X's row chunks.

        Raises
        ------
        DataError : NaN or infinity, with the row's number; features that differ from those of
            training in number, names or order
        """
        return self._answer(X, OF_NUMBERS)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2 on X and y, averaged over columns: 1 is perfect, 0 is the mean of y.

        Parameters
        ----------
        X : array (n, d), as for `predict`, or the path of a data set, or a table
        y : array (n,) or (n, t), of any of these kinds; None if X is the path of a data set. For a
            table, the name of its column of numbers; None: the column of the training table.
        sample_weight : array (n,), or None; for a table also the name of its column of weights

        Raises
        ------
        DataError : as `predict`; no y, no rows, or text
        """
        return self._score(X, y, sample_weight)

    def _score_rows(
        self, numbers: Any, y: Any, classes: Labels | None, weight: Float64 | None
    ) -> float:
        check_numbers(y.dtype, classes)
        return self._scored(y, numbers, weight)

    def _scored(self, y: AnyArray, numbers: Float64, weight: Float64 | None) -> float:
        return float(r2_score(y, numbers, sample_weight=weight))

    def predict_to_zarr(
        self, X: Any, path: str | os.PathLike[str], on_progress: Any = None
    ) -> None:
        """Write the number, or the numbers, of each row into a new Zarr array, block by block.

        Parameters
        ----------
        X : Zarr array or its path, or Dask array: (n, d); or a table, as for `fit`
        path : where to write; must not exist
        on_progress : called with a `Progress` as blocks finish, or None

        Raises
        ------
        DataError : as `predict`
        StoreError : when ``path`` exists or its disk is full
        """
        check_is_fitted(self)
        answer_to_zarr(self, X, path, OF_NUMBERS, on_progress)


# Methods of the regressors that have the parameter.


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


@Available(check_intervals)
def predict_interval(self: Any, X: Any) -> Any:
    """Return for each row an interval that contains its y with the probability ``interval``.

    Parameters
    ----------
    X : array (n, d), or a table, as for `predict`

    Returns
    -------
    ends : float64 array (n, 2), lower and upper, or (n, t, 2) where y had t columns; around
        the predictions. NumPy for NumPy and for tables; else a lazy Dask array in
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
    self: Any,
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
    wanted: Wanted = INTERVALS if interval else OF_NUMBERS
    answer_to_zarr(self, X, path, wanted, on_progress)
