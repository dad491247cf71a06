"""Files of tables and of arrays become data sets; what all formats have in common."""

import csv
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from support import run_cli

import daskls
from daskls.datasets import convert
from daskls.errors import DataError, ParameterError, StoreError
from daskls.sources.base import MAX_CLASSES
from daskls.store.dataset import open_dataset


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


def test_csv_agrees_with_loadtxt_and_pandas(tmp_path, rows):
    X, y = rows
    np.savetxt(tmp_path / "a.csv", np.column_stack([X, y]), "%.9g", ";", "\r\n")
    data = convert(tmp_path / "a.csv", tmp_path / "d", label=-1, chunk_rows=128)
    table = np.loadtxt(tmp_path / "a.csv", np.float32, delimiter=";")
    check_rows(data, table[:, :-1], table[:, -1])
    np.testing.assert_array_equal(data.X[:], X)
    assert (data.feature_names, data.classes) == (None, [-1, 1])
    frame = pd.DataFrame(X, columns=["u", "a, b", "v", "w"])
    frame.insert(1, "label", np.where(y > 0, "yes", "no"))
    frame.to_csv(tmp_path / "b.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    data = convert(tmp_path / "b.csv", tmp_path / "e", label="label")
    back = pd.read_csv(tmp_path / "b.csv", dtype={"label": str})
    check_rows(data, back.drop(columns="label").to_numpy(np.float32), back["label"])
    assert data.feature_names == ["u", "a, b", "v", "w"]


def test_csv_label_by_name_or_index(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    table = np.array([[1, 2, 3], [4, 5, 6]])
    for i, (label, column) in enumerate([("b", 1), (1, 1), ("1", 1), (-3, 0)]):
        data = convert(tmp_path / "a.csv", tmp_path / f"{i}", label=label)
        check_rows(data, np.delete(table, column, 1), table[:, column])


MIXED = pd.DataFrame(
    {
        "id": [f"row {i}" for i in range(200)],
        "age": [None if i % 9 == 0 else i / 7 for i in range(200)],
        "city": ["Oslo", "Bern"] * 100,
        "street": [f"{i % 70} Road" for i in range(200)],
        "since": pd.date_range("2024-01-01", periods=200),
        "price": [f"${1000 + i:,.2f}" for i in range(200)],
        "y": ["a", "b"] * 100,
    }
)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("drop", [(), ["id", "street"]])
def test_a_mixed_table_is_converted_as_a_fit_takes_it(tmp_path, name, drop):
    path = tmp_path / name
    (MIXED.to_csv if name == "a.csv" else MIXED.to_parquet)(path, index=False)
    data = convert(path, tmp_path / "d", label="y", drop=drop)
    given = {"cell_size": 300, "C": 1.0, "gamma": 1.0, "random_state": 0}
    wanted = daskls.VoronoiSVC(**given).fit(path, "y", drop=drop)
    model = daskls.VoronoiSVC(**given).fit(data.path)
    assert (model.table_, data.feature_names) == (wanted.table_, [*wanted.feature_names_in_])
    answers = wanted.decision_function(MIXED)
    for rows in (MIXED, path):
        np.testing.assert_array_equal(model.decision_function(rows), answers)
    if drop:
        # Statistics of training rows are those of other folds.
        np.testing.assert_array_equal(model.decision_function(data.path), answers)
    assert model.score(path) == wanted.score(path)
    # Queries are never encoded by what they hold themselves.
    MIXED.head(99).to_csv(tmp_path / "few.csv", index=False)
    few = convert(tmp_path / "few.csv", tmp_path / "few", label="y", drop="id")
    with pytest.raises(DataError, match=r"feature names should match|medians .* of its own"):
        model.predict(few.path)


def test_options_of_tables_are_those_of_a_fit(tmp_path):
    MIXED.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match="'age' has a missing value in row 0"):
        convert(tmp_path / "a.csv", tmp_path / "d", label="y", drop="id", missing="refuse")
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    with pytest.raises(ParameterError, match=r"drop=.* has no effect on .*; it is for tables"):
        convert(tmp_path / "a.npy", tmp_path / "d", label="none", drop="b")
    command = ("convert", tmp_path / "a.csv", tmp_path / "d", "--label", "y")
    command += ("--drop", "id,since,street", "--unknown", "error")
    assert "city: 2 categories, a column each" in run_cli(*command).stdout
    assert open_dataset(tmp_path / "d").table["unknown"] == "error"
    noise = daskls.FalkNoiseFilter(n_neighbors=20, random_state=0).fit(str(tmp_path / "d"))
    assert noise.clean_dataset(tmp_path / "d", tmp_path / "e").table["unknown"] == "error"


def test_libsvm_agrees_with_scikit_learn(tmp_path, rows):
    X, y = rows
    sparse = np.where(np.abs(X) > 0.7, X, 0)
    for suffix in ("libsvm", "svmlight", "svm"):
        path = tmp_path / f"a.{suffix}"
        dump_svmlight_file(sparse, y, str(path), zero_based=False, comment="a comment")
        data = convert(path, tmp_path / f"{suffix}.zarr", chunk_rows=128)
        expected, labels = load_svmlight_file(str(path), dtype=np.float32, zero_based=False)
        check_rows(data, expected.toarray(), labels)
        assert data.classes == [-1, 1]


def test_libsvm_width_and_odd_lines(tmp_path):
    (tmp_path / "a.svm").write_text("# head\n+1 qid:3 2:0.5 # note\n\n-1\n1 1:2\n")
    data = convert(tmp_path / "a.svm", tmp_path / "d", n_features=5)
    check_rows(data, [[0, 0.5, 0, 0, 0], [0] * 5, [2, 0, 0, 0, 0]], [1, -1, 1])
    assert convert(tmp_path / "a.svm", tmp_path / "e").n_features == 2
    assert convert(tmp_path / "a.svm", tmp_path / "f", label="none").y is None
    with pytest.raises(ParameterError, match=r"n_features is 1, but .* has index 2"):
        convert(tmp_path / "a.svm", tmp_path / "g", n_features=1)
    with pytest.raises(ParameterError, match="label must be None or 'none'"):
        convert(tmp_path / "a.svm", tmp_path / "g", label=0)


def test_libsvm_errors_name_the_line(tmp_path):
    for line, message in (
        ("1 1:x", "could not convert string to float: 'x'"),
        ("1 7", "'7' is not of the form index:value"),
        ("1 2 3:4:5", "'2' is not of the form"),
        ("1 1:1_0", "'1:1_0' is not of the form"),
        ("1 0:7", "index 0 is wrong: indices start at 1"),
        ("1 3:7 2:8", "index 2 is wrong: indices must rise"),
        ("1:7 2:8", "starts with '1:7' where the label should be"),
        ("nan 1:7", "the label is 'nan'"),
    ):
        (tmp_path / "a.svm").write_text(f"1 1:7\n-1 2:7\n{line}\n1 1:7\n")
        with pytest.raises(DataError, match=f"line 3: .*{message}"):
            convert(tmp_path / "a.svm", tmp_path / "d")
        leaves_nothing(tmp_path, "a.svm")


def write_all_formats(folder):
    X, y = np.arange(20.0).reshape(10, 2) + 1, np.arange(10) % 2
    both = np.column_stack([X, y])
    np.savez(folder / "a.npz", X=X, y=y)
    np.save(folder / "a.npy", both)
    np.savetxt(folder / "a.csv", both, delimiter=",")
    dump_svmlight_file(X, y, str(folder / "a.svm"), zero_based=False)
    parquet.write_table(pa.table({"u": X[:, 0], "v": X[:, 1], "y": y}), folder / "a.parquet")
    return X, y


# The column of labels of each; of two formats it is a place of its own.
LABELS = {"a.npz": None, "a.npy": -1, "a.csv": "2", "a.svm": None, "a.parquet": "y"}


@pytest.mark.parametrize("name", LABELS)
def test_progress_interruptions_and_overwriting(tmp_path, name):
    X, y = write_all_formats(tmp_path)
    given, label, seen = (tmp_path / name, tmp_path / "d"), LABELS[name], []

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(*given, label=label, chunk_rows=2, progress=stop)
    leaves_nothing(tmp_path, *LABELS)
    data = convert(*given, label=label, chunk_rows=4, progress=lambda *rows: seen.append(rows))
    assert seen == [(4, 10), (8, 10), (10, 10)]
    check_rows(data, X, y)
    # To overwrite is asked for before reading.
    (tmp_path / name).write_text("nonsense")
    with pytest.raises(StoreError, match="pass overwrite=True"):
        convert(*given, label=label)
    with pytest.raises(DataError):
        convert(*given, label=label, overwrite=True)
    assert open_dataset(tmp_path / "d").n_rows == 10


def test_what_a_format_does_not_take(tmp_path):
    write_all_formats(tmp_path)
    (tmp_path / "b.csv").write_text("u,v\n1,300\n2,3\n")
    for name, given, kind, words in (
        ("a.xlsx", {}, DataError, r"suffix must be one of \.csv, \.tsv, \.txt"),
        ("a.csv", {"split": "test"}, ParameterError, r"split is for \.npz files only"),
        ("a.npz", {"n_features": 9}, ParameterError, r"n_features is for \.libsvm, .* files only"),
        ("a.npz", {"split": "test"}, DataError, "has no array 'X_test'"),
        ("a.npz", {"split": "all"}, ParameterError, "split must be 'train', 'test' or None"),
        ("a.npz", {"missing": "refuse"}, ParameterError, "missing='refuse' is for tables"),
        ("b.csv", {"label": "none", "dtype": "i1"}, DataError, "not integers that fit int8"),
        ("gone.csv", {}, DataError, r"No file .*gone\.csv; check the path"),
    ):
        with pytest.raises(kind, match=words):
            convert(tmp_path / name, tmp_path / "d", **given)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_keeps_types_and_orders(tmp_path, order, save):
    for dtype in ("int8", "uint8", "float32", "float64", ">i4"):
        X = np.asarray(np.random.default_rng(0).integers(0, 100, (333, 7)), dtype, order=order)
        save(tmp_path / "a.npz", X=X, y=np.arange(333) % 3)
        data = convert(tmp_path / "a.npz", tmp_path / "d", chunk_rows=64, overwrite=True)
        check_rows(data, X, np.arange(333) % 3)
        assert data.X.dtype == np.dtype(dtype).newbyteorder("=")
        assert data.source == "a.npz"
        leaves_nothing(tmp_path, "a.npz", "d")


def test_npz_splits(tmp_path, rows):
    X, y = rows
    parts = {"X_train": X[:900], "y_train": y[:900], "X_test": X[900:], "y_test": y[900:]}
    np.savez(tmp_path / "a.npz", **parts)
    for split, part in ((None, "train"), ("train", "train"), ("test", "test")):
        data = convert(tmp_path / "a.npz", tmp_path / f"{split}", split=split)
        check_rows(data, parts[f"X_{part}"], parts[f"y_{part}"])


def test_labels_of_any_kind_become_codes(tmp_path):
    for labels, classes in (
        (np.array([3, -1, 3, 7], np.int8), [-1, 3, 7]),
        (np.array([0.5, 2.0, 0.5, 1.0]), [0.5, 1.0, 2.0]),
        (np.array(["pear", "apple", "pear", "fig"]), ["apple", "fig", "pear"]),
        (np.array([b"pear", b"apple", b"pear", b"fig"]), ["apple", "fig", "pear"]),
        (np.array([[4], [2], [2], [2]]), [2, 4]),
    ):
        np.savez(tmp_path / "a.npz", X=np.zeros((4, 2)), y=labels)
        data = convert(tmp_path / "a.npz", tmp_path / "d", overwrite=True)
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


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_takes_the_label_from_a_column(tmp_path, rows, order):
    X, y = rows
    for label, column in ((-1, 4), (0, 0), ("2", 2), ("none", None)):
        table = np.asarray(X if column is None else np.insert(X, column, y, axis=1), order=order)
        np.save(tmp_path / "a.npy", table)
        given = {"label": label, "chunk_rows": 100, "overwrite": True}
        data = convert(tmp_path / "a.npy", tmp_path / "d", **given)
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


def test_bad_arrays_and_damaged_archives(tmp_path, rows):
    for X, y, message in BAD:
        np.savez(tmp_path / "a.npz", X=X, y=y)
        with pytest.raises(DataError, match=message):
            convert(tmp_path / "a.npz", tmp_path / "d")
    np.savez(tmp_path / "a.npz", X=rows[0], y=rows[1])
    whole = (tmp_path / "a.npz").read_bytes()
    for content, words in (
        (b"nonsense", r"is not an \.npz archive"),
        (whole[:3000] + b"\x00\x01" * 50 + whole[3100:], r"'X' of .* is damaged"),
    ):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(DataError, match=words):
            convert(tmp_path / "a.npz", tmp_path / "d")
    leaves_nothing(tmp_path, "a.npz")
