"""Data sets and arrays that anyone may have written: what is damaged, too large or elsewhere."""

import json
import os
import shutil
import warnings

import numcodecs
import numpy as np
import pytest
import zarr
from damages import DAMAGES, files_of
from support import checkers, error_in_time, small_svc

from daskls import DasklsError, DataError, MemoryPlanError, StoreError
from daskls.store.arrays import find_array, save_array
from daskls.store.dataset import DatasetWriter, open_dataset
from daskls.store.sources import unpacks_beyond

X, Y = checkers(2000)
GIB = 1 << 30


@pytest.fixture
def dataset(tmp_path):
    with DatasetWriter(tmp_path / "d", 2, "f8", classes=["a", "b"], chunk_rows=300) as writer:
        writer.append(X, Y)
    return tmp_path / "d"


def read(path):
    """Return the rows and the labels of a data set, as a fit reads them."""
    data = open_dataset(path)
    if data.y is None:
        raise StoreError("no y, which a fit asks for")
    arrays = [find_array(a).read(0, a.shape[0]) for a in (data.X, data.y)]
    return data.classes, [a.tobytes() for a in arrays]


@pytest.mark.parametrize("damage", sorted(set(DAMAGES) - {"swapped"}))
def test_damage_to_a_data_set_of_ours_is_noticed(dataset, damage):
    expected, rng, n_noticed = read(dataset), np.random.default_rng(0), 0
    for file in files_of(dataset):
        before = file.read_bytes()
        DAMAGES[damage](file, rng, dataset)
        error = error_in_time(lambda: expected == read(dataset) or 1 / 0)
        changed = not file.exists() or file.read_bytes() != before
        if error is not None:
            assert isinstance(error, StoreError), f"{file}: {error!r}"
            n_noticed += 1
        elif changed:
            # White space, or what nobody reads.
            assert file.name == "zarr.json"
        file.write_bytes(before)
    # Every chunk is, and descriptions that are none.
    assert n_noticed >= 14


def test_rows_of_zeros_are_there_too(tmp_path):
    with DatasetWriter(tmp_path / "d", 2, "f4", chunk_rows=100) as writer:
        writer.append(np.zeros((300, 2)), np.zeros(300, "i4"))
    assert len(files_of(tmp_path / "d" / "X" / "c")) == 3
    assert len(files_of(tmp_path / "d" / "y" / "c")) == 3
    (tmp_path / "d" / "y" / "c" / "1").unlink()
    with pytest.raises(StoreError, match=r"y/c/1 is not read: the chunk is missing"):
        find_array(open_dataset(tmp_path / "d").y).read(0, 300)


def test_arrays_of_memory_have_checksums(tmp_path):
    handle = save_array(str(tmp_path / "X"), X, 500)
    np.testing.assert_array_equal(handle.read(100, 1900), X[100:1900])
    chunk = tmp_path / "X" / "c" / "1" / "0"
    DAMAGES["bit"](chunk, np.random.default_rng(0), tmp_path)
    with pytest.raises(StoreError, match="damaged"):
        handle.read(400, 600)
    chunk.unlink()
    with pytest.raises(StoreError, match="missing"):
        handle.read(400, 600)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_of_others_are_read_without(tmp_path, zarr_format):
    array = zarr.create_array(
        tmp_path / "X", shape=X.shape, chunks=(300, 2), dtype="f8", zarr_format=zarr_format
    )
    array[:600] = X[:600]
    found = find_array(tmp_path / "X").read(0, 2000)
    np.testing.assert_array_equal(found[:600], X[:600])
    assert (found[600:] == 0).all()
    assert len([f for f in files_of(tmp_path / "X") if f.name != "zarr.json"]) == 2


@pytest.mark.parametrize("name", ["X/c/1/0", "y/c/1", "X/zarr.json", "zarr.json"])
@pytest.mark.parametrize("kind", ["fifo", "device", "link out"])
def test_links_out_pipes_and_devices(dataset, tmp_path, name, kind):
    file = dataset / name
    shutil.copy(file, tmp_path / "outside")
    file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero" if kind == "device" else tmp_path / "outside")
    error = error_in_time(lambda: small_svc().fit(str(dataset)))
    assert isinstance(error, StoreError)
    assert name in str(error) or str(dataset) in str(error)


def test_links_out_of_plain_chunks_that_are_read_by_range(tmp_path):
    path = others(tmp_path / "X", compressors=None)
    chunk = path / "c" / "1" / "0"
    chunk.rename(tmp_path / "outside")
    chunk.symlink_to(tmp_path / "outside")
    for rows in ((300, 600), (350, 400)):
        with pytest.raises(StoreError, match=r"c/1/0 is not read: it is a link out"):
            find_array(path).read(*rows)
    np.testing.assert_array_equal(find_array(path).read(10, 300), X[10:300])


def test_a_data_set_behind_a_link(dataset, tmp_path):
    (tmp_path / "link").symlink_to(dataset)
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "link").symlink_to(tmp_path)
    expected = read(dataset)
    assert read(tmp_path / "link") == expected
    assert read(tmp_path / "above" / "link" / "d") == expected


def others(path, **options):
    """Write X as others do, in chunks that are packed."""
    array = zarr.create_array(path, shape=X.shape, chunks=(300, 2), dtype="f8", **options)
    array[...] = X
    return path


PACKERS = {
    "zstd": (numcodecs.Zstd(), {"compressors": zarr.codecs.ZstdCodec()}),
    "gzip": (numcodecs.GZip(), {"compressors": zarr.codecs.GzipCodec()}),
    "blosc": (numcodecs.Blosc(), {"compressors": zarr.codecs.BloscCodec()}),
    "zlib": (numcodecs.Zlib(), {"compressors": numcodecs.Zlib(), "zarr_format": 2}),
    "bz2": (numcodecs.BZ2(), {"compressors": numcodecs.BZ2(), "zarr_format": 2}),
    "lzma": (numcodecs.LZMA(), {"compressors": numcodecs.LZMA(), "zarr_format": 2}),
    "lz4": (numcodecs.LZ4(), {"compressors": numcodecs.LZ4(), "zarr_format": 2}),
}


@pytest.mark.parametrize("name", PACKERS)
def test_a_chunk_that_unpacks_to_far_more_is_not_unpacked(tmp_path, name):
    packer, options = PACKERS[name]
    path = others(tmp_path / "X", **options)
    np.testing.assert_array_equal(find_array(path).read(0, 2000), X)
    (chunk,) = [f for f in files_of(path) if f.match("c/1/0") or f.name == "1.0"]
    bomb = packer.encode(np.zeros(64 << 20, np.uint8))
    chunk.write_bytes(bytes(bomb))
    with pytest.raises(StoreError, match=r"1.0 is not read: it (unpacks to more|has \d+ bytes)"):
        find_array(path).read(0, 2000)


@pytest.mark.parametrize("name", PACKERS)
def test_sizes_of_packed_data_are_told(name):
    packer = PACKERS[name][0]
    rng = np.random.default_rng(0)
    for n in (0, 1, 100, 255, 256, 300, 65_000, 66_000, 300_000):
        for values in (np.zeros(n, np.uint8), rng.integers(0, 256, n, dtype=np.uint8)):
            data = bytes(packer.encode(values))
            assert not unpacks_beyond(name, data, n + (128 << 10))
            # Where the size is told it is the size.
            assert not unpacks_beyond(name, data, n)
            assert n == 0 or unpacks_beyond(name, data, n - 1)


def test_zstd_frames_without_a_size(monkeypatch):
    # What a stream writes: no content size, blocks one after the other.
    pieces = [bytes(100_000), bytes(range(256)) * 400]
    frame = (0xFD2FB528).to_bytes(4, "little") + bytes([0x00, 0x58])
    for i, piece in enumerate(pieces):
        frame += (len(piece) << 3 | (i == 1)).to_bytes(3, "little") + piece
    assert bytes(numcodecs.Zstd().decode(frame)) == b"".join(pieces)
    assert not unpacks_beyond("zstd", frame, sum(map(len, pieces)))
    assert unpacks_beyond("zstd", frame, sum(map(len, pieces)) - 1)
    repeated = frame[:6] + (131_072 << 3 | 2).to_bytes(3, "little") + b"\0"
    assert unpacks_beyond("zstd", repeated * 1, 131_071)


def describe(path, change):
    """Write an array's description anew."""
    file = path / "zarr.json"
    content = json.loads(file.read_bytes())
    change(content)
    file.write_text(json.dumps(content))


def test_a_label_dtype_of_a_gigabyte(tmp_path):
    path = tmp_path / "y"
    zarr.create_array(path, shape=(2000,), chunks=(2000,), dtype="i4")[...] = Y
    data_type = {"name": "fixed_length_utf32", "configuration": {"length_bytes": GIB}}
    describe(path, lambda c: c.update(data_type=data_type, fill_value=""))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = error_in_time(lambda: small_svc().fit(others(tmp_path / "X"), path))
    assert isinstance(error, DataError), repr(error)
    assert "values of 1073741824 bytes each" in str(error)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(shape=[2**40, 2]),
        lambda c: (
            c.update(shape=[2**40, 2]),
            c["chunk_grid"]["configuration"].update(chunk_shape=[2**40, 2]),
        ),
        lambda c: c["chunk_grid"]["configuration"].update(chunk_shape=[2**34, 2]),
        lambda c: c.update(shape=[2000, 2**40]),
    ],
)
@pytest.mark.parametrize("use", ["fit", "predict"])
def test_shapes_beyond_all_memory(tmp_path, change, use):
    model = small_svc().fit(X, Y)
    path = others(tmp_path / "X")
    describe(path, change)
    if use == "fit":
        error = error_in_time(lambda: small_svc().fit(path, Y))
    else:
        error = error_in_time(lambda: model.predict(path))
    assert isinstance(error, (MemoryPlanError, DataError)), repr(error)
    assert "X" in str(error)


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b"{}", b"[]", b"null", b'{"zarr_format": 3}', b"\xff"]
)
@pytest.mark.parametrize("name", ["zarr.json", "X/zarr.json", "y/zarr.json"])
def test_descriptions_that_are_none(dataset, name, content):
    (dataset / name).write_bytes(content)
    if name == "zarr.json" and content.startswith(b"{"):
        # To Zarr that is a group, of somebody who gave it no attributes.
        assert read(dataset)[0] is None
        return
    error = error_in_time(read, dataset)
    assert isinstance(error, StoreError), repr(error)
    error = error_in_time(lambda: small_svc().fit(dataset))
    assert isinstance(error, DasklsError), repr(error)
