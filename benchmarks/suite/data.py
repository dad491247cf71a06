"""Rows to measure on: real sets with scaled features, and sets on disk."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from sklearn.model_selection import train_test_split

from benchmarks.peers import Data
from benchmarks.suite.real import RealData, covtype_split, load_real
from daskls.datasets import write
from daskls.errors import DataError
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
    return in_training_range(loaded(name))


def in_training_range(data: Data) -> Data:
    """Return rows less the least training value of each feature, by the width of its range."""
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


def class_sets() -> dict[str, int]:
    """Return the sets of the folder whose labels are classes, and their rows, the smallest first.

    Raises
    ------
    DataError : when DASKLS_DATA names no folder of sets
    """
    given = os.environ.get("DASKLS_DATA", "")
    paths = sorted(Path(given).expanduser().glob("*.npz")) if given else []
    if not paths:
        raise DataError(f"Set DASKLS_DATA to a folder of <name>.npz files; got {given!r}.")
    labels = {path.stem: labels_of(path) for path in paths}
    # Where the labels are no integers they are numbers to come near to.
    n_rows = {name: len(y) for name, y in labels.items() if y.dtype.kind != "f"}
    return dict(sorted(n_rows.items(), key=lambda pair: pair[1]))


def labels_of(path: Path) -> np.ndarray:
    """Return the labels of all rows of a file; its features are not read."""
    with np.load(path) as arrays:
        return np.concatenate([arrays[n] for n in ("y", "y_train", "y_test") if n in arrays])


def whole(name: str) -> RealData:
    """Return all rows of a set, official test rows among them."""
    data = load_real(name)
    if data.X_test is None or data.y_test is None:
        return data
    return RealData(np.concatenate([data.X, data.X_test]), np.append(data.y, data.y_test))


def drawn(name: str, seed: int, most: int) -> Data:
    """Return a fifth of all rows to test on, the others to train on; both stratified.

    Of sets with more than ``most`` training rows so many are drawn, and a quarter of that to test.
    """
    data = whole(name)
    n_test = min(-(-len(data.X) // 5), most // 4)
    X, X_test, y, y_test = train_test_split(
        data.X,
        data.y,
        train_size=min(len(data.X) - n_test, most),
        test_size=n_test,
        random_state=seed,
        stratify=data.y,
    )
    return Data(X, y, X_test, y_test)


def official(name: str, most: int) -> Data:
    """Return the rows of an official split, of those to train on ``most``, stratified."""
    data = loaded(name)
    if len(data.X) <= most:
        return data
    X, _, y, _ = train_test_split(data.X, data.y, train_size=most, random_state=0, stratify=data.y)
    return data._replace(X=X, y=y)


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
