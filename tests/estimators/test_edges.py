"""Inputs at the edge of what can be: float16, nothing learned, forks, leftovers."""

import os

import numpy as np
import pytest
from support import small_svc

import daskls
from daskls.store.objects import TemporaryFolder


def quadrants(n=400):
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    return X, (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)


@pytest.fixture(scope="module")
def model():
    return small_svc().fit(*quadrants())


def test_cells_that_learn_nothing_leave_the_others_alone():
    # A tol that every start satisfies: no alpha moves, so no cell has a support row.
    X, _ = quadrants()
    y = np.random.default_rng(1).random(len(X)) < 0.6
    flat = small_svc(C=1000.0, gamma=0.01, tol=10.0).fit(X, y)
    assert flat.fit_report_.n_support.sum() == 0


def test_a_fork_does_not_remove_its_parents_folder():
    folder = TemporaryFolder()
    child = os.fork()
    if child == 0:
        folder._finalizer()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.where.exists()
    folder._finalizer()
    assert not folder.where.exists()


def test_what_a_killed_fit_left_goes_and_is_not_saved(tmp_path):
    X, y = quadrants()
    model = small_svc(store=tmp_path / "m").fit(X, y)
    left = [tmp_path / "m" / name for name in ("exchange-dead", "input-dead")]
    for path in left:
        path.mkdir()
    model.save(tmp_path / "saved")
    assert not [p for p in (tmp_path / "saved").iterdir() if "dead" in p.name]
    small_svc(store=tmp_path / "m").fit(X, y)
    assert not any(path.exists() for path in left)


def test_a_probe_that_was_left_does_not_block_the_store(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".probe-dead").write_text("x")
    small_svc(store=tmp_path / "m").fit(*quadrants())
    assert daskls.load(tmp_path / "m").n_cells_
