"""Compiled code gives the same bits whatever a process compiled, or loaded, before it."""

import os
import subprocess
import sys

import numba
import pytest

SOLVE = """
import numpy as np
from daskls.kernels import hinge
from daskls.kernels.gram import apply_kernel, base_matrix
from daskls.records import KernelSpec

rng = np.random.default_rng(0)
X = rng.normal(size=(97, 3))
y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=97) > 0, 1, -1).astype(np.float32)
Q = apply_kernel(base_matrix(X, "rbf"), KernelSpec("rbf", 0.5), np.empty((97, 97), np.float32))
Q *= y[:, None] * y
upper, ones = np.full(97, 10, np.float32), np.ones(97, np.float32)
"""
# What else a process may have loaded first: each function that the solver is made of.
FIRST = """
hinge._update_and_score(ones.copy(), 0 * ones, upper, ones, Q[0], Q[1], ones[0], ones[0], 0 * ones)
hinge._score_partners(3, Q[3], ones, 0 * ones, upper, ones, 0 * ones)
hinge._fill_gradient(Q, upper, ones.copy())
hinge.fill_gradient(Q, upper, ones.copy())
hinge.duality_gap(ones, 0 * ones, upper)
"""
PRINT = """
alpha, grad, gain = 0 * ones, ones.copy(), 0 * ones
n_steps, gap = hinge.solve_hinge(Q, ones, upper, alpha, grad, 1e-4, 1000, gain)
print(n_steps, gap, alpha.tobytes().hex(), grad.tobytes().hex())
"""


def output(code, cache):
    """Return what a new process prints, its compiled code cached in a folder of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_compiling_loading_and_their_order_leave_no_trace(tmp_path):
    compiled = output(SOLVE + PRINT, tmp_path / "a")
    assert len(compiled) > 97 * 16
    assert output(SOLVE + PRINT, tmp_path / "a") == compiled, "loaded from the cache"
    assert output(SOLVE + FIRST + PRINT, tmp_path / "a") == compiled, "others compiled first"
    assert output(SOLVE + FIRST + PRINT, tmp_path / "b") == compiled, "all compiled, others first"
