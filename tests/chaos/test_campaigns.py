"""A short form of the campaigns; `make chaos` runs the long one. And: they see what is broken."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from chaos.damage import KINDS, do_damage
from chaos.forked import run_forked
from chaos.outcomes import Result, classify, has_failed
from daskls import StoreError

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
CLEAR = "The file /a/b is damaged. Copy or train the model again."


def run_campaign(name, folder, *options):
    """Run some trials in a process of their own; return their records."""
    command = [sys.executable, "-m", "chaos", name, "--folder", folder / "w", "--results", folder]
    env = {**os.environ, "PYTHONPATH": f"{TESTS.parent}{os.pathsep}{TESTS}"}
    done = subprocess.run(
        [*command, *options], env=env, check=False, capture_output=True, text=True
    )
    journal = folder / f"chaos_{name}.jsonl"
    assert journal.exists(), done.stderr
    return [json.loads(line) for line in journal.read_text().splitlines()]


@pytest.mark.slow
def test_damaged_stores(tmp_path):
    records = run_campaign("stores", tmp_path, "--trials", "16", "--seed", "6")
    assert len(records) == 16
    assert {record["state"] for record in records} == {"finished", "unfinished"}
    assert [record for record in records if has_failed(record)] == []


@pytest.mark.slow
def test_faults_while_a_cluster_works(tmp_path):
    options = ("--short", "--jobs", "1", "--trials", "4", "--seed", "4")
    records = run_campaign("faults", tmp_path, *options)
    assert len(records) == 4
    assert [record for record in records if has_failed(record)] == []


@pytest.mark.parametrize(
    ("result", "seen"),
    [
        (Result("value", value="bits"), "same bits"),
        (Result("value", value="other bits"), "wrong"),
        (Result("daskls", message=CLEAR), "clear"),
        (Result("daskls", message="Damaged."), "unclear"),
        (Result("daskls", message=CLEAR + " " * 2000), "unclear"),
        (Result("error", message=CLEAR), "unclear"),
        (Result("interrupt"), "clear"),
        (Result("hung"), "hung"),
        (Result("signal"), "crashed"),
    ],
)
def test_each_result_has_its_class(result, seen):
    assert classify(result, "bits") == seen


def raises(error):
    raise error


@pytest.mark.parametrize(
    ("task", "kind", "said"),
    [
        (lambda: "bits", "value", ""),
        (lambda: raises(StoreError("no store")), "daskls", "no store"),
        (lambda: raises(KeyError("name")), "error", "'name'"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "signal", "SIGKILL"),
        (lambda: time.sleep(3600), "hung", "no progress"),
    ],
)
def test_a_fork_tells_how_it_ended(task, kind, said):
    result = run_forked(task, 1.0)
    assert result.kind == kind
    assert said in result.message


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_damage_changes_a_file(kind, tmp_path):
    rng = np.random.default_rng(0)
    for i in range(3):
        (tmp_path / f"c.{i}").write_bytes(rng.bytes(2000 + i))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said = do_damage(tmp_path, kind, rng)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    changed = [name for name in before if before[name] != after.get(name)]
    assert len(changed) == (2 if kind == "swapped" else 1)
    assert any(name in said for name in changed)
