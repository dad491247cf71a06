"""The base of all classifiers: the handle on a finished model, prediction, saving, pickling."""

import os
import uuid
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from daskls.errors import DataError, NonConvergenceWarning, ParameterError
from daskls.estimators.columns import check_names, feature_names, keep_names
from daskls.estimators.inputs import (
    check_class_weight,
    check_input,
    check_labels,
    check_rows,
    check_same_kind,
    draw_seed,
    is_in_memory,
    open_column_of,
    saved_params,
)
from daskls.estimators.probability import has_probabilities, probability_of
from daskls.estimators.store import choose_store, copy_model, embed_model, extract_model
from daskls.estimators.view import fit_view
from daskls.methods.average import SUPER_NBYTES
from daskls.methods.base import Method, method_of
from daskls.methods.leaves import SEARCH_REGION_ROWS
from daskls.methods.predict import (
    PROBABILITIES,
    SCORES,
    Wanted,
    predict_array,
    predict_lazily,
    predict_to_zarr,
)
from daskls.records import Float64, Labels, ScalingSpec, SolverSpec
from daskls.run.client import current_client
from daskls.run.compute import compute
from daskls.run.contract import FitRequest
from daskls.run.probe import shared_with_workers
from daskls.run.repair import dropping_damage
from daskls.run.rows import find_labels, open_blocks, open_rows, open_whole
from daskls.run.scan import name_codes
from daskls.store.files import local_path
from daskls.store.lock import own_store
from daskls.store.reader import ModelReader, open_model
from daskls.store.temporary import ModelHandle, temporary_path
from daskls.tables.encoding import TableEncoding
from daskls.tables.frames import is_array_like, with_labels
from daskls.tables.paths import check_label, is_table

if TYPE_CHECKING:
    from daskls.methods.fit import FitResult

__all__ = ["LocalClassifier", "SharesClient"]


class SharesClient(BaseEstimator):  # type: ignore[misc]
    """An estimator whose ``client`` is shared by its clones and is not pickled."""

    # What parameters were that models of before do not name, where their default is another now.
    _before: ClassVar[dict[str, Any]] = {}

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy; the client is shared, as a connection cannot be copied."""
        params = self.get_params(deep=False)
        client = params.pop("client", None)
        copies = {name: clone(value, safe=False) for name, value in params.items()}
        return type(self)(**copies, client=client)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client."""
        state = dict(super().__getstate__())
        state["client"] = None
        return state


class LocalClassifier(ClassifierMixin, SharesClient):  # type: ignore[misc]
    """A classifier whose fitted state is a handle on a model in a store."""

    client: Any
    store: Any
    random_state: Any
    verbose: int
    class_weight: Any = None
    probability: Any = False
    _handle: ModelHandle

    def _method(self) -> Method:
        """Return what does the work."""
        raise NotImplementedError

    def _solver(self) -> SolverSpec:
        """Return what every local SVM is trained with."""
        raise NotImplementedError

    def _scaling(self) -> ScalingSpec | None:
        """Return what is decided from the data before space is cut; None where nothing is."""
        return None

    def _sizes(self) -> dict[str, Any]:
        """Return the size of cells and what else of `FitRequest` is the method's own."""
        return {"cell_size": SEARCH_REGION_ROWS}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.sparse = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client; a temporary model is embedded in it."""
        state = super().__getstate__()
        handle = state.get("_handle")
        if handle is not None and handle.is_temporary:
            state["_handle"] = embed_model(handle)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("_handle"), bytes):
            state = {**state, "_handle": extract_model(state["_handle"])}
        super().__setstate__(state)

    def _validate_params(self) -> None:
        """Refuse parameters out of range, as far as that needs no data."""
        super()._validate_params()
        check_class_weight(self.class_weight)
        self._method()
        self._solver()
        self._scaling()

    table_: TableEncoding

    def _adopt(self, handle: ModelHandle) -> Self:
        """Take a finished model as the fitted state."""
        self._handle = handle
        reader = self._reader
        # Read here, so that the first query reads its cell alone.
        method_of(reader.method, f"The model at {reader.path}").check_index(reader)
        meta = reader.meta
        self.classes_ = labels_from_json(meta["classes"])
        self.n_features_in_ = int(meta["n_features"])
        keep_names(self, meta.get("feature_names"))
        self.__dict__.pop("table_", None)
        if meta.get("table") is not None:
            self.table_ = TableEncoding.from_json(meta["table"])
        self.n_cells_ = reader.n_cells
        return self

    def _fitted_method(self) -> Method:
        """Return what the model at hand was made by."""
        return method_of(self._reader.method)

    @property
    def _reader(self) -> ModelReader:
        with self._handle.in_use():
            return open_model(self._handle.path, self._handle.fingerprint)

    @property
    def fit_report_(self) -> Any:
        """One row a cell: a NumPy record array, shape ``(n_cells_,)``.

        Its fields are those of `daskls.records.CellReport`; ``pandas.DataFrame`` takes it as it
        is.
        """
        check_is_fitted(self)
        return self._reader.report

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        missing: Literal["refuse", "median"] = "refuse",
        unknown: Literal["error", "zero"] = "error",
        drop: Sequence[str] = (),
    ) -> Self:
        """Train on X and y, and keep a handle on the model.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array or of a data set. Or a
            table: the path of a CSV, TSV or Parquet file, a folder or a pattern of such, of an
            npz or LIBSVM file; a DataFrame of pandas, Polars or Dask, an Arrow table, an xarray
            Dataset.
        y : array (n,) of labels, of any of these kinds; None if X is the path of a data set. Of a
            table the name of its column of labels; None takes y, label, target or class, and says
            so.
        sample_weight : array (n,), >= 0, or None. Multiplies C, and weighs validation errors and
            votes; rows of weight 0 are ignored. Methods that draw rows draw
            them regardless of their weights.
        missing : "refuse" or "median". Missing values of a table are refused, or replaced by
            the median; an added feature marks where.
        unknown : "error" or "zero". A category in a query that no training row had is an
            error, or zeros in all columns of its feature.
        drop : names of columns of a table to leave out

        Returns
        -------
        self

        Raises
        ------
        DataError : data that cannot be trained on, with the first bad row's number
        ParameterError : parameters that the data has too few rows or features for
        MemoryPlanError : the largest task, or the sample, would not fit a worker
        StoreError : the store belongs to another fit, workers cannot see it, or its disk is full
        """
        from daskls.estimators.tables import TableOptions, training_rows, unless_empty

        self._validate_params()
        current_client(self.client)
        options = TableOptions(missing, unknown, tuple(drop))
        if not is_table(X) or (is_array_like(X) and not (y is None or isinstance(y, str))):
            options.check_unused("an array")
            request = self._request(X)
            X, y, sample_weight = check_input(self, X, y, sample_weight)
            store, keep = choose_store(self.store)
            with own_store(store):
                result = self._run(request, (X, y, sample_weight), store)
        else:
            X, y = with_labels(X, y)
            check_label(y)
            store, keep = choose_store(self.store)
            scratch = store / f"input-{uuid.uuid4().hex}"
            seed = self.random_state if isinstance(self.random_state, Integral) else 0
            with (
                unless_empty(store),
                own_store(store),
                training_rows(X, y, scratch, options, int(seed), self.verbose) as (rows, table),
            ):
                request = self._request(rows)
                request = replace(request, table=None if table is None else table.to_json())
                _, _, sample_weight = check_input(self, rows, None, sample_weight)
                result = self._run(request, (rows, None, sample_weight), store)
        self._adopt(ModelHandle(str(store), result.fingerprint, keep))
        self.stage_s_ = result.stage_s
        self._warn_about_folds()
        self._warn_about_limits()
        self._warn_about_units(result.units)
        return self

    def _run(self, request: FitRequest, data: tuple[Any, Any, Any], store: Path) -> "FitResult":
        """Train on X, y and weights in a store that this fit owns."""
        # Here, so that a process which only predicts never loads the trainers.
        from daskls.methods.fit import run_fit

        with (
            open_rows(*data, store / f"input-{uuid.uuid4().hex}") as rows,
            shared_with_workers(store, data, self.client),
            fit_view(request.estimator, rows.X.shape, store, self.client, self.verbose) as view,
            dropping_damage(store),
        ):
            return run_fit(request, rows, store, self.client, view.on_progress, view.on_cut)

    def _request(self, X: Any) -> FitRequest:
        """Return the parameters as a fit takes them."""
        return FitRequest(
            estimator=type(self).__name__,
            method=self._method(),
            params=saved_params(self),
            spec=self._solver(),
            seed=draw_seed(self.random_state),
            class_weight=self.class_weight,
            feature_names=feature_names(X),
            scaling=self._scaling(),
            minds_units=self._minds_units(),
            probability=probability_of(self.probability),
            **self._sizes(),
        )

    def _minds_units(self) -> bool:
        """Whether rows stay as they are where a scale of their features could be taken."""
        return False

    def _warn_about_units(self, units: tuple[int, int, float] | None) -> None:
        """Say that the spreads of two features differ so much that one has no part in distances."""
        if units is not None:
            names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
            warnings.warn(
                f"The spread of feature {names[units[0]]!s} is {units[2]:.2g} times that of "
                f"feature {names[units[1]]!s}, so that distances hardly see the latter. Pass "
                'feature_scale="spread" or "learned", or scale X beforehand.',
                stacklevel=3,
            )

    def _warn_about_folds(self) -> None:
        """Warn how many cells hold fewer rows than folds; not if no cell is cross-validated."""

    def _warn_about_limits(self) -> None:
        """Say how many solves stopped short of ``tol``, if any did."""
        n_at_limit = int(self.fit_report_.n_at_limit.sum())
        if n_at_limit:
            tol = float(self.get_params()["tol"])
            warnings.warn(
                f"{n_at_limit} of {int(self.fit_report_.n_trained.sum())} local solves ended "
                f"before their duality gap reached tol={tol:g}; fit_report_.n_at_limit names "
                "their cells. Scale the features, or raise tol.",
                NonConvergenceWarning,
                stacklevel=3,
            )

    def _predict_in_kind(self, X: Any, wanted: Wanted) -> Any:
        """Answer in kind: in memory for rows in memory, lazily for anything else."""
        check_is_fitted(self)
        if self._asks_by_name(X):
            from daskls.estimators.tables import answer_table

            return answer_table(self, X, lambda rows: self._predict_in_kind(rows, wanted))
        if is_in_memory(X):
            X = check_rows(self, X)
            self._check_width(X.shape[1])
            return predict_array(X, self._handle, wanted)
        X = open_whole(X, "X", SUPER_NBYTES)
        self._check_width(X.shape[1])
        return predict_lazily(X, self._handle, wanted, len(self.classes_))

    def _asks_by_name(self, X: Any) -> bool:
        """Whether X is a table whose columns are to be found, and not an array in a frame."""
        return is_table(X) and (hasattr(self, "table_") or not is_array_like(X))

    def _check_width(self, n_features: int) -> None:
        """Refuse rows of another width than the training rows had."""
        if n_features != self.n_features_in_:
            raise DataError(
                f"X has {n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Pass the columns it was trained on."
            )

    def predict(self, X: Any) -> Any:
        """Return the label of each row.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array. No rows are allowed only
            if it is not in memory: the lazy result is then empty. Or a table, as `fit` takes it,
            whose columns are found by name.

        Returns
        -------
        labels : array (n,). NumPy for NumPy and for tables; else a lazy Dask array in X's row
            chunks, for a Dask DataFrame too. It is always the label of the largest decision value:
            where one-vs-one votes tie, the confidences decide, as in scikit-learn's
            ``SVC(break_ties=True)``.

        Raises
        ------
        DataError : NaN or infinity, with the row's number; another number of features than in
            training, other names of them, or another order
        """
        check_is_fitted(self)
        if not self._asks_by_name(X):
            check_names(self, X)
        return self._predict_in_kind(X, self.classes_)

    def decision_function(self, X: Any) -> Any:
        """Return the decision values.

        Parameters
        ----------
        X : array (n, d), as for `predict`

        Returns
        -------
        scores : array (n,) for two classes, positive for ``classes_[1]``; else (n, n_classes),
            one-vs-one votes with summed confidences as in scikit-learn, -1 for a class that has
            no row in the cell; of `LandmarkSVC` the value of each class against the rest. NumPy
            for NumPy, else a lazy Dask array.

        Raises
        ------
        DataError : as `predict`

        Notes
        -----
        With several partitions or chunks the decision values of each pair of classes are clipped
        to [-1, 1] and averaged; two classes give that mean, more give the votes of the means. A
        cell of one class of a pair counts as 1 for it, a cell of neither as 0.
        """
        check_is_fitted(self)
        if not self._asks_by_name(X):
            check_names(self, X)
        return self._predict_in_kind(X, SCORES)

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class; of models fitted with ``probability=True``.

        Parameters
        ----------
        X : array (n, d), as for `predict`

        Returns
        -------
        probabilities : array (n, n_classes), in the order of ``classes_``; each row sums to 1.
            NumPy for NumPy, else a lazy Dask array.

        Raises
        ------
        AttributeError : the model was fitted without ``probability=True``
        DataError : as `predict`

        Notes
        -----
        Decision values are mapped to probabilities, which are normalized where there are more than
        two classes. Of votes, the margin of each class over the best other class is mapped. Each
        class may have a map of its own, so the likeliest class may differ from that of `predict`.
        """
        check_is_fitted(self)
        if not self._asks_by_name(X):
            check_names(self, X)
        return self._predict_in_kind(X, PROBABILITIES)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy on X and y.

        Parameters
        ----------
        X : array (n, d), as for `predict`, or the path of a data set, or a table
        y : array (n,), of any of these kinds; None if X is the path of a data set. Of a table the
            name of its column of labels; None: as in training.
        sample_weight : array (n,), or None

        Raises
        ------
        DataError : as `predict`; no y, no rows, or numbers where the model's classes are text
        """
        check_is_fitted(self)
        X, y = with_labels(X, y)
        if is_table(X) and (y is None or isinstance(y, str)):
            from daskls.estimators.tables import score_table

            return score_table(self, X, y, self.score)
        y, classes = find_labels(X, y)
        columns = open_column_of(y, "y"), open_column_of(sample_weight, "sample_weight")
        labels, y, weight = compute([self.predict(X), *columns], self.client)
        if not len(labels):
            raise DataError("X has no rows, so that there is nothing to score. Pass at least one.")
        y = name_codes(check_labels(y), classes)
        check_same_kind(y, self.classes_)
        return float(accuracy_score(y, labels, sample_weight=weight))

    def indecision(self, X: Any, eps: float | Sequence[float] = 0.1) -> Any:
        """Return the share of rows whose decision value is nearer to 0 than ``eps``.

        Parameters
        ----------
        X : array (n, d), as for `predict`
        eps : float > 0, or sequence of float

        Returns
        -------
        share : float in [0, 1]; an array of them, shape (len(eps),), for a sequence

        Raises
        ------
        DataError : a model of more than two classes, or no rows
        ParameterError : an ``eps`` that is not positive

        Notes
        -----
        Source: Barcenas, Gonzalez-Lima, Quiroz, A bagging and importance sampling approach to
        Support Vector Machines, equation 17.
        """
        check_is_fitted(self)
        if len(self.classes_) != 2:
            raise DataError(
                f"indecision needs one decision value a row, but the model has "
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
        AttributeError : ``proba`` of a model that was fitted without ``probability=True``
        DataError : as `predict`
        StoreError : when ``path`` exists or its disk is full
        """
        check_is_fitted(self)
        if is_table(X):
            from daskls.estimators.tables import query_rows

            scratch = temporary_path()
            with query_rows(self, X, None, scratch, with_y=False, on_progress=on_progress) as rows:
                self.predict_to_zarr(rows, path, on_progress, proba=proba)
            return
        check_names(self, X)
        self._check_width(open_blocks(X, "X").shape[1])
        wanted: Wanted = self.classes_
        if proba and has_probabilities(self):
            wanted = PROBABILITIES
        target = local_path(path, what="output")
        n_classes = len(self.classes_)
        predict_to_zarr(X, self._handle, wanted, n_classes, target, self.client, on_progress)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder that `daskls.load` opens.

        Parameters
        ----------
        path : must not exist

        Raises
        ------
        StoreError : when ``path`` exists or its disk is full
        """
        check_is_fitted(self)
        copy_model(self._handle, path)


def _bounds(eps: float | Sequence[float]) -> Float64:
    """Return bounds of decision values as an array of at most one dimension."""
    try:
        bounds = np.asarray(eps)
    except ValueError:
        bounds = np.empty((0, 0))
    # True and "0.1" are no bounds, though both convert to a number.
    is_number = bounds.dtype.kind in "iuf"
    if bounds.ndim > 1 or not bounds.size or not is_number or not (bounds > 0).all():
        raise ParameterError(f"eps is {eps!r}; it must be a positive number, or a list of them.")
    return bounds.astype(np.float64)


def labels_from_json(values: dict[str, Any]) -> Labels:
    """Return class labels in their own dtype."""
    return np.array(values["values"], dtype=np.dtype(values["dtype"]))
