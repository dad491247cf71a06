"""Missing values, categories, dates and labels: what becomes of columns, and what is refused."""

import json
import re
import subprocess
import sys
import time
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
import zarr
from small import connected
from support import HERE, PAPERS, as_options, python_env, read_plain
from support import run_cli as run

import daskls
from daskls import DataError, ParameterError, StoreError
from daskls.sources.base import BATCH_FIELDS, MEDIAN_SAMPLE, TableOptions
from daskls.sources.columns import MAX_CATEGORIES
from daskls.sources.encoding import ColumnEncoding, TableEncoding, UnseenCounts
from daskls.sources.files import TEXT_BLOCK_NBYTES
from daskls.sources.formats import open_source
from daskls.sources.scan import scan_table

PARAMS = {
    **PAPERS,
    "cell_size": 300,
    "cv": 2,
    "C": [1.0, 10.0],
    "gamma": [0.5, 2.0],
    "random_state": 0,
}
SMALL = as_options(**PARAMS)


def make_frame(n_rows=600, seed=0):
    """Return rows of every kind: numbers, true and false, categories, with and without gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n_rows).astype(float),
            "member": rng.random(n_rows) > 0.5,
            "color": rng.choice(["red", "green", "blue"], n_rows),
            "city": rng.choice(["Bern", "Oslo"], n_rows),
            "income": rng.random(n_rows) * 10,
        }
    )
    frame["kind"] = np.where((frame.color == "red") ^ (frame.income > 5), "buys", "looks")
    frame.loc[rng.random(n_rows) < 0.2, "age"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "city"] = None
    return frame


TRAIN, TEST = make_frame(), make_frame(200, 1)
CODED = ["age", "age is missing", "member", "color=blue", "color=green", "color=red"]
CODED += ["city=Bern", "city=Oslo", "city is missing", "income"]


def by_hand(frame, median):
    """Return the features as pandas makes them."""
    return np.column_stack(
        [
            frame.age.fillna(median),
            frame.age.isna(),
            frame.member,
            *(frame.color == color for color in ("blue", "green", "red")),
            *(frame.city == city for city in ("Bern", "Oslo")),
            frame.city.isna(),
            frame.income,
        ]
    ).astype(float)


@pytest.fixture(scope="module")
def trained():
    return daskls.VoronoiSVC(**PARAMS).fit(TRAIN, "kind")


def write(frame, path):
    frame.to_csv(path, index=False)
    return path


def scan(source, seed=0, **options):
    table = open_source(source).open("kind", None)
    return scan_table(table, "kind", TableOptions(**options), seed=seed).encoding


def test_features_are_what_pandas_makes_of_the_columns(trained):
    median = TRAIN.age.median()
    assert trained.feature_names_in_.tolist() == CODED
    same = daskls.VoronoiSVC(**PARAMS).fit(by_hand(TRAIN, median), TRAIN.kind.to_numpy())
    X = by_hand(TEST, median)
    np.testing.assert_array_equal(trained.decision_function(TEST), same.decision_function(X))
    assert trained.score(TEST) == same.score(X, TEST.kind.to_numpy())
    # The rows of a data set are those that `predict` sees, for a Dask DataFrame too.
    lazy = trained.predict(dd.from_pandas(TEST, npartitions=3))
    assert isinstance(lazy, da.Array)
    assert lazy.compute().tolist() == same.predict(X).tolist()


def test_a_text_file_gives_the_model_of_the_frame(trained, tmp_path):
    path = write(TRAIN, tmp_path / "train.csv")
    model = daskls.VoronoiSVC(**PARAMS).fit(path, "kind")
    np.testing.assert_array_equal(model.decision_function(TEST), trained.decision_function(TEST))
    queries = write(TEST, tmp_path / "test.csv")
    assert model.predict(queries).tolist() == trained.predict(TEST).tolist()
    assert model.score(queries) == trained.score(TEST)


def test_the_encoding_is_json_in_the_model(trained, tmp_path):
    trained.save(tmp_path / "model.zarr")
    table = read_plain(tmp_path / "model.zarr" / "root")[0]["meta"]["table"]
    assert table["label"] == "kind"
    assert {"name": "age", "kind": "number", "fill": TRAIN.age.median()} in table["columns"]
    loaded = daskls.load(tmp_path / "model.zarr")
    assert loaded.table_ == trained.table_
    assert loaded.predict(TEST).tolist() == trained.predict(TEST).tolist()


def test_a_model_without_a_table_has_no_encoding(trained):
    X = by_hand(TRAIN, 0.0)
    model = daskls.VoronoiSVC(**PARAMS).fit(TRAIN, "kind")
    assert not hasattr(model.fit(X, TRAIN.kind.to_numpy()), "table_")
    assert "table" not in model._reader.meta


@pytest.mark.parametrize("n_parts", [1, 4, 7])
def test_medians_are_of_the_same_rows_however_they_are_dealt(n_parts, tmp_path):
    n_rows = 3 * MEDIAN_SAMPLE
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_cauchy(n_rows), "kind": rng.integers(0, 2, n_rows)})
    frame.loc[::5, "a"] = np.nan
    whole = scan(frame, seed=3).columns[0].fill
    dealt = scan(dd.from_pandas(frame, npartitions=n_parts), seed=3)
    assert dealt.columns[0].fill == whole
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=n_rows // n_parts)
    assert scan(tmp_path / "rows.parquet", seed=3).columns[0].fill == whole
    # A sample: near the median of all, another with another seed.
    assert abs(whole - frame.a.median()) < 0.05
    assert scan(frame, seed=4).columns[0].fill != whole
    # Few rows are all looked at.
    few = frame.iloc[:1000]
    assert scan(few, seed=3).columns[0].fill == few.a.median()


def test_kinds_do_not_depend_on_where_a_block_of_text_ends(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": [*map(str, range(40)), "x"], "b": np.arange(41.0)})
    frame["kind"] = np.arange(41) % 2
    path = write(frame, tmp_path / "rows.csv")
    whole = scan(path)
    monkeypatch.setattr("daskls.sources.files.TEXT_BLOCK_NBYTES", 64)
    assert len(list(open_source(path).open("kind", None).batches(["a"]))) > 3
    assert scan(path) == whole
    assert [column.kind for column in whole.columns] == ["category", "number"]
    assert len(whole.columns[0].categories) == 41


def test_missing_values_may_be_refused(tmp_path):
    row = int(TRAIN.age.isna().argmax())
    for source in (TRAIN, write(TRAIN, tmp_path / "train.csv")):
        with pytest.raises(DataError, match=rf"'age' has a missing value in row {row}, .*median"):
            daskls.VoronoiSVC(**PARAMS).fit(source, "kind", missing="refuse")
    text = "age,kind\n1,a\nNA,b\n"
    (tmp_path / "na.csv").write_text(text)
    fit = ("fit", tmp_path / "na.csv", tmp_path / "m.zarr", "--label", "kind", *HERE)
    result = run(*fit, "--missing", "refuse", code=1)
    assert "--missing auto" in result.stderr
    assert not (tmp_path / "m.zarr").exists()


def test_a_missing_value_in_a_column_that_had_none_is_an_error(tmp_path):
    trained = daskls.VoronoiSVC(**PARAMS).fit(TRAIN.dropna(), "kind", missing="refuse")
    gap = make_frame(200, 1).fillna({"age": 30.0, "city": "Bern"})
    gap.loc[7, "income"] = np.nan
    gap.loc[5, "color"] = None
    for source in (gap, write(gap, tmp_path / "gap.csv"), dd.from_pandas(gap, npartitions=3)):
        with pytest.raises(DataError, match=r"'color' has a missing value in row 5 "):
            np.asarray(trained.predict(source))
    with pytest.raises(DataError, match=r"'income' has a missing value in row 7 "):
        trained.predict(gap.assign(color="red"))


@pytest.mark.filterwarnings("default:Values that no training row had")
def test_an_unseen_category_is_an_error_or_zeros(tmp_path):
    trained = daskls.VoronoiSVC(**PARAMS).fit(TRAIN, "kind", unknown="error")
    strange = TEST.copy()
    strange.loc[[3, 9], "color"] = ["violet", "pink"]
    with pytest.raises(DataError, match=r"'color' holds 'violet' in row 3 .*blue, green, red"):
        trained.predict(strange)
    with pytest.raises(DataError, match=r"'violet' in row 3 |'pink' in row 9 "):
        trained.predict(dd.from_pandas(strange, npartitions=60)).compute()
    train, test = write(TRAIN, tmp_path / "train.csv"), write(strange, tmp_path / "test.csv")
    fit = ("fit", train, tmp_path / "m.zarr", "--label", "kind", *SMALL)
    run(*fit, *HERE, "--unknown", "error")
    predict = ("predict", tmp_path / "m.zarr", test, tmp_path / "out.csv")
    assert "--unknown zero" in run(*predict, *HERE, code=1).stderr
    assert not (tmp_path / "out.csv").exists()
    told = "no training row had: 2 in 'color' ('violet' in row 3 "
    stderr = run(*predict, "--unknown", "zero", *HERE).stderr
    assert told in stderr
    assert "They count as no category; in columns of statistics, as the average row." in stderr
    zeros = by_hand(strange, TRAIN.age.median())
    assert (zeros[[3, 9], 3:6] == 0).all()
    wanted = daskls.load(tmp_path / "m.zarr")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        labels = wanted.predict(zeros)
    assert pd.read_csv(tmp_path / "out.csv").kind.tolist() == labels.tolist()
    assert wanted.predict(TEST).tolist() == wanted.predict(write(TEST, train)).tolist()
    # Said in training, it holds for all queries.
    open_model = daskls.VoronoiSVC(**PARAMS).fit(TRAIN, "kind")
    with pytest.warns(UserWarning, match=re.escape(told)):
        assert open_model.predict(strange).tolist() == labels.tolist()
    score = ("score", tmp_path / "m.zarr", test, *HERE)
    assert "violet" in run(*score, code=1).stderr
    assert told in run(*score, "--unknown", "zero").stderr


def test_a_client_is_warned_of_what_its_workers_read(one_worker):
    model = daskls.VoronoiSVC(**PARAMS).fit(TRAIN, "kind")
    lazy = dd.from_pandas(TEST.assign(color="violet"), npartitions=2)
    with connected(one_worker) as client, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        client.compute(model.predict(lazy.partitions[0])).result()
        # The worker's words come after its answers.
        end = time.monotonic() + 60
        while not told and time.monotonic() < end:
            time.sleep(0.02)
    assert "in 'color' ('violet' in row 0" in str(told[0].message)


def test_text_among_numbers_of_a_query_is_named(trained, tmp_path):
    text = TEST.astype({"income": object}).copy()
    text.loc[11, "income"] = "much"
    with pytest.raises(DataError, match=r"'income' holds 'much' in row 11 "):
        trained.predict(write(text, tmp_path / "text.csv"))


def test_columns_of_a_query_are_found_by_name(trained):
    moved = TEST[[*TEST.columns[::-1]]].assign(extra="anything")
    assert trained.predict(moved).tolist() == trained.predict(TEST).tolist()
    with pytest.raises(DataError, match=r"no column 'color', which the model was trained on"):
        trained.predict(TEST.drop(columns="color"))


REFUSED = {
    "lists": (lambda n: [[1, 2]] * n, "neither numbers, text, categories nor"),
    "mixed kinds": (lambda n: [1, "a"] * (n // 2), "neither numbers nor text nor"),
    "complex numbers": (lambda n: np.arange(n) * 1j, "neither numbers nor text nor"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_column_that_becomes_no_number_is_refused_or_left_out(what, tmp_path):
    make, words = REFUSED[what]
    frame = TRAIN[["income", "kind"]].assign(odd=make(len(TRAIN)))
    with pytest.raises(DataError, match=words):
        daskls.VoronoiSVC(**PARAMS).fit(frame, "kind")
    if what in ("mixed kinds", "complex numbers"):
        return
    model = daskls.VoronoiSVC(**PARAMS).fit(frame, "kind", drop=["odd"])
    assert model.feature_names_in_.tolist() == ["income"]


def test_up_to_the_bound_categories_become_a_column_each():
    values = [f"v{i:02}" for i in range(MAX_CATEGORIES)]
    frame = pd.DataFrame({"a": values * 2, "kind": [0, 1] * MAX_CATEGORIES})
    assert scan(frame).columns == (ColumnEncoding("a", "category", tuple(values), usual=0.0),)
    more = pd.concat([frame, pd.DataFrame({"a": ["one more"] * 2, "kind": [0, 1]})])
    assert scan(more).columns[0].kind == "statistics"


def test_categories_of_numbers_are_categories():
    frame = pd.DataFrame({"zone": pd.Categorical([3, 1, 3, 1]), "kind": [0, 1, 0, 1]})
    encoding = scan(frame)
    assert encoding.columns == (ColumnEncoding("zone", "category", ("1", "3"), usual=0.0),)
    batch = pa.table({"zone": [1, 3, 1]})
    assert encoding.encode(batch, 0, UnseenCounts()).tolist() == [[1, 0], [0, 1], [1, 0]]


# On the command line a warning is a line, not an error as elsewhere in the tests.
@pytest.mark.filterwarnings("default:No label column")
def test_the_label_is_taken_by_its_usual_names_and_said(tmp_path):
    for name in ("y", "label", "target", "class"):
        frame = TRAIN[["income", "member", "kind"]].rename(columns={"kind": name})
        with pytest.warns(UserWarning, match=f"No label column was named; it is '{name}'"):
            model = daskls.VoronoiSVC(**PARAMS).fit(frame)
        assert model.classes_.tolist() == ["buys", "looks"]
        assert model.table_.label == name
    result = run("fit", write(frame, tmp_path / "a.csv"), tmp_path / "a.zarr", *SMALL, *HERE)
    assert "No label column was named; it is 'class'" in result.stderr
    # It says what became of each column.
    assert "1 number as it is: income" in result.stdout
    assert "member: true or false" in result.stdout


def test_a_label_that_is_not_named_is_an_error_that_lists_the_columns(tmp_path):
    path = write(TRAIN, tmp_path / "train.csv")
    # No cluster is started for it: this address leads to none.
    nowhere = ("--scheduler", "tcp://127.0.0.1:1", "--quiet")
    result = run("fit", path, tmp_path / "m.zarr", *nowhere, code=1)
    assert "age, member, color, city, income, kind" in result.stderr
    assert "--label NAME" in result.stderr
    two = TRAIN.assign(y=1, label=2)
    with pytest.raises(DataError, match=r"several usual names \(y, label\)"):
        daskls.VoronoiSVC(**PARAMS).fit(two)
    with pytest.raises(DataError, match=r"no column 'sort'; its 6 columns are: age"):
        daskls.VoronoiSVC(**PARAMS).fit(path, "sort")


@pytest.mark.parametrize("labels", [[0, 1], [True, False], ["a", "b"], [-1, 1], [1.0, 2.0]])
def test_classes_are_those_of_the_numpy_route(labels, tmp_path):
    kinds = np.array(labels)[(TRAIN.kind == "buys").astype(int)]
    frame = TRAIN[["income"]].assign(kind=kinds)
    direct = daskls.VoronoiSVC(**PARAMS).fit(TRAIN[["income"]].to_numpy(), kinds).classes_
    for source in (frame, write(frame, tmp_path / "rows.csv")):
        classes = daskls.VoronoiSVC(**PARAMS).fit(source, "kind").classes_
        assert classes.tolist() == direct.tolist()


def test_a_broken_file_is_one_sentence(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,kind\n1,2,x\n3,y\n")
    fit = ("fit", tmp_path / "rows.csv", tmp_path / "m.zarr", "--label", "kind", *HERE)
    assert "Expected 3 columns, got 2" in run(*fit, code=1).stderr
    assert not (tmp_path / "m.zarr").exists()


def test_files_of_which_there_are_none_or_that_differ_are_refused(tmp_path):
    (tmp_path / "rows.csv").write_text("a,kind\n1,1\n")
    with pytest.raises(DataError, match="No file matches"):
        daskls.VoronoiSVC().fit(str(tmp_path / "no-*.csv"), "kind")
    (tmp_path / "other.csv").write_text("b,kind\n1,1\n")
    with pytest.raises(DataError, match="have the same columns"):
        daskls.VoronoiSVC().fit(str(tmp_path / "*.csv"), "kind")


# Weights


def weighted(frame):
    """Return a table with a column of weights, some of them 0."""
    rng = np.random.default_rng(5)
    return frame[["income", "member", "kind"]].assign(w=rng.integers(0, 3, len(frame)) / 2)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "pandas", "dask", "polars"])
def test_a_column_of_weights_is_that_of_the_numpy_route(suffix, tmp_path):
    frame = weighted(TRAIN)
    X, w = frame[["income", "member"]].to_numpy(float), frame.w.to_numpy()
    wanted = daskls.VoronoiSVC(**PARAMS).fit(X, frame.kind.to_numpy(), w)
    plain = daskls.VoronoiSVC(**PARAMS).fit(X, frame.kind.to_numpy())
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    table = {
        "pandas": frame,
        "dask": dd.from_pandas(frame, npartitions=3),
        "polars": pl.from_pandas(frame),
    }.get(suffix, tmp_path / f"rows.{suffix}")
    model = daskls.VoronoiSVC(**PARAMS).fit(table, "kind", "w")
    assert model.feature_names_in_.tolist() == ["income", "member"]
    queries = by_hand(TEST, 0.0)[:, [9, 2]]
    scores = model.decision_function(TEST)
    np.testing.assert_array_equal(scores, wanted.decision_function(queries))
    assert (scores != plain.decision_function(queries)).any()
    assert "weights: w" in model.table_.describe()
    # A query needs none, and one that has it is scored without.
    assert model.score(frame) == model.score(frame.drop(columns="w"))


def test_weights_on_the_command_line(tmp_path):
    frame = weighted(TRAIN)
    path = write(frame, tmp_path / "train.csv")
    fit = ("fit", path, tmp_path / "m.zarr", "--label", "kind", *SMALL)
    result = run(*fit, "--weight", "w", *HERE)
    assert "weights: w" in result.stdout
    model = daskls.VoronoiSVC(**PARAMS).fit(path, "kind", sample_weight="w")
    run("predict", tmp_path / "m.zarr", path, tmp_path / "out.csv", *HERE)
    assert pd.read_csv(tmp_path / "out.csv").kind.tolist() == model.predict(path).tolist()
    assert daskls.load(tmp_path / "m.zarr").table_ == model.table_
    # No cluster is started for it: this address leads to none.
    nowhere = ("--scheduler", "tcp://127.0.0.1:1", "--quiet")
    fit = ("fit", path, tmp_path / "n.zarr", "--label", "kind", "--weight", "weight")
    assert "4 columns are: income, member, kind, w" in run(*fit, *nowhere, code=1).stderr
    group = zarr.create_group(tmp_path / "rows.zarr")
    group.create_array("X", data=np.ones((4, 1)))
    group.create_array("y", data=np.arange(4) % 2)
    fit = ("fit", tmp_path / "rows.zarr", tmp_path / "n.zarr", "--weight", "w", *HERE)
    assert "--weight are for tables" in run(*fit, code=2).stderr


def test_weights_that_are_none_are_refused():
    frame = weighted(TRAIN)
    for name, words in (("v", "'v', which is no column of"), ("kind", "which holds the labels of")):
        with pytest.raises(DataError, match=words):
            daskls.VoronoiSVC(**PARAMS).fit(frame, "kind", name)
    gaps = frame.assign(w=frame.w.where(frame.index != 7))
    with pytest.raises(DataError, match="that of row 7 is nan"):
        daskls.VoronoiSVC(**PARAMS).fit(gaps, "kind", "w")
    text = frame.assign(w=["much" if i == 3 else "1" for i in range(len(frame))])
    with pytest.raises(DataError, match="'w' holds 'much' in row 3 "):
        daskls.VoronoiSVC(**PARAMS).fit(text, "kind", "w")


def test_options_of_tables_are_refused_for_arrays(tmp_path):
    X, y = by_hand(TRAIN, 0.0), TRAIN.kind.to_numpy()
    for options in ({"unknown": "error"}, {"drop": ["a"]}):
        with pytest.raises(ParameterError, match="no effect on an array"):
            daskls.VoronoiSVC(**PARAMS).fit(X, y, **options)
    with pytest.raises(ParameterError, match="missing is 'mean'"):
        daskls.VoronoiSVC(**PARAMS).fit(TRAIN, "kind", missing="mean")
    group = zarr.create_group(tmp_path / "rows.zarr")
    group.create_array("X", data=X, chunks=X.shape)
    group.create_array("y", data=(y == "buys").astype(int), chunks=y.shape)
    fit = ("fit", tmp_path / "rows.zarr", tmp_path / "m.zarr", *HERE)
    assert "are for tables" in run(*fit, "--label", "y", code=2).stderr


def test_the_same_command_trains_nothing_again_and_another_table_is_refused(tmp_path):
    path = write(TRAIN, tmp_path / "train.csv")
    options = as_options(label="kind", **PARAMS)
    fit = ("fit", path, tmp_path / "m.zarr", *options, *HERE)
    run(*fit)
    written = {p: p.stat().st_mtime_ns for p in (tmp_path / "m.zarr").rglob("*") if p.is_file()}
    run(*fit)
    assert written == {
        p: p.stat().st_mtime_ns for p in (tmp_path / "m.zarr").rglob("*") if p.is_file()
    }
    assert "belongs to another fit" in run(*fit, "--drop", "age", code=1).stderr


def test_labels_beside_a_frame_of_numbers_are_taken_as_before():
    X, y = TRAIN[["income", "member"]].astype(float), TRAIN.kind
    model = daskls.VoronoiSVC(**PARAMS).fit(X, y)
    assert not hasattr(model, "table_")
    named = daskls.VoronoiSVC(**PARAMS).fit(X.assign(kind=y), "kind")
    np.testing.assert_array_equal(model.decision_function(X), named.decision_function(X))


def test_json_keeps_every_part_of_an_encoding():
    columns = (
        ColumnEncoding("a", fill=0.5),
        ColumnEncoding("b", "category", ("x", "y"), 0.0),
        ColumnEncoding("c", "flag"),
    )
    encoding = TableEncoding(columns, "kind", "zero", "float32")
    assert TableEncoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding


def test_the_encoder_is_the_transformer_of_what_fit_does(trained, tmp_path):
    encoder = daskls.TableEncoder("kind").fit(TRAIN)
    X = by_hand(TEST, TRAIN.age.median())
    np.testing.assert_array_equal(encoder.transform(TEST), X)
    assert encoder.get_feature_names_out().tolist() == CODED
    assert encoder.table_ == trained.table_
    lazy = encoder.transform(dd.from_pandas(TEST, npartitions=3))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), X)
    dataset = encoder.to_zarr(write(TRAIN, tmp_path / "train.csv"), tmp_path / "train.zarr")
    np.testing.assert_array_equal(dataset.X[:], by_hand(TRAIN, TRAIN.age.median()))
    same = daskls.VoronoiSVC(**PARAMS).fit(dataset.path)
    np.testing.assert_array_equal(
        same.decision_function(pd.DataFrame(X, columns=CODED)), trained.decision_function(TEST)
    )
    unlabelled = write(TEST.drop(columns="kind"), tmp_path / "test.csv")
    assert encoder.to_zarr(unlabelled, tmp_path / "test.zarr").y is None
    for table, words in ((X, "no named columns"), (tmp_path / "test.zarr", "no named columns")):
        with pytest.raises(DataError, match=words):
            daskls.TableEncoder().fit(table)
    with pytest.raises(DataError, match="to_zarr"):
        encoder.transform(unlabelled)


@pytest.mark.parametrize("is_lazy", [False, True])
def test_an_xarray_of_rows_and_features_is_an_array(is_lazy):
    X = by_hand(TRAIN, 0.0)
    rows = xr.DataArray(X, dims=("row", "feature"))
    rows = rows.chunk({"row": 250}) if is_lazy else rows
    y = TRAIN.kind.to_numpy()
    model = daskls.VoronoiSVC(**PARAMS).fit(rows, y)
    same = daskls.VoronoiSVC(**PARAMS).fit(X, y)
    labels = model.predict(rows)
    assert isinstance(labels, da.Array) == is_lazy
    assert np.asarray(labels).tolist() == same.predict(X).tolist()


def test_labels_of_a_dask_frame_may_be_a_series(trained):
    frame = dd.from_pandas(TRAIN, npartitions=3)
    rows = frame.drop(columns="kind")
    model = daskls.VoronoiSVC(**PARAMS).fit(rows, frame["kind"])
    np.testing.assert_array_equal(model.decision_function(TEST), trained.decision_function(TEST))
    test = dd.from_pandas(TEST, npartitions=2)
    assert model.score(test.drop(columns="kind"), test["kind"]) == trained.score(TEST)


@pytest.mark.parametrize("label", [None, "y"])
def test_a_file_without_names_counts_its_columns(label, tmp_path):
    X = by_hand(TRAIN, 0.0)[:, [0, 3, 9]].round(3)
    y = (TRAIN.kind == "buys").to_numpy().astype(int)
    # The label's number is a field of the first row.
    X[0, 0] = 3
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",", fmt="%g")
    model = daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "rows.csv", "3")
    same = daskls.VoronoiSVC(**PARAMS).fit(X, y)
    assert model.feature_names_in_.tolist() == ["0", "1", "2"]
    assert model.predict(tmp_path / "rows.csv").tolist() == same.predict(X).tolist()
    with pytest.raises(DataError, match="columns are: 0, 1, 2, 3"):
        daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "rows.csv", label)


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["blue", "green", "red"]), pl.String])
def test_categories_of_polars_are_those_of_pandas(kind, trained):
    frame = pl.from_pandas(TRAIN).with_columns(pl.col("color").cast(kind))
    model = daskls.VoronoiSVC(**PARAMS).fit(frame, "kind")
    assert model.table_ == trained.table_
    np.testing.assert_array_equal(model.decision_function(TEST), trained.decision_function(TEST))


@pytest.mark.parametrize("name", ["FalkSVC", "LandmarkSVC", "KernelKNNClassifier"])
def test_every_method_takes_tables(name):
    params = {"FalkSVC": {"n_neighbors": 100}, "LandmarkSVC": {"n_cells": 4, "C": 1.0}}
    params = params.get(name, {})
    make = getattr(daskls, name)
    model = make(**params, random_state=0).fit(TRAIN, "kind")
    X = by_hand(TRAIN, TRAIN.age.median())
    same = make(**params, random_state=0).fit(X, TRAIN.kind.to_numpy())
    X = by_hand(TEST, TRAIN.age.median())
    assert model.predict(TEST).tolist() == same.predict(X).tolist()


def test_a_batch_is_in_memory_at_a_time(tmp_path):
    # Just more than the bound of a batch.
    n_rows = 100_000
    frame = pd.DataFrame(np.random.default_rng(0).random((n_rows, 12))).add_prefix("c")
    names = list(frame.columns)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False, float_format="%.4f")
    for source in (frame, tmp_path / "rows.parquet", pl.from_pandas(frame), tmp_path / "rows.csv"):
        batches = list(open_source(source).open(None, tmp_path).batches(names))
        assert sum(batch.num_rows for batch in batches) == n_rows
        is_text = source == tmp_path / "rows.csv" if not hasattr(source, "columns") else False
        bound = 2 * TEXT_BLOCK_NBYTES if is_text else 8 * BATCH_FIELDS
        assert max(batch.nbytes for batch in batches) <= 1.1 * bound < frame.to_numpy().nbytes


def test_info_says_what_became_of_columns(trained, tmp_path):
    trained.save(tmp_path / "m.zarr")
    told = run("info", tmp_path / "m.zarr").stdout
    for words in ("kind", "color: 3 categories", "unknown categories"):
        assert words in " ".join(told.split())


def test_sparse_rows_that_no_disk_holds_as_dense_are_refused(tmp_path):
    (tmp_path / "wide.libsvm").write_text("1 1:1 900000000000:1\n0 2:1\n")
    with pytest.raises(StoreError, match=r"2 rows of 900000000000 features: they are .* MiB"):
        daskls.VoronoiSVC().fit(tmp_path / "wide.libsvm")


def test_features_of_one_name_are_refused():
    frame = TRAIN[["color", "income", "kind"]].rename(columns={"income": "color=red"})
    with pytest.raises(DataError, match="two columns become the feature 'color=red'"):
        daskls.VoronoiSVC(**PARAMS).fit(frame, "kind")


def test_a_dask_frame_is_answered_lazily_by_a_model_of_an_array():
    X, y = TRAIN[["income", "member"]].astype(float), TRAIN.kind.to_numpy()
    query = TEST[["member", "kind", "income"]].astype({"member": float})
    for rows, order in ((X, query), (X.to_numpy(), query[["income", "member"]])):
        model = daskls.VoronoiSVC(**PARAMS).fit(rows, y)
        labels = model.predict(dd.from_pandas(order, npartitions=2))
        assert isinstance(labels, da.Array)
        wanted = query[["income", "member"]]
        wanted = wanted if rows is X else wanted.to_numpy()
        assert labels.compute().tolist() == model.predict(wanted).tolist()


@pytest.mark.slow
def test_a_killed_fit_of_a_table_goes_on(tmp_path):
    path = write(make_frame(30_000), tmp_path / "train.csv")
    options = as_options(label="kind", random_state=0, **PAPERS)
    options += [*as_options(cell_size=1000, search="full", cv=2), *HERE]
    store = tmp_path / "m.zarr"
    command = [sys.executable, "-m", "daskls", "fit", path, store, *options]
    process = subprocess.Popen([*map(str, command)], env=python_env())
    is_begun = False
    while process.poll() is None and not is_begun:
        is_begun = any(p.name[0] != "." for p in store.glob("bundles/*"))
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert is_begun
    with pytest.raises(daskls.StoreError, match="unfinished"):
        daskls.load(store)
    bundles = [p for p in store.glob("bundles/*") if p.name[0] != "."]
    kept = {p: p.stat().st_mtime_ns for p in bundles}
    run("fit", path, store, *options)
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    run("fit", path, tmp_path / "whole.zarr", *options)
    ours, whole = daskls.load(store), daskls.load(tmp_path / "whole.zarr")
    np.testing.assert_array_equal(ours.decision_function(TEST), whole.decision_function(TEST))
    assert not list(store.glob("input-*"))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_in_memory_is_answered_without_a_disk(kind, trained, tmp_path):
    query = TEST if kind is pd.DataFrame else kind(pa.Table.from_pandas(TEST, preserve_index=False))
    wanted = trained.predict(by_csv := write(TEST, tmp_path / "test.csv"))
    assert by_csv.exists()
    # A folder that is none: whatever is written there fails.
    (tmp_path / "none").touch()
    with dask.config.set({"temporary-directory": str(tmp_path / "none")}):
        assert trained.predict(query).tolist() == wanted.tolist()
        row = query.head(1) if kind is not pa.table else query.slice(0, 1)
        assert trained.predict(row).tolist() == wanted[:1].tolist()
        with pytest.raises(daskls.StoreError):
            trained.predict(by_csv)


def test_python_says_what_became_of_columns_if_it_is_to_speak(capsys):
    frame = TRAIN[["income", "color", "kind"]]
    daskls.VoronoiSVC(**PARAMS).fit(frame, "kind")
    assert capsys.readouterr().out == ""
    daskls.VoronoiSVC(**PARAMS, verbose=1).fit(frame, "kind")
    said = capsys.readouterr().out.splitlines()
    assert said[:2] == ["label: kind", "1 number as it is: income"]
    assert said[2] == "color: 3 categories, a column each"


def test_folders_named_by_values_of_a_column_are_read_by_dask(tmp_path):
    for value in ("a", "b"):
        (tmp_path / "rows" / f"kind={value}").mkdir(parents=True)
        TRAIN[["income"]].to_parquet(tmp_path / "rows" / f"kind={value}" / "part.0.parquet")
    # What the sentence of the refusal names.
    frame = dd.read_parquet(tmp_path / "rows", engine="pyarrow")
    model = daskls.VoronoiSVC(**PARAMS).fit(frame, "kind")
    assert model.classes_.tolist() == ["a", "b"]


def test_weights_go_with_the_rows_of_a_table(tmp_path):
    weights = np.random.default_rng(0).integers(1, 4, len(TRAIN)).astype(float)
    frame = TRAIN[["income", "color", "kind"]]
    path = write(frame, tmp_path / "rows.csv")
    model = daskls.VoronoiSVC(**PARAMS).fit(path, "kind", weights)
    X = pd.get_dummies(frame.drop(columns="kind")).astype(float).to_numpy()
    direct = daskls.VoronoiSVC(**PARAMS).fit(X, TRAIN.kind.to_numpy(), weights)
    query = TEST[["color", "income"]]
    coded = pd.get_dummies(TEST[["income", "color"]]).astype(float).to_numpy()
    assert model.predict(query).tolist() == direct.predict(coded).tolist()
    unweighted = daskls.VoronoiSVC(**PARAMS).fit(path, "kind")
    assert (unweighted.decision_function(query) != model.decision_function(query)).any()


@pytest.mark.slow
def test_arrays_load_none_of_the_packages_of_tables(tmp_path):
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.split('.')[0] in ('pyarrow', 'pandas', 'polars', 'xarray'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import numpy as np, daskls\n"
        "X = np.random.default_rng(0).random((300, 2))\n"
        "model = daskls.VoronoiSVC(cell_size=150, random_state=0).fit(X, X[:, 0] > 0.5)\n"
        "print(model.score(X, X[:, 0] > 0.5) > 0.9)\n"
    )
    command, where = [sys.executable, "-c", code], {"cwd": tmp_path, "env": python_env()}
    done = subprocess.run(command, **where, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"]


@pytest.mark.slow
def test_a_cluster_of_processes_takes_tables(tmp_path, trained):
    train, test = write(TRAIN, tmp_path / "train.csv"), write(TEST, tmp_path / "test.csv")
    cluster = ("--workers", "1", "--memory-limit", "1GiB", "--quiet")
    options = ("--label", "kind", *SMALL)
    run("fit", train, tmp_path / "m.zarr", *options, *cluster)
    run("predict", tmp_path / "m.zarr", test, tmp_path / "out.csv", *cluster)
    assert pd.read_csv(tmp_path / "out.csv").kind.tolist() == trained.predict(TEST).tolist()


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    frame = TRAIN.sort_values("kind")
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv")
    given = {"drop": [c for c in TRAIN if c not in ("age", "income", "kind")]}
    wanted = daskls.VoronoiSVC(**PARAMS).fit(frame, "kind", **given)
    assert wanted.table_.column_names == ["age", "income"]
    for table in (tmp_path / "rows.parquet", pa.Table.from_pandas(frame)):
        model = daskls.VoronoiSVC(**PARAMS).fit(table, "kind", **given)
        assert model.table_.column_names == ["age", "income"]
        np.testing.assert_array_equal(
            model.decision_function(frame), wanted.decision_function(frame)
        )
    with pytest.warns(
        UserWarning, match="first column of .*rows.csv has no name: it is taken for an"
    ):
        model = daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "rows.csv", "kind", **given)
    assert model.table_.column_names == ["age", "income"]


def as_parquet(frame, path):
    frame.to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def as_arrow(frame, path):
    return pa.Table.from_pandas(frame)


@pytest.mark.parametrize("write_it", [as_parquet, as_arrow])
def test_an_index_is_read_where_it_is_asked_for(tmp_path, write_it):
    frame = TRAIN[["age", "income", "kind"]].dropna()
    rows = frame.assign(w=np.arange(len(frame)) % 3 + 1.0)
    wanted = daskls.VoronoiSVC(**PARAMS).fit(rows, "kind", "w")
    values = wanted.decision_function(frame)
    # As labels and as weights; a name that the index has is left out as any other.
    indexed = write_it(rows.set_index(["kind", "w"]), tmp_path / "labels")
    model = daskls.VoronoiSVC(**PARAMS).fit(indexed, "kind", "w")
    np.testing.assert_array_equal(model.decision_function(frame), values)
    numbered = write_it(rows.rename_axis("id"), tmp_path / "numbered")
    model = daskls.VoronoiSVC(**PARAMS).fit(numbered, "kind", "w", drop=["id"])
    np.testing.assert_array_equal(model.decision_function(frame), values)
    # As a feature of a trained model; only then is it one.
    named = write_it(rows.set_index("age"), tmp_path / "named")
    np.testing.assert_array_equal(wanted.decision_function(named), values)
    with pytest.warns(UserWarning, match=r"The index of .* is left out: age\. Write the DataFrame"):
        model = daskls.VoronoiSVC(**PARAMS).fit(named, "kind", "w")
    assert model.table_.column_names == ["income"]


def test_a_label_in_the_index_is_found_by_its_usual_name(tmp_path):
    frame = TRAIN[["income", "kind"]].rename(columns={"kind": "label"}).set_index("label")
    path = as_parquet(frame, tmp_path / "rows")
    with pytest.warns(UserWarning, match="it is 'label'"):
        model = daskls.VoronoiSVC(**PARAMS).fit(path)
    assert model.table_.column_names == ["income"]
    # A column comes before an index.
    frame = TRAIN[["income", "kind"]].rename(columns={"kind": "label"}).rename_axis("target")
    path = as_parquet(frame, tmp_path / "both")
    with pytest.warns(UserWarning, match="it is 'label'"):
        daskls.VoronoiSVC(**PARAMS).fit(path)


def test_files_with_and_without_an_index_are_one_table(tmp_path):
    frame = TRAIN[["income", "kind"]]
    frame[:300].to_csv(tmp_path / "1.csv")
    frame[300:].to_csv(tmp_path / "2.csv", index=False)
    with pytest.warns(UserWarning, match="has no name: it is taken for an index"):
        model = daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "*.csv", "kind")
    wanted = daskls.VoronoiSVC(**PARAMS).fit(frame, "kind")
    np.testing.assert_array_equal(model.decision_function(TEST), wanted.decision_function(TEST))


def test_what_is_an_index_in_some_files_alone_is_no_label(tmp_path):
    (tmp_path / "rows").mkdir()
    frame = TRAIN[["age", "income", "kind"]].dropna()
    frame[:300].set_index("kind").to_parquet(tmp_path / "rows" / "0.parquet")
    frame[300:][["age", "income"]].to_parquet(tmp_path / "rows" / "1.parquet")
    with pytest.raises(DataError, match=r"has no column 'kind'; its 2 columns are: age, income"):
        daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "rows", "kind")
    # In the index of one file, a column of the other: in both.
    frame[300:].to_parquet(tmp_path / "rows" / "1.parquet")
    model = daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "rows", "kind")
    wanted = daskls.VoronoiSVC(**PARAMS).fit(frame, "kind")
    np.testing.assert_array_equal(model.decision_function(frame), wanted.decision_function(frame))


def test_a_label_without_a_name_is_no_index(tmp_path):
    frame = TRAIN[["kind", "income"]].rename(columns={"kind": ""})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "rows.csv", "")
    assert model.table_.column_names == ["income"]
    frame[["income", ""]].to_csv(tmp_path / "rows.csv", index=False)
    model = daskls.VoronoiSVC(**PARAMS).fit(tmp_path / "rows.csv", "")
    assert model.table_.column_names == ["income"]


@pytest.mark.parametrize("told", [b"no JSON", b'{"index_columns": null}'])
def test_an_index_that_cannot_be_read_is_none(told):
    table = pa.table({"a": np.arange(60.0), "y": [0, 1] * 30})
    table = table.replace_schema_metadata({b"pandas": told})
    assert daskls.VoronoiSVC(**PARAMS).fit(table, "y").table_.column_names == ["a"]


@pytest.mark.parametrize("n_values", [30, 200])
def test_a_mark_of_missing_values_among_numbers_is_told(tmp_path, n_values):
    ages = [str(20 + i % n_values) for i in range(400)]
    ages[7] = "?"
    path = write(pd.DataFrame({"age": ages, "kind": ["a", "b"] * 200}), tmp_path / "rows.csv")
    with pytest.raises(
        DataError, match=r"'age' holds .*where '\?' stands for a missing value, leave"
    ):
        daskls.VoronoiSVC(**PARAMS).fit(path, "kind")


def test_several_marks_among_numbers_are_told_and_none_in_a_frame(tmp_path):
    ages = [*("?", "-"), *(str(20 + i % 30) for i in range(398))]
    frame = pd.DataFrame({"age": ages, "kind": ["a", "b"] * 200})
    with pytest.raises(DataError, match=r"numbers and '-', '\?'; where '-' stands for a missing"):
        daskls.VoronoiSVC(**PARAMS).fit(write(frame, tmp_path / "rows.csv"), "kind")
    # A frame tells numbers from text, so that text is meant as categories.
    for given in (frame, frame.astype({"age": "category"})):
        (age,) = daskls.TableEncoder("kind").fit(given).table_.columns
        assert len(age.categories) == 32


@pytest.mark.parametrize(("n_numbers", "is_refused"), [(20, False), (21, True)])
def test_more_than_20_numbers_and_marks_are_refused(tmp_path, n_numbers, is_refused):
    ages = [*("?", "-", "*"), *(str(i % n_numbers) for i in range(117))]
    frame = pd.DataFrame({"age": ages, "kind": ["a", "b"] * 60})
    path = write(frame, tmp_path / "rows.csv")
    if is_refused:
        with pytest.raises(DataError, match="holds numbers and"):
            daskls.TableEncoder("kind").fit(path)
    else:
        assert len(daskls.TableEncoder("kind").fit(path).table_.columns[0].categories) == 23


def test_few_numbers_and_a_mark_are_categories(tmp_path):
    frame = pd.DataFrame({"votes": ["1", "2", "?"] * 100, "kind": ["a", "b", "a"] * 100})
    path = write(frame, tmp_path / "rows.csv")
    model = daskls.VoronoiSVC(**PARAMS).fit(path, "kind")
    assert model.table_.columns[0].categories == ("1", "2", "?")


def test_queries_may_lack_what_training_rows_had(tmp_path):
    whole = TRAIN.dropna()
    gaps = whole.head(20).copy()
    gaps["age"] = np.nan
    with pytest.raises(DataError, match=r"'age' has a missing value in row 0 .*--missing auto"):
        daskls.VoronoiSVC(**PARAMS).fit(whole, "kind", missing="refuse").predict(gaps)
    model = daskls.VoronoiSVC(**PARAMS).fit(whole, "kind")
    filled = gaps.assign(age=whole.age.median())
    model.save(tmp_path / "m")
    for own in (model, daskls.load(tmp_path / "m")):
        with pytest.warns(UserWarning, match=r"none: 20 in 'age'\. Numbers count as the median"):
            found = own.decision_function(gaps)
    np.testing.assert_array_equal(found, model.decision_function(filled))
