"""Data sets and arrays that anyone may have written: any range; what is damaged or too large."""

import json

import numpy as np
import pytest
import zarr
from damages import DAMAGES, files_of
from support import checkers, error_in_time, small_svc
from zarr.codecs import TransposeCodec

from daskls import DasklsError, DataError, MemoryPlanError, StoreError
from daskls.store.arrays import find_array, save_array
from daskls.store.dataset import DatasetWriter, open_dataset

X, Y = checkers(2000)
GIB = 1 << 30


@pytest.fixture
def dataset(tmp_path):
    with DatasetWriter(tmp_path / "d", 2, "f8", classes=["a", "b"], chunk_rows=300) as writer:
        writer.append(X, Y)
    return tmp_path / "d"


def read(path):
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


def test_arrays_of_memory_have_checksums(tmp_path):
    handle = save_array(str(tmp_path / "X"), X, 500)
    np.testing.assert_array_equal(handle.read(100, 1900), X[100:1900])
    for damage, told in (("bit", "damaged"), ("removed", "missing")):
        DAMAGES[damage](tmp_path / "X" / "c" / "1" / "0", np.random.default_rng(0), tmp_path)
        with pytest.raises(StoreError, match=told):
            handle.read(400, 600)


def others(path):
    zarr.create_array(path, data=X, chunks=(300, 2))
    return path


def describe(path, change):
    file = path / "zarr.json"
    content = json.loads(file.read_bytes())
    change(content)
    file.write_text(json.dumps(content))


@pytest.mark.filterwarnings("ignore")
def test_a_label_dtype_of_a_gigabyte(tmp_path):
    path = tmp_path / "y"
    zarr.create_array(path, shape=(2000,), chunks=(2000,), dtype="i4")[...] = Y
    data_type = {"name": "fixed_length_utf32", "configuration": {"length_bytes": GIB}}
    describe(path, lambda c: c.update(data_type=data_type, fill_value=""))
    error = error_in_time(lambda: small_svc().fit(others(tmp_path / "X"), path))
    assert isinstance(error, DataError), repr(error)
    assert "values of 1073741824 bytes each" in str(error)


def in_chunks(content, shape):
    content["chunk_grid"]["configuration"].update(chunk_shape=shape)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(shape=[2**40, 2]),
        lambda c: (c.update(shape=[2**40, 2]), in_chunks(c, [2**40, 2])),
        lambda c: in_chunks(c, [2**34, 2]),
        lambda c: c.update(shape=[2000, 2**40]),
    ],
)
@pytest.mark.parametrize("use", ["fit", "predict"])
def test_shapes_beyond_all_memory(tmp_path, change, use):
    model = small_svc().fit(X, Y)
    path = others(tmp_path / "X")
    describe(path, change)
    call = (lambda: small_svc().fit(path, Y)) if use == "fit" else (lambda: model.predict(path))
    error = error_in_time(call)
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
    for call, kind in ((read, StoreError), (small_svc().fit, DasklsError)):
        error = error_in_time(call, dataset)
        assert isinstance(error, kind), repr(error)


# Ranges of rows out of chunks: the values that Zarr reads.
LAYOUTS = {
    "one chunk": {"chunks": (103, 7)},
    "chunks": {"chunks": (40, 7)},
    "chunks of columns": {"chunks": (40, 3)},
    "big endian": {"chunks": (40, 7), "dtype": ">f8"},
    "short": {"chunks": (40, 7), "dtype": "i2"},
    "version 2": {"chunks": (40, 3), "zarr_format": 2},
    "version 2, big endian": {"chunks": (40, 7), "zarr_format": 2, "dtype": ">f4"},
    "dots in names": {"chunks": (40, 7), "chunk_key_encoding": {"name": "v2", "separator": "."}},
    "compressed": {"chunks": (40, 7), "compressors": "auto"},
    "transposed": {"chunks": (40, 7), "filters": [TransposeCodec(order=(1, 0))]},
    "shards": {"chunks": (10, 7), "shards": (50, 7)},
    "version 2, by columns": {"chunks": (40, 7), "zarr_format": 2, "order": "F"},
}


def write(path, *, dtype="f8", **options):
    options = {"compressors": None, **options}
    values = np.random.default_rng(0).random((103, 7)) * 1000
    zarr.create_array(path, data=values.astype(dtype), **options)


@pytest.mark.parametrize("options", LAYOUTS.values(), ids=LAYOUTS)
def test_any_range_is_what_zarr_reads(options, tmp_path):
    write(tmp_path / "a", **options)
    expected = zarr.open_array(tmp_path / "a", mode="r")[...]
    handle = find_array(tmp_path / "a")
    for start in (0, 1, 39, 40, 41, 79, 102):
        for stop in sorted({start, start + 1, 40, 41, 80, 81, 102, 103}):
            if start <= stop <= 103:
                rows = handle.read(start, stop)
                np.testing.assert_array_equal(rows, expected[start:stop])
                assert rows.flags.c_contiguous
                assert rows.dtype == expected.dtype


def test_one_dimension_and_chunks_that_were_never_written(tmp_path):
    zarr.create_array(tmp_path / "y", shape=(100,), chunks=(60,), dtype="i4", compressors=None)[
        60:
    ] = np.arange(40)
    rows = find_array(tmp_path / "y").read(50, 70)
    assert rows.tolist() == [0] * 10 + list(range(10))
    array = zarr.create_array(
        tmp_path / "filled", shape=(100, 2), chunks=(60, 2), dtype="f8", compressors=None,
        fill_value=7.5,
    )  # fmt: skip
    assert (find_array(tmp_path / "filled").read(5, 99) == array[5:99]).all()
