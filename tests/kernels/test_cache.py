"""What is compiled once is compiled again where any file of it has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import daskls
from daskls.kernels._jit import _stamp

CODE = """
import numpy as np
from daskls.kernels.exponential import exp_terms
from daskls.kernels.exponential import write_exponential
K, none = np.zeros((2, 2), np.float32), np.empty((0, 2), np.float32)
write_exponential(K.copy(), *exp_terms(1.0), none, K, none)
print(K[0, 0], len(write_exponential.stats.cache_hits))
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
    _stamp(compiled)
