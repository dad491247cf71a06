"""The experiment of probabilities: its scores, its reliability curves, and what it tells."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from benchmarks.suite import proper

pytestmark = pytest.mark.slow


def drawn(k, n=3000, seed=0):
    """Return probabilities of rows and classes drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    return p, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)


@pytest.mark.parametrize("k", [2, 4])
def test_scores_are_scikit_learns(k):
    p, codes = drawn(k)
    found = proper.scores(p, codes)
    assert found["log_loss"] == pytest.approx(log_loss(codes, p), rel=1e-4)
    brier = brier_score_loss(codes, p, scale_by_half=False, labels=np.arange(k))
    assert found["brier"] == pytest.approx(brier)
    # Of predictions that are right: nothing but chance.
    assert found["ece"] < 0.03
    sure = np.eye(k)[p.argmax(axis=1)]
    assert proper.scores(sure, codes)["ece"] == pytest.approx(found["error"] / 100)


def test_a_curve_of_two_classes_is_scikit_learns():
    p, codes = drawn(2)
    curve = proper.reliability(p, codes)
    pairs, sums, hits = (np.array(curve[name]) for name in ("pairs", "sums", "hits"))
    assert pairs.sum() == len(codes)
    share, mean = calibration_curve(codes, p[:, 1], n_bins=proper.N_STEPS)
    np.testing.assert_allclose(hits / pairs, share)
    np.testing.assert_allclose(sums / pairs, mean, atol=1e-4)
