"""Real sets: `.npz` files in the folder that DASKLS_DATA names."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from daskls.errors import DataError

COVTYPE_N_TRAIN = 464_429


class RealData(NamedTuple):
    """All rows of a set, or those to train on and to test on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None


def load_real(name: str) -> RealData:
    """Load ``<name>.npz``, which holds X and y, or X_train, y_train, X_test, y_test."""
    folder = os.environ.get("DASKLS_DATA")
    if not folder:
        raise DataError("Set DASKLS_DATA to a folder of <name>.npz files.")
    with np.load(Path(folder).expanduser() / f"{name}.npz", allow_pickle=False) as arrays:
        names = ("X", "y") if "X" in arrays else ("X_train", "y_train", "X_test", "y_test")
        return RealData(*(arrays[key] for key in names))


def covtype_split() -> RealData:
    """Return Covertype as the 2017 paper uses it, by its sizes: its choice of rows is not known.

    +1 is cover type 2; features are scaled to [0, 1] by all rows.
    """
    data = load_real("covtype")
    order = np.random.default_rng(2017).permutation(len(data.X))
    X = np.empty(data.X.shape, np.float32)
    # Column by column: all rows as float64 would be held a second time.
    for j, column in enumerate(data.X.T):
        values = column.astype(np.float64)
        X[:, j] = (values - values.min()) / (np.ptp(values) or 1.0)
    y = np.where(data.y == 2, 1, -1).astype(np.int32)
    train, test = order[:COVTYPE_N_TRAIN], order[COVTYPE_N_TRAIN:]
    return RealData(X[train], y[train], X[test], y[test])
