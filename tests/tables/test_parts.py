"""Parts of one table that differ in type: what a column is follows from all of them."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

import daskls
from daskls import DataError, TableEncoder

RNG = np.random.default_rng(0)
N = 120
CODES = RNG.integers(1, 4, N)
GAPS = pd.Series(np.where(CODES == 1, np.nan, CODES))
WORDS = pd.Series(["A", "1", "01", "2.0"] * (N // 4))
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 1.0, "random_state": 0}


def frames(*columns, name="c"):
    return [
        pd.DataFrame({"x": RNG.random(N), "c": "a", "t": np.arange(N) % 2, name: values})
        for values in columns
    ]


def as_parquet(parts, folder):
    folder.mkdir()
    for i, part in enumerate(parts):
        part.to_parquet(folder / f"part-{i}.parquet", index=False)
    return folder


def as_csv(parts, folder):
    folder.mkdir()
    for i, part in enumerate(parts):
        part.to_csv(folder / f"part-{i}.csv", index=False)
    return folder / "*.csv"


def as_dask(parts, folder):
    delayed = [dask.delayed(part) for part in parts]
    return dd.from_delayed(delayed, meta=parts[0][:0], verify_meta=False)


typed = pytest.mark.parametrize("write", [as_parquet, as_dask], ids=["Parquet", "Dask"])


def features(encoder, table, folder):
    if isinstance(table, dd.DataFrame):
        return encoder.transform(table).compute()
    return encoder.to_zarr(table, folder / "features").X[:]


@pytest.mark.parametrize("write", [as_parquet, as_dask, as_csv])
@pytest.mark.parametrize("step", [1, -1])
def test_numbers_become_the_categories_of_the_text_in_another_part(write, step, tmp_path):
    parts = frames(pd.Series(CODES, dtype="int8"), GAPS, WORDS)[::step]
    table = write(parts, tmp_path / "t")
    encoder = TableEncoder("t").fit(table)
    assert encoder.table_.columns[1].categories == ("01", "1", "2", "3", "A")
    text = [str(v).removesuffix(".0") for part in parts for v in part.c]
    wanted = [[value == own for own in ("01", "1", "2", "3", "A", "nan")] for value in text]
    np.testing.assert_array_equal(features(encoder, table, tmp_path)[:, 1:], wanted)


@typed
def test_a_whole_number_is_one_category_in_any_spelling_of_a_query(write, tmp_path):
    parts = frames(CODES, WORDS)
    y = np.concatenate([parts[0].c.astype(str), WORDS.str.removesuffix(".0")]) == "2"
    parts = [parts[0].assign(t=y[:N]), parts[1].assign(t=y[N:])]
    model = daskls.VoronoiSVC(**SMALL).fit(write(parts, tmp_path / "t"), "t")
    queries = [CODES.astype("int8"), pd.Series(CODES, dtype="Int64"), [f"{c}.0" for c in CODES]]
    for values in queries:
        query = frames(values)[0].assign(x=0.5)
        assert (model.predict(query) == (CODES == 2)).all()
    lazy = as_dask([query, query.assign(c=CODES)], None)
    assert model.predict(lazy).compute().tolist() == [*(CODES == 2)] * 2
    query.to_csv(tmp_path / "query.csv")
    assert model.predict(tmp_path / "query.csv").tolist() == (CODES == 2).tolist()


ONE_KIND = [
    (CODES, GAPS, "number"),
    (CODES.astype("int8"), CODES.astype("float32"), "number"),
    ([None] * N, CODES, "number"),
    ([np.nan] * N, WORDS, "category"),
    (CODES == 1, ["True", "False"] * (N // 2), "flag"),
    (CODES == 1, [None, True] * (N // 2), "flag"),
    (pd.Series(WORDS, dtype="category"), WORDS, "category"),
]


@typed
def test_parts_of_one_kind_are_one_column_in_either_order(write, tmp_path):
    for i, (one, two, kind) in enumerate(ONE_KIND):
        found = []
        for order, own in enumerate(((one, two), (two, one))):
            table = write(frames(*own), tmp_path / f"{i}-{order}")
            found.append(TableEncoder("t").fit(table).table_.columns[1])
        assert found[0] == found[1]
        assert found[0].kind == kind
    large = CODES.astype("int64") * 10**8 + 1
    # Those that were downcast keep the values of the others.
    for small, wide in ((CODES.astype("int8"), large), (CODES.astype("float32"), large / 7)):
        parts = [part.assign(x=np.float32(0.5)) for part in frames(small, wide)]
        folder = tmp_path / small.dtype.name
        folder.mkdir()
        table = write(parts, folder / "t")
        encoder = TableEncoder("t").fit(table)
        wanted = np.concatenate([small, wide]).astype(float)
        np.testing.assert_array_equal(features(encoder, table, folder)[:, 1], wanted)


def part_error(name, one, two):
    return (
        rf"column '{name}' holds {one}.* in .*part\S* ?0\S* and {two}.* in .*part\S* ?1\S* .*"
        r"Give it one type in all parts"
    )


# Of a feature, numbers may become categories; of labels, nothing is joined.
REFUSED = [
    ("c", CODES / 7, WORDS, ("double", "text")),
    ("c", CODES == 1, WORDS, ("bool", "text")),
    ("c", CODES == 1, CODES, ("bool", "int64")),
    ("t", CODES, CODES.astype(str), ("int64", "text")),
    ("t", CODES == 1, (CODES == 1).astype(str), ("bool", "text")),
    ("t", pd.Series(WORDS, dtype="category"), CODES, ("categories of text", "int64")),
]


@typed
def test_types_that_no_text_joins_and_labels_of_two_types_are_refused(write, tmp_path):
    model = daskls.VoronoiSVC(**SMALL).fit(frames(CODES, name="t")[0], "t")
    for i, (name, one, two, types) in enumerate(REFUSED):
        for own, told in (((one, two), types), ((two, one), types[::-1])):
            table = write(frames(*own, name=name), tmp_path / f"{i} {told[0]}")
            with pytest.raises(DataError, match=part_error(name, *told)):
                TableEncoder("t").fit(table)
        if name == "t":
            with pytest.raises(DataError, match=part_error(name, *told)):
                model.score(table)
    table = write(frames(CODES, [[1]] * N), tmp_path / "lists")
    with pytest.raises(DataError, match=part_error("c", "int64", "list")):
        TableEncoder("t").fit(table)


@typed
def test_a_part_without_rows_has_any_type(write, tmp_path):
    parts = frames(CODES, WORDS)
    empty = parts[0][:0].astype({"x": object, "c": float, "t": object})
    table = write([empty, parts[0], empty, parts[1]], tmp_path / "t")
    model = daskls.VoronoiSVC(**SMALL).fit(table, "t")
    assert model.classes_.tolist() == [0, 1]
    wanted = daskls.VoronoiSVC(**SMALL).fit(write(parts, tmp_path / "s"), "t")
    answers = [*wanted.predict(parts[0]), *wanted.predict(parts[1])]
    assert np.asarray(model.predict(table)).tolist() == answers


def test_parts_that_lack_a_column_are_named(tmp_path):
    one, two = frames(CODES, CODES)
    two = two.drop(columns="c")
    for write in (as_parquet, as_csv):
        table = write([one, two], tmp_path / write.__name__)
        with pytest.raises(DataError, match=r"part-1.* has the columns x, t, and .*part-0.* c, t"):
            TableEncoder("t").fit(table)
    lazy, model = as_dask([one, two], None), daskls.VoronoiSVC(**SMALL).fit(one, "t")
    words = r"Partition 1 of the Dask DataFrame has no column 'c', .*its columns are x, t"
    for call in (TableEncoder("t").fit, model.predict, model.score):
        with pytest.raises(DataError, match=words):
            call(lazy)


def test_what_other_libraries_refuse_is_one_sentence():
    parts = frames(CODES, WORDS)
    lazy = dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0][:0])
    for table, words in (
        (lazy, r"is not what its meta declares: .*'c'.* or verify_meta"),
        (pl.scan_parquet("/nowhere/t.parquet"), "The LazyFrame cannot be computed: No such file"),
    ):
        with pytest.raises(DataError, match=words):
            TableEncoder("t").fit(table)
