"""What a task of an L3-SVM holds, beside what was projected."""

import shutil

import numpy as np
import pytest
from landmarks import small_landmarks
from peaks import assert_projected
from support import few

from daskls.memory import TaskSizes
from daskls.methods.landmarks import fit
from daskls.methods.landmarks.plan import landmark_nbytes
from daskls.methods.landmarks.solve import JointJob, ProblemBatch, solve_group
from daskls.records import SolverSpec

pytestmark = pytest.mark.slow

# What tracemalloc does not see: the compiled solver's own matrix and vectors.
LOOSEST = 3.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("n", "d", "n_landmarks"), few([(6000, 8, 8), (6000, 50, 200), (500, 60, 400)])
)
def test_solving_a_cell(n, d, n_landmarks, kernel, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)).astype("f4"), rng.integers(2, size=n)
    jobs = []

    def stop(*args):
        jobs.append(args)
        raise KeyboardInterrupt

    # The fit stops before its last stage, whose tasks are measured.
    monkeypatch.setattr(fit, "_solve", stop)
    params = {"n_landmarks": n_landmarks, "kernel": kernel, "store": tmp_path / "m"}
    with pytest.raises(KeyboardInterrupt):
        small_landmarks(1, **params).fit(X, y)
    job = next(arg for arg in jobs[0] if isinstance(arg, JointJob))
    problems = np.array([[1.0, 1e-3, fold, 0.0] for fold in (-1, 0, 1)])
    now = ProblemBatch("train", 0, problems, np.zeros(3, int))

    def run():
        shutil.rmtree(tmp_path / "m" / "joint", ignore_errors=True)
        return solve_group((0, 0), now, job)

    sizes = TaskSizes(d, 4, 2, n, SolverSpec(kernel))
    projected = landmark_nbytes(sizes, n, n_landmarks, len(problems))
    assert_projected(run, projected, LOOSEST, unseen=min(n, n_landmarks) ** 2 * 8)
