"""Rows that are lazy, large integers or have gaps: as declared, exact, filled or refused."""

import itertools
import re

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import zarr
from falks import small_falk
from hypothesis import given, settings
from hypothesis import strategies as st
from landmarks import small_landmarks
from samplings import small_local
from sklearn.impute import SimpleImputer
from support import small_svc

import daskls
from daskls import DataError, KernelKNNClassifier, TableEncoder, VoronoiSVC, VoronoiSVR
from daskls.datasets import convert

N = 240
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.random(N), "b": RNG.random(N)})
LABELS = pd.Series(RNG.choice(list("pqr"), N), name="t")
X = FRAME.to_numpy()
Y = np.asarray(LABELS, str)


def nearest():
    return KernelKNNClassifier(n_neighbors=1)


@pytest.fixture(scope="module")
def of_table():
    return nearest().fit(FRAME.assign(t=LABELS), "t")


@pytest.fixture(scope="module")
def of_array():
    return nearest().fit(X, Y)


def cut(values, *cuts):
    """Return a Dask frame or series of unknown divisions."""
    bounds = [0, *cuts, len(values)]
    parts = [values.iloc[a:b] for a, b in itertools.pairwise(bounds)]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=values.iloc[:0])


def known(values, n):
    return dd.from_pandas(values, npartitions=n)


def test_pairs_that_are_refused():
    with pytest.raises(DataError, match=r"X is a table, but y is of type ndarray.*fit\(X, NAME\)"):
        nearest().fit(cut(FRAME, 60), Y)
    with pytest.raises(DataError, match=r"X has 240 rows, and y 239 labels\. Pass one label"):
        nearest().fit(cut(FRAME, 60), cut(LABELS[:-1], 60))
    ordered = cut(FRAME, 60).map_partitions(lambda part: part.sort_values("a"))
    with pytest.raises(DataError, match=r"same index in different orders.*Pass both as one fr"):
        nearest().fit(ordered, cut(LABELS, 60))
    with pytest.raises(DataError, match=r"sample_weight.*X has 240 rows, sample_weight has 239"):
        nearest().fit(cut(FRAME, 60), cut(LABELS, 60), sample_weight=cut(FRAME.a[1:], 9))


def blocks(f, dtype="f8", values=X, n=60, **kwargs):
    """Return a Dask array of blocks that ``f`` changes; it declares shapes and dtype of before."""
    lazy = da.from_array(values, chunks=(n, *values.shape[1:]))
    return lazy.map_blocks(f, dtype=dtype, meta=np.empty((0,) * values.ndim, dtype), **kwargs)


SHAPE = r"has the shape {}, but its Dask array declares \(60, 2\)\..*compute_chunk_sizes"
HOLDS = r"holds {}, such as .*declares {}[.].*dtype="
# What a block is made of, the dtype that is declared, and what is said.
BLOCKS = {
    "dropped": (lambda b: b[b[:, 0] < 0.9], "f8", SHAPE.format(r"\(\d\d, 2\)")),
    "columns": (lambda b: np.c_[b, b], "f8", SHAPE.format(r"\(60, 4\)")),
    "fractions": (lambda b: b, "i8", HOLDS.format("float64", "int64")),
    "large": (lambda b: (b * 10).astype(int) + 2**53, "f8", HOLDS.format("int64", "float64")),
    "digits": (lambda b: b + 1e9, "f4", HOLDS.format("float64", "float32")),
    "text": (lambda b: b.astype(str), "f8", HOLDS.format("<U32", "float64")),
    "sparse": (scipy.sparse.csr_array, "f8", r"is sparse .* pass X\.map_blocks\(lambda block: "),
    "masked": (np.ma.masked_array, "f8", "is a masked array"),
    "a list": (lambda b: [[1], [2, 3]], "f8", "is of type list, and no array can be made of it"),
}


@pytest.mark.always
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_that_are_not_as_declared(name, of_array, tmp_path):
    f, dtype, error = BLOCKS[name]
    rows = blocks(f, dtype)
    for use in (
        lambda: VoronoiSVC(random_state=0).fit(rows, Y),
        lambda: of_array.predict(rows).compute(),
        lambda: of_array.score(rows, Y),
        lambda: of_array.predict_to_zarr(rows, tmp_path / "answers.zarr"),
        lambda: daskls.FalkNoiseFilter(n_neighbors=20).fit(X, Y).transform(rows).compute(),
    ):
        with pytest.raises(DataError, match=f"Block [0-3] of X {error}"):
            use()


ONES = da.ones(N, chunks=60)
TARGETS = {
    "y holds <U1": (blocks(lambda b: b, "f8", Y), None),
    "y has the shape (59,)": (blocks(lambda b: b[1:], "<U1", Y), None),
    "sample_weight has the shape (61,)": (Y, ONES.map_blocks(lambda b: np.r_[b, 1])),
    "sample_weight holds float64": (Y, ONES.map_blocks(lambda b: b / 3, dtype="f4")),
}


@pytest.mark.parametrize("error", TARGETS)
def test_labels_and_weights_that_are_not_as_declared(error, of_array):
    y, weight = TARGETS[error]
    for use in (nearest().fit, of_array.score):
        with pytest.raises(DataError, match=rf"Block \d of {re.escape(error)}"):
            use(X, y, sample_weight=weight)


def test_text_of_another_kind_is_what_the_blocks_hold():
    y = blocks(lambda b: np.strings.add(b, b).astype(np.dtypes.StringDType()), "<U1", Y)
    model = nearest().fit(X, y)
    assert model.predict(X).tolist() == (LABELS + LABELS).tolist()


def test_chunks_of_unknown_sizes(of_array):
    some = blocks(lambda b: b)[X[:, 0] < 0.5]
    unknown = da.from_array(X, chunks=(60, 2))
    unknown = unknown[unknown[:, 0] < 0.5]
    np.testing.assert_array_equal(of_array.predict(unknown).compute(), of_array.predict(some))
    flat = blocks(lambda b: b[b[:, 0] < 0.5, 0], "f8")
    flat = da.Array(flat.dask, flat.name, ((np.nan,) * 4, (2,)), "f8")
    with pytest.raises(DataError, match="chunks of unknown sizes, and its blocks are not arrays"):
        of_array.predict(flat)


def test_partitions_and_columns_that_are_not_as_declared(of_table):
    table = FRAME.assign(t=LABELS)
    mixed = FRAME.assign(b=FRAME.b.astype(pd.SparseDtype(float)))
    part = [dask.delayed(table.drop(columns="b"))]
    lacks = dd.from_delayed(part, table[:0], verify_meta=False)
    checked = dd.from_delayed(part, table[:0])
    sparse = r"sparse columns, but dense ones.*'b'.*to_dense\(\)"
    for rows, message in (
        (lacks, r"Partition 0 .* has no column 'b'"),
        (checked, "not what its meta declares: Metadata mismatch"),
        (known(mixed.assign(t=LABELS), 2), sparse),
    ):
        with pytest.raises(DataError, match=message):
            nearest().fit(rows, "t")
        with pytest.raises(DataError, match=message):
            of_table.predict(rows).compute()
    for use in (
        lambda: nearest().fit(FRAME.astype(pd.SparseDtype(float)), Y),
        lambda: TableEncoder().fit(mixed),
    ):
        with pytest.raises(DataError, match=sparse):
            use()


N_IDS = 60
IDS = 2**53 + np.arange(N_IDS)
ROWS = pd.DataFrame({"a": np.arange(N_IDS) / 7, "id": IDS})
OF_IDS, y = np.column_stack([np.arange(N_IDS), IDS]), np.arange(N_IDS) % 2
SMALL = {"cell_size": 100, "C": 1.0, "gamma": 1.0, "random_state": 0}
TOLD = r"9007199254740993.* row 1\b.*2\*\*53 = 9,007,199,254,740,992 become equal as float64"


def at(path, write):
    """Return a path after it is written."""
    write(path)
    return path


ARRAYS = {
    "NumPy": lambda _: OF_IDS,
    "Dask": lambda _: da.from_array(OF_IDS, chunks=(25, 2)),
    "Zarr": lambda folder: at(folder / "ids.zarr", lambda path: zarr.save_array(path, OF_IDS)),
    "Polars": lambda _: pl.from_pandas(ROWS),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_large_integers_in_arrays_are_refused_in_training_and_in_queries(kind, tmp_path):
    rows = ARRAYS[kind](tmp_path)
    words = TOLD.replace(r"\b.*", r".*, column ('id'|1);.*")
    with pytest.raises(DataError, match=words):
        daskls.VoronoiSVC(**SMALL).fit(rows, y)
    small = ROWS.assign(id=y) if kind == "Polars" else OF_IDS // 2**40
    model = daskls.VoronoiSVC(**SMALL).fit(small, y)
    with pytest.raises(DataError, match=words):
        np.asarray(model.predict(rows))


TABLES = {
    "pandas": lambda frame, _: frame,
    "Dask": lambda frame, _: dd.from_pandas(frame, npartitions=2),
    "CSV": lambda frame, folder: at(folder / "t.csv", lambda path: frame.to_csv(path, index=False)),
    "Parquet": lambda frame, folder: at(folder / "t.parquet", frame.to_parquet),
}


@pytest.mark.parametrize("kind", TABLES)
def test_large_integers_in_columns_are_refused_by_name(kind, tmp_path):
    table = TABLES[kind](ROWS.assign(t=y), tmp_path)
    model = daskls.VoronoiSVC(**SMALL).fit(ROWS.assign(id=y, t=y), "t")
    uses = [
        (lambda: daskls.VoronoiSVC(**SMALL).fit(table, "t"), TOLD),
        (lambda: TableEncoder("t").fit(table), TOLD),
        # Of the parts of a lazy table, any may be the first that is read.
        (
            lambda: np.asarray(model.predict(table)),
            TOLD.replace("0993.* row 1", r"\d+ in row (1|31)"),
        ),
    ]
    if kind in ("CSV", "Parquet"):
        given = {"label": "t", "dtype": "float64"}
        uses.append((lambda: convert(table, tmp_path / "d", **given), TOLD))
    for use, words in uses:
        with pytest.raises(DataError, match=f"column 'id' holds {words}"):
            use()
    with pytest.raises(DataError, match=rf"(target|column) 'id'.*{TOLD.replace(' row 1', '')}"):
        VoronoiSVR(**SMALL).fit(TABLES[kind](ROWS, tmp_path), "id")


def test_large_numbers_to_predict_are_refused(tmp_path):
    with pytest.raises(DataError, match=f"y holds {TOLD}"):
        VoronoiSVR(**SMALL).fit(ROWS[["a"]].to_numpy(), np.column_stack([y, IDS]))
    np.savez(tmp_path / "t.npz", X=OF_IDS[:, :1], y=IDS)
    with pytest.raises(DataError, match=r"target 'y' of row 1 .*9007199254740993"):
        VoronoiSVR(**SMALL).fit(tmp_path / "t.npz")


@pytest.mark.parametrize("kind", TABLES)
def test_labels_stay_exact(kind, tmp_path):
    labels = 2**53 + np.arange(N_IDS) % 3
    table = TABLES[kind](ROWS[["a"]].assign(t=labels), tmp_path)
    daskls.VoronoiSVC(**SMALL).fit(table, "t").save(tmp_path / "m")
    model = daskls.load(tmp_path / "m")
    assert model.classes_.tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    found = np.asarray(model.predict(table))
    assert set(found.tolist()) <= {*labels.tolist()}
    assert model.score(table, "t") == np.mean(found == labels)


N_GAPS, D = 400, 4
NAMES = list("abcd")


def rows_with_gaps(seed=0, share=0.1, n=N_GAPS, dtype=np.float64, full=(3,)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)).astype(dtype)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    gaps = rng.random((n, D)) < share
    gaps[:, list(full)] = False
    X[gaps] = np.nan
    return X, y


GAPS, OF_GAPS = rows_with_gaps()
Q, YQ = rows_with_gaps(seed=1)
# The first n rows of a container, in blocks of some rows.
KINDS = {
    "NumPy": lambda X, rows, path: X,
    "Fortran": lambda X, rows, path: np.asfortranarray(X),
    "pandas": lambda X, rows, path: pd.DataFrame(X),
    "pandas objects": lambda X, rows, path: pd.DataFrame(X.astype(object)),
    "Dask": lambda X, rows, path: da.from_array(X, chunks=(rows, 2)),
    "path": lambda X, rows, path: zarr.create_array(path, data=X, chunks=(rows, D)) and path,
}


@pytest.fixture(scope="module")
def model():
    return small_svc().fit(GAPS, OF_GAPS)


@settings(max_examples=15)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(KINDS)), st.integers(40, N_GAPS))
def test_any_container_gives_one_model(tmp_path_factory, model, kind, asked, rows):
    folder = tmp_path_factory.mktemp("rows")
    same = small_svc().fit(KINDS[kind](GAPS, rows, str(folder / "x")), OF_GAPS)
    assert same.n_features_in_ == D
    answers = same.decision_function(KINDS[asked](Q, rows, str(folder / "q")))
    np.testing.assert_array_equal(np.asarray(answers), model.decision_function(Q))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("make", [small_svc, small_falk, small_landmarks, small_local])
def test_equal_to_an_imputer_before_it(make, dtype):
    X, y = rows_with_gaps(dtype=dtype)
    imputer = SimpleImputer(strategy="median", add_indicator=True).fit(X)
    given, imputed = make().fit(X, y), make().fit(imputer.transform(X).astype(dtype), y)
    answers = given.decision_function(Q.astype(dtype))
    wanted = imputed.decision_function(imputer.transform(Q.astype(dtype)).astype(dtype))
    np.testing.assert_array_equal(answers, wanted)


def test_rows_held_out_or_reserved_are_filled_too():
    weight = np.ones(2 * N_GAPS)
    X, y = rows_with_gaps(n=2 * N_GAPS)
    shares = VoronoiSVC(probability=True, random_state=0).fit(X, y, weight).predict_proba(Q)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    bounded = VoronoiSVC(max_false_alarm=0.2, delta=0.2, random_state=0).fit(X, y, weight)
    assert bounded.score(Q, YQ) > 0.6
    covering = VoronoiSVR(interval=0.8, random_state=0).fit(X, X[:, 3], weight)
    ends = covering.predict_interval(Q)
    assert 0.7 < ((ends[:, 0] <= Q[:, 3]) & (Q[:, 3] <= ends[:, 1])).mean() < 0.95


def test_a_first_gap_in_a_query_is_told_and_filled(tmp_path):
    X, y = rows_with_gaps(full=range(D))
    model = small_svc(store=tmp_path / "m").fit(pd.DataFrame(X, columns=NAMES), y)
    frame = pd.DataFrame(Q, columns=NAMES)
    filled = frame.fillna(pd.Series(np.median(X, axis=0), NAMES))
    told = rf"none: {np.isnan(Q[:, 0]).sum()} in 'a', .*median of the training rows"
    for asked in (daskls.load(tmp_path / "m"), model):
        with pytest.warns(UserWarning, match=told):
            answers = asked.decision_function(frame)
        np.testing.assert_array_equal(answers, model.decision_function(filled))
    bare = small_svc().fit(X, y)
    with pytest.warns(UserWarning, match="where training rows had none"):
        bare.predict_to_zarr(da.from_array(Q, chunks=(90, D)), tmp_path / "out")
    np.testing.assert_array_equal(zarr.open(tmp_path / "out")[:], model.predict(filled))


def test_a_refusal_and_a_wrong_width(model):
    strict = small_svc().fit(rows_with_gaps(full=range(D))[0], OF_GAPS, missing="refuse")
    for call in (
        lambda: small_svc().fit(GAPS, OF_GAPS, missing="refuse"),
        lambda: strict.predict(GAPS),
    ):
        with pytest.raises(DataError, match=r"contains NaN, first in row \d+.*missing=\"auto\""):
            call()
    with pytest.raises(DataError, match=r"has 7 features, but .* is expecting 4"):
        model.predict(np.zeros((2, model._reader.n_features)))


def test_a_killed_fit_goes_on(tmp_path, monkeypatch):
    def fails(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("daskls.pipeline.train", fails)
        with pytest.raises(KeyboardInterrupt):
            small_svc(store=tmp_path / "m").fit(GAPS, OF_GAPS)
    resumed = small_svc(store=tmp_path / "m").fit(GAPS, OF_GAPS)
    np.testing.assert_array_equal(
        resumed.decision_function(Q), small_svc().fit(GAPS, OF_GAPS).decision_function(Q)
    )
