"""The base of all estimators: a fit, its plan, its predictions, and the model in a store."""

import os
import uuid
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from daskls.cluster import current_client, log_losses, shared_with_workers
from daskls.errors import NonConvergenceWarning, StoreError, warn_user
from daskls.estimators.inputs import (
    becomes_features,
    check_input,
    check_names,
    keep_names,
    origin_of,
    target_apart,
)
from daskls.estimators.param import Params, draw_seed, params_of, saved_params
from daskls.estimators.plan import count_rows, planned_resources, unread_rows
from daskls.estimators.predictions import answer_rows, measure_rows
from daskls.estimators.scales import feature_importances, warn_of_units
from daskls.estimators.store import (
    choose_store,
    copy_model,
    embed_model,
    extract_model,
    interrupts_explained,
)
from daskls.estimators.view import fit_view
from daskls.methods.base import SEARCH_REGION_ROWS, method_of
from daskls.methods.predict import Wanted
from daskls.plan.fit import FitPlan
from daskls.records import AnyArray, Float64, Labels, MeasuredAs, TargetKind
from daskls.run.contract import FitRequest, Method
from daskls.run.identity import run_repaired
from daskls.run.rows import open_rows
from daskls.sources.base import TableOptions
from daskls.sources.encoding import TableEncoding
from daskls.sources.formats import Source, check_label, open_source
from daskls.sources.frames import with_labels
from daskls.store.objects import BaseStore, ModelHandle, Scratch
from daskls.store.owner import own_store
from daskls.store.reader import ModelReader, open_model

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice
    from daskls.partition.base import Shrinkage
    from daskls.pipeline import FitResult


def clone_with_client(estimator: Any) -> Any:
    """Return an unfitted copy with the same client: a connection cannot be copied."""
    params = {
        name: value if name == "client" else clone(value, safe=False)
        for name, value in estimator.get_params(deep=False).items()
    }
    copied = type(estimator)(**params)
    # Beside the parameters, what scikit-learn's own clone keeps.
    if hasattr(estimator, "_metadata_request"):
        copied._metadata_request = clone(estimator._metadata_request)
    if hasattr(estimator, "_skl_callbacks"):
        copied._skl_callbacks = estimator._skl_callbacks
    return copied


class LocalEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fitted state is a handle on a model in a store."""

    client: Any
    table_: TableEncoding
    _handle: ModelHandle
    _method_class: ClassVar[type[Method]]
    _kind: ClassVar[TargetKind]
    # The loss of local models where it is no parameter.
    _local_loss: ClassVar[str]

    __sklearn_clone__ = clone_with_client
    feature_importances_ = property(feature_importances)

    def _fit_fields(self, params: Params) -> dict[str, Any]:
        """Return the fields of `FitRequest` that follow from the parameters: method, spec and more.

        Parameters out of range are refused, as far as this can be told without data.
        """
        raise NotImplementedError

    def _request(self) -> FitRequest:
        """Return what the checked parameters ask a fit for."""
        self._validate_params()
        params = params_of(self)
        # First, as what is refused here could not be saved.
        fields = {"cell_size": SEARCH_REGION_ROWS, "class_weight": None, **self._fit_fields(params)}
        return FitRequest(
            estimator=type(self).__name__,
            params=saved_params(params),
            seed=draw_seed(self.random_state),
            **fields,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client; a temporary model is embedded in it."""
        state = {**super().__getstate__(), "client": None}
        handle = state.get("_handle")
        if handle is not None and handle.is_temporary:
            state["_handle"] = embed_model(handle)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("_handle"), bytes):
            state = {**state, "_handle": extract_model(state["_handle"])}
        super().__setstate__(state)

    def _html_repr(self) -> str:
        if not hasattr(self, "_handle"):
            return str(super()._html_repr())
        from daskls.plotting.report import summary_of

        try:
            return f"{super()._html_repr()}{summary_of(self)}"
        except StoreError as error:
            # The store may be gone; the parameters can still be shown.
            return f"<pre>{escape(repr(self))}</pre><p>{escape(str(error))}</p>"

    def _adopt(self, handle: ModelHandle) -> Self:
        self._handle = handle
        reader = self._reader
        # Read the index now, so that the first query reads only its own cell.
        method_of(reader.method, f"The model at {reader.root.where()}").check_index(reader)
        meta = reader.meta
        self.n_features_in_ = reader.n_columns
        names = reader.feature_names
        keep_names(self, None if names is None else names[: reader.n_columns])
        for name in ("table_", "false_alarm_", "interval_"):
            self.__dict__.pop(name, None)
        if meta.get("table") is not None:
            self.table_ = TableEncoding.from_json(meta["table"])
            if self.table_.label is None:
                # X came without labels: as in scikit-learn these are its columns.
                self.n_features_in_ = len(self.table_.columns)
                keep_names(self, self.table_.column_names)
        if reader.false_alarm is not None:
            self.false_alarm_ = reader.false_alarm
        if reader.interval is not None:
            self.interval_ = reader.interval
        self.n_cells_ = reader.n_cells
        if reader.stage_s:
            self.stage_s_ = dict(reader.stage_s)
        return self

    def _fitted_method(self) -> Method:
        """Return the method that made the fitted model, whatever the parameters say now."""
        return method_of(self._reader.method)

    @property
    def _reader(self) -> ModelReader:
        with self._handle.in_use():
            return open_model(self._handle.location, self._handle.fingerprint)

    @property
    def fit_report_(self) -> Any:
        """NumPy record array, shape ``(n_cells_,)``: one row per cell.

        Its fields are those of `daskls.records.CellReport`. ``pandas.DataFrame`` takes it as it
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
        missing: Literal["auto", "refuse"] = "auto",
        unknown: Literal["zero", "error"] = "zero",
        drop: str | Sequence[str] = (),
    ) -> Self:
        """Train on X and y; the model stays in a store, read when it is needed.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array or of a data set. Or a
            table: the path of a CSV, TSV, Parquet, npz or LIBSVM file, a folder or a pattern of
            CSV, TSV or Parquet files; a pandas, Polars or Dask DataFrame, an Arrow table, an
            xarray Dataset.
        y : array (n,), of any of these kinds: labels, or numbers for a regressor, then also
            (n, t); None if X is the path of a data set. For a table, the name of its column of
            labels or numbers, or for a pandas or Polars DataFrame or an Arrow table an array;
            None takes the column named y, label, target or class, with a warning.
        sample_weight : array (n,), >= 0, or None; for a table also the name of its column of
            weights, which is then not a feature. Multiplies C and weights validation errors and
            votes; rows of weight 0 are ignored. Methods that draw rows draw them regardless of
            their weights.
        missing : "auto" or "refuse", default "auto". "auto": missing values, NaN in an array, are
            replaced by the median of their column; an added feature marks them if training rows had
            some, else a warning counts those of queries. "refuse": they are an error.
        unknown : "zero" or "error", default "zero". "zero": a category that no training row had
            becomes 0 in all columns of its feature (the mean of all rows, if the feature has more
            than 64 values), with a warning that counts them. "error": it is an error.
        drop : str or sequence of str, default (). Names of table columns to leave out; a str may
            join several by commas.

        Returns
        -------
        self

        Raises
        ------
        DataError : the data cannot be trained on; the message gives the first bad row's number
        ParameterError : the data has too few rows or features for the parameters
        MemoryPlanError : the largest task, or the sample, would not fit into a worker's memory
        StoreError : the store belongs to another fit, workers cannot see it, or its disk is full
        """
        request = replace(self._request(), takes_nan=missing == "auto")
        current_client(self.client)
        weight = sample_weight if isinstance(sample_weight, str) else None
        dropped = (drop,) if isinstance(drop, str) else tuple(drop)
        options = TableOptions(missing, unknown, dropped, weight)
        X, y = with_labels(X, y)
        source = open_source(X)
        request = replace(request, origin=origin_of(source, y))
        if becomes_features(source, y, options):
            handle, result = self._fit_table(request, source, y, sample_weight, options)
        else:
            options.check_unused("an array")
            table = None if source.dataset is None else source.dataset.table
            request = replace(request, feature_names=source.names, table=table)
            data = check_input(self, source, y, sample_weight)
            store, keep = choose_store(self.store)
            with own_store(store):
                result = self._run(request, data, store)
            handle = ModelHandle(store.where(), result.fingerprint, keep)
        self._adopt(handle)
        self.stage_s_ = result.stage_s
        self._warn_about_folds(request)
        self._warn_about_limits()
        warn_of_units(self, result.units)
        for category, message in self._advice(result.shrinkage):
            warn_user(message, category)
        return self

    def _fit_table(
        self, request: FitRequest, source: Source, y: Any, sample_weight: Any, options: TableOptions
    ) -> "tuple[ModelHandle, FitResult]":
        """Write a table as a data set in the store, and train on that."""
        from daskls.estimators.tables import training_rows, unless_empty

        target = target_apart(self, source, y)
        label = y if target is None else None
        check_label(label)
        store, keep = choose_store(self.store)
        scratch = Scratch.inside(store, f"input-{uuid.uuid4().hex}")
        arguments = label, target, scratch, options, self
        with unless_empty(store), own_store(store), training_rows(source, *arguments) as converted:
            path, table, weights, left_out = converted
            rows = open_source(path)
            encoding = None if table is None else table.to_json()
            origin = {**request.origin, "left_out": left_out}
            request = replace(request, feature_names=rows.names, table=encoding, origin=origin)
            data = check_input(self, rows, target, weights or sample_weight)
            result = self._run(request, data, store)
        return ModelHandle(store.where(), result.fingerprint, keep), result

    def _run(
        self,
        request: FitRequest,
        data: tuple[Source, Source | None, Source | None],
        store: BaseStore,
    ) -> "FitResult":
        """Train on X, y and weights in a store that this fit owns."""
        # Imported here so that a process that only predicts never loads the trainers.
        from daskls.pipeline import run_fit

        scratch = Scratch.inside(store, f"input-{uuid.uuid4().hex}")
        learned: MeasuredAs = "levels" if request.spec.levels else self._kind
        with (
            interrupts_explained(self.store),
            log_losses(self.client),
            open_rows(*data, scratch, self._kind, self.client) as rows,
            shared_with_workers(store, data, self.client),
            fit_view(
                request.estimator, rows.X.shape, learned, store, self.client, self.verbose
            ) as view,
        ):
            callbacks = view.on_progress, view.on_cut
            run = partial(run_fit, request, rows, store, self.client, *callbacks)
            return run_repaired(run, store, request.method)

    def _warn_about_folds(self, request: FitRequest) -> None:
        """Warn if cells hold fewer rows than folds; by default nothing is cross-validated."""

    def _warn_about_limits(self) -> None:
        n_at_limit = int(self.fit_report_.n_at_limit.sum())
        if n_at_limit:
            tol = float(params_of(self)["tol"])
            warn_user(
                f"{n_at_limit} of {int(self.fit_report_.n_trained.sum())} local solves ended "
                f"before their duality gap reached tol={tol:g}; fit_report_.n_at_limit names "
                "their cells. Scale the features, or raise tol.",
                NonConvergenceWarning,
            )

    def _advice(self, shrinkage: "Shrinkage | None" = None) -> "Iterable[Advice]":
        return ()

    def plan(
        self,
        X: Any,
        y: Any = None,
        *,
        missing: Literal["auto", "refuse"] = "auto",
        unknown: Literal["zero", "error"] = "zero",
        drop: str | Sequence[str] = (),
        workers: int | None = None,
        threads_per_worker: int = 1,
        memory_limit: int | str | None = None,
    ) -> FitPlan:
        """Return the resources that `fit` would need, and the errors that it would raise.

        Nothing is trained, and X is not read except for its shape, dtype and chunks; a table and a
        file of arrays are read once, to count rows, features and classes.

        Parameters
        ----------
        X : as `fit` takes it, or a shape (rows, features) of float32
        y : as `fit` takes it, or None. The classes of a table and of y in memory are counted, a
            data set names its classes; else two are assumed.
        missing, unknown, drop : as for `fit` of a table
        workers : int or None. Worker processes of a cluster that need not exist. None: those of the
            current scheduler.
        threads_per_worker : int, >= 1, default 1. Threads of each of ``workers``.
        memory_limit : int, str as "2GiB", or None for a share of this machine. Memory of each of
            ``workers``.

        Returns
        -------
        plan : FitPlan. ``print(plan)`` shows it; ``refusals`` are errors that `fit` would raise,
            each with the parameter to change.

        Raises
        ------
        DataError : columns or labels that `fit` refuses; chunks of unknown sizes; a shape without
            rows or features
        ParameterError : parameters out of range, or that contradict each other
        """
        # Imported here so that a process that only predicts never loads the trainers.
        from daskls.methods.plan import plan_fit

        request = self._request()
        client = current_client(self.client)
        resources = planned_resources(workers, threads_per_worker, memory_limit, client)
        options = TableOptions(missing, unknown, (drop,) if isinstance(drop, str) else tuple(drop))
        source, target, notes = unread_rows(X, y, self._kind, options)
        dtype = np.float64 if self._kind == "numbers" else np.int32
        targets = da.zeros(count_rows(source), dtype=dtype, chunks=-1)
        with open_rows(source, targets, None, Scratch.temporary(), self._kind, client) as rows:
            return plan_fit(request, rows, target, resources, notes)

    def predict(self, X: Any) -> Any:
        """Return the answer of each row."""
        raise NotImplementedError

    def _answer(self, X: Any, wanted: Wanted) -> Any:
        """Return what is wanted of each row of X; the columns of a table are found by name."""
        check_is_fitted(self)
        source = open_source(X)
        # For a model of arrays a frame is an array with names, whose order must match.
        if source.has_columns and (hasattr(self, "table_") or source.kind != "frame"):
            from daskls.estimators.tables import answer_table

            return answer_table(self, source, lambda rows: answer_rows(self, rows, wanted))
        check_names(self, source)
        return answer_rows(self, source, wanted)

    def _score(self, X: Any, y: Any, sample_weight: Any) -> float:
        check_is_fitted(self)
        X, y = with_labels(X, y)
        source = open_source(X)
        if source.has_columns and (y is None or isinstance(y, str)):
            from daskls.estimators.tables import score_table

            return score_table(self, source, y, sample_weight)
        return self._score_rows(*measure_rows(self, source, y, sample_weight))

    def _score_rows(
        self, answers: AnyArray, y: AnyArray, classes: Labels | None, weight: Float64 | None
    ) -> float:
        """Return the score of answers; ``classes`` are the labels of y's codes, if it has them."""
        raise NotImplementedError

    def _test_rows(self, X: Any, y: Any) -> AbstractContextManager[tuple[Any, Any]]:
        """Return rows and labels that a report evaluates: of a table, the data set of both."""
        from daskls.estimators.tables import labeled_rows

        return labeled_rows(self, X, y)

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
