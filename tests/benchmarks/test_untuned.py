"""The experiment of all tables: its sets and splits, ranks, and where daskls is behind."""

import numpy as np
import pytest

from benchmarks import untuned
from benchmarks.suite.journal import Journal

pytestmark = pytest.mark.slow

ENDED = {"failure": "not done: more than 900 CPU s"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of three sets of classes, one of them with official rows, and one of numbers."""
    rng = np.random.default_rng(0)
    X = np.arange(300.0).reshape(100, 3)
    y = np.repeat([0, 1, 2], [70, 20, 10])
    np.savez(tmp_path / "plain.npz", X=X, y=y)
    np.savez(tmp_path / "small.npz", X=X[:20], y=np.arange(20) % 2 == 0)
    np.savez(tmp_path / "split.npz", X_train=X[::2], y_train=y[::2], X_test=-X, y_test=y)
    np.savez(tmp_path / "numbers.npz", X=X, y=rng.random(100))
    monkeypatch.setenv("DASKLS_DATA", str(tmp_path))
    return tmp_path


# Sets and splits


def test_features_are_scaled_by_training_rows(folder):
    data = untuned.rows("official", "split", 0)
    assert data.X.min() == 0
    assert data.X.max() == 1
    assert data.X_test.min() < -1
    assert data.y_test.tolist() == [0] * 70 + [1] * 20 + [2] * 10


# What is told


def journal_of(path, errors, part="split", **fit_cpu_s):
    """Return a journal of sets with the errors of contenders, a split each; None was ended."""
    journal = Journal(path / "made.jsonl")
    for number, (name, own) in enumerate(errors.items()):
        for contender, values in own.items():
            for seed, error in enumerate(values):
                seconds = fit_cpu_s.get(contender, 1.0)
                cost = {"error": error, "fit_cpu_s": seconds, "predict_cpu_s": 0.5}
                key = {"part": part, "set": name, "estimator": contender, "seed": seed}
                rows = {"train_rows": 100 + number}
                journal.add({**key, **rows, **(ENDED if error is None else cost)})
    return journal


BEHIND = {
    "equal": {"VoronoiSVC": [5, 5, 5], "SVC": [5, 5, 5]},
    "by few points": {"VoronoiSVC": [0.5, 0.5, 0.5], "SVC": [0.3, 0.3, 0.3]},
    "by a small share": {"VoronoiSVC": [24, 24, 24], "SVC": [20, 20, 20]},
    "by chance": {"VoronoiSVC": [1, 1, 10], "SVC": [1, 1, 1]},
    "indeed": {"VoronoiSVC": [3, 4, 5], "SVC": [2, 3, 4], "XGBoost": [9, 9, 9]},
    "from nothing": {"VoronoiSVC": [1, 1, 1], "SVC": [0, 0, 0]},
    "where ended": {"VoronoiSVC": [None], "SVC": [50]},
    "where all are": {"VoronoiSVC": [None], "SVC": [None], "XGBoost": [None]},
    "car": {"VoronoiSVC": [9, 9, 9], "SVC": [1, 1, 1]},
}


def test_sets_on_which_daskls_is_behind(tmp_path):
    errors = {n: {"XGBoost": [99] * len(own["SVC"]), **own} for n, own in BEHIND.items()}
    journal = journal_of(tmp_path, errors)
    rows = untuned.besides(journal, "VoronoiSVC")
    assert untuned.worse(rows) == ["indeed", "from nothing", "where ended"]
    indeed = next(r for r in rows if r["set"] == "indeed")
    assert (indeed["best"], indeed["difference"], indeed["two_errors"]) == ("SVC", 1.0, 0.0)
    assert indeed["ratio"] == pytest.approx(4 / 3)
    assert "but for car, nursery, tic-tac-toe: indeed, from nothing, where ended.\n" in (
        untuned.report(journal)
    )
