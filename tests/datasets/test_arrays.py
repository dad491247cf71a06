"""Files of NumPy arrays become data sets."""

import tracemalloc

import numpy as np
import pytest

from daskls.datasets import convert
from daskls.errors import DataError
from daskls.sources.base import MAX_CLASSES


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((1001, 4)).astype(np.float32), rng.choice([-1, 1], 1001)


def labels_of(data):
    return np.array(data.classes)[data.y[:]]


def check_rows(data, X, y):
    np.testing.assert_array_equal(data.X[:], X)
    np.testing.assert_array_equal(labels_of(data), y)


def leaves_nothing(folder, *kept):
    assert sorted(p.name for p in folder.iterdir()) == sorted(kept)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "float64", ">i4"])
def test_npz_keeps_types_and_orders(tmp_path, order, save, dtype):
    X = np.asarray(np.random.default_rng(0).integers(0, 100, (333, 7)), dtype, order=order)
    y = np.arange(333) % 3
    save(tmp_path / "a.npz", X=X, y=y)
    data = convert(tmp_path / "a.npz", tmp_path / "d", chunk_rows=64)
    check_rows(data, X, y)
    assert data.X.dtype == np.dtype(dtype).newbyteorder("=")
    assert data.source == "a.npz"
    leaves_nothing(tmp_path, "a.npz", "d")


@pytest.mark.parametrize(("split", "part"), [(None, "train"), ("train", "train"), ("test", "test")])
def test_npz_splits(tmp_path, rows, split, part):
    X, y = rows
    parts = {"X_train": X[:900], "y_train": y[:900], "X_test": X[900:], "y_test": y[900:]}
    np.savez(tmp_path / "a.npz", **parts)
    data = convert(tmp_path / "a.npz", tmp_path / "d", split=split)
    check_rows(data, parts[f"X_{part}"], parts[f"y_{part}"])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([3, -1, 3, 7], np.int8), [-1, 3, 7]),
        (np.array([0.5, 2.0, 0.5, 1.0]), [0.5, 1.0, 2.0]),
        (np.array(["pear", "apple", "pear", "fig"]), ["apple", "fig", "pear"]),
        (np.array([b"pear", b"apple", b"pear", b"fig"]), ["apple", "fig", "pear"]),
        (np.array([[4], [2], [2], [2]]), [2, 4]),
    ],
)
def test_labels_of_any_kind_become_codes(tmp_path, labels, classes):
    np.savez(tmp_path / "a.npz", X=np.zeros((4, 2)), y=labels)
    data = convert(tmp_path / "a.npz", tmp_path / "d")
    assert data.classes == classes
    assert [type(c) for c in data.classes] == [type(c) for c in classes]
    flat = labels.reshape(-1)
    expected = flat.astype(str) if flat.dtype.kind == "S" else flat
    np.testing.assert_array_equal(labels_of(data), expected)


def test_npz_is_read_in_bounded_memory(tmp_path):
    X = np.asfortranarray(np.random.default_rng(0).standard_normal((120_000, 40)), np.float32)
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(len(X)) % 2)
    tracemalloc.start()
    data = convert(tmp_path / "a.npz", tmp_path / "d", chunk_rows=4096)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4
    np.testing.assert_array_equal(data.X[-5000:], X[-5000:])


@pytest.mark.parametrize(("label", "column"), [(-1, 4), (0, 0), ("2", 2), ("none", None)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_takes_the_label_from_a_column(tmp_path, rows, label, column, order):
    X, y = rows
    table = np.asarray(X if column is None else np.insert(X, column, y, axis=1), order=order)
    np.save(tmp_path / "a.npy", table)
    data = convert(tmp_path / "a.npy", tmp_path / "d", label=label, chunk_rows=100)
    np.testing.assert_array_equal(data.X[:], X)
    assert data.classes == (None if column is None else [-1, 1])
    assert data.y is None if column is None else (labels_of(data) == y).all()


BAD = [
    (np.zeros(3), np.zeros(3), r"must be a 2-d array, got shape \(3,\)"),
    (np.zeros((3, 2)), np.zeros(4), r"must have shape \(3,\), one per row of X, got \(4,\)"),
    (np.zeros((3, 2)), np.array([0, np.nan, 1]), r"label of row 1 \(the first is 0\) is nan"),
    (np.zeros((3, 2)), np.zeros(3, complex), "Labels have type complex128"),
    (np.array([["a", "b"]] * 3), np.zeros(3), "must be numbers"),
    (np.zeros((3, 2), object), np.zeros(3), "cannot be read as an array of numbers"),
    # Rows count over blocks.
    (np.zeros((200_000, 1)), np.r_[np.zeros(150_000), np.full(50_000, np.nan)], "row 150000"),
    (np.zeros((MAX_CLASSES + 1, 1)), np.arange(MAX_CLASSES + 1), f"than {MAX_CLASSES} different"),
]


def test_bad_arrays(tmp_path):
    for X, y, message in BAD:
        np.savez(tmp_path / "a.npz", X=X, y=y)
        with pytest.raises(DataError, match=message):
            convert(tmp_path / "a.npz", tmp_path / "d")
        leaves_nothing(tmp_path, "a.npz")


def test_damaged_archives(tmp_path, rows):
    np.savez(tmp_path / "b.npz", X=rows[0], y=rows[1])
    whole = (tmp_path / "b.npz").read_bytes()
    for content, words in (
        (b"nonsense", r"is not an \.npz archive"),
        (whole[:3000] + b"\x00\x01" * 50 + whole[3100:], r"'X' of .* is damaged"),
    ):
        (tmp_path / "b.npz").write_bytes(content)
        with pytest.raises(DataError, match=words):
            convert(tmp_path / "b.npz", tmp_path / "d")
    leaves_nothing(tmp_path, "b.npz")
