"""Lazy containers: rows keep their own labels, and blocks hold what their array declares."""

import itertools
import re

import dask
import dask.array as da
import numpy as np
import pytest

from daskls import DataError, FalkNoiseFilter, KernelKNNClassifier, TableEncoder, VoronoiSVC

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

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
    with pytest.raises(
        DataError, match=r"have the same index in different orders.*Pass both as one frame"
    ):
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
        lambda: FalkNoiseFilter(n_neighbors=20).fit(X, Y).transform(rows).compute(),
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


def test_chunks_of_unknown_sizes(of_array):
    some = blocks(lambda b: b)[X[:, 0] < 0.5]
    unknown = da.from_array(X, chunks=(60, 2))
    unknown = unknown[unknown[:, 0] < 0.5]
    np.testing.assert_array_equal(of_array.predict(unknown).compute(), of_array.predict(some))
    flat = blocks(lambda b: b[b[:, 0] < 0.5, 0], "f8")
    flat = da.Array(flat.dask, flat.name, ((np.nan,) * 4, (2,)), "f8")
    with pytest.raises(DataError, match="chunks of unknown sizes, and its blocks are not arrays"):
        of_array.predict(flat)


def test_sparse_columns_are_refused(of_table):
    sparse = FRAME.astype(pd.SparseDtype(float))
    mixed = FRAME.assign(b=sparse.b)
    for use in (
        lambda: nearest().fit(sparse, Y),
        lambda: nearest().fit(known(mixed.assign(t=LABELS), 2), "t"),
        lambda: of_table.predict(known(mixed, 2)).compute(),
        lambda: TableEncoder().fit(mixed),
    ):
        with pytest.raises(DataError, match=r"sparse columns, but dense ones.*'b'.*to_dense\(\)"):
            use()


def test_partitions_that_are_not_as_declared(of_table):
    table = FRAME.assign(t=LABELS)
    lacks = dd.from_delayed([dask.delayed(table.drop(columns="b"))], table[:0], verify_meta=False)
    with pytest.raises(DataError, match=r"Partition 0 .* has no column 'b'"):
        nearest().fit(lacks, "t")
    with pytest.raises(DataError, match=r"Partition 0 .* has no column 'b'"):
        of_table.predict(lacks).compute()
    checked = dd.from_delayed([dask.delayed(table.drop(columns="b"))], table[:0])
    for use in (lambda: nearest().fit(checked, "t"), lambda: of_table.predict(checked)):
        with pytest.raises(DataError, match="not what its meta declares: Metadata mismatch"):
            use()
