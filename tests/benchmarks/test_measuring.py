"""What measures: tasks and bytes of a fit, processes that are ended, tables of records."""

import time

import dask
import numpy as np
import pytest
from support import checkers

import daskls
from benchmarks.peers import Data
from benchmarks.suite.apart import begin_limit, run_forked, run_peer
from benchmarks.suite.searches import trace
from benchmarks.suite.tables import table

pytestmark = pytest.mark.slow


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


def test_what_a_record_does_not_have_stays_empty():
    columns = "set = set | error % = 100 * error:.1f | peak = f'{peak} ({before})'"
    records = [{"set": "usps", "error": 0.0577}, {"set": "letter", "peak": 3, "before": 2}]
    assert table(columns, records).splitlines()[2:] == [
        "| usps | 5.8 |  |",
        "| letter |  | 3 (2) |",
    ]


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
