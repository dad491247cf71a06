"""The experiment of probabilities: its scores, its reliability curves, and what it tells."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from benchmarks import probability
from benchmarks.suite import proper, standing
from benchmarks.suite.journal import Journal

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


# Measurements


# What is told


def journal_of(path, losses):
    """Return a journal of the log losses of contenders on sets, one a split."""
    journal = Journal(path / "made.jsonl")
    curve = {"pairs": [50] * 10, "sums": [50 * p for p in np.arange(0.05, 1, 0.1)]}
    for number, (name, own) in enumerate(losses.items()):
        for contender, values in own.items():
            for seed, loss in enumerate(values):
                journal.add(
                    {
                        **{"part": "split", "set": name, "estimator": contender, "seed": seed},
                        **{"train_rows": 100 + number, "test_rows": 500, "classes": 2},
                        **{"prior": 0.7, "log_loss": loss, "brier": loss / 2, "ece": 0.1},
                        **{"error": 9.0, "fit_cpu_s": 1.0, "predict_cpu_s": 0.5},
                        "curve": {**curve, "hits": list(range(0, 50, 5))},
                    }
                )
    return journal


LOSSES = {
    "best": {"VoronoiSVC": [0.1, 0.2], "LightGBM": [0.3, 0.4], "XGBoost": [0.5, 0.6]},
    "by chance": {"VoronoiSVC": [0.1, 0.6], "LightGBM": [0.2, 0.3], "XGBoost": [0.5, 0.9]},
    "behind": {"VoronoiSVC": [0.5, 0.6], "LightGBM": [0.2, 0.3], "XGBoost": [0.5, 0.9]},
    "once": {"VoronoiSVC": [0.5], "LightGBM": [0.2], "XGBoost": [0.9]},
}


def test_places_are_by_two_paired_errors(tmp_path):
    journal = journal_of(tmp_path, LOSSES)
    boards = standing.board(journal, "split", ["VoronoiSVC", "LightGBM", "XGBoost"])
    places = [probability.standing(boards[name], "VoronoiSVC", "log_loss") for name in LOSSES]
    assert places == ["least", "within", "above", "above"]
    text = probability.report(journal)
    told = (
        "errors of it, on 2 of 3 (not on behind); of one split the least on 0 of 1 (not on once).\n"
    )
    assert told in text
    assert "| best | 100 | 2 | 2 | 0.1500 ± 0.0707 | 0.3500 ± 0.0707 |" in text


def test_figures_are_of_the_journal_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("DASKLS_DATA", raising=False)
    journal = journal_of(tmp_path, {"churn": {"VoronoiSVC": [0.2], "LightGBM": [0.3]}})
    (axes,) = probability.draw(journal).axes
    (points,) = (line for line in axes.lines if line.get_label() == "VoronoiSVC")
    assert points.get_xdata().tolist() == pytest.approx([0.2 / 0.7])
    panel = probability.draw_curves(journal).axes[0]
    assert panel.get_title() == "churn: 2 classes, 500 rows"
    curve = panel.containers[1].lines[0]
    assert curve.get_xdata().tolist() == pytest.approx(np.arange(0.05, 1, 0.1).tolist())
    assert curve.get_ydata().tolist() == pytest.approx(np.arange(0, 1, 0.1).tolist())
