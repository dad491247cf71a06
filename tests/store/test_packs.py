"""Packs give back what was put in, or say what is wrong with the file."""

import numpy as np
import pytest
from damages import DAMAGES, files_of

from daskls.errors import DamageError
from daskls.store.errors import checksum
from daskls.store.artifact import read_arrays, write_artifact

ARRAYS = {
    "X": np.random.default_rng(0).random((40, 3)).astype("f4"),
    "codes": np.arange(40, dtype="i4"),
    "flags": np.arange(40) % 3 == 0,
    "none": np.empty((0, 5)),
    "sum": np.array(2**64 - 1, np.uint64),
}
PLACE = "parts/kind/000000-000003"


@pytest.fixture
def root(tmp_path):
    write_artifact(tmp_path, PLACE, ARRAYS)
    write_artifact(
        tmp_path,
        "parts/kind/000004-000004",
        {name: a[..., :0] for name, a in ARRAYS.items() if a.ndim},
    )
    return tmp_path


def test_what_is_written_is_read(root):
    found = read_arrays(root, PLACE, ARRAYS)
    for name, values in ARRAYS.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)
        assert read_arrays(root, PLACE, [name])[name].shape == values.shape
    read_arrays(root, PLACE)


@pytest.mark.parametrize("damage", sorted(set(DAMAGES) - {"swapped"}))
def test_every_damage_is_noticed(root, damage):
    file, rng = root / PLACE, np.random.default_rng(0)
    whole = file.read_bytes()
    for _ in range(300):
        DAMAGES[damage](file, rng, root)
        if file.exists() and file.read_bytes() == whole:
            continue
        for read in (lambda: read_arrays(root, PLACE, ARRAYS), lambda: read_arrays(root, PLACE)):
            with pytest.raises(DamageError, match=f"{file} is damaged"):
                read()
        file.write_bytes(whole)


def test_packs_that_change_places(root):
    one, other = files_of(root / "parts")
    one.rename(root / "aside")
    other.rename(one)
    (root / "aside").rename(other)
    for place in (PLACE, "parts/kind/000004-000004"):
        with pytest.raises(DamageError, match="checksum"):
            read_arrays(root, place)


def reseal(root, header):
    """Write a pack with a header whose sum is right."""
    seal = checksum(header, checksum(PLACE.encode() + b"\n"))
    lead = np.array([len(header), seal], "<u4").tobytes()
    (root / PLACE).write_bytes(b"daskls 2" + lead + header + bytes(100))


@pytest.mark.parametrize(
    "header",
    [
        b'{"X": ["<f8", [1099511627776], 0]}',
        b'{"X": ["<U268435456", [1], 0]}',
        b'{"X": ["|O", [1], 0]}',
        b'{"X": ["<f8", [-1], 0]}',
        b'{"X": ["<f8", [1.5], 0]}',
        # As many bytes as the pack has.
        b'{"X": ["<f8", [12.5], 0]}',
        b'{"X": ["|u1", [-25, -4], 0]}',
        b'{"X": ["<f8", 7, 0]}',
        b'{"X": 7}',
        b"[1]",
        b"7",
        b"not JSON",
        b"[" * 60_000,
    ],
)
def test_headers_that_nothing_may_be_read_by(root, header):
    reseal(root, header)
    with pytest.raises(DamageError, match="is damaged"):
        read_arrays(root, PLACE, ["X"])


def test_a_pack_without_an_array(root):
    with pytest.raises(DamageError, match="malformed"):
        read_arrays(root, PLACE, ["other"])
