"""Predictions, decision values, probabilities and scores: in memory, lazily, or into Zarr."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from daskls.errors import DataError, ParameterError
from daskls.estimators.columns import check_names
from daskls.estimators.inputs import (
    check_labels,
    check_rows,
    check_same_kind,
    open_column_of,
)
from daskls.estimators.options import Available, check_probabilities
from daskls.methods.predict import (
    OF_NUMBERS,
    PROBABILITIES,
    SCORES,
    Wanted,
    check_chunks,
    most_rows,
    predict_array,
    predict_lazily,
    predict_to_zarr,
)
from daskls.plan.exchange import BLOCK_NBYTES
from daskls.records import AnyArray, Float64, Labels, TargetKind
from daskls.run.compute import compute
from daskls.run.labels import check_numbers
from daskls.run.rows import find_labels, open_whole
from daskls.run.scan import name_codes
from daskls.run.workers import answering_nbytes
from daskls.sources.door import Source, open_source
from daskls.sources.encoding import TableEncoding
from daskls.sources.frames import with_labels
from daskls.store.objects import ModelHandle, Scratch, store_at
from daskls.store.reader import ModelReader


class Predictions:
    client: Any
    n_features_in_: int
    table_: TableEncoding
    _handle: ModelHandle
    _reader: ModelReader
    _kind: ClassVar[TargetKind]

    def predict(self, X: Any) -> Any:
        """Return the answer of each row."""
        raise NotImplementedError

    def _predict_in_kind(self, X: Any, wanted: Wanted) -> Any:
        """Return what is wanted of each row: in memory for rows in memory, else lazily."""
        X = open_source(X)
        if X.in_memory:
            rows = check_rows(self, X.given)
            self._check_width(rows.shape[1])
            return predict_array(rows, self._handle, wanted)
        target = self._reader.target
        lazy, most, worker_nbytes = self._planned(X, wanted)
        check_chunks(lazy, target, wanted, worker_nbytes)
        return predict_lazily(lazy, self._handle, wanted, target, most)

    def _planned(self, X: Source, wanted: Wanted) -> tuple[Any, int, float]:
        reader = self._reader
        lazy = open_whole(X, BLOCK_NBYTES)
        n_features, itemsize = lazy.shape[1], lazy.dtype.itemsize
        self._check_width(n_features)
        task_nbytes, worker_nbytes = answering_nbytes(self.client)
        most = most_rows(reader, n_features, itemsize, wanted, task_nbytes)
        if X.handle is not None:
            lazy = open_whole(X, most * n_features * itemsize)
        return lazy, most, worker_nbytes

    def _answer(self, X: Any, wanted: Wanted) -> Any:
        """Return what is wanted of each row of X; the columns of a table are found by name."""
        check_is_fitted(self)
        source = open_source(X)
        # For a model of arrays a frame is an array with names, whose order must match.
        if source.has_columns and (hasattr(self, "table_") or source.kind != "frame"):
            from daskls.estimators.tables import answer_table

            return answer_table(self, source, lambda rows: self._predict_in_kind(rows, wanted))
        check_names(self, source)
        return self._predict_in_kind(source, wanted)

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise DataError(
                f"X has {n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Pass the columns it was trained on."
            )

    def _score(self, X: Any, y: Any, sample_weight: Any) -> float:
        check_is_fitted(self)
        X, y = with_labels(X, y)
        X = open_source(X)
        if X.has_columns and (y is None or isinstance(y, str)):
            from daskls.estimators.tables import score_table

            return score_table(self, X, y, sample_weight)
        return self._score_rows(*self._measured(X, y, sample_weight))

    def _score_rows(
        self, answers: Any, y: Any, classes: Labels | None, weight: Float64 | None
    ) -> float:
        raise NotImplementedError

    def _measured(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[AnyArray, Any, Labels | None, Float64 | None]:
        """Return predictions, y as given, the labels of y's codes if it has them, and weights."""
        y, classes = find_labels(open_source(X), y)
        columns = (
            open_column_of(y, "y", self._kind),
            open_column_of(sample_weight, "sample_weight"),
        )
        found, y, weight = compute([self.predict(X), *columns], self.client)
        if not len(found):
            raise DataError("X has no rows, so there is nothing to score. Pass at least one.")
        if weight is not None:
            _check_weights(weight, len(found))
        return found, y, classes, weight

    def _write_to_zarr(
        self, X: Any, path: str | os.PathLike[str], wanted: Wanted, on_progress: Any
    ) -> None:
        source = open_source(X)
        if source.has_columns:
            from daskls.estimators.tables import query_rows

            scratch = Scratch.temporary()
            with query_rows(
                self, source, None, scratch, with_y=False, on_progress=on_progress
            ) as rows:
                self._write_to_zarr(rows, path, wanted, on_progress)
            return
        check_names(self, source)
        X, most, _ = self._planned(source, wanted)
        target = store_at(path, what="output").where()
        own = self._reader.target
        predict_to_zarr(X, self._handle, wanted, own, most, target, self.client, on_progress)


class ClassAnswers(Predictions):
    classes_: Labels
    _kind = "classes"

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
            chunks, also for a Dask DataFrame. Always the label of the largest decision value:
            where one-vs-one votes tie, the confidences decide, as in scikit-learn's
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
        cell that holds one class of a pair counts as 1 for it, a cell that holds neither as 0.
        """
        return self._answer(X, SCORES)

    @Available(check_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, if ``probability`` gave the model probabilities.

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
        two classes are about equally likely, the likeliest may differ from the answer of `predict`.
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
        self,
        X: Any,
        path: str | os.PathLike[str],
        on_progress: Any = None,
        *,
        proba: bool = False,
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
        self._write_to_zarr(X, path, wanted, on_progress)


class NumberAnswers(Predictions):
    _kind = "numbers"

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
        self._write_to_zarr(X, path, OF_NUMBERS, on_progress)


def _check_weights(weight: Float64, n_rows: int) -> None:
    """Refuse weights of another number than the rows, and any by which no mean is defined."""
    if len(weight) != n_rows:
        raise DataError(
            f"X and sample_weight have inconsistent numbers of samples: X has {n_rows} rows, "
            f"sample_weight has {len(weight)}. Pass one value per row."
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad) or not weight.any():
        held = f"{weight[bad[0]]:g} in row {bad[0]}" if len(bad) else "0 in all rows"
        raise DataError(
            f"sample_weight is {held}; weights are finite and not negative, and some are positive. "
            "Give weight 0 to rows that should not count."
        )


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
