"""Compiled code: anew where a file of it changed, and with the same bits whatever came before."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import daskls
from daskls.kernels._jit import jit

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

CODE = """
import numpy as np
from daskls.kernels.decisions import decide_narrowly
from daskls.kernels.exponential import exp_terms
near, out = np.zeros((1, 2), np.float32), np.empty((1, 1))
distances = near, near[0], near[0], 1.0, False
coef, class_ptr = np.array([[1.0, 0.0]]), np.array([0, 1, 2])
decide_narrowly(*distances, *exp_terms(1.0), coef, class_ptr, out)
print(out[0, 0], len(decide_narrowly.stats.cache_hits))
"""


def output(code, cache, **options):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **options.pop("env", {})}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_edit_of_what_is_inlined_is_seen(tmp_path):
    package = tmp_path / "daskls"
    shutil.copytree(Path(daskls.__file__).parent, package, ignore=lambda *_: {"__pycache__"})

    def ran():
        # A process finds the package where it stands.
        return output(CODE, tmp_path / "cache", cwd=tmp_path, env={"PYTHONPATH": ""}).split()

    assert ran() == ["1.0", "0"]
    assert ran() == ["1.0", "1"]
    # In another file than the function that is compiled.
    inlined = package / "kernels" / "exponential.py"
    text = inlined.read_text().replace("out[j] = p * power", "out[j] = p + p * power")
    inlined.write_text(text)
    assert ran() == ["2.0", "0"]


SOLVE = """
import numpy as np
from daskls.kernels import exponential, hinge, path, offset, steps
from daskls.kernels.kernel import find_kernel
from daskls.records import KernelSpec

rng = np.random.default_rng(0)
X = rng.normal(size=(97, 3))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=97) > 0, 1, -1).astype(np.float32)
RBF = find_kernel("rbf")
K = RBF.apply(RBF.matrix(X), KernelSpec("rbf", 0.5), np.empty((97, 97), np.float32))
bound, ones = 10 * y, np.ones(97, np.float32)
cap = steps.CLIPPED
"""
# What else a process may have loaded first: each function that the solver is made of.
FIRST = """
zero = 0 * ones
zeros = 0 * ones, 0 * ones, 0 * ones
room = down, up, _, half = steps.step_limits(zero, bound, ones)
mine = y[3], ones[3], down[3], up[3], K[3]
steps.update_and_score(None, y.copy(), *room, K, 0, 1, y[0], y[1], y[2], 5, 9, zero.copy())
hinge._score_partners(None, *mine, y, down, up, half, zero.copy())
offset._score_partners(*mine, y, down, up, half, zero.copy())
offset._mean_offset(y, down, up)
steps.total_gap(y, zero, bound, 5, 9, y[0], cap)
steps.add_columns(K, bound, y, y.copy())
steps.fill_held_out(K, bound, y, y.copy(), 5, 9)
steps.fill_gradient(K, bound, y, y.copy())
steps.row_gap(y[0], y[1], y[2], cap)
path._terms(bound, y, y)
path.choose_start(1, np.array([1.0, 2.0]), True, y, y, bound, y, 2.0, y, y.copy(), y, *zeros)
exponential._multiply(K, 4, np.stack([y, bound]), 0, np.zeros((2, 97), np.float32))
"""
PRINT = """
for method in (hinge.solve_hinge, offset.solve_with_offset):
    beta, grad, gain = 0 * y, y.copy(), 0 * y
    out = method(K, ones, y, bound, beta, grad, 20, 40, cap, 1e-4, 1000, gain)
    print(out, beta.tobytes().hex(), grad.tobytes().hex())
places = np.array([0]), np.array([0, 97])
seed = np.stack([y, beta])
found = np.empty_like(seed)
exponential.multiply_rows(K, seed, found)
print(found.tobytes().hex())
for unit, with_offset in ((True, False), (False, True)):
    betas, offsets = np.empty((3, 97), np.float32), np.empty((3, 1), np.float32)
    path.path_solver(unit=unit, with_offset=with_offset)(
        K.reshape(-1), *places, 0, 1, y, y, found[0], seed[1], found[1], 3.0,
        np.array([0.1, 1.0, 10.0]), places[1][:1] + 20, places[1][:1] + 40, cap, 1e-4,
        np.array([1000]), betas, offsets, np.zeros(3, np.int64),
    )
    print(betas.tobytes().hex(), offsets.tobytes().hex())
"""


@pytest.mark.slow
def test_compiling_loading_and_their_order_leave_no_trace(tmp_path):
    compiled = output(SOLVE + PRINT, tmp_path / "a")
    assert len(compiled) > 97 * 16
    assert output(SOLVE + PRINT, tmp_path / "a") == compiled, "loaded from the cache"
    assert output(SOLVE + FIRST + PRINT, tmp_path / "b") == compiled, "others compiled first"


def process(monkeypatch, folder):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))

    def added(a, b):
        return a + b

    return jit(added)._cache._cache_file


@pytest.mark.parametrize("step", ["_save_index", "_save_data"])
@pytest.mark.parametrize("stale", [False, True])
def test_processes_that_compile_at_once_never_share_code(step, stale, tmp_path, monkeypatch):
    one, other, reader = (process(monkeypatch, tmp_path) for _ in range(3))
    if stale:
        # Of an earlier version, which numbered its files in another order.
        monkeypatch.setattr(one, "_source_stamp", "before")
        one.save("floats", "old floats")
        monkeypatch.undo()
        one = process(monkeypatch, tmp_path)
    before, write, seen = other._load_index(), getattr(one, step), []

    def interrupted(*args):
        # The other process looked at the index before this one wrote it.
        seen.append(reader.load("ints"))
        with monkeypatch.context() as patch:
            patch.setattr(other, "_load_index", lambda: dict(before))
            other.save("floats", "floats")
        write(*args)
        seen.append(reader.load("ints"))

    setattr(one, step, interrupted)
    one.save("ints", "ints")
    assert set(seen) <= {None, "ints"}
    assert reader.load("ints") in (None, "ints")
    assert reader.load("floats") in (None, "floats")
    assert "ints" in (reader.load("ints"), seen[-1])
