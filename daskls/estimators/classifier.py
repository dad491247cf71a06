"""The base of all classifiers: labels, decision values, probabilities, accuracy."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from daskls.cluster import compute
from daskls.errors import DataError, ParameterError
from daskls.estimators.base import LocalEstimator
from daskls.estimators.inputs import check_labels, check_same_kind
from daskls.estimators.param import Available, check_class_weight
from daskls.estimators.predictions import answer_to_zarr
from daskls.methods.predict import PROBABILITIES, SCORES, Wanted
from daskls.records import Float64, Labels
from daskls.run.contract import FitRequest
from daskls.run.scan import name_codes
from daskls.solvers.registry import LOSSES
from daskls.store.objects import ModelHandle


def check_probabilities(estimator: Any) -> None:
    """Refuse an estimator that has, or will have, none; says why, and what to pass."""
    if getattr(estimator, "_handle", None) is None:
        has = estimator._method_class.has_probabilities or estimator._probability() is not None
    else:
        has = estimator._fitted_method().has_probabilities
        has = has or "probability" in estimator._reader.meta
    if not has:
        raise AttributeError(_why_not(estimator))


def _why_not(estimator: Any) -> str:
    unknown, probability = estimator._why_no_held_out(), estimator.probability
    remedy = "Pass probability=True, which fits the method once more, to some of the rows."
    if estimator._probability() is not None:
        why, remedy = "its model was fitted without", "Fit it again."
    elif probability == "auto":
        why = f'probability="auto" needs decision values of held-out rows, and {unknown}'
    else:
        why = "it was given probability=False"
        if unknown is None:
            remedy = 'Pass probability="auto", which costs no second fit.'
    return f"{type(estimator).__name__} has no predict_proba, as {why}. {remedy}"


class LocalClassifier(ClassifierMixin, LocalEstimator):  # type: ignore[misc]
    # Of classifiers without these parameters.
    class_weight: Any = None
    probability: Any = False
    classes_: Labels
    _kind = "classes"
    _local_loss: ClassVar[str] = "hinge"

    def _request(self) -> FitRequest:
        request = super()._request()
        check_class_weight(self.class_weight)
        weight, maps = self.class_weight, self._probability()
        return replace(request, class_weight=weight, probability=maps)

    def _probability(self) -> str | None:
        """Return the kind of maps to probabilities; None for no probabilities."""
        probability = self.probability
        if probability == "auto":
            probability = self._why_no_held_out() is None
        if isinstance(probability, str):
            return str(probability)
        return "sigmoid" if probability else None

    def _why_no_held_out(self) -> str | None:
        """Return why a fit has no held-out decision values of its rows; None if it has them."""
        if not self._method_class.knows_held_out:
            return f"{type(self).__name__} has none"
        loss = LOSSES.get((self._kind, self.loss))
        is_known = loss is not None and loss.knows_held_out
        return None if is_known else f"loss={self.loss!r} has none"

    def _adopt(self, handle: ModelHandle) -> Self:
        super()._adopt(handle)
        self.classes_ = self._reader.target.labels
        return self

    def predict(self, X: Any) -> Any:
        """Return the label of each row.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array. It may have no rows only
            if it is not in memory: the lazy result is then empty. Or a table, as `fit` takes it,
            whose columns are found by name.

        Returns
        -------
        labels : array (n,). NumPy for NumPy and for tables; else a lazy Dask array in X's row
            chunks, also for a Dask DataFrame. The label of the largest decision value: where
            one-vs-one votes tie, the confidences decide, as in scikit-learn's
            ``SVC(break_ties=True)``.

        Raises
        ------
        DataError : NaN or infinity, with the row's number; features that differ from those of
            training in number, names or order
        """
        check_is_fitted(self)
        return self._answer(X, self.classes_)

    def decision_function(self, X: Any) -> Any:
        """Return the decision values.

        Parameters
        ----------
        X : array (n, d), as for `predict`

        Returns
        -------
        scores : array (n,) for two classes, positive for ``classes_[1]``; else (n, n_classes),
            one-vs-one votes with summed confidences as in scikit-learn, -1 for a class that has
            no row in the cell; for `LandmarkSVC` the value of each class against the rest. With
            ``max_false_alarm`` the model's threshold is subtracted. NumPy for NumPy, else a lazy
            Dask array.

        Raises
        ------
        DataError : as `predict`

        Notes
        -----
        With several partitions or chunks, the decision values of each pair of classes are clipped
        to [-1, 1] and averaged. Two classes give that mean, more classes the votes of the means. A
        cell with one class of a pair counts as 1 for that class, a cell with neither as 0.
        """
        return self._answer(X, SCORES)

    @Available(check_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class; needs a fit with ``probability``.

        Parameters
        ----------
        X : array (n, d), as for `predict`

        Returns
        -------
        probabilities : array (n, n_classes), in the order of ``classes_``; each row sums to 1.
            NumPy for NumPy, else a lazy Dask array.

        Raises
        ------
        AttributeError : the model has no probabilities; the message says why, and what to pass
        DataError : as `predict`

        Notes
        -----
        Decision values are mapped to probabilities, which are normalized if there are more than two
        classes. Votes are not mapped themselves, but the margin of each class over the best other
        class. Each class has its own map, and `class_weight` changes decision values only: where
        two classes are about equally likely, the likeliest may differ from that of `predict`.
        With ``max_false_alarm`` it does differ for scores between 0 and the bound's threshold.
        """
        return self._answer(X, PROBABILITIES)

    @Available(check_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities that `predict_proba` returns.

        Parameters
        ----------
        X : array (n, d), as for `predict`

        Raises
        ------
        AttributeError, DataError : as `predict_proba`
        """
        return np.log(self.predict_proba(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on X and y.

        Parameters
        ----------
        X : array (n, d), as for `predict`, or the path of a data set, or a table
        y : array (n,), of any of these kinds; None if X is the path of a data set. For a table,
            the name of its column of labels; None: the column of the training table.
        sample_weight : array (n,), or None; for a table also the name of its column of weights

        Raises
        ------
        DataError : as `predict`; no y, no rows, or numbers where the model's classes are text
        """
        return self._score(X, y, sample_weight)

    def _score_rows(
        self, labels: Any, y: Any, classes: Labels | None, weight: Float64 | None
    ) -> float:
        y = name_codes(check_labels(y), classes)
        check_same_kind(y, self.classes_)
        return float(accuracy_score(y, labels, sample_weight=weight))

    def indecision(self, X: Any, eps: float | Sequence[float] = 0.1) -> Any:
        """Return the share of rows whose decision value is closer to 0 than ``eps``.

        Parameters
        ----------
        X : array (n, d), as for `predict`
        eps : float > 0, or sequence of float

        Returns
        -------
        share : float in [0, 1]; for a sequence an array of them, shape (len(eps),)

        Raises
        ------
        DataError : the model has more than two classes, or X has no rows
        ParameterError : an ``eps`` is not positive

        Notes
        -----
        Source: Barcenas, Gonzalez-Lima, Quiroz, A bagging and importance sampling approach to
        Support Vector Machines, equation 17.
        """
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise DataError(
                f"indecision needs one decision value per row, but the model has "
                f"{len(self.classes_)} classes. Train on two of them, or on one against the rest."
            )
        bounds = _bounds(eps)
        values = self.decision_function(X)
        near = [(abs(values) < bound).sum() for bound in np.atleast_1d(bounds)]
        if not len(values):
            raise DataError("X has no rows, so the share is undefined. Pass at least one.")
        shares = np.array(compute(near, self.client), np.float64) / len(values)
        return shares if bounds.ndim else float(shares[0])

    def predict_to_zarr(
        self, X: Any, path: str | os.PathLike[str], on_progress: Any = None, *, proba: bool = False
    ) -> None:
        """Write the label of each row into a new Zarr array, block by block.

        Parameters
        ----------
        X : Zarr array or its path, or Dask array: (n, d); or a table, as for `fit`
        path : where to write; must not exist
        on_progress : called with a `Progress` as blocks finish, or None
        proba : bool. Write the probability of each class instead, (n, n_classes).

        Raises
        ------
        AttributeError : ``proba`` is True, but the model has no probabilities
        DataError : as `predict`
        StoreError : when ``path`` exists or its disk is full
        """
        check_is_fitted(self)
        if proba:
            check_probabilities(self)
        wanted: Wanted = PROBABILITIES if proba else self.classes_
        answer_to_zarr(self, X, path, wanted, on_progress)


def _bounds(eps: float | Sequence[float]) -> Float64:
    try:
        bounds = np.asarray(eps)
    except ValueError:
        bounds = np.empty((0, 0))
    # True and "0.1" convert to numbers, but are not bounds.
    is_number = bounds.dtype.kind in "iuf"
    if bounds.ndim > 1 or not bounds.size or not is_number or not (bounds > 0).all():
        raise ParameterError(f"eps is {eps!r}; it must be a positive number, or a list of them.")
    return bounds.astype(np.float64)
