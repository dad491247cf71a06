"""Everything that cannot be right gets one clear error: what, got, limit, remedy."""

import re
import shutil

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
import zarr
from small import task_memory, tiny_tasks
from support import MIB, Calls, checkers, edit_attributes, small_svc

import daskls
from daskls import DasklsError, DataError, MemoryPlanError, ParameterError, StoreError
from daskls.methods.cells import fit
from daskls.store.models import finished_bundles

N = 300
X, Y = checkers(N)


def chunked(values, chunks):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


@pytest.fixture(scope="module")
def model():
    return small_svc().fit(X, Y)


# Values


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("chunks", [None, N, (1, 99, 150, 50)])
def test_first_bad_row_of_X_is_named(value, chunks, set_block_nbytes):
    set_block_nbytes(50 * 16 if chunks is None else 1)
    bad = X.copy()
    bad[170:175, 1] = value
    bad[290, 0] = value
    rows = bad if chunks is None else chunked(bad, chunks)
    y = Y if chunks is None else chunked(Y, chunks)
    what = {"nan": "NaN", "inf": "infinity", "-inf": "infinity"}.get(str(value), "1e.300")
    refusing = small_svc().fit(X, Y, missing="refuse")
    message = rf"X contains {what}, first in row 170, column 1; .*([Ii]mpute|[Rr]emove)"
    with pytest.raises(DataError, match=message):
        small_svc().fit(rows, y, missing="refuse")
    for answer in (refusing.predict, refusing.decision_function):
        with pytest.raises(DataError, match=message):
            np.asarray(answer(rows))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_first_bad_label_is_named(value, lazy, set_block_nbytes):
    set_block_nbytes(50 * 16)
    y = Y.astype(float)
    y[[120, 200]] = value
    rows = (chunked(X, 100), chunked(y, 100)) if lazy else (X, y)
    with pytest.raises(DataError, match=r"y contains NaN or infinity, first in row 120"):
        small_svc().fit(*rows)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e-31, 1e31])
def test_bad_weights(value, lazy, set_block_nbytes):
    set_block_nbytes(50 * 16)
    weights = np.ones(N)
    weights[[130, 7 + 200]] = value
    rows = [chunked(a, 100) for a in (X, Y, weights)] if lazy else [X, Y, weights]
    message = rf"sample_weight must be 0 or between .* that of row 130 is {value:g}\."
    with pytest.raises(DataError, match=message.replace("+", r"\+")):
        small_svc().fit(*rows)


@pytest.mark.parametrize("value", [1e-30, 1e30])
def test_weights_at_their_limits(value):
    model = small_svc(C=1.0).fit(X, Y, np.full(N, value))
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    ("C", "class_weight", "weight", "reached"),
    [
        (1.0, {0: 1e20}, 1e20, r"1e\+20 to 1e\+40"),
        (1e20, None, 1e20, r"1e\+40 to 1e\+40"),
        ([1e-20, 1.0], {1: 1e-20}, 1.0, "1e-40 to 1"),
    ],
)
def test_costs_beyond_float32(C, class_weight, weight, reached):
    message = rf"C x sample_weight x class_weight ranges from {reached}.*nearer to 1"
    with pytest.raises(ParameterError, match=message):
        small_svc(C=C, class_weight=class_weight).fit(X, Y, np.full(N, weight))


def test_all_weights_zero():
    with pytest.raises(DataError, match=r"(?i)weight.*zero|zero.*weight"):
        small_svc().fit(X, Y, np.zeros(N))


# Shapes and kinds


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (X, Y[:-1], rf"inconsistent numbers of samples: .*{N}.*{N - 1}"),
        (chunked(X, 100), chunked(Y[:-1], 100), rf"X has {N} rows, y has {N - 1}"),
        (chunked(X, 100), Y[:-1], rf"X has {N} rows, y has {N - 1}"),
        (X, chunked(Y[:-1], 100), rf"X has {N} rows, y has {N - 1}"),
        (X, 1.0, "1d array"),
        (X[:0], np.empty(0), "0 sample"),
        (np.full((N, 2), "a"), Y, "X holds text: .* in row 0, column 0"),
        (np.empty((N, 0)), Y, r"0 feature\(s\).*minimum of 1 is required"),
        (chunked(np.empty((N, 0)), N), Y, r"0 feature\(s\).*minimum of 1 is required"),
        (chunked(X[:, 0], 100), Y, r"2 dimensions \(rows, features\), got 1.*reshape"),
        (X, None, r"requires y to be passed|y is None.*Pass y"),
        (chunked(X, 100), None, r"y is None.*Pass y"),
        (X.astype(np.longdouble), Y, r"X has dtype float128.*astype\(np.float64\)"),
        (chunked(X, 100).astype(np.longdouble), Y, "X has dtype float128"),
        (X, Y.astype(np.longdouble), "y has dtype float128"),
        (X, chunked(Y, 100).astype(np.longdouble), "y has dtype float128"),
    ],
)
def test_rows_and_labels_of_another_kind(rows, y, message):
    with pytest.raises(ValueError, match=message):
        small_svc().fit(rows, y)


def test_weights_that_are_no_weights_of_the_rows():
    with pytest.raises(DataError, match=rf"X has {N} rows, sample_weight has 5"):
        small_svc().fit(X, Y, np.ones(5))
    with pytest.raises(StoreError, match=r"sample_weight was taken for a path: .*nowhere"):
        small_svc().fit(chunked(X, 100), chunked(Y, 100), "nowhere")


def test_unknown_chunks_are_computed(model):
    rows, y = chunked(X, 100), chunked(Y, 100)
    keep = rows[:, 0] > -1
    unknown = rows[keep], y[keep]
    assert np.isnan(unknown[0].shape[0])
    found = small_svc().fit(*unknown)
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(found.predict(rows[keep]).compute(), model.predict(X))


@pytest.mark.parametrize("dtype", ["U3", "c16", "M8[s]", object])
def test_dtype_that_is_no_number(model, dtype):
    rows = da.from_array(np.zeros((N, 2)).astype(dtype), chunks=100)
    for call in (lambda: small_svc().fit(rows, Y), lambda: model.predict(rows)):
        with pytest.raises(DataError, match=r"X must be numeric, got dtype .*Encode"):
            call()


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dok"])
def test_sparse_rows_are_made_dense_where_they_fit(form, model, monkeypatch):
    sparse = scipy.sparse.csr_array(X).asformat(form)
    own = small_svc().fit(sparse, Y)
    wanted = model.decision_function(X)
    np.testing.assert_array_equal(small_svc().fit(X, Y).decision_function(X), wanted)
    for found in (own.decision_function(X), model.decision_function(sparse)):
        np.testing.assert_array_equal(found, wanted)
    assert model.score(sparse, Y) == model.score(X, Y)
    monkeypatch.setattr("daskls.estimators.inputs.available_nbytes", lambda: 2 * X.nbytes - 1)
    for call in (lambda: small_svc().fit(sparse, Y), lambda: model.predict(sparse)):
        nbytes = f"{X.nbytes / 2**20:,.1f} MiB"
        with pytest.raises(DataError, match=f"sparse .*dense rows are required: {nbytes}.*toarray"):
            call()


def test_other_number_of_features_to_zarr(model, tmp_path):
    with pytest.raises(DataError, match="X has 3 features, but VoronoiSVC is expecting 2"):
        model.predict_to_zarr(da.zeros((5, 3)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_array_expressions(model):
    rows = chunked(X, 100)
    with dask.config.set({"array.query-planning": True}):
        for call in (lambda: small_svc().fit(rows, Y), lambda: model.predict(rows)):
            with pytest.raises(DasklsError, match=r"query-planning.*Set array\.query-planning to"):
                call()


@pytest.mark.parametrize(("column", "n_first"), [("X", 1), ("y", 2)])
def test_another_second_reading(column, n_first, tmp_path):
    # y is read once more than X, to count its labels.
    reads = []

    def unstable(block):
        if len(block):
            reads.append(0)
        return block[::-1] if len(reads) > n_first else block

    rows, y = chunked(X, N), chunked(Y, N)
    if column == "X":
        rows = rows.map_blocks(unstable, meta=np.empty((0, 2)))
    else:
        y = y.map_blocks(unstable, meta=np.empty(0, int))
    with pytest.raises(DasklsError, match=r"other values at the second reading.*write it to Zarr"):
        small_svc(store=tmp_path / "m").fit(rows, y)
    assert len(reads) == n_first + 1
    assert list((tmp_path / "m").glob("exchange-*")) == []
    assert list((tmp_path / "m").glob("bundles/*")) == []


# Parameters


REFUSED = [
    *(({name: value}, rf"'{name}' parameter .* Got '{value}' instead")
      for name, value in (("search", "quick"), ("fit_intercept", "yes"))),
    *(({"n_partitions": n}, rf"'n_partitions' parameter .* range \[1, inf\) or None\. Got {n!r} ")
      for n in (0, -1, 1.5, "2")),
    *(({"cell_size": n}, r"'cell_size' parameter .* range \[2, inf\)") for n in (1, 0, -5, 2.5)),
    ({"class_weight": {7: 2.0}}, r"names the class 7, .*classes are \[0, 1\]"),
    *(({"class_weight": {1: w}}, re.escape(f"class_weight of 1 is {w!r}; it must be a number from"))
      for w in (0.0, -1.0, float("nan"), 1e31, "a")),
]  # fmt: skip
for name in ("C", "gamma"):
    REFUSED += [
        *(({name: grid}, rf"{name} is \[.*; give a number, or a flat list")
          for grid in (["a"], [[1.0], [2.0, 3.0]], [[1.0, 2.0]])),
        ({name: []}, "is an empty grid"),
        *(({name: grid}, rf"{name} holds .*must be positive and finite")
          for grid in ([1.0, -2.0], [0.0], [np.nan, 1.0], [np.inf], [1e39])),
        *(({name: value}, rf"{name}.*(range \(0|positive and finite)")
          for value in (-1.0, 0, float("nan"), float("inf"), "scale")),
    ]  # fmt: skip


@pytest.mark.parametrize(("params", "message"), REFUSED, ids=str)
def test_parameters_out_of_range(params, message):
    with pytest.raises(ValueError, match=message):
        small_svc(**params).fit(X, Y)


def test_predict_before_fit():
    for name in ("predict", "decision_function"):
        with pytest.raises(ValueError, match="not fitted yet"):
            getattr(small_svc(), name)(X)
    with pytest.raises(ValueError, match="not fitted yet"):
        small_svc().save("nowhere")


# Memory


@pytest.mark.parametrize(
    ("nbytes", "message"),
    [
        (5000, r"block of 300 rows x 2 features needs .*rechunk X in blocks of at most \d+ rows"),
        (10 * MIB, r"3000 rows expected.*needs \d+ MiB but .*lower cell_size to about \d+"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_before_training(nbytes, message, monkeypatch):
    trained, is_small = Calls(monkeypatch, fit, "fit_bundle"), nbytes < 10_000
    with task_memory(nbytes), pytest.raises(MemoryPlanError, match=message):
        small_svc(cell_size=2 if is_small else 3000).fit(*checkers(N if is_small else 3000))
    assert len(trained) == 0


def test_the_proposed_cell_size_fits():
    rows = checkers(3000)
    with task_memory(10 * MIB):
        with pytest.raises(MemoryPlanError) as caught:
            small_svc(cell_size=3000).fit(*rows)
        cell_size = int(str(caught.value).split("cell_size to about ")[1].split(",")[0])
        assert small_svc(cell_size=cell_size).fit(*rows).n_cells_ > 3


# Stores


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cell_size": 50}, "cell_size was 100, is 50"),
        ({"n_partitions": 2}, "n_partitions was 1, is 2"),
        ({"random_state": 5}, "seed was 0, is 5"),
        ({"C": 3.0}, r"C was \[10\.0\], is \[3\.0\]"),
        ({"gamma": [1.0, 2.0]}, r"gamma was \[20\.0\], is \[1\.0, 2\.0\]"),
        ({"kernel": "linear"}, "kernel was 'rbf', is 'linear'"),
        ({"cv": 3}, "cv was 2, is 3"),
        ({"tol": 1e-2}, "tol was 0.001, is 0.01"),
        ({"class_weight": {1: 2.0}}, "class_weight was None, is"),
    ],
)
def test_store_of_other_parameters(model, tmp_path, changed, message):
    model.save(tmp_path / "m")
    with pytest.raises(
        StoreError, match=rf"belongs to another fit.*Give another store.*What differs: {message}"
    ):
        small_svc(store=tmp_path / "m", **changed).fit(X, Y)
    assert daskls.load(tmp_path / "m").n_cells_ == model.n_cells_


def test_store_of_other_data(model, tmp_path):
    model.save(tmp_path / "m")
    other = X.copy()
    other[17, 1] = np.nextafter(other[17, 1], 1)
    flipped = Y.copy()
    flipped[3] = 1 - flipped[3]
    svc = small_svc(store=tmp_path / "m")
    for rows, weights, message in [
        ((other, Y), None, "rows, labels or weights"),
        ((X, flipped), None, "rows, labels or weights"),
        ((X, Y), np.full(N, 2.0), "rows, labels or weights"),
        ((X[::-1], Y[::-1]), None, "rows, labels or weights"),
        ((X[:-1], Y[:-1]), None, "n_rows was 300, is 299"),
        ((X.astype("f4"), Y), None, "dtype was '<f8', is '<f4'"),
        ((X, np.array(["a", "b"])[Y]), None, r"values was \[0, 1\], is \['a', 'b'\]"),
    ]:
        with pytest.raises(StoreError, match=rf"belongs to another fit.*: .*{message}"):
            svc.fit(*rows, sample_weight=weights)


def answer(path):
    return daskls.load(path).predict(X)


def foreign(path, kind):
    if kind == "folder":
        path.mkdir()
        (path / "thesis.txt").write_text("precious")
    elif kind == "file":
        path.write_text("precious")
    elif kind == "Zarr array":
        zarr.create_array(path, shape=(3,), dtype="f8")
    elif kind == "Zarr group":
        zarr.create_group(path, attributes={"kind": "dataset"})


@pytest.mark.parametrize("kind", ["folder", "file", "Zarr array", "Zarr group"])
def test_fit_into_what_is_no_model(tmp_path, kind):
    foreign(tmp_path / "m", kind)
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(StoreError, match=r"holds no model. Give a path that does not exist yet"):
        small_svc(store=tmp_path / "m").fit(X, Y)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


def test_url_of_an_object_store():
    with pytest.raises(StoreError, match=r"is a URL; .*local or shared file system"):
        small_svc(store="ftp://bucket/model").fit(X, Y)


def test_save_over_something(model, tmp_path):
    (tmp_path / "m").mkdir()
    with pytest.raises(StoreError, match="exists already; give another path"):
        model.save(tmp_path / "m")


def test_model_replaced_under_a_lazy_prediction(tmp_path):
    path = tmp_path / "m"
    lazy = small_svc(store=path).fit(X, Y).predict(chunked(X, 100))
    shutil.rmtree(path)
    small_svc(store=path, random_state=9, C=1.0).fit(X, Y)
    # The reader of the first model is still in this process's cache.
    with pytest.raises(StoreError, match="was replaced by another one since"):
        lazy.compute()


def test_the_same_model_in_other_bundles_is_read_afresh(tmp_path):
    path = tmp_path / "m"
    first = small_svc(store=path).fit(X, Y)
    before = first.decision_function(X)
    shutil.rmtree(path)
    with tiny_tasks(N_BUNDLES=1, MIN_BUNDLE_WORK=1e9), task_memory(10**9):
        second = small_svc(store=path).fit(*(chunked(a, N) for a in (X, Y)))
    assert len(finished_bundles(path)) == 1
    np.testing.assert_array_equal(second.decision_function(X), before)


ONE = [
    (X, np.full(N, 3), None, r"only one class, 3; .*at least 2 classes"),
    (chunked(X, 100), chunked(np.full(N, 3), 100), None, "only one class, 3; "),
    (X, np.full(N, "spam"), None, "only one class, 'spam'; "),
    (X, np.array(["a", "b"])[Y], (Y == 1).astype(float), "only one class, 'b'; "),
]


@pytest.mark.parametrize(("rows", "y", "weights", "message"), ONE)
def test_one_class(rows, y, weights, message):
    with pytest.raises(DataError, match=message):
        small_svc().fit(rows, y, weights)


def unfinished(path):
    edit_attributes(path, lambda root: root.update(complete=False))


def of_99(path):
    edit_attributes(path, lambda root: root.update(daskls_format=99))


def of_5(path):
    # Up to format 5 a model's root was a Zarr group.
    shutil.rmtree(path)
    zarr.create_group(path, attributes={"kind": "model", "daskls_format": 5})


CHANGED = [
    (of_99, r"format 99; this daskls reads format 7\. Upg"),
    (of_5, r"format 5, which daskls 0\.2 .*reads format 7\. Train"),
    (unfinished, r"not finished. Call fit again with store="),
    (
        lambda path: sorted((path / "bundles").iterdir())[0].unlink(),
        r"of its \d+ bundles, .* first\. Copy or train it again",
    ),
    (lambda path: (path / "index").unlink(), "lacks its index"),
    (shutil.rmtree, r"no model at"),
]


@pytest.mark.parametrize(("change", "message"), CHANGED)
def test_what_is_no_whole_model_is_not_opened(change, message, model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    change(path)
    with pytest.raises(StoreError, match=message):
        daskls.load(path)
    if change in (of_99, of_5):
        with pytest.raises(StoreError, match=message):
            small_svc(store=path).fit(X, Y)
