"""The definition of a data set: its attributes, its arrays, and the values that they can hold."""

import errno
import json
import os
from typing import Any

import numpy as np
import zarr

from daskls.errors import DataError, ParameterError, StoreError
from daskls.records import AnyArray
from daskls.store.locations import expand_path, is_artifact, is_bucket, open_store, write_errors
from daskls.store.objects import CLAIM, Objects

# The root of a Zarr group.
DESCRIPTION, MAX_METADATA_NBYTES = "zarr.json", 64 << 20
DATASET_FORMAT = 1
DATASET_KIND = "dataset"
UNFINISHED = "dataset-unfinished"
# What a data set consists of.
OWN_NAMES = ("X", "y", DESCRIPTION, CLAIM)
WRITE_AGAIN = "write the data set again"


def check_attributes(where: str, attributes: dict[str, Any]) -> None:
    """Refuse daskls' other groups, and data sets that are unfinished or of a newer format."""
    if "daskls_format" not in attributes:
        # Not written by daskls: its arrays must show that it is a data set.
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
    """Return the labels of y's codes; None without any, or if daskls did not write the data set."""
    classes = attributes.get("classes") if "daskls_format" in attributes else None
    if classes is not None and not isinstance(classes, list):
        raise StoreError(f"{where!r} has damaged classes, {classes!r}; write it again.")
    return classes


def read_names(where: str, attributes: dict[str, Any], X: Any) -> list[str] | None:
    """Return the names of the columns; None as for `read_classes`."""
    names = attributes.get("feature_names") if "daskls_format" in attributes else None
    if names is None:
        return None
    if not isinstance(names, list) or [type(name) for name in names] != [str] * X.shape[1]:
        raise StoreError(
            f"{where!r} has damaged feature_names: wanted {X.shape[1]} names, one per column of X, "
            f"got {names!r}; write it again."
        )
    return names


def check_shape(
    n_features: int, dtype: np.dtype[Any], chunk_rows: int | None, feature_names: Any
) -> None:
    if n_features < 1:
        raise ParameterError(f"n_features must be at least 1, got {n_features}.")
    if dtype.kind not in "iuf":
        raise ParameterError(f"dtype must be an integer or floating point type, got {dtype}.")
    if chunk_rows is not None and chunk_rows < 1:
        raise ParameterError(f"chunk_rows must be at least 1, got {chunk_rows}.")
    if feature_names is not None and len(feature_names) != n_features:
        raise ParameterError(
            f"feature_names must hold {n_features} names, one per feature, "
            f"got {len(feature_names)}."
        )


def cast(name: str, values: AnyArray, dtype: np.dtype[Any]) -> AnyArray:
    """Return values in the stored dtype; DataError where that changes them beyond rounding."""
    if values.dtype == dtype:
        return values
    same_kind = values.dtype.kind == "b" or np.can_cast(values.dtype, dtype, "same_kind")
    if not same_kind:
        raise DataError(f"{name} has type {values.dtype}, which cannot be stored as {dtype}.")
    try:
        # By default NumPy turns values that are too large into infinity, and only warns.
        with np.errstate(over="raise"):
            stored = values.astype(dtype)
    except FloatingPointError as error:
        raise DataError(f"{name} holds values too large for {dtype}; store float64.") from error
    # Integers wrap around silently.
    if dtype.kind in "iu" and not np.array_equal(stored, values):
        raise DataError(
            f"{name} holds values from {values.min()} to {values.max()}, "
            f"out of the range of {dtype}; choose a wider type."
        )
    return stored


def check_target(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse a path where no data set may be written; touch nothing.

    Only a data set of daskls, with `overwrite`, may be there, and a URL must be of a kind that
    `store=` takes.
    """
    where = expand_path(path)
    if "://" in where and not is_bucket(where):
        raise StoreError(f"Cannot write to the URL {where!r}; write to a local folder and copy it.")
    if is_bucket(where) and "/" not in where.partition("://")[2].strip("/"):
        raise StoreError(f"{where!r} names a bucket but no path in it. Give a path as well.")
    store = open_store(where)
    if not store.exists(""):
        return
    kind = kind_at(store)
    if kind not in (DATASET_KIND, UNFINISHED):
        raise StoreError(
            f"{where!r} exists and is not a daskls data set, so it is not replaced; "
            "choose another path or remove it yourself."
        )
    if not overwrite:
        what = "a data set" if kind == DATASET_KIND else "an incomplete data set"
        raise StoreError(f"{where!r} already holds {what}; pass overwrite=True to replace it.")


def kind_at(store: Objects) -> str | None:
    """Return the `kind` that a store's own metadata claims, whatever the state of its arrays."""
    names = store.names()
    if DESCRIPTION not in names and set(names) <= {*OWN_NAMES} and not is_artifact(store):
        # What a writer leaves in a bucket that was killed.
        return UNFINISHED
    try:
        attributes = json.loads(store.read(DESCRIPTION, MAX_METADATA_NBYTES))["attributes"]
        return str(attributes["kind"]) if "daskls_format" in attributes else None
    except (StoreError, ValueError, KeyError, TypeError):
        return None


def check_there(path: str, then: str) -> None:
    """Raise a `StoreError` if Zarr data was removed; ``then`` is what to do once it is back."""
    with write_errors(path, then):
        if not open_store(path).exists(DESCRIPTION):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
