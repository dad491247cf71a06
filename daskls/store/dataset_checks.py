"""The definition of a data set: its attributes, its arrays, and the values that these can hold."""

from typing import Any

import numpy as np
import zarr

from daskls.errors import DataError, ParameterError, StoreError
from daskls.records import AnyArray

__all__ = [
    "DATASET_FORMAT",
    "DATASET_KIND",
    "UNFINISHED",
    "cast",
    "check_arrays",
    "check_attributes",
    "check_shape",
    "read_classes",
    "read_names",
]

DATASET_FORMAT = 1
DATASET_KIND = "dataset"
UNFINISHED = "dataset-unfinished"


def check_attributes(where: str, attributes: dict[str, Any]) -> None:
    """Refuse what else daskls writes, and what is unfinished or of a newer format."""
    if "daskls_format" not in attributes:
        # Somebody else's, whose arrays have to say what it is.
        return
    kind, version = attributes.get("kind"), attributes["daskls_format"]
    if kind not in (DATASET_KIND, UNFINISHED):
        raise StoreError(
            f"{where!r} is a Zarr group but not a daskls data set (kind {kind!r}, "
            f"wanted {DATASET_KIND!r})."
        )
    if not isinstance(version, int) or version > DATASET_FORMAT:
        raise StoreError(
            f"{where!r} has data set format {version!r}; this daskls reads up to {DATASET_FORMAT}. "
            "Upgrade daskls."
        )
    if kind == UNFINISHED:
        raise StoreError(
            f"{where!r} is incomplete: its writing was interrupted. Write it again, "
            "with overwrite=True."
        )


def check_arrays(where: str, X: object, y: object) -> None:
    """Refuse arrays that are missing, of a wrong rank, or of different lengths."""
    if not isinstance(X, zarr.Array):
        raise StoreError(
            f"{where!r} has no array 'X', so it is not a daskls data set, or a damaged one; give a "
            "Zarr group with arrays X (n, d) and y (n,), as `daskls convert` writes it."
        )
    if X.ndim != 2:
        raise StoreError(f"{where!r}: 'X' must have 2 dimensions, got shape {X.shape}.")
    if y is None:
        return
    if not isinstance(y, zarr.Array) or y.ndim != 1:
        raise StoreError(f"{where!r}: 'y' must be an array of 1 dimension.")
    if X.shape[0] != y.shape[0]:
        raise StoreError(
            f"{where!r}: 'X' has {X.shape[0]} rows but 'y' has {y.shape[0]}; write it again."
        )


def read_classes(where: str, attributes: dict[str, Any]) -> list[Any] | None:
    """The labels of y's codes, of a data set that daskls wrote."""
    classes = attributes.get("classes") if "daskls_format" in attributes else None
    if classes is not None and not isinstance(classes, list):
        raise StoreError(f"{where!r} has damaged classes, {classes!r}; write it again.")
    return classes


def read_names(where: str, attributes: dict[str, Any], X: Any) -> list[str] | None:
    """The names of the columns, of a data set that daskls wrote."""
    names = attributes.get("feature_names") if "daskls_format" in attributes else None
    if names is None:
        return None
    if not isinstance(names, list) or [type(name) for name in names] != [str] * X.shape[1]:
        raise StoreError(
            f"{where!r} has damaged feature_names: wanted {X.shape[1]} names, one a column of X, "
            f"got {names!r}; write it again."
        )
    return names


def check_shape(
    n_features: int, dtype: np.dtype[Any], chunk_rows: int | None, feature_names: Any
) -> None:
    """Refuse a data set that could not be written."""
    if n_features < 1:
        raise ParameterError(f"n_features must be at least 1, got {n_features}.")
    if dtype.kind not in "iuf":
        raise ParameterError(f"dtype must be an integer or floating point type, got {dtype}.")
    if chunk_rows is not None and chunk_rows < 1:
        raise ParameterError(f"chunk_rows must be at least 1, got {chunk_rows}.")
    if feature_names is not None and len(feature_names) != n_features:
        raise ParameterError(
            f"feature_names must hold {n_features} names, one a feature, got {len(feature_names)}."
        )


def cast(name: str, values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Values in the stored type, or a DataError where that would change them beyond rounding."""
    if values.dtype == dtype:
        return values
    same_kind = values.dtype.kind == "b" or np.can_cast(values.dtype, dtype, "same_kind")
    if not same_kind:
        raise DataError(f"{name} has type {values.dtype}, which cannot be stored as {dtype}.")
    try:
        # NumPy makes infinity of what is too large, and only warns.
        with np.errstate(over="raise"):
            stored = values.astype(dtype)
    except FloatingPointError as error:
        raise DataError(f"{name} holds values too large for {dtype}; store float64.") from error
    # Integers wrap without a word.
    if dtype.kind in "iu" and not np.array_equal(stored, values):
        raise DataError(
            f"{name} holds values from {values.min()} to {values.max()}, "
            f"out of the range of {dtype}; choose a wider type."
        )
    return stored
