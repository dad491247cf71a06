"""Real data sets: `.npz` files in the folder that the variable DASKLS_DATA names."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from daskls.errors import DataError
from daskls.records import Float32, Labels, Reals

COVTYPE_N_TRAIN = 464_429
COVTYPE_SEED = 2017


@dataclass(frozen=True)
class RealData:
    """A real data set in memory, with the values of its file.

    Attributes
    ----------
    name : str
    X : array, shape (n, d). All rows, or the training rows if there is a test set.
    y : array, shape (n,). Labels.
    X_test : array, shape (m, d), or None if the set has no official split
    y_test : array, shape (m,), or None

    Examples
    --------
    >>> X, y = np.eye(2), np.array(["a", "b"])
    >>> RealData("tiny", X, y).X_test is None
    True
    """

    name: str
    X: Reals
    y: Labels
    X_test: Reals | None = None
    y_test: Labels | None = None


def load_real(name: str) -> RealData:
    """Load `<name>.npz` from the folder that DASKLS_DATA names.

    Parameters
    ----------
    name : str, as `covtype`. The file holds X and y, or X_train, y_train, X_test, y_test.

    Returns
    -------
    RealData

    Raises
    ------
    DataError : DASKLS_DATA is not set, or the file is missing or holds other arrays.

    Examples
    --------
    >>> import tempfile
    >>> from unittest.mock import patch
    >>> with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, DASKLS_DATA=folder):
    ...     np.savez(f"{folder}/tiny.npz", X=np.eye(2), y=np.array(["a", "b"]))
    ...     load_real("tiny").X.shape
    (2, 2)
    """
    given = os.environ.get("DASKLS_DATA")
    if not given:
        raise DataError(
            f"Cannot load {name!r}: the environment variable DASKLS_DATA is not set; set it to a "
            "folder of <name>.npz files with arrays X, y or X_train, y_train, X_test, y_test."
        )
    folder = Path(given).expanduser()
    path = folder / f"{name}.npz"
    if not path.is_file():
        names = ", ".join(sorted(p.stem for p in folder.glob("*.npz"))) or "none"
        raise DataError(f"No file {path}; set DASKLS_DATA to its folder. Found there: {names}.")
    with np.load(path, allow_pickle=False) as arrays:
        wanted = ("X", "y") if "X" in arrays else ("X_train", "y_train", "X_test", "y_test")
        missing = [key for key in wanted if key not in arrays]
        if missing:
            raise DataError(f"{path} has no array {missing[0]!r}; it needs {', '.join(wanted)}.")
        return RealData(name, *(arrays[key] for key in wanted))


def covtype_split() -> RealData:
    """Load Covertype as the 2017 paper on spatial decompositions uses it.

    Returns
    -------
    RealData with X (464429, 54) and X_test (116583, 54) float32 in [0, 1], y of -1 and +1 (int32).

    Raises
    ------
    DataError : as `load_real`; or there are too few rows.

    Notes
    -----
    +1 is cover type 2, -1 all others. Each feature is scaled by its minimum and maximum over all
    rows. The rows are permuted by `numpy.random.default_rng(2017).permutation(n)`; the first
    464,429 are for training (the paper's sizes; its own choice of rows is not known).

    Examples
    --------
    >>> import tempfile
    >>> from unittest.mock import patch
    >>> X, y = np.arange(464_500)[:, None], np.arange(464_500) % 7 + 1
    >>> with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, DASKLS_DATA=folder):
    ...     np.savez(f"{folder}/covtype.npz", X=X, y=y)
    ...     data = covtype_split()
    >>> len(data.X), len(data.X_test), bool(data.X.max() <= 1)
    (464429, 71, True)
    """
    data = load_real("covtype")
    if len(data.X) <= COVTYPE_N_TRAIN:
        raise DataError(f"covtype must have over {COVTYPE_N_TRAIN} rows, got {len(data.X)}.")
    order = np.random.default_rng(COVTYPE_SEED).permutation(len(data.X))
    train, test = order[:COVTYPE_N_TRAIN], order[COVTYPE_N_TRAIN:]
    X = _scale_to_unit(data.X)
    y = np.where(data.y == 2, 1, -1).astype(np.int32)
    return RealData("covtype", X[train], y[train], X[test], y[test])


def _scale_to_unit(X: Reals) -> Float32:
    """Scale each feature from its least value (0) to its largest (1); a constant one is 0."""
    # Not scikit-learn's MinMaxScaler, which holds all of X a second time as float64.
    scaled = np.empty(X.shape, np.float32)
    for j, column in enumerate(X.T):
        values = column.astype(np.float64)
        low, width = values.min(), np.ptp(values)
        scaled[:, j] = (values - low) / (width or 1.0)
    return scaled
