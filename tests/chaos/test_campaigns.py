"""A short form of the campaign; `make chaos` runs the long one. And: it sees what is broken."""

import json
import subprocess
import sys

import pytest
from support import python_env

from chaos.outcomes import Result, classify, has_failed

pytestmark = pytest.mark.slow

CLEAR = "The file /a/b is damaged. Copy or train the model again."


def test_faults_while_a_cluster_works(tmp_path):
    command = [sys.executable, "-m", "chaos", "--folder", tmp_path / "w", "--results", tmp_path]
    # A worker is killed in a fit, workers are restarted in a prediction; of one estimator.
    options = ("--short", "--jobs", "1", "--trials", "2", "--seed", "363")
    done = subprocess.run([*command, *options], env=python_env(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "chaos_faults.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines if has_failed(json.loads(line))] == []
    assert len(lines) == 2
    assert "0 failed" in done.stdout


@pytest.mark.parametrize(
    ("result", "seen"),
    [
        (Result("value", value="other bits"), "wrong"),
        (Result("daskls", message=CLEAR), "clear"),
        (Result("daskls", message="Damaged."), "unclear"),
        (Result("daskls", message=CLEAR + " " * 2000), "unclear"),
        (Result("error", message=CLEAR), "unclear"),
        (Result("signal"), "crashed"),
    ],
)
def test_each_result_has_its_class(result, seen):
    assert classify(result, "bits") == seen
