"""Ranges of rows out of chunks: the values that Zarr reads."""

import numpy as np
import pytest
import zarr
from zarr.codecs import TransposeCodec

from daskls.store.arrays import find_array

X = np.random.default_rng(0).random((103, 7))

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


def write(path, *, dtype="f8", values=X, **options):
    options = {"compressors": None, **options}
    array = zarr.create_array(path, shape=values.shape, dtype=dtype, **options)
    array[...] = (values * 1000).astype(dtype)
    return array


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
