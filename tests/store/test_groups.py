"""Groups are Zarr groups that any library reads, and no damage to a file of theirs is unnoticed."""

import json
import os
import shutil

import numpy as np
import pytest
import zarr
from damages import DAMAGES, files_of
from small import tiny_tiles
from support import edit_attributes, error_in_time

from daskls.errors import DamageError, StoreError
from daskls.store.errors import checksum
from daskls.store.artifact import open_artifact, write_artifact

ATTRIBUTES = {"report": [[0, None, 1.5, "C"]], "nested": {"b": [1, 2.25e-17], "a": None}}


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "rows": rng.normal(size=(23, 3)).astype("f4"),
        "coef": rng.normal(size=50),
        "codes": rng.integers(0, 9, 8, dtype="i4"),
        "cube": rng.normal(size=(5, 2, 4)),
        "none": np.empty((0, 2), np.int64),
        "narrow": np.empty((4, 0)),
    }


@pytest.fixture
def store(tmp_path, monkeypatch):
    # Several chunks of some arrays, the last one not full.
    tiny_tiles(monkeypatch, MAX_CHUNK_NBYTES=96)
    (tmp_path / "m").mkdir()
    for place, seed in (("a", 0), ("b", 1)):
        write_artifact(tmp_path / "m", place, arrays(seed), ATTRIBUTES)
    return tmp_path / "m"


@pytest.fixture
def with_packed(store):
    """The same store with a group whose small arrays are packed."""
    write_artifact(store, "p", arrays(2), ATTRIBUTES, separate=("rows",))
    return store


def read_all(root, place="a"):
    group = open_artifact(root, place)
    return group.attrs, {name: group.read(name) for name in group.names}


def is_same(found, seed=0):
    attrs, values = found
    expected = arrays(seed)
    return attrs == ATTRIBUTES and all(
        values[name].dtype == expected[name].dtype
        and np.array_equal(values[name], expected[name])
        and values[name].shape == expected[name].shape
        for name in expected
    )


def test_what_is_written_is_read(store):
    assert is_same(read_all(store))
    assert is_same(read_all(store, "b"), seed=1)


def test_zarr_reads_it(store):
    group = zarr.open_artifact(store / "a", mode="r")
    for name, values in arrays().items():
        assert group[name].dtype == values.dtype
        np.testing.assert_array_equal(group[name][...], values)
    assert len(list((store / "a" / "coef").glob("c.*"))) == 5
    assert group.attrs["nested"] == ATTRIBUTES["nested"]
    # Its codec notices what changes in a chunk.
    DAMAGES["bit"](store / "a" / "coef" / "c.1", np.random.default_rng(0), store)
    with pytest.raises(ValueError, match="checksum"):
        group["coef"][...]


def test_small_arrays_are_packed_into_one(with_packed):
    assert is_same(read_all(with_packed, "p"), seed=2)
    group = open_artifact(with_packed, "p")
    assert sorted(group.names) == sorted(arrays())
    assert sorted(p.name for p in (with_packed / "p").iterdir()) == ["packed", "rows", "zarr.json"]
    assert "cube" in group
    assert "packed" not in group.names
    assert group.shape_of("cube") == (5, 2, 4)
    np.testing.assert_array_equal(group.read("coef", slice(7, 30)), arrays(2)["coef"][7:30])
    # Each reader's copy is its own.
    group.read("coef")[:] = 0
    assert is_same(read_all(with_packed, "p"), seed=2)
    # Zarr reads the bytes, and the group says what they are.
    opened = zarr.open_artifact(with_packed / "p", mode="r")
    packed, place = opened["packed"][...], opened.attrs["packed"]["codes"]
    own = packed[place["at"] : place["at"] + 32].view(place["dtype"])
    np.testing.assert_array_equal(own, arrays(2)["codes"])
    assert place["shape"] == [8]


def test_large_arrays_are_not_packed(tmp_path):
    values = {"rows": np.ones((2, 2)), "other": np.arange(5000.0)}
    write_artifact(tmp_path, "a", values, separate=("rows",))
    assert (tmp_path / "a" / "other" / "zarr.json").exists()
    np.testing.assert_array_equal(open_artifact(tmp_path, "a").read("other"), values["other"])


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_damage_to_packed_arrays_is_noticed(with_packed, damage):
    for name in ("c.0", "zarr.json"):
        file = with_packed / "p" / "packed" / name
        before = file.read_bytes()
        for seed in range(5):
            DAMAGES[damage](file, np.random.default_rng(seed), with_packed / "p")
            if file.exists() and (
                file.read_bytes() == before
                or (name == "zarr.json" and _same_json(file.read_bytes(), before))
            ):
                continue
            with pytest.raises(DamageError, match=r"p/(packed|rows)"):
                read_all(with_packed, "p")
            assert open_artifact(with_packed, "p").check()[0].startswith(f"{with_packed}/p/")
            if damage == "swapped":
                return
            file.write_bytes(before)


def _same_json(content, other):
    try:
        return json.loads(content) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["packed"]["coef"].update(at=2**40),
        lambda a: a["packed"]["coef"].update(at=-8),
        lambda a: a["packed"]["coef"].update(at=4),
        lambda a: a["packed"]["coef"].update(shape=[2**40]),
        lambda a: a["packed"]["coef"].update(shape=[-1]),
        lambda a: a["packed"]["coef"].update(shape=[]),
        lambda a: a["packed"]["coef"].update(dtype="O"),
        lambda a: a["packed"].update(coef=7),
        lambda a: a.update(packed=[1]),
        lambda a: a.update(packed=7),
        lambda a: a["arrays"].pop("packed"),
        lambda a: a["arrays"]["packed"].update(dtype="<f4"),
        lambda a: a["arrays"]["packed"].update(shape=[2**40], chunk_rows=2**40),
    ],
)
def test_places_that_nothing_may_be_read_by(with_packed, change):
    edit_attributes(with_packed, change, "p")
    with pytest.raises(DamageError, match=r"p/.*damaged"):
        read_all(with_packed, "p")


def test_slices(store):
    group, rows = open_artifact(store, "a"), arrays()["rows"]
    for start in range(0, 24):
        for stop in range(start, 24):
            np.testing.assert_array_equal(group.read("rows", slice(start, stop)), rows[start:stop])


@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_every_damage_to_every_file_is_noticed(store, damage, tmp_path):
    rng = np.random.default_rng(0)
    n_noticed = 0
    for file in files_of(store / "a"):
        copy = tmp_path / "copy"
        shutil.copytree(store, copy)
        damaged = copy / file.relative_to(store)
        DAMAGES[damage](damaged, rng, copy)
        if damaged.exists() and damaged.read_bytes() == file.read_bytes():
            shutil.rmtree(copy)
            continue
        error = error_of(copy)
        if error is None:
            # A flipped bit may be one of white space.
            assert damaged.name == "zarr.json"
            assert json.loads(damaged.read_bytes()) == json.loads(file.read_bytes())
        else:
            n_noticed += 1
            assert error.where in str(error)
            assert str(copy / "a") in error.where
            open_and_check(copy, error)
        shutil.rmtree(copy)
    assert n_noticed > 20


def error_of(root):
    """Return what reading a group raises, or None if it is what was written."""
    try:
        assert is_same(read_all(root))
    except DamageError as error:
        return error
    return None


def open_and_check(root, error):
    """A whole check finds what a reader found, unless the description itself is damaged."""
    try:
        group = open_artifact(root, "a")
    except DamageError:
        return
    assert error.where in map(str, group.check())


def test_chunks_and_descriptions_that_change_places(store):
    for one, other in (
        ("a/coef/c.0", "a/coef/c.1"),
        ("a/zarr.json", "b/zarr.json"),
        ("a/rows/zarr.json", "a/coef/zarr.json"),
    ):
        swap(store / one, store / other)
        with pytest.raises(DamageError):
            read_all(store)
        swap(store / one, store / other)
    assert is_same(read_all(store))
    # Whole, but not in its place.
    swap(store / "a", store / "b")
    with pytest.raises(DamageError, match="checksum"):
        open_artifact(store, "a")


def swap(one, other):
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["arrays"]["coef"].update(shape=[2**40]),
        lambda a: a["arrays"]["coef"].update(shape=[2**40], chunk_rows=2**40, sums=[1]),
        lambda a: a["arrays"]["coef"].update(shape=[-50]),
        lambda a: a["arrays"]["coef"].update(shape=[50.0]),
        lambda a: a["arrays"]["coef"].update(shape=[]),
        lambda a: a["arrays"]["coef"].update(chunk_rows=0),
        lambda a: a["arrays"]["coef"].update(dtype="<U268435456"),
        lambda a: a["arrays"]["coef"].update(dtype="O"),
        lambda a: a["arrays"]["coef"].update(dtype=8),
        lambda a: a["arrays"]["coef"].update(sums=7),
        lambda a: a["arrays"]["coef"].pop("sums"),
        lambda a: a["arrays"].update(coef=None),
        lambda a: a.update(arrays=[1]),
        lambda a: a["arrays"].update(more=a["arrays"]["coef"]),
    ],
)
def test_descriptions_that_nothing_may_be_read_by(store, change):
    edit_attributes(store, change, "a")
    with pytest.raises(DamageError, match=r"a/.*damaged"):
        read_all(store)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 100_000,
        b"{}",
        b"[]",
        b"7",
        b"null",
        b'{"attributes": 7}',
        b"\xff\xfe\x00",
        b"9" * 10_000,
        b'{"node_type": "group", "zarr_format": 3, "attributes": {"crc32c": 7}}',
        b'{"node_type": "group", "zarr_format": 3, "attributes": %s}'
        % (b'{"a":' * 900 + b"1" + b"}" * 900),
    ],
)
def test_descriptions_that_are_none(store, content):
    (store / "a" / "zarr.json").write_bytes(content)
    with pytest.raises(DamageError, match=r"a/zarr\.json is damaged"):
        open_artifact(store, "a")


def test_values_that_nobody_writes(tmp_path):
    values = {"nan": np.array([1.0, np.nan]), "inf": np.array([1.0, np.inf])}
    write_artifact(tmp_path, "a", values)
    group = open_artifact(tmp_path, "a")
    for name in values:
        with pytest.raises(DamageError, match="not finite"):
            group.read(name)
    assert group.read("inf", finite=False)[1] == np.inf
    with pytest.raises(DamageError, match="not finite"):
        group.read("nan", finite=False)
    for wrong in ({"shape": (3,)}, {"shape": (2, 1)}, {"kind": "i"}):
        with pytest.raises(DamageError, match="array 'inf' has"):
            group.read("inf", finite=False, **wrong)
    with pytest.raises(DamageError, match="names no array"):
        group.read("other")


@pytest.mark.parametrize("name", ["coef/c.0", "coef/zarr.json", "zarr.json"])
@pytest.mark.parametrize(
    "kind", ["fifo", "device", "link out", "folder link out", "folder", "loop"]
)
def test_links_out_pipes_and_devices_are_not_read(store, tmp_path, name, kind):
    file = store / "a" / name
    outside = tmp_path / "outside"
    shutil.copytree(file.parent, outside)
    if kind == "folder link out":
        shutil.rmtree(file.parent)
        file.parent.symlink_to(outside)
    else:
        file.unlink()
        if kind == "fifo":
            os.mkfifo(file)
        elif kind == "device":
            file.symlink_to("/dev/zero")
        elif kind == "loop":
            file.symlink_to(file)
        elif kind == "folder":
            file.mkdir()
        else:
            file.symlink_to(outside / file.name)
    error = error_in_time(read_all, store)
    assert isinstance(error, StoreError)
    assert "is damaged" in str(error)


def test_a_store_behind_a_link_and_links_inside_it(store, tmp_path):
    (tmp_path / "link").symlink_to(store)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "er").symlink_to(tmp_path)
    for root in (tmp_path / "link", tmp_path / "deep" / "er" / "m"):
        assert is_same(read_all(root))
    chunk = store / "a" / "coef" / "c.0"
    chunk.rename(store / "elsewhere")
    chunk.symlink_to(store / "elsewhere")
    assert is_same(read_all(store))
    assert is_same(read_all(tmp_path / "link"))


def test_a_file_that_may_not_be_read_is_not_called_damaged(store):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (store / "a" / "coef" / "c.0").chmod(0)
    with pytest.raises(StoreError, match="Permission denied") as caught:
        read_all(store)
    assert not isinstance(caught.value, DamageError)


def test_the_sum_is_crc32c():
    # The check value of the algorithm.
    assert checksum(b"123456789") == 0xE3069283
    assert checksum(np.frombuffer(b"123456789", np.uint8)[::1]) == 0xE3069283
