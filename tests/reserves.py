"""Helpers of the tests on reserved rows: data, small estimators, and which rows are held out."""

import numpy as np

from daskls import VoronoiSVC, VoronoiSVR
from daskls.kernels.copies import row_hashes
from daskls.partition.shuffle import row_keys
from daskls.seeds import THRESHOLD_ROWS

SEED = 3
RATE, COVERAGE = 0.1, 0.9
ONE = {"kernel": "rbf", "C": 4.0, "gamma": 6.0, "feature_scale": None, "random_state": SEED}
# Cells that choose among two values of C by the papers' losses.
HINGE = {**ONE, "loss": "hinge", "cv": 2}
TUBE = {**ONE, "C": [1.0, 4.0], "loss": "epsilon_insensitive", "epsilon": 0.05, "cv": 2}


def overlapping(n=1200, seed=0, share=0.4):
    """Return rows of two classes that overlap."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


def uneven(n=900, seed=0):
    """Return rows whose noise is ten times as large on one side, with a number each."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6 * X[:, 0]) + np.where(X[:, 1] > 0.5, 1.0, 0.1) * rng.normal(size=n)


def two_columns(X, y):
    """Return two columns of numbers: those given, and others in another unit."""
    return np.stack([y, 100 + 5 * X[:, 0] + y**2], axis=1)


def bounded(**params):
    """Return a small classifier with a bound on false alarms."""
    return VoronoiSVC(**{"cell_size": 200, "max_false_alarm": RATE, **ONE, **params})


def covering(**params):
    """Return a small regressor with intervals."""
    return VoronoiSVR(**{"cell_size": 150, "interval": COVERAGE, **ONE, **params})


def held_out(X, y, codes, counts, seed=SEED):
    """Return which rows are held out: so many of each class, by the order of hashed values."""
    keys = row_keys(row_hashes(X, y, seed=THRESHOLD_ROWS(seed)), 0)
    found = np.zeros(len(codes), bool)
    for code, count in enumerate(counts):
        own = np.flatnonzero(codes == code)
        found[own[np.argsort(keys[own])[:count]]] = True
    return found
