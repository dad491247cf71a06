"""Groups that somebody else wrote, and URLs: opened as data sets, or one error."""

import fsspec
import numpy as np
import pytest
import zarr
from support import HERE, PAPERS, as_options, assert_same_model, checkers, run_cli, small_svc
from typer.testing import CliRunner

import daskls
from daskls import FalkNoiseFilter, StoreError
from daskls.cli import app
from daskls.store.dataset import DatasetWriter, open_dataset

N = 300
X, Y = checkers(N)


def write_artifact(path, y=Y, zarr_format=3, **attributes):
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format, attributes=attributes)
    group.create_array("X", data=X, chunks=(90, 2))
    if y is not None:
        group.create_array("y", data=y, chunks=(50,))
    return path


def run(*args):
    return run_cli(*args).stdout


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "labels",
    [Y, Y + 5, Y.astype(float), np.array(["left", "right"], np.dtypes.StringDType())[Y]],
    ids=["codes", "numbers", "floats", "text"],
)
def test_anybodys_group_is_a_data_set(zarr_format, labels, tmp_path):
    if zarr_format == 2 and labels.dtype.kind == "T":
        labels = labels.astype("U5")
    path = write_artifact(tmp_path / "d", labels, zarr_format)
    expected = small_svc().fit(X, labels)
    model = small_svc(store=tmp_path / "m").fit(path)
    assert_same_model(model, expected)
    assert model.score(path) == expected.score(X, labels)
    measures = run("score", tmp_path / "m", path, "--json", *HERE)
    assert f'"accuracy": {expected.score(X, labels)}' in measures
    noise = FalkNoiseFilter(30, C=1.0, gamma=1.0, random_state=0).fit(path)
    cleaned = noise.clean_dataset(path, str(tmp_path / "clean"))
    keep = noise.keep_.compute()
    names = cleaned.y[:] if cleaned.classes is None else np.array(cleaned.classes)[cleaned.y[:]]
    assert names.tolist() == labels[keep].tolist()


def test_a_group_without_y(tmp_path):
    path = write_artifact(tmp_path / "d", None)
    assert open_dataset(path).y is None
    assert_same_model(small_svc().fit(path, Y), small_svc().fit(X, Y))


def test_groups_that_are_no_data_sets(tmp_path):
    zarr.open_group(tmp_path / "empty", mode="w")
    with pytest.raises(StoreError, match=r"empty' has no array 'X', .*arrays X \(n, d\) and y"):
        open_dataset(tmp_path / "empty")
    group = zarr.open_group(write_artifact(tmp_path / "long"), mode="r+")
    group["y"].resize((N + 1,))
    with pytest.raises(StoreError, match="'X' has 300 rows but 'y' has 301"):
        open_dataset(tmp_path / "long")
    small_svc(store=tmp_path / "model").fit(X, Y)
    with pytest.raises(StoreError, match="not a daskls data set"):
        open_dataset(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "value"),
    [("feature_names", ["u"]), ("feature_names", "uv"), ("feature_names", [1, 2]), ("classes", 7)],
)
def test_damaged_attributes_of_our_own_are_named(name, value, tmp_path):
    with DatasetWriter(tmp_path / "d", 2, "f8", feature_names=["u", "v"]) as writer:
        writer.append(X, Y.astype("i4"))
    zarr.open_group(tmp_path / "d", mode="r+").attrs[name] = value
    with pytest.raises(StoreError, match=rf"damaged {name}.*write it again"):
        open_dataset(tmp_path / "d")


# URLs


class Denied(fsspec.AbstractFileSystem):
    """A bucket that gives nothing away."""

    protocol = "denied"
    error: Exception = PermissionError("Access Denied")

    def _refuse(self, *args, **kwargs):
        raise self.error

    cat_file = info = ls = exists = isfile = _refuse


class Unreachable(Denied):
    """A driver with errors of its own."""

    protocol = "unreachable"
    error = RuntimeError("Could not connect to the endpoint")


@pytest.fixture(scope="module", autouse=True)
def drivers():
    for kind in (Denied, Unreachable):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)


URLS = {
    "memory://nowhere/x.zarr": "no Zarr (array|group)|not a daskls data set",
    "denied://bucket/x.zarr": r"Cannot open .*PermissionError: Access Denied\. Check .*credentials",
    "unreachable://bucket/x": r"Cannot open .*Could not connect to the endpoint\. Check .*network",
    "nobodys://bucket/x": "not known",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("url", URLS)
def test_a_url_that_cannot_be_read_is_one_error(url, tmp_path):
    model = small_svc().fit(X, Y)
    model.save(tmp_path / "m")
    for call in (
        lambda: small_svc().fit(url, Y),
        lambda: small_svc().fit(url),
        lambda: small_svc().fit(X, url),
        lambda: model.predict(url),
        lambda: model.score(url),
        lambda: model.predict_to_zarr(url, tmp_path / "out"),
        lambda: open_dataset(url),
    ):
        with pytest.raises(StoreError, match=URLS[url]):
            call()
    for args in (
        ("predict", tmp_path / "m", url, tmp_path / "out"),
        ("score", tmp_path / "m", url),
    ):
        result = CliRunner().invoke(app, [str(arg) for arg in (*args, *HERE)])
        assert result.exit_code == 1
        assert len(result.stderr.splitlines()) == 1


def test_a_driver_that_is_not_installed(monkeypatch):
    from fsspec.registry import known_implementations

    driver = {"class": "nobodys_driver.FileSystem", "err": "Install nobodys_driver"}
    monkeypatch.setitem(known_implementations, "absent", driver)
    for call in (open_dataset, small_svc().fit):
        with pytest.raises(StoreError, match=r"driver for 'absent://b/x.*: Install nobodys_driver"):
            call("absent://b/x.zarr")


def test_a_data_set_behind_a_url(tmp_path):
    path = write_artifact(tmp_path / "d")
    files = fsspec.filesystem("memory")
    files.put(str(path), "/there/d", recursive=True)
    try:
        model = small_svc().fit("memory://there/d")
        assert_same_model(model, small_svc().fit(X, Y))
        assert model.score("memory://there/d") == model.score(X, Y)
        np.testing.assert_array_equal(
            model.predict("memory://there/d/X").compute(), model.predict(X)
        )
    finally:
        files.rm("/there", recursive=True)


def test_the_command_line_takes_it(tmp_path):
    path = write_artifact(tmp_path / "d", Y + 5, origin="a telescope")
    text = run("info", path)
    assert "300" in text
    small = as_options(cell_size=100, cv=2, C=10, gamma=20, random_state=0, **PAPERS)
    run("fit", path, tmp_path / "m", *small, "--class-weight", "5=2,6=1", *HERE)
    assert daskls.load(tmp_path / "m").classes_.tolist() == [5, 6]
    expected = small_svc(class_weight={5: 2.0, 6: 1.0}).fit(X, Y + 5)
    assert_same_model(tmp_path / "m", expected)
    run("predict", tmp_path / "m", path, tmp_path / "out", *HERE)
    assert zarr.open_array(tmp_path / "out")[:].tolist() == expected.predict(X).tolist()


def test_a_local_array_that_may_not_be_read(tmp_path):
    zarr.save_array(tmp_path / "X", X)
    model = small_svc().fit(tmp_path / "X", Y)
    lazy = model.predict(tmp_path / "X")
    (tmp_path / "X").rename(tmp_path / "Z")
    with pytest.raises(StoreError, match=r"X is gone.*workers share it"):
        lazy.compute()
