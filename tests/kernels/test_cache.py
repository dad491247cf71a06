"""What is compiled once is compiled again where any file of it has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import daskls
from daskls.kernels._jit import _guard_cache, jit

CODE = """
import numpy as np
from daskls.kernels.answers import decide_distances
from daskls.kernels.exponential import exp_terms
near, out = np.zeros((1, 2), np.float32), np.empty((1, 1))
coef, class_ptr = np.array([[1.0, 0.0]]), np.array([0, 1, 2])
decide_distances(near, *exp_terms(1.0), coef, class_ptr, out)
print(out[0, 0], len(decide_distances.stats.cache_hits))
"""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_an_edit_of_what_is_inlined_is_seen(tmp_path):
    package = tmp_path / "daskls"
    shutil.copytree(Path(daskls.__file__).parent, package, ignore=lambda *_: {"__pycache__"})
    environment = {**os.environ, "PYTHONPATH": "", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def ran():
        # A process finds the package where it stands.
        options = {"cwd": tmp_path, "env": environment, "check": True, "text": True}
        command = [sys.executable, "-c", CODE]
        return subprocess.run(command, capture_output=True, **options).stdout.split()

    assert ran() == ["1.0", "0"]
    assert ran() == ["1.0", "1"]
    # In another file than the function that is compiled.
    inlined = package / "kernels" / "exponential.py"
    text = inlined.read_text().replace("out[j] = p * power", "out[j] = p + p * power")
    inlined.write_text(text)
    assert ran() == ["2.0", "0"]


@pytest.mark.parametrize("compiled", [object(), type("Compiled", (), {"_cache": None})()])
def test_a_numba_that_keeps_its_cache_elsewhere_compiles_all_the_same(compiled):
    _guard_cache(compiled)


def process(monkeypatch, folder):
    """Return the cache file of a function, as one more process opens it."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))

    def added(a, b):
        return a + b

    return jit(added)._cache._cache_file


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("step", ["_save_index", "_save_data"])
@pytest.mark.parametrize("stale", [False, True])
def test_processes_that_compile_at_once_never_take_each_others_code(
    step, stale, tmp_path, monkeypatch
):
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
