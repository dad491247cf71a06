"""What measures: tasks and bytes of a fit, processes that are ended, tables of records."""

import time

import dask
import numpy as np
import pytest
from support import checkers

import daskls
from benchmarks import track
from benchmarks.peers import Data
from benchmarks.suite.apart import begin_limit, run_forked, run_peer
from benchmarks.suite.searches import trace
from benchmarks.suite.tables import mean_of, table

pytestmark = pytest.mark.slow


def test_tasks_and_bytes_are_those_of_the_fit(tmp_path):
    X, y = checkers(400)
    with dask.config.set(scheduler="sync"):
        one = fitted(X, y, (400, 2), tmp_path / "one")
        four = fitted(X, y, (100, 2), tmp_path / "four")
    assert four["tasks"] > one["tasks"] > 0
    assert one["written"] * 1024 > X.nbytes


def fitted(X, y, chunks, store):
    model = daskls.VoronoiSVC(200, C=1.0, gamma=1.0, random_state=0, store=store)
    rows, labels = dask.array.from_array(X, chunks), dask.array.from_array(y, chunks[:1])
    return track.cost(lambda: model.fit(rows, labels))


def test_what_uses_up_its_seconds_is_ended():
    def spin():
        begin_limit(1)
        while time.process_time() < 60:
            pass
        return {}

    assert run_forked(spin, limit_s=1) == {"failure": "not done: more than 1 CPU s"}


def test_what_fails_apart_says_so():
    assert run_forked(lambda: 1 / 0, limit_s=9)["failure"].startswith("ZeroDivisionError")


def test_a_peer_that_cannot_run_costs_its_row(tmp_path):
    X, y = checkers(40)
    Data(X, y, X, y).save(tmp_path)
    assert "no such peer" in run_peer("no such peer", tmp_path, {}, 60.0)["failure"]
    found = run_peer("gradient boosting", tmp_path, {"max_iter": 2}, 60.0)
    assert found["n_train"] == 40


def test_what_a_record_does_not_have_stays_empty():
    columns = "set = set | error % = 100 * error:.1f | peak = f'{peak} ({before})'"
    records = [{"set": "usps", "error": 0.0577}, {"set": "letter", "peak": 3, "before": 2}]
    assert table(columns, records).splitlines()[2:] == [
        "| usps | 5.8 |  |",
        "| letter |  | 3 (2) |",
    ]


@pytest.mark.parametrize(("values", "shown"), [([1500.0], "1,500.0"), ([1.0, 3.0], "2.0 ± 1.0")])
def test_several_values_are_a_mean_and_a_deviation(values, shown):
    assert mean_of(np.array(values), 1) == shown


def test_support_rows_that_are_among_given_ones():
    """Those of a line between two classes lie near it, wherever the rows stand in the data."""
    X = np.random.default_rng(0).uniform(-3, 3, (600, 2))
    data = Data(X, X[:, 0] > 0, X[:50], X[:50, 0] > 0)

    def counts(given):
        model = daskls.LocalSamplingSVC(0.3, n_subsamples=4, kernel="linear", C=1.0, random_state=0)
        with dask.config.set(scheduler="sync"):
            return trace(model, data, 2, np.flatnonzero(given))

    near = counts(np.abs(X[:, 0]) < 2)
    assert near["n_real"] == near["n_support"]
    assert counts(np.abs(X[:, 0]) >= 2)["n_real"] == [0, 0]
    assert counts(X[:, 0] > 0)["n_real"] < near["n_support"]
