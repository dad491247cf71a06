"""The demo in small, and its memory measurement."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from support import checkers, python_env, small_svc
from typer.testing import CliRunner

import daskls
from daskls.cli import app
from daskls.cli.demo import DemoSet, PeakMemory, compile_ahead, demo_grid, is_compiled, tree_nbytes


def test_a_small_demo_prints_its_figures_and_draws(tmp_path):
    args = ["demo", "--rows", "6000", "--set", "checkerboard", "--output", str(tmp_path / "out")]
    args += ["--workers", "1", "--cell-size", "500", "-q"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "4 x 4 grid" in text
    assert "94.50 %, the best possible" in text
    assert "PSS" in text
    accuracy = float(text.split("accuracy")[1].split("%")[0])
    assert 85 < accuracy < 98
    model = daskls.load(tmp_path / "out" / "model.zarr")
    assert model.n_cells_ == 12
    assert len(model.C) == len(model.gamma) == 4
    picture = (tmp_path / "out" / "demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


@pytest.mark.slow
def test_a_small_demo_of_numbers(tmp_path):
    args = ["demo", "--rows", "4000", "--task", "regression", "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*args, "--workers", "1", "--cell-size", "1000", "-q"])
    assert result.exit_code == 0, result.output
    r2, best = (line for line in result.stdout.splitlines() if line.startswith("R2"))
    assert "on 800 other rows" in r2
    assert "0.9597, the best possible" in best
    assert 0.85 < float(r2.split()[1]) < 0.96
    assert type(daskls.load(tmp_path / "out" / "model.zarr")).__name__ == "VoronoiSVR"
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_replaces_nothing_foreign(tmp_path):
    (tmp_path / "train.zarr").mkdir()
    (tmp_path / "train.zarr" / "precious").write_text("keep")
    args = ["demo", "--rows", "1000", "--output", str(tmp_path), "--workers", "1", "-q"]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 1
    assert (tmp_path / "train.zarr" / "precious").exists()


@pytest.mark.parametrize("name", list(DemoSet))
def test_the_grid_follows_the_cells(name):
    small, large = demo_grid(name, 10_000, 1000), demo_grid(name, 1_000_000, 1000)
    np.testing.assert_allclose(np.divide(large["gamma"], small["gamma"]), 100)
    assert small["C"] == large["C"]


def test_peak_memory_sees_what_came_and_went():
    with PeakMemory() as memory:
        block = np.ones(100 << 17)
        time.sleep(0.8)
        del block
    assert memory.peak_nbytes - memory.start_nbytes > 80 << 20


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="PSS is Linux's")
def test_a_forked_childs_shared_pages_count_once():
    block = np.ones(100 << 17)
    before = tree_nbytes()
    child = os.fork()
    if child == 0:
        time.sleep(5)
        os._exit(0)
    try:
        time.sleep(0.2)
        assert tree_nbytes() - before < 60 << 20
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert block.sum() > 0


def test_nothing_is_compiled_twice(tmp_path, capsys):
    # The tests before this one have compiled.
    small_svc(C=[1.0, 10.0]).fit(*checkers(300))
    assert is_compiled()
    compile_ahead(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    assert not (tmp_path / "ran").exists()
    assert capsys.readouterr().out == ""


LOOK = """
import json
from daskls.cli.demo import compile_ahead, is_compiled
from daskls.cli.demo import TRAIN_FEW
before = is_compiled()
compile_ahead(TRAIN_FEW.format(name="checkerboard"))
print(json.dumps([before, is_compiled()]))
"""


@pytest.mark.slow
def test_a_machine_without_a_cache_compiles_in_a_process_of_its_own(tmp_path):
    environment = python_env(NUMBA_CACHE_DIR=str(tmp_path))
    told = subprocess.run(
        [sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["Compiling, once on this machine.", "[false, true]"]
