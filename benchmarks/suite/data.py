"""Rows to measure on: real sets with scaled features, and sets on disk."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr
from sklearn.model_selection import train_test_split

from benchmarks.peers import Data
from daskls.datasets import covtype_split, load_real, write
from daskls.store.dataset import DatasetWriter


def loaded(name: str) -> Data:
    """Return a real set with test rows as it is; covtype's are drawn."""
    data = covtype_split() if name == "covtype" else load_real(name)
    return Data(data.X, data.y, data.X_test, data.y_test)


def scaled(name: str) -> Data:
    """Return a set with each feature in [0, 1], by all rows."""
    data = loaded(name)
    X, X_test = to_unit(data.X, data.X_test)
    return data._replace(X=X, X_test=X_test)


def by_training(name: str) -> Data:
    """Return a set with each feature scaled by its least and largest value in training rows."""
    data = loaded(name)
    low = data.X.min(axis=0).astype(float)
    X, X_test = shifted(data.X, data.X_test, low, data.X.max(axis=0) - low)
    return data._replace(X=X, X_test=X_test)


def has_test(name: str) -> bool:
    return name == "covtype" or load_real(name).X_test is not None


def split(name: str, seed: int) -> Data:
    """Return two thirds of a set's rows to train on, the others to test on."""
    data = load_real(name)
    X, X_test, y, y_test = train_test_split(
        data.X, data.y, test_size=1 / 3, random_state=seed, stratify=data.y
    )
    return Data(X, y, X_test, y_test)


def to_unit(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale each feature to [0, 1] by its least and largest value among all rows."""
    low = np.minimum(X.min(axis=0), X_test.min(axis=0)).astype(float)
    return shifted(X, X_test, low, np.maximum(X.max(axis=0), X_test.max(axis=0)) - low)


def shifted(
    X: np.ndarray, X_test: np.ndarray, low: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows less ``low``, by ``width`` where that is not 0."""
    width = np.where(width == 0, 1, width)
    train, test = (((part - low) / width).astype(np.float32) for part in (X, X_test))
    return train, test


def by_deviation(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide each feature by its standard deviation among training rows, in float64."""
    X, X_test = np.asarray(X, np.float64), np.asarray(X_test, np.float64)
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0
    return X / scale, X_test / scale


# Sets on disk


def write_set(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    classes, codes = np.unique(y, return_inverse=True)
    with DatasetWriter(path, X.shape[1], "float32", classes=classes.tolist()) as writer:
        writer.append(X, codes)


class OnDisk(NamedTuple):
    """Training and test rows in Zarr; in memory are the labels to compare with alone."""

    train: Path
    test: Path
    y_test: np.ndarray


@cache
def on_disk(folder: Path, name: str) -> OnDisk:
    """Write a set scaled by its training rows, once a run."""
    data = by_training(name)
    train, test = (folder / f"{name}-{part}.zarr" for part in ("train", "test"))
    write_set(train, data.X, data.y)
    write_set(test, data.X_test, data.y_test)
    return OnDisk(train, test, data.y_test)


def written(name: str, folder: Path, n: int, seed: int = 0, **options: Any) -> Path:
    """Return a made set of n rows; one that was written whole is there already."""
    path = folder / f"{name}-{n}-{seed}.zarr"
    if not path.exists():
        part = path.with_suffix(".part")
        write(name, part, n, random_state=seed, overwrite=True, **options)
        part.rename(path)
    return path


def labels(path: Path, n: int | None = None) -> np.ndarray:
    """Return the labels of a set on disk, whose codes are numbers of its classes."""
    classes = np.array(zarr.open_group(path).attrs["classes"])
    return classes[zarr.open_array(path / "y")[:n]]
