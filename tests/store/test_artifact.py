"""Artifacts are files that safetensors reads, and no damage to one is unnoticed."""

import os
import shutil
import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, from_dtype
from small import tiny_tiles
from support import checkers, edit_header, few, read_header, read_plain, sealed, small_svc

from daskls.errors import DamageError
from daskls.store import artifact
from daskls.store.artifact import open_artifact, read_arrays, streamed_artifact, write_artifact
from daskls.store.folder import Folder
from daskls.store.objects import open_store

ATTRIBUTES = {"nested": {"b": [1, 2.25e-17], "a": None}, "text": 'an "ä" }'}
KEY = "parts/a b#%ü"
RECORD = np.dtype([("X", "<f4", (3,)), ("edge", "<U8"), ("n", "<i8")])
MOST_NBYTES = 8 << 20


def draw(seed=0):
    rng = np.random.default_rng(seed)
    records = np.zeros(7, RECORD)
    records["X"], records["n"] = rng.random((7, 3)), rng.integers(0, 9, 7)
    return {
        "rows": rng.normal(size=(23, 3)).astype("f4"),
        "coef": rng.normal(size=50),
        "codes": rng.integers(0, 9, 8, dtype="i4"),
        "flags": rng.random(9) < 0.5,
        "none": np.empty((0, 2), np.int64),
        "sum": np.array(2**64 - 1 - seed, np.uint64),
        "report": records,
    }


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store of two artifacts, whose sums are of few bytes."""
    tiny_tiles(monkeypatch, SUMMED_NBYTES=96)
    (tmp_path / "m").mkdir()
    for key, seed in ((KEY, 0), ("other", 1)):
        write_artifact(tmp_path / "m", key, draw(seed), ATTRIBUTES)
    return tmp_path / "m"


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        own = found[name]
        assert (own.dtype, own.shape) == (values.dtype.newbyteorder("<"), values.shape)
        # As NaN is itself here.
        assert own.tobytes() == values.astype(own.dtype).tobytes(), name


def test_what_is_written_is_read_by_anybody(store):
    for key, seed in ((KEY, 0), ("other", 1)):
        opened = open_artifact(store, key)
        assert opened.attrs == ATTRIBUTES
        assert sorted(opened.names) == sorted(draw())
        assert "rows" in opened
        assert "crc32c" not in opened
        assert_same(read_arrays(store, key), draw(seed))
        attributes, arrays = read_plain(store / key)
        del arrays["crc32c"]
        assert attributes == ATTRIBUTES
        assert_same(arrays, draw(seed))
        opened.check()


DTYPES = [
    *("<f4", "<f8", ">f8", "<f2", "<i4", ">i8", "|i1", "<u2", "|b1", "|u1"),
    [("X", "<f4", (3,)), ("n", "<i8")],
    [("a", "|b1"), ("t", "<U3")],
]


@st.composite
def drawn_arrays(draw):
    found = {}
    for i in range(draw(st.integers(0, 4))):
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        shape = draw(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6))
        if dtype.names:
            values = np.zeros(shape, dtype)
            content = draw(arrays("u1", values.nbytes, elements=from_dtype(np.dtype("u1"))))
            if "t" not in dtype.names:
                values = content.view(dtype).reshape(shape)
        else:
            values = draw(arrays(dtype, shape))
        layout = draw(st.sampled_from(["C", "F", "sliced"]))
        if layout == "sliced" and values.ndim:
            values = np.repeat(values, 2, axis=0)[::2]
        found[f"a{i}"] = np.asfortranarray(values) if layout == "F" and values.ndim else values
    return found


@settings(max_examples=40, deadline=None)
@given(drawn_arrays(), st.sampled_from([8, 24, 1 << 15]), st.data())
def test_any_arrays_and_any_ranges_of_them(tmp_path_factory, values, summed, data):
    root = tmp_path_factory.mktemp("drawn")
    with pytest.MonkeyPatch.context() as patch:
        tiny_tiles(patch, SUMMED_NBYTES=summed)
        write_artifact(root, "a", values, {"n": len(values)})
        shapes = {
            name: (own.dtype if own.dtype.names else own.dtype.newbyteorder("<"), own.shape)
            for name, own in values.items()
        }
        with streamed_artifact(root, "s", shapes, {"n": len(values)}) as file:
            for own in values.values():
                cut = data.draw(st.integers(0, len(own))) if own.ndim else None
                for piece in (own,) if cut is None else (own[:cut], own[cut:]):
                    file.write(piece)
        for key in ("a", "s"):
            assert_same(read_arrays(root, key), values)
            plain = read_plain(root / key)[1]
            del plain["crc32c"]
            assert_same(plain, values)
            opened = open_artifact(root, key)
            opened.check()
            for name, own in values.items():
                if own.ndim:
                    rows = slice(*(data.draw(st.integers(0, len(own) + 1)) for _ in range(2)))
                    found = opened.read(name, rows, finite=None)
                    assert_same({name: found}, {name: own[rows]})
                    assert found.flags.aligned
                    assert found.flags.writeable


def test_a_stream_of_too_few_bytes_is_not_put(tmp_path):
    for n in (0, 2, 4, 3):
        told = (AssertionError, "bytes written of 24") if n != 3 else (KeyError, "more")
        with (
            pytest.raises(told[0], match=told[1]),
            streamed_artifact(tmp_path, "a", {"x": ("f8", (3,))}) as file,
        ):
            file.write(np.zeros(n) if n != 3 else {}["more"])
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(params=few(["folder", "bucket"]))
def anywhere(request, tmp_path):
    """An empty store in each back end, opened as every module opens its store."""
    is_folder = request.param == "folder"
    store = open_store(tmp_path / "m" if is_folder else request.getfixturevalue("bucket_url"))
    store.make()
    return store


def test_every_flipped_bit_is_noticed(anywhere):
    write_artifact(anywhere, "g", draw(), ATTRIBUTES)
    whole = anywhere.read("g", 1 << 16)
    header, end = read_header(whole)
    # Each bit of a file; in a bucket, where each is some requests, few.
    n = 8 * len(whole)
    step = 11 if anywhere.local() else n // 100
    for bit in range(0, n, step):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        anywhere.put("g", bytes(flipped))
        with pytest.raises(DamageError) as caught:
            read_arrays(anywhere, "g")
        assert caught.value.where == anywhere.where("g")
        with pytest.raises(DamageError):
            open_artifact(anywhere, "g").check()
    assert end > 8 * len(header)


def test_a_range_is_checked_by_the_sums_that_hold_it(store):
    whole = bytearray((store / KEY).read_bytes())
    rows, (header, end) = draw()["rows"], read_header(whole)
    whole[end + header["rows"]["data_offsets"][0] + 12 * 10] ^= 1
    (store / KEY).write_bytes(whole)
    opened, n_noticed = open_artifact(store, KEY), 0
    for row in range(23):
        try:
            np.testing.assert_array_equal(opened.read("rows", slice(row, row + 1))[0], rows[row])
        except DamageError:
            n_noticed += 1
            assert abs(row - 10) <= 96 // 12
    assert 0 < n_noticed <= 3 + 96 // 12
    with pytest.raises(DamageError, match="checksum"):
        opened.check()


def entry(name, **values):
    return lambda header: header[name].update(values)


metadata = partial(entry, "__metadata__")


def last(header):
    return max(
        (name for name in header if name != "__metadata__"),
        key=lambda name: header[name]["data_offsets"],
    )


DEEP = "[" * 100_000
NONSENSE = {
    "rows without end": entry("coef", shape=[2**60]),
    "as many bytes as such rows have": entry("coef", shape=[2**60], data_offsets=[0, 2**63]),
    "fewer rows than none": entry("coef", shape=[-50]),
    "a shape of fractions": entry("coef", shape=[50.0]),
    "a shape that is none": entry("coef", shape=7),
    "a shape of words": entry("coef", shape=["a"]),
    "a shape that overflows": entry("rows", shape=[2**33, 2**33]),
    "offsets behind the end": entry("coef", data_offsets=[2**40, 2**40 + 400]),
    "offsets before the begin": entry("coef", data_offsets=[-400, 0]),
    "one offset": entry("coef", data_offsets=[0]),
    "an unknown dtype": entry("coef", dtype="O"),
    "another dtype": entry("codes", dtype="F64"),
    "an array that is none": lambda header: header.update(coef=None),
    "an array that overlaps": lambda header: header.update(more=header["coef"]),
    "an array that is not listed": lambda header: header.pop(last(header)),
    "no sums": lambda header: header.pop("crc32c"),
    "metadata that are none": lambda header: header.update(__metadata__={}),
    "attributes that are none": metadata(attributes="{"),
    "attributes without end": metadata(attributes=DEEP),
    "records of objects": metadata(records='{"report": [["a", "|O"]]}'),
    "records without end": metadata(records='{"report": [["a", "<U268435456"]]}'),
    "records of another size": metadata(records='{"report": [["a", "<f8"]]}'),
    "records of an array that is none": metadata(records='{"rows": [["a", "<f4", [3]]]}'),
}


def assert_refused(store, name):
    tracemalloc.start()
    try:
        open_artifact(store, KEY)
    except DamageError:
        assert tracemalloc.get_traced_memory()[1] < MOST_NBYTES, name
    else:
        pytest.fail(f"{name} is taken")
    finally:
        tracemalloc.stop()


def test_headers_that_nothing_may_be_read_by_and_files_that_are_none(store):
    whole = (store / KEY).read_bytes()
    for name, change in NONSENSE.items():
        edit_header(store, KEY, change)
        assert_refused(store, name)
        (store / KEY).write_bytes(whole)
    for content in (
        *(b"", b"7", b"\xff\xfe\x00", bytes(7), bytes(8), bytes(100), b"daskls 2" + bytes(200)),
        # Lengths beyond the end, or of more memory than there is.
        *((2**63).to_bytes(8, "little") + b"{}", (2**40).to_bytes(8, "little") + bytes(1000)),
        *((3).to_bytes(8, "little") + b"{}", (5000).to_bytes(8, "little") + bytes(4000)),
        *(
            len(text).to_bytes(8, "little") + text
            for text in (b"{}", b"[]", b"null", b"9" * 9000, b"[" * 100_000, b'{"a":' * 9000)
        ),
        sealed(KEY, {"__metadata__": {"attributes": "{}", "records": "{}"}}),
    ):
        (store / KEY).write_bytes(content)
        assert_refused(store, content[:20])
    shutil.copy(store / "other", store / KEY)
    assert_refused(store, "another key")


def test_values_that_nobody_writes(tmp_path):
    values = {"nan": np.array([1.0, np.nan]), "inf": np.array([1.0, np.inf])}
    write_artifact(tmp_path, "a", values)
    opened = open_artifact(tmp_path, "a")
    for name in values:
        with pytest.raises(DamageError, match="not finite"):
            opened.read(name)
    assert opened.read("inf", finite=False)[1] == np.inf
    with pytest.raises(DamageError, match="not finite"):
        opened.read("nan", finite=False)
    for wrong in ({"shape": (3,)}, {"shape": (2, 1)}, {"kind": "i"}):
        with pytest.raises(DamageError, match="array 'inf' has"):
            opened.read("inf", finite=False, **wrong)
    with pytest.raises(DamageError, match="names no array"):
        opened.read("other")
    for wrong in (np.array(["text"]), np.array([1j])):
        with pytest.raises(TypeError, match="cannot be stored"):
            write_artifact(tmp_path, "b", {"x": wrong})


def test_what_is_read_of_a_range(tmp_path, monkeypatch):
    n = 1 << 16
    write_artifact(tmp_path, "a", {"x": np.arange(n), "y": np.arange(4.0)})
    asked, read = [], Folder._read
    monkeypatch.setattr(
        Folder, "_read", lambda self, *args: (asked.append(args), read(self, *args))[1]
    )
    opened = open_artifact(tmp_path, "a")
    assert sum(stop - start for *_, start, stop in asked) <= artifact.LOCAL_OPENED_NBYTES
    del asked[:]
    assert opened.read("x", slice(n // 2, n // 2 + 10)).tolist() == [*range(n // 2, n // 2 + 10)]
    ((*_, start, stop),) = asked
    assert stop - start <= 2 * artifact.SUMMED_NBYTES


def test_a_root_is_on_the_disk_before_it_replaces_the_old_one(tmp_path, monkeypatch):
    X, y = checkers(100)
    steps = []
    for name in ("fsync", "replace"):
        act = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, act=act: (steps.append((n, *a)), act(*a)))
    small_svc(store=tmp_path / "m").fit(X, y)
    before = [steps[i - 1][0] for i, own in enumerate(steps) if str(own[-1]).endswith("m/root")]
    assert before == ["fsync"] * 3
    assert sum(name == "fsync" for name, *_ in steps) == 3
