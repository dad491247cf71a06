"""What measures: tasks and bytes of a fit, processes that are ended, tables of records."""

import time

import pytest
from support import checkers

from benchmarks.peers import Data
from benchmarks.suite.apart import begin_limit, run_forked, run_peer

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
