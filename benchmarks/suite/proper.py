"""What probabilities are worth: proper scores, calibration, counts of reliability curves."""

import numpy as np
from sklearn.metrics import log_loss

from benchmarks.suite.journal import Record

__all__ = ["LEAST", "N_BINS", "N_STEPS", "reliability", "scores"]

# Bins of the largest probability, of the calibration error; and those of a reliability curve.
N_BINS, N_STEPS = 15, 10
# What float32 still tells from 1: some libraries answer in it, and none should lose by that.
LEAST = float(np.finfo(np.float32).eps)


def scores(found: np.ndarray, codes: np.ndarray) -> Record:
    """Return proper scores, and how far confidence and accuracy are apart in the mean of bins."""
    k = found.shape[1]
    wanted = np.eye(k)[codes]
    likeliest, confidence = found.argmax(axis=1), found.max(axis=1)
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gap = np.bincount(bins, weights=(likeliest == codes) - confidence, minlength=N_BINS)
    return {
        "log_loss": loss_of(found, codes),
        "brier": float(((found - wanted) ** 2).sum(axis=1).mean()),
        "ece": float(np.abs(gap).sum() / len(codes)),
        "error": 100 * float(np.mean(likeliest != codes)),
    }


def loss_of(found: np.ndarray, codes: np.ndarray) -> float:
    """Return the log loss; no probability counts as less than `LEAST`."""
    clipped = np.clip(found.astype(np.float64), LEAST, 1.0)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return float(log_loss(codes, clipped, labels=np.arange(found.shape[1])))


def reliability(found: np.ndarray, codes: np.ndarray) -> Record:
    """Return of each of `N_STEPS` bins its pairs, the sum of their probabilities, and the hits.

    A pair is a row and a class, of more than two classes each one; of two the second alone, as the
    first would say the same again.
    """
    k = found.shape[1]
    p = found[:, 1:] if k == 2 else found
    is_own = codes[:, None] == (np.array([1]) if k == 2 else np.arange(k))
    bins = np.minimum((p * N_STEPS).astype(int), N_STEPS - 1).ravel()
    total, hits = (
        np.bincount(bins, weights=values.ravel().astype(float), minlength=N_STEPS)
        for values in (p, is_own)
    )
    return {
        "pairs": np.bincount(bins, minlength=N_STEPS).tolist(),
        "sums": np.round(total, 3).tolist(),
        "hits": hits.astype(int).tolist(),
    }
