"""Base classes of all estimators: fitting, saving and pickling a model that lies in a store."""

import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from daskls.errors import AdviceWarning, NonConvergenceWarning, StoreError, warn_user
from daskls.estimators.columns import keep_names
from daskls.estimators.inputs import (
    check_class_weight,
    check_input,
    draw_seed,
    saved_params,
)
from daskls.estimators.options import probability_of
from daskls.estimators.plan import Plans
from daskls.estimators.predictions import ClassAnswers, NumberAnswers
from daskls.estimators.store import (
    choose_store,
    copy_model,
    embed_model,
    extract_model,
    interrupts_explained,
)
from daskls.estimators.view import fit_view
from daskls.methods.base import SEARCH_REGION_ROWS, method_of
from daskls.records import MeasuredAs, ScalingSpec, SolverSpec
from daskls.run.client import current_client
from daskls.run.contract import FitRequest, Method
from daskls.run.identity import run_repaired
from daskls.run.probe import shared_with_workers
from daskls.run.rows import open_rows
from daskls.run.workers import log_losses
from daskls.sources.door import Source, check_label, open_source
from daskls.sources.encoding import TableEncoding
from daskls.sources.frames import with_labels
from daskls.store.objects import ModelHandle, Objects, Scratch
from daskls.store.owner import own_store
from daskls.store.reader import ModelReader, open_model

if TYPE_CHECKING:
    from daskls.estimators.advice import Advice
    from daskls.methods.fit import FitResult
    from daskls.partition.base import Shrinkage


class SharesClient(BaseEstimator):  # type: ignore[misc]
    """An estimator that shares its ``client`` with its clones and does not pickle it."""

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy with the same client: a connection cannot be copied."""
        own = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        copied = type(self)(**own)
        # Beside the parameters, what scikit-learn's own clone keeps.
        if hasattr(self, "_metadata_request"):
            copied._metadata_request = clone(self._metadata_request)
        if hasattr(self, "_skl_callbacks"):
            copied._skl_callbacks = self._skl_callbacks
        return copied

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state["client"] = None
        return state


class LocalEstimator(Plans, SharesClient):
    """An estimator whose fitted state is a handle on a model in a store."""

    client: Any
    store: Any
    random_state: Any
    verbose: int
    table_: TableEncoding
    _handle: ModelHandle
    # Whether a fit measures how much cells shrink space, to advise against too many dimensions.
    _measures_shrinkage: ClassVar[bool] = False

    def _method(self) -> Method:
        raise NotImplementedError

    def _solver(self) -> SolverSpec:
        raise NotImplementedError

    def _scaling(self) -> ScalingSpec | None:
        """Return the choices that the data decide before space is cut; None if there are none."""
        return None

    def _target_fields(self) -> dict[str, Any]:
        return {"class_weight": None}

    def _sizes(self) -> dict[str, Any]:
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
        """Refuse parameters out of range, as far as this can be told without data."""
        super()._validate_params()
        self._method()
        self._solver()
        self._scaling()

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
        self.n_features_in_ = int(meta["n_features"])
        keep_names(self, meta.get("feature_names"))
        self.__dict__.pop("table_", None)
        if meta.get("table") is not None:
            self.table_ = TableEncoding.from_json(meta["table"])
        self.n_cells_ = reader.n_cells
        if reader.stage_s:
            self.stage_s_ = dict(reader.stage_s)
        return self

    def _fitted_method(self) -> Method:
        """Return the method that made the fitted model, whatever the parameters say now."""
        return method_of(self._reader.method)

    @property
    def _reader(self) -> ModelReader:  # type: ignore[override]
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
        missing: Literal["refuse", "median"] = "refuse",
        unknown: Literal["error", "zero"] = "error",
        drop: str | Sequence[str] = (),
    ) -> Self:
        """Train on X and y, and keep a handle on the model.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array or of a data set. Or a
            table: the path of a CSV, TSV or Parquet file, a folder or a pattern of such files,
            the path of an npz or LIBSVM file; a pandas, Polars or Dask DataFrame, an Arrow table,
            an xarray Dataset.
        y : array (n,), of any of these kinds: labels, or numbers for a regressor, then also
            (n, t); None if X is the path of a data set. For a table, the name of its column of
            labels or numbers; None takes the column named y, label, target or class, with a
            warning.
        sample_weight : array (n,), >= 0, or None; for a table also the name of its column of
            weights, which is then not a feature. Multiplies C and weights validation errors and
            votes; rows of weight 0 are ignored. Methods that draw rows draw them regardless of
            their weights.
        missing : "refuse" or "median". Missing values in a table are refused, or replaced by the
            median of their column; an added feature marks them.
        unknown : "error" or "zero". A category in a query that no training row had raises an
            error, or becomes 0 in all columns of its feature.
        drop : names of table columns to leave out; several may be joined by commas

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
        from daskls.estimators.tables import TableOptions, training_rows, unless_empty

        self._validate_params()
        request = self._request()
        current_client(self.client)
        weight = sample_weight if isinstance(sample_weight, str) else None
        dropped = (drop,) if isinstance(drop, str) else tuple(drop)
        options = TableOptions(missing, unknown, dropped, weight)
        X, y = with_labels(X, y)
        source = open_source(X)
        if not source.is_table(y):
            options.check_unused("X with y apart")
            request = replace(request, feature_names=source.names)
            data = check_input(self, source, y, sample_weight)
            store, keep = choose_store(self.store)
            with own_store(store):
                result = self._run(request, data, store)
        else:
            check_label(y)
            store, keep = choose_store(self.store)
            scratch = Scratch.inside(store, f"input-{uuid.uuid4().hex}")
            seed = self.random_state if isinstance(self.random_state, Integral) else 0
            with (
                unless_empty(store),
                own_store(store),
                training_rows(
                    source, y, scratch, options, int(seed), self.verbose, self._kind
                ) as converted,
            ):
                path, table, weights = converted
                rows = open_source(path)
                encoding = None if table is None else table.to_json()
                request = replace(request, feature_names=rows.names, table=encoding)
                data = check_input(self, rows, None, weights or sample_weight)
                result = self._run(request, data, store)
        self._adopt(ModelHandle(store.where(), result.fingerprint, keep))
        self.stage_s_ = result.stage_s
        self._warn_about_folds()
        self._warn_about_limits()
        self._warn_about_units(result.units)
        for category, message in self._advice(result.shrinkage):
            warn_user(message, category)
        return self

    def _run(
        self,
        request: FitRequest,
        data: tuple[Source, Source | None, Source | None],
        store: Objects,
    ) -> "FitResult":
        """Train on X, y and weights in a store that this fit owns."""
        # Imported here so that a process that only predicts never loads the trainers.
        from daskls.methods.fit import run_fit

        scratch = Scratch.inside(store, f"input-{uuid.uuid4().hex}")
        learned: MeasuredAs = "levels" if request.spec.levels else self._kind
        with (
            interrupts_explained(self.store),
            log_losses(self.client),
            open_rows(*data, scratch, self._kind) as rows,
            shared_with_workers(store, data, self.client),
            fit_view(
                request.estimator, rows.X.shape, learned, store, self.client, self.verbose
            ) as view,
        ):
            views = view.on_progress, view.on_cut
            run = partial(run_fit, request, rows, store, self.client, *views)
            return run_repaired(run, store, request.method)

    def _request(self) -> FitRequest:
        return FitRequest(
            estimator=type(self).__name__,
            method=self._method(),
            # Evaluated before `saved_params`, which would drop a value that is no number.
            spec=self._solver(),
            params=saved_params(self),
            seed=draw_seed(self.random_state),
            scaling=self._scaling(),
            checks_units=self._checks_units(),
            measures_shrinkage=self._measures_shrinkage,
            **self._target_fields(),
            **self._sizes(),
        )

    def _checks_units(self) -> bool:
        return False

    def _warn_about_units(self, units: tuple[int, int, float] | None) -> None:
        """Warn if two features differ so much in spread that distances ignore one of them."""
        if units is not None:
            names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
            warn_user(
                f"The spread of feature {names[units[0]]!s} is {units[2]:.2g} times that of "
                f"feature {names[units[1]]!s}, so distances hardly depend on the latter. Pass "
                'feature_scale="learned" or "spread", or scale X beforehand.',
                AdviceWarning,
            )

    def _warn_about_folds(self) -> None:
        """Warn if cells hold fewer rows than folds; by default nothing is cross-validated."""

    def _advice(self, shrinkage: "Shrinkage | None" = None) -> Iterable["Advice"]:
        return ()

    def _warn_about_limits(self) -> None:
        n_at_limit = int(self.fit_report_.n_at_limit.sum())
        if n_at_limit:
            tol = float(self.get_params()["tol"])
            warn_user(
                f"{n_at_limit} of {int(self.fit_report_.n_trained.sum())} local solves ended "
                f"before their duality gap reached tol={tol:g}; fit_report_.n_at_limit names "
                "their cells. Scale the features, or raise tol.",
                NonConvergenceWarning,
            )

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


class LocalClassifier(ClassAnswers, ClassifierMixin, LocalEstimator):  # type: ignore[misc]
    class_weight: Any = None
    probability: Any = False

    def _probability(self) -> str | None:
        known = self._why_no_held_out() is None
        return probability_of(self.probability, knows_held_out=known)

    def _why_no_held_out(self) -> str | None:
        """Return why a fit has no held-out decision values of its rows; None if it has them."""
        return f"{type(self).__name__} has none"

    def _target_fields(self) -> dict[str, Any]:
        return {"class_weight": self.class_weight, "probability": self._probability()}

    def _validate_params(self) -> None:
        super()._validate_params()
        check_class_weight(self.class_weight)

    def _adopt(self, handle: ModelHandle) -> Self:
        super()._adopt(handle)
        self.classes_ = self._reader.target.labels
        return self


class LocalRegressor(NumberAnswers, RegressorMixin, LocalEstimator):  # type: ignore[misc]
    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
