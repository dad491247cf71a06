"""Only files of bundles that hold an asked cell are opened."""

import shutil

import numpy as np
import pytest
from support import checkers, n_bundles, small_svc

import daskls
from daskls.plan import bundles

X, Y = checkers(3000)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("asked") / "m"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "N_BUNDLES", 10_000)
        patch.setattr(bundles, "MIN_BUNDLE_WORK", 0.0)
        # Saved elsewhere, so that this process has read nothing of it.
        small_svc().fit(X, Y).save(path)
    assert n_bundles(path) > 20
    return path


def test_stray_files_are_passed_over(store, tmp_path):
    copy = tmp_path / "m"
    shutil.copytree(store, copy)
    expected = daskls.load(store).decision_function(X)
    folders = [copy, *(p for p in copy.rglob("*") if p.is_dir())]
    for folder in folders:
        for name in ("desktop.ini", "README", ".DS_Store", "a-b", "Thumbs.db", "1-2"):
            (folder / name).write_text("stray")
    np.testing.assert_array_equal(daskls.load(copy).decision_function(X), expected)
    again = small_svc(store=copy).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), expected)
