"""Disks that refuse: read-only, forbidden, full, and paths that lead below a file."""

import errno
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from support import assert_same_model, checkers, path_of, small_svc

from daskls import StoreError, load
from daskls.datasets import convert

NOBODY = 65534
X, Y = checkers(300)
PAGE = 4096
DISK_NBYTES = 64 << 20


@pytest.fixture(scope="module")
def folder():
    path = Path(tempfile.mkdtemp(prefix="daskls-disks-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def model(folder):
    """A model beside which lies what can be converted; each writer has loaded its modules.

    Another user may not be allowed to read them.
    """
    model = small_svc(store=folder / "model").fit(X, Y)
    np.savetxt(folder / "rows.csv", np.column_stack([X, Y]), delimiter=",")
    for write in WRITERS:
        (folder / write).mkdir()
        WRITERS[write](folder / write / "m", model)
    return model


def fit_temporary(where, model):
    with dask.config.set({"temporary-directory": str(where)}):
        small_svc().fit(X, Y)


# Each writes something in a place.
WRITERS = {
    "fit": lambda where, model: small_svc(store=where).fit(X, Y),
    "fit dask": lambda where, model: small_svc(store=where).fit(*map(da.from_array, (X, Y))),
    "fit temporary": fit_temporary,
    "predict": lambda where, model: model.predict_to_zarr(da.from_array(checkers(500)[0]), where),
    "save": lambda where, model: model.save(where),
    "convert": lambda where, model: convert(path_of(model).with_name("rows.csv"), where, label=-1),
}


@contextmanager
def below_a_file(folder):
    path = folder / "a-file"
    path.write_text("rows")
    yield path
    assert path.read_text() == "rows"


@contextmanager
def another_user():
    before = os.geteuid()
    os.seteuid(before or NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@contextmanager
def forbidden(folder):
    path = folder / "forbidden"
    path.mkdir()
    path.chmod(0o555)
    try:
        with another_user():
            yield path
    finally:
        left = list(path.iterdir())
        shutil.rmtree(path)
    assert left == []


@contextmanager
def mounted(folder, options):
    path = folder / "disk"
    path.mkdir()
    mount = shutil.which("mount") or "false"
    command = [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        path.rmdir()
        pytest.skip("no right to mount a disk")
    try:
        yield path
    finally:
        # A write that was on its way when its neighbor failed keeps the disk busy for a moment.
        command = ["umount", str(path)]
        while subprocess.run(command, capture_output=True, check=False).returncode:
            time.sleep(0.1)
        path.rmdir()


REFUSALS = {below_a_file: "file is in the way", forbidden: "may not write"}


@contextmanager
def one_sentence(where, match):
    """Fail unless there is an error that names the place, and is short enough to be read."""
    with pytest.raises(StoreError, match=match) as error:
        yield
    assert str(where) in str(error.value)
    assert len(str(error.value)) < 600
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("refuse", REFUSALS)
def test_where_nothing_can_be_written(refuse, write, folder, model):
    with refuse(folder) as where, one_sentence(where, REFUSALS[refuse]):
        WRITERS[write](where / "m", model)


@pytest.mark.parametrize("hidden", ["", "root", "bundles", "index"])
def test_a_model_that_may_not_be_read(hidden, folder, tmp_path):
    path, copy = folder / "hidden", folder / "copy"
    model = small_svc(store=path).fit(X, Y)
    model.predict(X)
    (path / hidden).chmod(0)
    calls = [
        (path, lambda: load(path).predict(X)),
        (copy, lambda: model.save(copy)),
        (path, lambda: small_svc(store=path).fit(X, Y)),
        (path, lambda: model.predict(X)),
    ]
    try:
        with another_user():
            # What is open stays open.
            for where, call in calls[: 3 if hidden in ("root", "index") else 4]:
                with one_sentence(where, "Permission denied"):
                    call()
    finally:
        (path / hidden).chmod(0o755)
        shutil.rmtree(path)


@pytest.mark.parametrize(
    ("write", "n_pages"),
    [
        *((write, n) for write in ("fit", "fit dask", "save") for n in (0, 1, 3)),
        ("fit temporary", 0),
        *((write, n) for write in ("predict", "convert") for n in (0, 1)),
    ],
)
def test_a_disk_that_fills(write, n_pages, folder, model):
    with mounted(folder, f"size={DISK_NBYTES}") as where:
        filler = where / "filler"
        filler.write_bytes(bytes(DISK_NBYTES - n_pages * PAGE))
        with one_sentence(where, r"(No space left|are free).*Free some space"):
            WRITERS[write](where / "m", model)
        if not write.startswith("fit"):
            assert list(where.iterdir()) == [filler]
        filler.unlink()
        WRITERS[write](where / "m", model)
        if write in ("fit", "fit dask", "save"):
            assert_same_model(model, where / "m")


def test_a_root_that_does_not_reach_the_disk_is_told(data, monkeypatch, tmp_path):
    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=r"The disk of .*root failed"):
        small_svc(store=tmp_path / "m").fit(*data)
