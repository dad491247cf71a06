import json
import os
import subprocess
import sys

import numpy as np
import pytest
import zarr

from daskls.errors import DataError, ParameterError, StoreError
from daskls.store.dataset import DatasetWriter, check_target, open_dataset


def write_blocks(path, X, y, sizes, **options):
    with DatasetWriter(path, X.shape[1], X.dtype, with_y=y is not None, **options) as writer:
        first = 0
        for size in [*sizes, len(X)]:
            part = slice(first, min(first + size, len(X)))
            writer.append(X[part], None if y is None else y[part])
            first = part.stop
    return open_dataset(path)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((101, 3)).astype(np.float32), rng.integers(0, 2, 101)


@pytest.mark.parametrize("chunk_rows", [7, 16, 101, 1000])
@pytest.mark.parametrize("sizes", [[], [1, 2, 3], [16, 0, 16, 33]])
def test_rows_come_back_whatever_the_blocks_and_chunks(tmp_path, rows, chunk_rows, sizes):
    X, y = rows
    data = write_blocks(tmp_path / "d", X, y, sizes, chunk_rows=chunk_rows, classes=["a", "b"])
    np.testing.assert_array_equal(data.X[:], X)
    np.testing.assert_array_equal(data.y[:], y)
    assert data.X.chunks == (chunk_rows, 3)
    assert data.y.chunks == (chunk_rows,)
    assert data.y.dtype == np.int32
    assert (data.n_rows, data.n_features, data.classes) == (101, 3, ["a", "b"])


def test_attributes_are_json_and_come_back(tmp_path, rows):
    options = {"feature_names": ["u", "v", "w"], "source": "here", "classes": [-1, 1]}
    own = {**options, "classes": np.array([-1, 1])}
    data = write_blocks(tmp_path / "d", *rows, [], **own)
    assert {name: getattr(data, name) for name in options} == options
    attributes = json.loads((tmp_path / "d" / "zarr.json").read_text())["attributes"]
    assert attributes == {"daskls_format": 1, "kind": "dataset", **options}


def test_an_exception_removes_what_was_written(tmp_path, rows):
    with pytest.raises(KeyboardInterrupt), DatasetWriter(tmp_path / "d", 3, "f4") as writer:  # noqa: PT012
        writer.append(*rows)
        raise KeyboardInterrupt
    assert not (tmp_path / "d").exists()


def test_a_killed_writer_leaves_what_was_there(tmp_path, rows):
    code = (
        "import os, sys, numpy as np\n"
        "from daskls.store.dataset import DatasetWriter\n"
        "writer = DatasetWriter(sys.argv[1], 2, 'f4', chunk_rows=4, overwrite=True)\n"
        "writer.append(np.zeros((9, 2)), np.zeros(9, int))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "d"
    for n_before in (0, 101):
        if n_before:
            write_blocks(path, *rows, [])
        done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
        assert done.returncode == -9
        assert path.exists() == bool(n_before)
    assert open_dataset(path).n_rows == 101


def test_of_two_writers_the_first_to_end_is_kept_or_replaced(tmp_path, rows):
    X, y = rows
    first = DatasetWriter(tmp_path / "d", 3, "f4", chunk_rows=4)
    first.append(X[:5], y[:5])
    write_blocks(tmp_path / "d", X[:9], y[:9], [])
    with pytest.raises(StoreError, match="d exists already; give another path"):
        first.close()
    np.testing.assert_array_equal(open_dataset(tmp_path / "d").X[:], X[:9])
    with pytest.raises(StoreError, match="already holds a data set; pass overwrite=True"):
        DatasetWriter(tmp_path / "d", 3, "f4")
    assert open_dataset(tmp_path / "d").n_rows == 9
    with DatasetWriter(tmp_path / "d", 3, "f4", overwrite=True) as third:
        third.append(X[:3], y[:3])
        assert open_dataset(tmp_path / "d").n_rows == 9
    np.testing.assert_array_equal(open_dataset(tmp_path / "d").X[:], X[:3])
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("kind", ["folder", "file", "dataset", "model"])
def test_overwrite_never_removes_what_is_no_data_set(tmp_path, kind):
    path = tmp_path / "d"
    if kind in ("folder", "file"):
        precious = path / "thesis.txt" if kind == "folder" else path
        precious.parent.mkdir(exist_ok=True)
        precious.write_text("precious")
    else:
        version = {"daskls_format": 1} if kind == "model" else {}
        zarr.open_group(path, mode="w", attributes={"kind": kind, **version})
    for call in (lambda: DatasetWriter(path, 3, "f4", overwrite=True), lambda: open_dataset(path)):
        with pytest.raises(StoreError, match="not a daskls data set"):
            call()
        assert path.exists()


def test_a_missing_chunk_is_not_read_as_zeros(tmp_path, rows):
    data = write_blocks(tmp_path / "d", *rows, [], chunk_rows=50)
    (tmp_path / "d" / "X" / "c" / "1" / "0").unlink()
    with pytest.raises(StoreError, match=r"X/c/1/0 .*the chunk is missing"):
        data.X[:]


@pytest.mark.always
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.update_attributes({"daskls_format": 2}), r"format 2; .* up to 1\. Upgrade"),
        (lambda g: g.__delitem__("X"), r"has no array 'X', .*arrays X \(n, d\) and y"),
        (lambda g: g["y"].resize((100,)), "'X' has 101 rows but 'y' has 100"),
        (
            lambda g: g.create_array("X", shape=(4,), dtype="f4", overwrite=True),
            r"2 dimensions, got shape \(4,\)",
        ),
        *(
            (lambda g, own=own: g.attrs.update(feature_names=own), "damaged feature_names.*again")
            for own in (["u"], "uvw", [1, 2, 3])
        ),
        (lambda g: g.attrs.update(classes=7), "damaged classes.*write it again"),
    ],
)
def test_what_is_no_data_set_of_ours_is_refused(tmp_path, rows, change, message):
    write_blocks(tmp_path / "d", *rows, [])
    change(zarr.open_group(tmp_path / "d", mode="r+"))
    with pytest.raises(StoreError, match=message):
        open_dataset(tmp_path / "d")


@pytest.mark.parametrize(
    ("options", "X", "y", "message"),
    [
        ({}, np.zeros(3), None, r"shape \(m, 3\), got \(3,\)"),
        ({}, np.zeros((2, 4)), np.zeros(2, int), r"shape \(m, 3\), got \(2, 4\)"),
        ({}, np.zeros((2, 3)), None, "Got no y"),
        ({"with_y": False}, np.zeros((2, 3)), np.zeros(2, int), "Got y where"),
        ({}, np.zeros((2, 3)), np.zeros(3, int), r"y must have shape \(2,\)"),
        ({"classes": [0, 1]}, np.zeros((2, 3)), np.array([0, 2]), "codes 0 to 1, got 0 to 2"),
        ({"classes": [0, 1]}, np.zeros((2, 3)), np.array([-1, 1]), "codes 0 to 1, got -1 to 1"),
        ({}, np.zeros((2, 3)), np.array([0, 2**40]), "out of the range of int32"),
        ({}, np.zeros((2, 3)), np.array([0.0, 1.0]), "y has type float64"),
        ({"dtype": "int8"}, np.full((2, 3), 200), np.zeros(2, int), "out of the range of int8"),
        ({"dtype": "int8"}, np.zeros((2, 3)), np.zeros(2, int), "cannot be stored as int8"),
        ({}, np.full((2, 3), 1e300), np.zeros(2, int), "too large for float32"),
    ],
)
def test_a_bad_block_is_refused_and_not_kept(tmp_path, options, X, y, message):
    dtype = options.pop("dtype", "float32")
    writer = DatasetWriter(tmp_path / "d", 3, dtype, **options)
    with pytest.raises(DataError, match=message):
        writer.append(X, y)
    writer.close()
    assert open_dataset(tmp_path / "d").n_rows == 0


def test_bad_parameters_touch_nothing(tmp_path):
    for own in ({"n_features": 0}, {"dtype": "U3"}, {"chunk_rows": 0}, {"feature_names": ["one"]}):
        with pytest.raises(ParameterError):
            DatasetWriter(tmp_path / "d", **{"n_features": 2, "dtype": "f4", **own})
    assert not os.listdir(tmp_path)


def test_a_full_disk_is_a_store_error_and_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zarr.Array, "resize", refuse)
    with (
        pytest.raises(StoreError, match=r"No space left.*Free some space"),
        DatasetWriter(tmp_path / "d", 2, "f4") as writer,
    ):
        writer.append(np.zeros((1, 2)), np.zeros(1, int))
    assert not os.listdir(tmp_path)


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path):
    with DatasetWriter(tmp_path / "real.zarr", 2, "f4") as writer:
        writer.append(np.zeros((3, 2)), np.zeros(3, "i4"))
    (tmp_path / "link").symlink_to(tmp_path / "real.zarr")
    with DatasetWriter(f"{tmp_path}/link/", 2, "f4", overwrite=True) as writer:
        writer.append(np.ones((1, 2)), np.zeros(1, "i4"))
    assert open_dataset(tmp_path / "real.zarr").n_rows == 3
    assert open_dataset(tmp_path / "link").n_rows == 1


def test_a_url_is_refused_for_writing():
    with pytest.raises(StoreError, match="Cannot write to the URL"):
        check_target("ftp://bucket/d", overwrite=True)


def test_a_closed_writer_takes_no_rows(tmp_path):
    with DatasetWriter(tmp_path / "d", 2, "f4") as writer:
        pass
    with pytest.raises(StoreError, match="is closed"):
        writer.append(np.zeros((1, 2)), np.zeros(1, int))
    writer.abort()
    assert open_dataset(tmp_path / "d").n_rows == 0
