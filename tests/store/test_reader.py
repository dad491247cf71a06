"""Only files of bundles that hold an asked cell are opened."""

import shutil

import numpy as np
import pytest
from support import OpenedFiles, checkers, n_bundles, small_svc

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


def touched(files):
    return sorted({file.split("/")[1] for file in files if file.startswith("bundles/")})


def test_one_query_opens_the_files_of_one_bundle(store):
    with OpenedFiles(store) as files:
        model = daskls.load(store)
    assert touched(files) == []
    with OpenedFiles(store) as files:
        label = model.predict(X[:1])
    # The root, the partition, the index, and its bundle: small arrays once, rows and coefficients.
    assert len(touched(files)) == 1
    assert label[0] == model.predict(X)[0]
    # What the model keeps of a bundle is read once; rows and coefficients are read again.
    with OpenedFiles(store) as again:
        model.predict(X[:1])
    assert touched(again) == touched(files)
    assert len(again) == 2 < len(files)


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
