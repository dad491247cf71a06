"""Groups that somebody else wrote, and URLs: opened as data sets, or one error."""

import fsspec
import numpy as np
import pytest
import zarr
from support import HERE, PAPERS, as_options, assert_same_model, checkers, run_cli, small_svc

from daskls import FalkNoiseFilter, StoreError
from daskls.store.dataset import open_dataset

X, Y = checkers(300)


def write_artifact(path, y=Y, zarr_format=3, **attributes):
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format, attributes=attributes)
    group.create_array("X", data=X, chunks=(90, 2))
    if y is not None:
        group.create_array("y", data=y, chunks=(50,))
    return path


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
    measures = run_cli("score", tmp_path / "m", path, "--json", *HERE)
    assert f'"accuracy": {expected.score(X, labels)}' in measures.stdout
    noise = FalkNoiseFilter(30, C=1.0, gamma=1.0, random_state=0).fit(path)
    cleaned = noise.clean_dataset(path, str(tmp_path / "clean"))
    keep = noise.keep_.compute()
    names = cleaned.y[:] if cleaned.classes is None else np.array(cleaned.classes)[cleaned.y[:]]
    assert names.tolist() == labels[keep].tolist()


def test_groups_without_y_or_X_and_a_model(tmp_path):
    path = write_artifact(tmp_path / "d", None)
    assert open_dataset(path).y is None
    model = small_svc(store=tmp_path / "model").fit(X, Y)
    assert_same_model(small_svc().fit(path, Y), model)
    zarr.open_group(tmp_path / "empty", mode="w")
    for name, told in (("empty", "empty' has no array 'X'"), ("model", "not a daskls data set")):
        with pytest.raises(StoreError, match=told):
            open_dataset(tmp_path / name)


# URLs


def driver(protocol, error):
    """Register a bucket that gives nothing away."""

    def refuse(self, *args, **kwargs):
        raise error

    own = {"protocol": protocol, **dict.fromkeys(("cat_file", "info", "ls", "exists"), refuse)}
    kind = type(protocol, (fsspec.AbstractFileSystem,), {**own, "isfile": refuse})
    fsspec.register_implementation(protocol, kind, clobber=True)


driver("denied", PermissionError("Access Denied"))
driver("unreachable", RuntimeError("Could not connect to the endpoint"))


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
    run_cli("predict", tmp_path / "m", url, tmp_path / "out", *HERE, code=1)
    run_cli("score", tmp_path / "m", url, *HERE, code=1)


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
        assert (model.predict("memory://there/d/X").compute() == model.predict(X)).all()
    finally:
        files.rm("/there", recursive=True)


def test_the_command_line_takes_it(tmp_path):
    path = write_artifact(tmp_path / "d", Y + 5, origin="a telescope")
    assert "300" in run_cli("info", path).stdout
    small = as_options(cell_size=100, cv=2, C=10, gamma=20, random_state=0, **PAPERS)
    run_cli("fit", path, tmp_path / "m", *small, "--class-weight", "5=2,6=1", *HERE)
    expected = small_svc(class_weight={5: 2.0, 6: 1.0}).fit(X, Y + 5)
    assert_same_model(tmp_path / "m", expected)
    run_cli("predict", tmp_path / "m", path, tmp_path / "out", *HERE)
    assert zarr.open_array(tmp_path / "out")[:].tolist() == expected.predict(X).tolist()


def test_a_local_array_that_may_not_be_read(tmp_path):
    zarr.save_array(tmp_path / "X", X)
    model = small_svc().fit(tmp_path / "X", Y)
    lazy = model.predict(tmp_path / "X")
    (tmp_path / "X").rename(tmp_path / "Z")
    with pytest.raises(StoreError, match=r"X is gone.*workers share it"):
        lazy.compute()
