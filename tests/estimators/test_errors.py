"""What fit, predict and score take or refuse, in one clear error: what, got, limit, remedy."""

import shutil

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from sklearn.metrics import accuracy_score
from small import task_memory
from support import MIB, assert_same_model, checkers, edit_attributes, small_svc

import daskls
from daskls import DasklsError, DataError, MemoryPlanError, ParameterError, StoreError
from daskls.datasets import convert, write
from daskls.store.dataset import DatasetWriter, open_dataset

N = 300
X, Y = checkers(N)


def chunked(values, chunks):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


LAZY = chunked(X, 100), chunked(Y, 100)


@pytest.fixture(scope="module")
def model():
    return small_svc().fit(X, Y)


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300])
@pytest.mark.parametrize("chunks", [None, (1, 99, 150, 50)])
def test_first_bad_row_of_X_is_named(value, chunks, model, set_block_nbytes):
    set_block_nbytes(50 * 16 if chunks is None else 1)
    bad = X.copy()
    bad[170:175, 1] = value
    bad[290, 0] = value
    rows, y = (bad, Y) if chunks is None else (chunked(bad, chunks), chunked(Y, chunks))
    what = {"nan": "NaN", "inf": "infinity", "-inf": "infinity"}.get(str(value), "1e.300")
    message = rf"X contains {what}, first in row 170, column 1; .*([Ii]mpute|[Rr]emove)"
    with pytest.raises(DataError, match=message):
        small_svc().fit(rows, y, missing="refuse")
    refusing = small_svc().fit(X, Y, missing="refuse") if what == "NaN" else model
    with pytest.raises(DataError, match=message):
        np.asarray(refusing.predict(rows))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("value", [np.nan, -1.0, 1e31])
def test_first_bad_label_and_weight_are_named(value, lazy, set_block_nbytes):
    set_block_nbytes(50 * 16)
    labels, weights = Y.astype(float), np.ones(N)
    labels[[120, 200]] = weights[[130, 207]] = value
    told = rf"sample_weight must be 0 or between .* that of row 130 is {value:g}\."
    bad = [(Y, weights, told.replace("+", r"\+"))]
    if not np.isfinite(value):
        bad.append((labels, np.ones(N), r"y contains NaN or infinity, first in row 120"))
    for y, w, message in bad:
        rows = [chunked(a, 100) for a in (X, y, w)] if lazy else (X, y, w)
        with pytest.raises(DataError, match=message):
            small_svc().fit(*rows)


def test_costs_beyond_float32():
    message = r"C x sample_weight x class_weight ranges from 1e\+40 to 1e\+40.*nearer to 1"
    with pytest.raises(ParameterError, match=message):
        small_svc(C=1e20).fit(X, Y, np.full(N, 1e20))


NAMED = np.array(["a", "b"])[Y]
TEXT = r"X holds text: '07.11.2020' in row 0, column 1\. Pass numbers, or a table.*DataFrame"
FRACTION = r"y holds 0\.\d+; a classifier .* VoronoiSVR"
SHAPES = [
    (X, Y[:-1], rf"inconsistent numbers of samples: .*{N}.*{N - 1}"),
    *((*rows, rf"X has {N} rows, y has {N - 1}")
      for rows in ((LAZY[0], chunked(Y[:-1], 100)), (LAZY[0], Y[:-1]), (X, chunked(Y[:-1], 100)))),
    (chunked(X[:, 0], 100), Y, r"2 dimensions \(rows, features\), got 1.*reshape"),
    (pd.DataFrame(X, columns=["a", 1]), Y, r"X has 1 \(int\) among them.*X\.columns\.astype\(str"),
    *((rows, None, r"requires y to be passed|y is None.*Pass y") for rows in (X, LAZY[0])),
    (LAZY[0].astype(np.longdouble), Y, "X has dtype float128"),
    *((da.zeros((N, 2)).astype(dtype), Y, r"X must be numeric, got dtype .*Encode")
      for dtype in ("U3", "c16", "M8[s]", object)),
    ("nowhere", Y, "does not exist"),
    *(([[first, "07.11.2020"]] * N, Y, TEXT) for first in (1.5, "1")),
    (X, X[:, 0], FRACTION),
    (LAZY[0], chunked(X[:, 0], 70), FRACTION),
    # Of one class, by its own name.
    (X, np.full(N, 3), r"only one class, 3; .*at least 2 classes"),
    (X, (NAMED, (Y == 1) * 1.0), "only one class, 'b'; "),
    (X, (Y, np.zeros(N)), r"(?i)weight.*zero|zero.*weight"),
    (LAZY[0], (LAZY[1], "nowhere"), r"sample_weight was taken for a path: .*nowhere"),
]  # fmt: skip


@pytest.mark.always
@pytest.mark.parametrize(("rows", "y", "message"), SHAPES)
def test_rows_and_labels_of_another_kind(rows, y, message):
    y, weights = y if isinstance(y, tuple) else (y, None)
    with pytest.raises((ValueError, StoreError), match=message):
        small_svc().fit(rows, y, weights)


@pytest.mark.parametrize("form", ["csr", "coo"])
def test_sparse_rows_are_made_dense_where_they_fit(form, model, monkeypatch):
    sparse = scipy.sparse.csr_array(X).asformat(form)
    wanted = model.decision_function(X)
    np.testing.assert_array_equal(small_svc().fit(sparse, Y).decision_function(X), wanted)
    np.testing.assert_array_equal(model.decision_function(sparse), wanted)
    monkeypatch.setattr("daskls.estimators.inputs.available_nbytes", lambda: 2 * X.nbytes - 1)
    refused = f"sparse .*dense rows are required: {X.nbytes / 2**20:,.1f} MiB.*toarray"
    for call in (lambda: small_svc().fit(sparse, Y), lambda: model.predict(sparse)):
        with pytest.raises(DataError, match=refused):
            call()


def test_array_expressions(model):
    with dask.config.set({"array.query-planning": True}):
        for call in (lambda: small_svc().fit(*LAZY), lambda: model.predict(LAZY[0])):
            with pytest.raises(DasklsError, match=r"query-planning.*Set array\.query-planning to"):
                call()


ANOTHER = [
    ("X", 1, np.flip, "other values at"),
    # y is read once more than X, to count its labels.
    ("y", 2, np.flip, "other values at"),
    ("y", 1, np.zeros_like, "other values at"),
    ("y", 1, np.invert, "a label at"),
]


@pytest.mark.always
@pytest.mark.parametrize(("column", "n_first", "change", "told"), ANOTHER)
def test_another_second_reading(column, n_first, change, told, tmp_path):
    reads = []

    def unstable(block):
        if len(block):
            reads.append(0)
        return change(block) if len(reads) > n_first else block

    rows, y = chunked(X, N), chunked(Y, N)
    if column == "X":
        rows = rows.map_blocks(unstable, meta=np.empty((0, 2)))
    else:
        y = y.map_blocks(unstable, meta=np.empty(0, int))
    with pytest.raises(DasklsError, match=f"{told} the second reading.*write it to Zarr"):
        small_svc(store=tmp_path / "m").fit(rows, y)
    assert len(reads) == n_first + 1
    assert not [*(tmp_path / "m").glob("exchange-*"), *(tmp_path / "m").glob("bundles/*")]


def test_the_proposed_cell_size_fits():
    rows = checkers(3000)
    with task_memory(10 * MIB):
        with pytest.raises(MemoryPlanError, match=r"needs \d+ MiB but .*lower cell_size") as caught:
            small_svc(cell_size=3000).fit(*rows)
        cell_size = int(str(caught.value).split("cell_size to about ")[1].split(",")[0])
        assert small_svc(cell_size=cell_size).fit(*rows).n_cells_ > 3


def other(values, at):
    changed = values.copy()
    changed[at] = np.nextafter(changed[at], 1) if values is X else 1 - changed[at]
    return changed


OTHERS = [
    ({"cell_size": 50}, (X, Y), "cell_size was 100, is 50"),
    ({"random_state": 5}, (X, Y), "seed was 0, is 5"),
    *(({}, rows, ".*rows, labels or weights") for rows in (
        (other(X, (17, 1)), Y), (X, other(Y, 3)), (X, Y, np.full(N, 2.0)), (X[::-1], Y[::-1]))),
    ({}, (X.astype("f4"), Y), "dtype was '<f8', is '<f4'"),
    ({}, (X, NAMED), r".*values was \[0, 1\], is \['a', 'b'\]"),
]  # fmt: skip


@pytest.mark.always
@pytest.mark.parametrize(("params", "rows", "message"), OTHERS)
def test_a_store_of_another_fit(params, rows, message, model, tmp_path):
    model.save(tmp_path / "m")
    told = rf"belongs to another fit.*Give another store.*What differs: {message}"
    with pytest.raises(StoreError, match=told):
        small_svc(store=tmp_path / "m", **params).fit(*rows)
    with pytest.raises(StoreError, match="exists already; give another path"):
        model.save(tmp_path / "m")
    np.testing.assert_array_equal(daskls.load(tmp_path / "m").predict(X), model.predict(X))


def of_5(path):
    # Up to format 5 a model's root was a Zarr group.
    shutil.rmtree(path)
    zarr.create_group(path, attributes={"kind": "model", "daskls_format": 5})


def with_root(**changed):
    return lambda path: edit_attributes(path, lambda root: root.update(changed))


CHANGED = {
    r"format 99; this daskls reads format 7\. Upg": with_root(daskls_format=99),
    r"format 5, which daskls 0\.2 .*reads format 7\. Train": of_5,
    r"not finished. Call fit again with store=": with_root(complete=False),
    r"of its \d+ bundles, .* first\. Copy or train it again": lambda path: sorted(
        (path / "bundles").iterdir()
    )[0].unlink(),
    r"is a FutureSVC, which this daskls does not know. Upgrade daskls": lambda path: (
        edit_attributes(path, lambda root: root["meta"].update(estimator="FutureSVC"))
    ),
    "lacks its index": lambda path: (path / "index").unlink(),
    "no model at": shutil.rmtree,
}


@pytest.mark.always
@pytest.mark.parametrize("message", CHANGED)
def test_what_is_no_whole_model_is_not_opened(message, model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    CHANGED[message](path)
    with pytest.raises(StoreError, match=message):
        daskls.load(path)
    if message.startswith("format"):
        with pytest.raises(StoreError, match=message):
            small_svc(store=path).fit(X, Y)


@pytest.mark.always
@pytest.mark.parametrize("kind", ["folder", "file", "Zarr array"])
def test_what_is_no_model_is_neither_loaded_nor_written_into(kind, tmp_path):
    path = tmp_path / "m"
    if kind == "folder":
        path.mkdir()
        (path / "thesis.txt").write_text("precious")
    elif kind == "file":
        path.write_text("precious")
    else:
        zarr.create_array(path, shape=(3,), dtype="f8")
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(StoreError, match=r"not a daskls model|no model"):
        daskls.load(path)
    with pytest.raises(StoreError, match=r"holds no model. Give a path that does not exist yet"):
        small_svc(store=path).fit(X, Y)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


def test_a_model_replaced_under_a_lazy_prediction(tmp_path):
    path = tmp_path / "m"
    model = small_svc(store=path).fit(X, Y)
    lazy = model.predict(LAZY[0])
    shutil.rmtree(path)
    shown = model._repr_html_()
    assert "VoronoiSVC(" in shown
    assert "was removed while it was in use" in " ".join(shown.split())
    small_svc(store=path, random_state=9, C=1.0).fit(X, Y)
    # The reader of the first model is still in this process's cache.
    with pytest.raises(StoreError, match="was replaced by another one since"):
        lazy.compute()


LABELS = np.array(["left", "right"])[Y]


def write_dataset(path, y=Y, **options):
    with DatasetWriter(path, 2, "f8", chunk_rows=90, **options) as writer:
        writer.append(X, *([] if y is None else [y]))
    return path


def test_score_on_the_path_of_a_data_set(tmp_path):
    model = small_svc().fit(X, LABELS)
    wrong = LABELS.copy()
    wrong[:60] = np.where(wrong[:60] == "left", "right", "left")
    codes = (wrong == "right").astype("i4")
    path = write_dataset(tmp_path / "data.zarr", codes, classes=["left", "right"])
    weights = np.linspace(0, 1, N)
    assert model.score(path) == accuracy_score(wrong, model.predict(X))
    expected = accuracy_score(wrong, model.predict(X), sample_weight=weights)
    for kind in (weights, da.from_array(weights, chunks=100)):
        assert model.score(str(path), sample_weight=kind) == expected
    # A given y goes before the data set's own.
    assert model.score(path, LABELS) == accuracy_score(LABELS, model.predict(X))
    assert model.score(path, da.from_array(LABELS, chunks=70)) == model.score(X, LABELS)


def test_what_cannot_be_answered_or_scored(tmp_path, model):
    unlabeled = write_dataset(tmp_path / "unlabeled.zarr", None, with_y=False)
    with pytest.raises(DataError, match=r"unlabeled\.zarr has no y; pass one"):
        model.score(unlabeled)
    with pytest.raises(DataError, match=r"y is None.*Pass y"):
        model.score(X)
    with pytest.raises(DataError, match=TEXT):
        model.predict(np.array([[1, "07.11.2020"]] * 3, object))
    with pytest.raises(DataError, match=r"y holds 'left', but the model's classes are \[0, 1\]"):
        model.score(X, LABELS)
    with pytest.raises(DataError, match="X has no rows, so there is nothing to score"):
        model.score(da.empty((0, 2)), np.empty(0, int))
    path = write_dataset(tmp_path / "codes.zarr", Y + 1)
    zarr.open_group(path, mode="r+").attrs["classes"] = [0, 1]
    with pytest.raises(DataError, match=r"class code 2, but the data set names 2 classes"):
        model.score(path)


COLUMNS = {
    "color": (np.array(["red", "blue"])[Y], r"(str|object|'\w+' in row 0)"),
    "size": (pd.Categorical(np.array(["S", "M"])[Y]), "category"),
    "day": (pd.date_range("2020-01-01", periods=N), r"datetime64\[\w+\]"),
    "mixed": ([*[1.5] * 7, "seven", *[2] * (N - 8)], "'seven' in row 7"),
}


@pytest.mark.always
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("column", COLUMNS)
def test_columns_that_are_no_numbers_are_named(column, model):
    values, kind = COLUMNS[column]
    message = rf"not numeric: '{column}' \({kind}\)\. The model was trained on numbers"
    with pytest.raises(DataError, match=message):
        model.predict(pd.DataFrame({"width": X[:, 0], column: values}))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a home folder, and stand somewhere else."""
    (tmp_path / "home").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    yield tmp_path / "home"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_home_folder_in_every_path(home):
    np.savetxt(home / "rows.csv", np.column_stack([X, Y]), delimiter=",")
    convert("~/rows.csv", "~/data.zarr", label=-1, dtype="f8")
    write("checkerboard", "~/board.zarr", 10)
    assert open_dataset("~/board.zarr").n_rows == 10
    for name, values in {"X": X, "y": Y, "w": np.ones(N)}.items():
        zarr.save_array(home / name, values)
    expected = small_svc().fit(X, Y)
    assert_same_model(small_svc(store="~/one").fit("~/X", "~/y"), expected)
    model = small_svc(store="~/two").fit("~/data.zarr", sample_weight="~/w")
    assert model.score("~/data.zarr") == expected.score(X, Y)
    assert model.score("~/X", "~/y", sample_weight="~/w") == expected.score(X, Y)
    model.save("~/three")
    assert_same_model(daskls.load("~/three"), home / "two")
    model.predict_to_zarr("~/X", "~/labels")
    np.testing.assert_array_equal(zarr.open_array(home / "labels")[:], expected.predict(X))
    names = "rows.csv data.zarr board.zarr X y w one two three labels"
    assert {p.name for p in home.iterdir()} == {*names.split()}
