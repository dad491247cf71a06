"""Noise filters: find training rows whose label disagrees with the models around them."""

import os
from typing import Any, ClassVar, Literal, Self

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from daskls.cluster import compute
from daskls.errors import DataError
from daskls.estimators import param
from daskls.estimators.base import clone_with_client
from daskls.estimators.classifier import LocalClassifier
from daskls.estimators.docs import complete
from daskls.estimators.falk import FalkSVC
from daskls.estimators.inputs import check_input, check_names, keep_names
from daskls.estimators.knn import KNNSVC
from daskls.estimators.neighborhoods import PERCENTILES, check_single
from daskls.plan.fit import FitPlan
from daskls.records import Float64, SolverSpec, TargetKind
from daskls.run.contract import FitRequest
from daskls.run.labels import check_values
from daskls.run.rows import as_declared, open_rows
from daskls.sources.formats import Source, open_source
from daskls.store.dataset import Dataset, DatasetWriter, open_dataset
from daskls.store.objects import Scratch

# Rows that `clean_dataset` copies at a time.
COPY_ROWS = 1 << 16


class NoiseFilter(BaseEstimator):  # type: ignore[misc]
    client: Any
    model_: LocalClassifier
    _kind: ClassVar[TargetKind] = "classes"
    # Rows that agree less with their label are noise; a parameter of one of the filters.
    threshold: float = 0.5

    __sklearn_clone__ = clone_with_client

    def _classifier(self) -> LocalClassifier:
        raise NotImplementedError

    def _request(self) -> FitRequest:
        """Return what the checked parameters ask the classifier's fit for."""
        self._validate_params()
        return self._classifier()._request()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client; a lazy result is computed, as it needs the store."""
        state = {**super().__getstate__(), "client": None}
        if isinstance(state.get("_agreement"), da.Array):
            (state["_agreement"],) = compute([state["_agreement"]], self.client)
        return state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Evaluate the label of every training row.

        Parameters
        ----------
        X : array (n, d): NumPy, Dask, Zarr, or the path of a Zarr array or of a data set
        y : array (n,) of labels, or None if X is the path of a data set

        Returns
        -------
        self

        Raises
        ------
        DataError, MemoryPlanError, StoreError : as the classifier's `fit`
        """
        # Imported here so that a process that only predicts never loads the trainers.
        from daskls.methods.neighborhoods.noise import agree_array, agree_lazily

        self._validate_params()
        source = open_source(X)
        if source.is_table(y):
            raise DataError(
                "A noise filter takes arrays, and X is a table; write the table as a "
                "data set first: daskls convert, or daskls.datasets.convert, and pass its path."
            )
        self.model_ = self._classifier().fit(source, y)
        self.classes_ = self.model_.classes_
        self.n_features_in_ = self.model_.n_features_in_
        keep_names(self, getattr(self.model_, "feature_names_in_", None))
        if source.kind == "frame" and hasattr(self.model_, "table_"):
            from daskls.estimators.tables import training_features

            source = Source(training_features(self.model_, source, y), "memory")
        handle = self.model_._handle
        rows, target, _ = check_input(self, source, y, None)
        if rows.in_memory and target is not None and target.in_memory:
            self._agreement = agree_array(rows.value, target.value, handle, self.classes_)
            return self
        if target is not None and target.in_memory:
            # Labels in memory become part of the graph: no file has to outlive this call.
            target = open_source(da.from_array(target.value, chunks=max(len(target.value), 1)))
        if rows.in_memory:
            rows = open_source(da.from_array(rows.value, chunks=(max(len(rows.value), 1), -1)))
        # No array is in memory any more, so nothing is written to the scratch folder.
        scratch = Scratch.temporary()
        with open_rows(rows, target, None, scratch, client=self.client) as opened:
            X, y, classes = opened.X, opened.y, opened.classes
            self._agreement = agree_lazily(X, y, handle, self.classes_, classes)
        return self

    def plan(self, X: Any, y: Any = None, **options: Any) -> FitPlan:
        """Return the plan of the classifier's fit, as `LocalClassifier.plan` does.

        The evaluation of every row is not included.

        Parameters
        ----------
        X, y : as for `fit`; or the shape of X
        options : keywords of the classifier's ``plan``

        Raises
        ------
        DataError : a shape without rows or features
        """
        self._validate_params()
        return self._classifier().plan(X, y, **options)

    @property
    def keep_(self) -> Any:
        """Mask of the training rows to keep: bool (n,), lazy where X was."""
        check_is_fitted(self, "model_")
        return self._agreement >= float(self.threshold)

    def transform(self, X: Any) -> Any:
        """Return the rows to keep of an array with one row per training row.

        Parameters
        ----------
        X : array (n, ...): NumPy, Dask or Zarr; the training rows, or other values of these rows
            such as labels

        Returns
        -------
        kept : array (n_kept, ...): NumPy for NumPy, else a Dask array of unknown length

        Raises
        ------
        DataError : another number of rows than in `fit`
        """
        keep = self.keep_
        if isinstance(X, str | os.PathLike):
            raise DataError(
                f"transform takes arrays, not the path {os.fspath(X)!r}; clean_dataset writes a "
                "data set without the rows that look mislabeled."
            )
        check_values(X, "X")
        source = open_source(X)
        X = source.array
        if source.in_memory:
            X = np.asarray(X)
        elif hasattr(X, "store_path"):
            X = da.from_zarr(X)
        elif not isinstance(X, da.Array):
            raise DataError(
                f"transform takes NumPy, Dask and Zarr arrays, got {type(X).__name__}. Convert a "
                "Dask DataFrame or Series with .to_dask_array(lengths=True)."
            )
        else:
            X = as_declared(X, "X")
        if X.shape[0] != keep.shape[0]:
            raise DataError(
                f"X has {X.shape[0]} rows but the filter was fitted on {keep.shape[0]}; it can "
                "only clean the rows that it was fitted on."
            )
        if isinstance(keep, da.Array) and not isinstance(X, da.Array):
            (keep,) = compute([keep], self.client)
        return X[keep]

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Fit on the rows and return those to keep, as imbalanced-learn's samplers do.

        Parameters
        ----------
        X : array (n, d), as for `fit`
        y : array (n,) of labels, as for `fit`

        Returns
        -------
        X, y : arrays (n_kept, d) and (n_kept,), of the kinds of X and y

        Raises
        ------
        DataError : as `fit`
        """
        self.fit(X, y)
        return self.transform(X), self.transform(y)

    def clean_dataset(self, source: str | os.PathLike[str], target: str) -> Dataset:
        """Write the rows to keep of a data set as a new data set.

        Parameters
        ----------
        source : path of the data set that was passed to `fit`
        target : path of the new data set; must not exist

        Returns
        -------
        dataset : Dataset

        Raises
        ------
        DataError : another number of rows, or other names of columns, than in `fit`
        """
        check_is_fitted(self, "model_")
        check_names(self, open_source(source))
        dataset = open_dataset(source)
        (keep,) = compute([self.keep_], self.client)
        if dataset.y is None:
            raise DataError(
                f"The data set {source} has no labels y; give the one that the filter was "
                "fitted on."
            )
        if len(keep) != dataset.n_rows:
            raise DataError(
                f"The data set {source} has {dataset.n_rows} rows but the filter was fitted on "
                f"{len(keep)}; give the one that it was fitted on."
            )
        # Text labels, which daskls never writes, become codes as in its own data sets.
        is_text = dataset.y.dtype.kind in "OUT"
        with DatasetWriter(
            target,
            dataset.n_features,
            dataset.X.dtype,
            y_dtype="int32" if is_text else dataset.y.dtype,
            classes=self.classes_ if is_text else dataset.classes,
            feature_names=dataset.feature_names,
            table=dataset.table,
            source=f"{source}, {int((~keep).sum())} rows removed by {type(self).__name__}",
        ) as writer:
            for start in range(0, dataset.n_rows, COPY_ROWS):
                rows = slice(start, start + COPY_ROWS)
                X, y = np.asarray(dataset.X[rows]), np.asarray(dataset.y[rows])
                y = np.searchsorted(self.classes_, y.astype(object)) if is_text else y
                writer.append(X[keep[rows]], y[keep[rows]])
        return open_dataset(target)


@complete()
class FalkNoiseFilter(NoiseFilter):
    """FaLKNR: a row is noise if FaLK-SVM, trained on all rows, gives it another label.

    Fast: it trains one SVM per center, not one per row. It is not leave-one-out: a row takes part
    in the training of the SVM that evaluates it.

    Parameters
    ----------
    n_neighbors, n_assigned, selection, kernel, C, gamma, degree, coef0, neighbors, n_groups,
    percentiles, cv, tol, feature_scale, store, client, random_state, verbose : as for `FalkSVC`

    Attributes
    ----------
    keep_ : bool array (n,). Which rows to keep; lazy where X was.
    model_ : FalkSVC
    {classes_, n_features_in_, feature_names_in_}

    References
    ----------
    Segata, Blanzieri, Cunningham 2009; Segata: FaLKM-lib v1.0, 2009, section 2.5.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import FalkNoiseFilter
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> y[7] = 1 - y[7]
    >>> noise = FalkNoiseFilter(n_neighbors=60, random_state=0).fit(X, y)
    >>> bool(noise.keep_[7])
    False
    >>> bool(len(noise.transform(X)) == noise.keep_.sum())
    True
    """

    def __init__(
        self,
        n_neighbors: param.Counts = 1000,
        *,
        n_assigned: param.MaybeCount = None,
        selection: Literal["local", "each"] | None = None,
        kernel: param.SearchedKernel = "rbf",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        neighbors: param.NeighborSearch = "exact",
        n_groups: param.Count = 3,
        percentiles: param.Percentiles = PERCENTILES,
        cv: param.Folds = 5,
        tol: param.Positive = 1e-3,
        feature_scale: param.FeatureScale = None,
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())

    def _classifier(self) -> LocalClassifier:
        return FalkSVC(**self.get_params(deep=False))


@complete()
class KNNSVMNoiseFilter(NoiseFilter):
    """FkNNSVM-nr: a row is noise if the SVM of its neighbors, without it, finds its label unlikely.

    A sigmoid, fitted to the neighbors' decision values in 5-fold cross-validation, maps the row's
    decision value to a probability. With more than two classes, the row's class is trained against
    all others.

    Parameters
    ----------
    n_neighbors : int, default 100
    threshold : float in [0, 1], default 0.5. Rows of a smaller probability are noise.
    C : float, sequence of float, or None
        Box bound of a row of weight 1. None: 1, or with selection="each" the papers' 1, 4, 16, 64.
    gamma : float, sequence of float (not of "poly"), or None
        Factor of the squared distance (or the inner product). None: scikit-learn's "scale", of the
        sampled rows; or with selection="each" and "rbf" 1 / q^2 with q the percentiles 1, 10, 50,
        90 of the neighbors' distances.
    selection : "each" or None, default None
        "each": the neighbors of each row choose C and the width, by 5 folds of the ``n_inner``
        nearest ones, before the sigmoid is fitted. None: C and gamma have one value.
    n_inner : int or None
        k', for selection="each". Farther neighbors are in every training fold. None: all neighbors.
    kernel, degree, coef0, neighbors, n_groups, tol, feature_scale, store, client, random_state,
    verbose : as for `KNNSVC`

    Attributes
    ----------
    proba_ : float array (n,). The probability of each row's label; lazy where X was. It is 1 or 0
        where all neighbors have one class.
    keep_ : bool array (n,). Which rows to keep.
    model_ : KNNSVC
    {classes_, n_features_in_, feature_names_in_}

    References
    ----------
    Segata, Blanzieri, Delany, Cunningham 2008; Segata: FaLKM-lib v1.0, 2009, section 2.3, and 2.6
    for selection="each"; Lin, Lin, Weng 2007 for the sigmoid.

    Examples
    --------
    >>> import numpy as np
    >>> from daskls import KNNSVMNoiseFilter
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> y[7] = 1 - y[7]
    >>> noise = KNNSVMNoiseFilter(n_neighbors=30, random_state=0).fit(X, y)
    >>> bool(noise.proba_[7] < 0.5), bool(noise.keep_[7])
    (True, False)
    """

    def __init__(
        self,
        n_neighbors: param.Count = 100,
        *,
        threshold: param.Share = 0.5,
        kernel: param.SearchedKernel = "rbf",
        C: param.Candidates = None,
        gamma: param.Candidates = None,
        selection: Literal["each"] | None = None,
        n_inner: param.MaybeCount = None,
        degree: param.Count = 3,
        coef0: param.NotNegative = 0.0,
        neighbors: param.NeighborSearch = "exact",
        n_groups: param.Count = 3,
        tol: param.Positive = 1e-3,
        feature_scale: param.FeatureScale = None,
        store: param.Store = None,
        client: Any = None,
        random_state: param.RandomState = None,
        verbose: param.Verbose = 0,
    ) -> None:
        param.keep(locals())

    def _classifier(self) -> LocalClassifier:
        params = self.get_params(deep=False)
        del params["threshold"]
        if self.selection == "each":
            return KNNSVC(**params)
        check_single(param.read(SolverSpec, params), 'or selection="each"')
        # C is given, so nothing is selected by the noisy labels.
        return KNNSVC(**{**params, "C": 1.0 if self.C is None else self.C})

    @property
    def proba_(self) -> Float64:
        """The probability of each training row's label: float64 (n,), lazy where X was."""
        check_is_fitted(self, "model_")
        return self._agreement
