"""Groups that somebody else wrote, and URLs: opened as data sets, or one error."""

import fsspec
import numpy as np
import pytest
import zarr
from support import HERE, assert_same_model, checkers, run_cli, small_svc

from daskls import FalkNoiseFilter, StoreError
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


@pytest.fixture(scope="module", autouse=True)
def drivers():
    fsspec.register_implementation("denied", Denied, clobber=True)


URLS = {
    "memory://nowhere/x.zarr": "no Zarr (array|group)|not a daskls data set",
    "denied://bucket/x.zarr": r"Cannot open .*PermissionError: Access Denied\. Check .*credentials",
    "nobodys://bucket/x": "not known",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("url", URLS)
def test_a_url_that_cannot_be_read_is_one_error(url, tmp_path):
    model = small_svc().fit(X, Y)
    model.save(tmp_path / "m")
    for call in (
        lambda: small_svc().fit(url, Y),
        lambda: small_svc().fit(X, url),
        lambda: model.score(url),
        lambda: model.predict_to_zarr(url, tmp_path / "out"),
    ):
        with pytest.raises(StoreError, match=URLS[url]):
            call()


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
