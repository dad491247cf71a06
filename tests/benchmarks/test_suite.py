"""The suite: what runs again, how it measures, what it says of probabilities and of all tables."""

import time

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss
from support import checkers

from benchmarks import untuned
from benchmarks.peers import Data
from benchmarks.suite import proper, runner
from benchmarks.suite.apart import begin_limit, run_forked, run_peer
from benchmarks.suite.experiment import Experiment, Run, abouts, find, grid
from benchmarks.suite.journal import Journal
from benchmarks.suite.tables import page

pytestmark = pytest.mark.slow


def measured(path, stop_before=None):
    """Run an experiment of four keys; return those that it measured."""
    found = []

    def measure(run, set, seed):
        if len(found) == stop_before:
            raise KeyboardInterrupt
        found.append((set, seed))
        return {"error": 0.25 + seed}

    report = page("Toy", "{machine}", "set = set | error = error:.1f", lambda j: j.records)
    toy = Experiment(grid(set=["usps", "letter"], seed=[0, 1]), measure, report)
    runner.measure_missing(toy, Run(Journal(path), path.parent, {}), [], False)
    return found


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "toy.jsonl"
    with pytest.raises(KeyboardInterrupt):
        measured(path, stop_before=2)
    before = path.read_text()
    assert measured(path) == [("letter", 0), ("letter", 1)]
    whole = path.read_text()
    assert whole.startswith(before)
    assert measured(path) == []
    # A line that was cut off is measured again.
    path.write_text(whole[:-9])
    assert measured(path) == [("letter", 1)]
    assert path.read_text() == whole


def test_a_wrong_name_ends_with_suggestions(capsys, tmp_path):
    for arguments, message in (
        (["falc", "--report"], "no experiment 'falc'; did you mean falk"),
        (["workers", "--with", "run=1"], "no setting 'run'; did you mean runs"),
        (["workers", "--quick"], "no setting 'quick'; did you mean"),
        (["workers", "--only", "runs"], "'runs' is not of the form NAME=VALUE"),
    ):
        with pytest.raises(SystemExit) as ended:
            runner.main([*arguments, "--results", str(tmp_path)])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
        assert not list(tmp_path.iterdir())
    assert all(isinstance(find(name), Experiment) for name, _ in abouts())


def test_what_uses_up_its_seconds_is_ended():
    def spin():
        begin_limit(1)
        while time.process_time() < 60:
            pass
        return {}

    assert run_forked(spin, limit_s=1) == {"failure": "not done: more than 1 CPU s"}


def test_a_peer_that_cannot_run_costs_its_row(tmp_path):
    X, y = checkers(40)
    Data(X, y, X, y).save(tmp_path)
    assert "no such peer" in run_peer("no such peer", tmp_path, {}, 60.0)["failure"]
    found = run_peer("gradient boosting", tmp_path, {"max_iter": 2}, 60.0)
    assert found["n_train"] == 40


@pytest.mark.parametrize("k", [2, 4])
def test_scores_and_curves_of_probabilities_are_scikit_learns(k):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 0.7), 3000)
    codes = (p.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1).clip(0, k - 1)
    found = proper.scores(p, codes)
    assert found["log_loss"] == pytest.approx(log_loss(codes, p), rel=1e-4)
    brier = brier_score_loss(codes, p, scale_by_half=False, labels=np.arange(k))
    assert found["brier"] == pytest.approx(brier)
    # Of predictions that are right: nothing but chance.
    assert found["ece"] < 0.03
    sure = np.eye(k)[p.argmax(axis=1)]
    assert proper.scores(sure, codes)["ece"] == pytest.approx(found["error"] / 100)
    if k == 2:
        curve = proper.reliability(p, codes)
        pairs, sums, hits = (np.array(curve[name]) for name in ("pairs", "sums", "hits"))
        assert pairs.sum() == len(codes)
        share, mean = calibration_curve(codes, p[:, 1], n_bins=proper.N_STEPS)
        np.testing.assert_allclose(hits / pairs, share)
        np.testing.assert_allclose(sums / pairs, mean, atol=1e-4)


def test_features_are_scaled_by_training_rows(tmp_path, monkeypatch):
    X, y = np.arange(300.0).reshape(100, 3), np.repeat([0, 1, 2], [70, 20, 10])
    np.savez(tmp_path / "split.npz", X_train=X[::2], y_train=y[::2], X_test=-X, y_test=y)
    monkeypatch.setenv("DASKLS_DATA", str(tmp_path))
    data = untuned.rows("official", "split", 0)
    assert (data.X.min(), data.X.max()) == (0, 1)
    assert data.X_test.min() < -1
    assert data.y_test.tolist() == y.tolist()


# Errors of splits by set and contender; None was ended.
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
    journal = Journal(tmp_path / "made.jsonl")
    for number, (name, own) in enumerate(BEHIND.items()):
        for contender, values in {"XGBoost": [99] * len(own["SVC"]), **own}.items():
            for seed, error in enumerate(values):
                key = {"part": "split", "set": name, "estimator": contender, "seed": seed}
                cost = {"error": error, "fit_cpu_s": 1.0, "predict_cpu_s": 0.5}
                ended = {"failure": "not done: more than 900 CPU s"}
                journal.add(
                    {**key, "train_rows": 100 + number, **(ended if error is None else cost)}
                )
    rows = untuned.besides(journal, "VoronoiSVC")
    assert untuned.worse(rows) == ["indeed", "from nothing", "where ended"]
    indeed = next(r for r in rows if r["set"] == "indeed")
    assert (indeed["best"], indeed["difference"], indeed["two_errors"]) == ("SVC", 1.0, 0.0)
    assert indeed["ratio"] == pytest.approx(4 / 3)
    assert "but for car, nursery, tic-tac-toe: indeed, from nothing, where ended.\n" in (
        untuned.report(journal)
    )
