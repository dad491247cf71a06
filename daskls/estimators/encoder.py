"""TableEncoder: the encoding of tables that every `fit` learns, as a transformer."""

import os
from typing import Annotated, Any, Literal, Self

import dask
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from daskls.errors import DataError, warn_user
from daskls.estimators import param
from daskls.estimators.docs import complete
from daskls.estimators.inputs import check_targets
from daskls.estimators.tables import encoded_lazily
from daskls.records import TargetKind
from daskls.sources.base import TableOptions, TableSource
from daskls.sources.encoding import TableEncoding
from daskls.sources.formats import Source, open_source
from daskls.sources.labels import kind_of_column, kind_of_values, pick_label_column
from daskls.sources.scan import scan_labels, scan_table
from daskls.sources.signs import with_numbers
from daskls.sources.statistics import CrossFit
from daskls.sources.write import encoded, write_features
from daskls.store.dataset import Dataset
from daskls.store.objects import Scratch, store_at


@complete()
class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode named columns as features: numbers, categories one-hot or by target, gaps filled.

    Every estimator's ``fit`` encodes tables in this way. The transformer takes CSV, TSV and Parquet
    files, folders and patterns of them, pandas, Polars and Dask DataFrames, Arrow tables and xarray
    Datasets, and holds one batch of rows in memory at a time.

    Parameters
    ----------
    label : str or None. The column of labels, which becomes no feature. A text column of more than
        64 values becomes statistics of the labels (of y if label is None), as by scikit-learn's
        ``TargetEncoder``; without labels it is refused.
    missing : "auto" or "refuse", default "auto". "auto": missing values are replaced by the median
        of a seeded sample of rows; an added feature marks them if rows of `fit` had some.
        "refuse": they are an error.
    unknown : "zero" or "error", default "zero". "zero": a category that no row of `fit` had becomes
        0 in all columns of its feature (the mean of all rows, if the feature has more than 64
        values), with a warning. "error": it is an error.
    drop : sequence of str, default (). Names of columns to leave out.
    random_state : int, default 0. Seed of the sample that medians are taken from, and of the folds
        of `fit_transform`. Both have the same rows, however these are distributed over files,
        partitions and blocks.

    Attributes
    ----------
    table_ : record. The encoding; ``to_json`` returns it as JSON values, ``describe`` in words.
    feature_names_in_ : array (n_columns,) of the names of the columns that become features
    n_features_in_ : int. Number of these columns.

    Notes
    -----
    scikit-learn's encoders take only data in memory, those of dask-ml only Dask collections.

    Examples
    --------
    >>> import pandas as pd
    >>> from daskls import TableEncoder
    >>> fruit = pd.DataFrame({"weight": [0.2, None, 0.4], "color": ["red", "green", "red"]})
    >>> encoder = TableEncoder().fit(fruit)
    >>> encoder.get_feature_names_out().tolist()
    ['weight', 'weight is missing', 'color=green', 'color=red']
    >>> encoder.transform(fruit)[1].round(6).tolist()
    [0.3, 1.0, 1.0, 0.0]
    """

    def __init__(
        self,
        label: Annotated[str | None, str, None] = None,
        *,
        missing: Literal["auto", "refuse"] = "auto",
        unknown: Literal["zero", "error"] = "zero",
        drop: Annotated[Any, "array-like"] = (),
        random_state: Annotated[int, int] = 0,
    ) -> None:
        param.keep(locals())

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read a table once and choose the encoding of each column.

        Parameters
        ----------
        X : path or DataFrame
        y : array (n,) of labels or numbers, or None; only read if `label` is None

        Returns
        -------
        self

        Raises
        ------
        DataError : columns that cannot become features, with the reason and a remedy; y of another
            length
        ParameterError : a parameter is not one of its choices
        """
        self._learn(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Return the features of the rows of `fit`, with statistics of the other folds' labels.

        Parameters
        ----------
        X, y : as for `fit`, but no paths

        Returns
        -------
        features : array (n, d), as of `transform`

        Raises
        ------
        DataError : as `fit`; a file
        ParameterError : as `fit`
        """
        return self._features(X, self._learn(X, y))

    def _learn(self, X: Any, y: Any) -> CrossFit:
        self._validate_params()
        options = TableOptions(self.missing, self.unknown, tuple(self.drop))
        with Scratch.temporary() as scratch:
            source = self._open(open_source(X), scratch)
            label = pick_label_column(source, self.label, required=False)
            kind: TargetKind = "classes" if label is None else kind_of_column(source, label)[0]
            target = None
            if label is None and y is not None:
                (target,) = dask.compute(y)
                numbers = np.asarray(target)
                is_number = numbers.dtype.kind in "iuf"
                kind = kind_of_values([numbers])[0] if is_number else "classes"
                target = check_targets(target, kind)
            scan = scan_table(
                with_numbers(source, label, kind),
                label,
                options,
                seed=self.random_state,
                kind=kind,
                target=target,
            )
        self.table_ = scan.encoding
        self.feature_names_in_ = np.array(scan.encoding.column_names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return scan.cross_fit

    def transform(self, X: Any) -> Any:
        """Return the features of a DataFrame, whose columns may be in any order.

        Parameters
        ----------
        X : DataFrame of queries; for the rows of `fit` use `fit_transform`, for a file `to_zarr`

        Returns
        -------
        features : array (n, d): NumPy; a lazy Dask array for a Dask DataFrame

        Raises
        ------
        DataError : a missing value in a column where `fit` saw none, an unseen category, text in a
            column of numbers
        """
        check_is_fitted(self, "table_")
        return self._features(X, None)

    def _features(self, X: Any, cross_fit: CrossFit | None) -> Any:
        source = open_source(X)
        if source.files or not source.has_columns:
            raise DataError(
                f"transform takes a DataFrame, got {type(X).__name__}; for a file call "
                "to_zarr(file, path), which holds one batch in memory at a time."
            )
        if source.kind == "dask table":
            return encoded_lazily(X, self.table_, cross_fit)
        with Scratch.temporary() as scratch:
            features = encoded(self._open(source, scratch), self.table_, cross_fit=cross_fit)
            none = np.empty((0, features.n_features), features.dtype)
            return np.concatenate([none, *(rows for rows, _, _ in features.blocks())])

    def to_zarr(self, X: Any, path: str | os.PathLike[str]) -> Dataset:
        """Write the features of a table, and its labels if it has their column, as a data set.

        Parameters
        ----------
        X : path or DataFrame
        path : the data set to make; must not exist

        Returns
        -------
        dataset : Dataset; every ``fit`` takes its path

        Raises
        ------
        DataError : as `transform`
        StoreError : something exists at ``path``, or its disk is full or cannot be written
        """
        check_is_fitted(self, "table_")
        with Scratch.temporary() as scratch:
            source = self._open(open_source(X), scratch, self.table_)
            label = self.label if self.label in source.names else None
            n_rows, labels = source.n_rows, None
            if label is not None:
                kind, _ = kind_of_column(source, label)
                source = with_numbers(source, label, kind)
                n_rows, labels = scan_labels(source, label, kind)
                if any(column.kind == "statistics" for column in self.table_.columns):
                    warn_user(
                        "The statistics written here contain the labels of the rows that fit "
                        "has read; to train on these rows, pass the table itself: fit(X, "
                        "label).",
                        UserWarning,
                    )
            features = encoded(source, self.table_, label=label, labels=labels, n_rows=n_rows)
            return write_features(features, store_at(path, what="data set").where())

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the features.

        Parameters
        ----------
        input_features : ignored; names come from the table

        Returns
        -------
        names : array (d,) of text

        Raises
        ------
        NotFittedError : before `fit`
        """
        check_is_fitted(self, "table_")
        return np.array(self.table_.feature_names, dtype=object)

    def _open(
        self, X: Source, scratch: Scratch, encoding: TableEncoding | None = None
    ) -> TableSource:
        if not X.has_columns or X.kind == "features":
            raise DataError(
                f"X is {type(X.value).__name__}, which has no named columns; pass a CSV or Parquet "
                "file or a DataFrame. Arrays go to fit as they are."
            )
        return X.open(self.label, scratch.folder, encoding)
