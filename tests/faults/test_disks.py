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
from support import assert_same_model, checkers, small_svc

import daskls
from daskls import StoreError
from daskls.datasets import convert

NOBODY = 65534
N_ROWS = 300
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
    return small_svc(store=folder / "model").fit(*checkers(N_ROWS))


@pytest.fixture(scope="module")
def files(folder, model):
    """Write what can be converted; then let each writer work, where it may, and load its modules.

    Another user may not be allowed to read them.
    """
    X, y = checkers(N_ROWS)
    np.savetxt(folder / "rows.csv", np.column_stack([X, y]), delimiter=",")
    for write in (*FITS, *OTHERS):
        (folder / write.__name__).mkdir()
        write(folder / write.__name__, model, folder)
    return folder


# What writes, each as a function of (where, model, files).


def fit_numpy(where, model, files):
    small_svc(store=where / "m").fit(*checkers(N_ROWS))


def fit_dask(where, model, files):
    X, y = checkers(N_ROWS)
    small_svc(store=where / "m").fit(da.from_array(X), da.from_array(y))


def fit_temporary(where, model, files):
    with dask.config.set({"temporary-directory": str(where / "m")}):
        small_svc().fit(*checkers(N_ROWS))


def predict(where, model, files):
    model.predict_to_zarr(da.from_array(checkers(500)[0]), where / "m")


def save(where, model, files):
    model.save(where / "m")


def convert_csv(where, model, files):
    convert(files / "rows.csv", where / "m", label=-1)


FITS = [fit_numpy, fit_dask, fit_temporary]
OTHERS = [predict, save, convert_csv]


def name_of(value):
    return getattr(value, "__name__", str(value))


# Where nothing can be written, each as a context that yields a path.


@contextmanager
def below_a_file(folder):
    path = folder / "a-file"
    path.write_text("rows")
    yield path
    assert path.read_text() == "rows"


@contextmanager
def another_user():
    """Be another user than root, who may read and write everywhere."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


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


def assert_one_sentence(error, where):
    """Fail unless an error names the place, and is short enough to be read."""
    text = str(error.value)
    assert str(where) in text
    assert len(text) < 600
    assert "\n" not in text


@pytest.mark.parametrize("write", [*FITS, *OTHERS], ids=name_of)
@pytest.mark.parametrize("refuse", REFUSALS, ids=name_of)
def test_where_nothing_can_be_written(refuse, write, folder, model, files):
    with refuse(folder) as where, pytest.raises(StoreError, match=REFUSALS[refuse]) as error:
        write(where, model, files)
    assert_one_sentence(error, where)


@pytest.mark.parametrize("hidden", ["", "root", "bundles", "index"])
def test_a_model_that_may_not_be_read(hidden, folder, tmp_path):
    path = folder / "hidden"
    model = small_svc(store=path).fit(*checkers(N_ROWS))
    X = checkers(10)[0]
    model.predict(X)
    (path / hidden).chmod(0)
    calls = [
        lambda: daskls.load(path).predict(X),
        lambda: model.predict(X),
        lambda: model.save(folder / "copy"),
        lambda: small_svc(store=path).fit(*checkers(N_ROWS)),
    ]
    # What is open stays open.
    if hidden in ("root", "index"):
        del calls[1]
    try:
        with another_user():
            for call in calls:
                with pytest.raises(StoreError, match="Permission denied") as error:
                    call()
                assert_one_sentence(error, path if call is not calls[-2] else folder / "copy")
    finally:
        (path / hidden).chmod(0o755)
        shutil.rmtree(path)


@pytest.mark.parametrize(
    ("write", "n_pages"),
    [
        *((write, n) for write in (fit_numpy, fit_dask, save) for n in (0, 1, 3)),
        (fit_temporary, 0),
        *((write, n) for write in OTHERS if write is not save for n in (0, 1)),
    ],
    ids=name_of,
)
def test_a_disk_that_fills(write, n_pages, folder, model, files):
    with mounted(folder, f"size={DISK_NBYTES}") as where:
        filler = where / "filler"
        filler.write_bytes(bytes(DISK_NBYTES - n_pages * PAGE))
        with pytest.raises(StoreError, match=r"(No space left|are free).*Free some space") as error:
            write(where, model, files)
        assert_one_sentence(error, where)
        if write not in FITS:
            assert list(where.iterdir()) == [filler]
        filler.unlink()
        write(where, model, files)
        if write in (fit_numpy, fit_dask, save):
            assert_same_model(model, where / "m")


def test_a_root_that_does_not_reach_the_disk_is_told(data, monkeypatch, tmp_path):
    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=r"The disk of .*root failed"):
        small_svc(store=tmp_path / "m").fit(*data)
