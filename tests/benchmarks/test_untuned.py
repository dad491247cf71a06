"""The experiment of all tables: its sets and splits, ranks, and where daskls is behind."""

import numpy as np
import pytest
from support import checkers

from benchmarks import untuned
from benchmarks.suite import defaults, standing
from benchmarks.suite.data import class_sets, drawn, official
from benchmarks.suite.experiment import Run
from benchmarks.suite.journal import Journal
from daskls.errors import DataError

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


def keys_of(folder, quick=False):
    return list(untuned.keys(Run(Journal(folder / "j.jsonl"), folder, {"quick": quick})))


# Sets and splits


def test_sets_are_those_of_classes_the_smallest_first(folder):
    assert list(class_sets().items()) == [("small", 20), ("plain", 100), ("split", 150)]


@pytest.mark.parametrize("given", ["", "/nowhere"])
def test_no_folder_of_sets_is_told(given, monkeypatch):
    monkeypatch.setenv("DASKLS_DATA", given)
    with pytest.raises(DataError, match="DASKLS_DATA"):
        class_sets()


def test_every_contender_has_five_splits_of_a_set_and_its_official_rows(folder):
    keys = keys_of(folder)
    assert len(keys) == len(untuned.CONTENDERS) * (3 * 5 + 1)
    assert {k["set"] for k in keys if k["part"] == "official"} == {"split"}
    assert {k["seed"] for k in keys if k["part"] == "split"} == set(range(5))


def test_a_quick_run_has_one_split_of_the_smaller_sets(folder):
    np.savez(folder / "large.npz", X=np.zeros((untuned.QUICK_ROWS, 1)), y=np.zeros(10_000, int))
    keys = keys_of(folder, quick=True)
    assert {k["set"] for k in keys} == {"small", "plain", "split"}
    assert {(k["part"], k["seed"]) for k in keys} == {("split", 0)}


def test_splits_are_stratified_seeded_and_of_all_rows(folder):
    first, again, other = (drawn("split", seed, 1000) for seed in (0, 0, 1))
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.X_test, other.X_test)
    assert np.bincount(first.y).tolist() == [84, 24, 12]
    assert np.bincount(first.y_test).tolist() == [21, 6, 3]
    assert len(np.unique(np.concatenate([first.X, first.X_test]), axis=0)) == 150


@pytest.mark.parametrize("most", [40, 20])
def test_of_larger_sets_so_many_rows_are_drawn(folder, most):
    data = drawn("plain", 0, most)
    assert (len(data.X), len(data.X_test)) == (most, most // 4)
    assert np.bincount(data.y).tolist() == [most * 7 // 10, most // 5, most // 10]
    assert not {*data.X[:, 0]} & {*data.X_test[:, 0]}
    assert np.bincount(official("split", most).y).tolist() == np.bincount(data.y).tolist()


def test_features_are_scaled_by_training_rows(folder):
    data = untuned.rows("official", "split", 0)
    assert data.X.min() == 0
    assert data.X.max() == 1
    assert data.X_test.min() < -1
    assert data.y_test.tolist() == [0] * 70 + [1] * 20 + [2] * 10


# Measurements


def test_what_a_model_of_cells_chose_is_kept(tmp_path):
    X, y = checkers(200)
    model = defaults.OURS["VoronoiSVC"](0).fit(X, y > 0)
    journal = Journal(tmp_path / "j.jsonl")
    journal.add({"set": "checkers", **defaults.choice(model)})
    (kept,) = Journal(journal.path).records
    assert kept["choice"]["spec"]["loss"] == "squared_error"
    assert kept["choice"]["summary"] == model._reader.resolved.summary
    assert kept["choice"]["summary"]["chosen"]["kernel"] in untuned.words(kept["choice"])


def test_what_was_ended_on_the_first_split_is_not_tried_on_others(folder):
    journal = Journal(folder / "j.jsonl")
    key = {"part": "split", "set": "plain", "estimator": "SVC"}
    journal.add({**key, "seed": 0, **ENDED})
    run = Run(journal, folder, {"quick": False})
    assert untuned.measure(run, **key, seed=1)["failure"] == ENDED["failure"]
    assert untuned.measure(run, **key | {"estimator": "random forest"}, seed=1)["fit_cpu_s"] > 0


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


def test_means_of_as_many_errors_share_a_rank(tmp_path):
    # As sums of floats they differ.
    journal = journal_of(tmp_path, {"a": {"VoronoiSVC": [0.3, 0.2, 0.1], "SVC": [0.1, 0.2, 0.3]}})
    boards = standing.board(journal, "split", ["VoronoiSVC", "SVC"])
    assert standing.mean_ranks(boards) == {"VoronoiSVC": 1.5, "SVC": 1.5}


def test_ranks_are_of_means_and_who_is_ended_is_last(tmp_path):
    journal = journal_of(
        tmp_path,
        {
            "a": {"VoronoiSVC": [1, 3], "XGBoost": [3, 3], "SVC": [2, 2]},
            "b": {"VoronoiSVC": [5, 5], "XGBoost": [60, 60], "SVC": [None, None]},
        },
    )
    boards = standing.board(journal, "split", ["VoronoiSVC", "XGBoost", "SVC"])
    assert standing.mean_ranks(boards) == {"VoronoiSVC": 1.25, "XGBoost": 2.5, "SVC": 2.25}
    rows = {r["estimator"]: r for r in untuned.ranked(journal)}
    assert rows["SVC"]["fit_cpu_s"] == (1 + untuned.LIMIT_S) / 2


def test_means_are_of_the_splits_and_sets_that_all_have(tmp_path):
    errors = {"a": {"VoronoiSVC": [1, 99], "SVC": [2]}, "b": {"SVC": [1]}}
    rows = untuned.ranked(journal_of(tmp_path, errors))
    assert [(r["estimator"], r["sets"], r["rank"]) for r in rows] == [
        ("VoronoiSVC", 1, 1.0),
        ("SVC", 1, 2.0),
    ]


def test_what_failed_otherwise_is_as_not_measured(tmp_path):
    journal = journal_of(tmp_path, {"a": {"VoronoiSVC": [1]}})
    key = {"part": "split", "set": "a", "estimator": "SVC", "seed": 0, "train_rows": 100}
    journal.add({**key, "failure": "ImportError: no module"})
    assert untuned.ranked(journal) == []
    assert "not measured" in untuned.report(journal)


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


def test_two_errors_are_paired():
    own = {c: [{"error": e} for e in es] for c, es in {"x": [2, 4], "y": [1, 4]}.items()}
    found = standing.beside(own, "x")
    assert (found.difference, found.two_errors) == (0.5, pytest.approx(1.0))


def test_seconds_are_by_those_of_xgboost_or_a_tenth(tmp_path):
    errors = {"a": {"VoronoiSVC": [1], "XGBoost": [1]}}
    for theirs, times in ((0.01, "20.0"), (4.0, "0.5")):
        journal = journal_of(tmp_path, errors, VoronoiSVC=2.0, XGBoost=theirs)
        told = f"a fit over XGBoost's: {times} in the median, {times} at the most (a)"
        assert told in untuned.report(journal)


def test_report_and_figure_are_of_the_journal_alone(tmp_path, monkeypatch):
    monkeypatch.delenv("DASKLS_DATA", raising=False)
    journal = journal_of(tmp_path, {"a": {"SVC": [1, 2], "LightGBM": [3, None]}})
    journal_of(tmp_path, {"a": {"SVC": [7.25]}}, part="official")
    text = untuned.report(Journal(journal.path))
    assert "| a | 100 | 2 | > 900 s | 1.50 |" in text
    assert "| a | 100 | 1 | 7.25 |" in text
    (axes,) = untuned.draw(journal).axes
    assert {text.get_text() for text in axes.texts} == {"SVC", "LightGBM"}
