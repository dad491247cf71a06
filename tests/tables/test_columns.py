"""Missing values, categories and labels: what becomes of columns, and what is refused."""

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
import zarr
from small import connected
from support import HERE, PAPERS, python_env, read_plain
from support import run_cli as run
from tables.containers import TABLES

import daskls
from daskls import DataError, ParameterError, StoreError, VoronoiSVC
from daskls.sources.base import BATCH_FIELDS, MEDIAN_SAMPLE, TableOptions
from daskls.sources.files import TEXT_BLOCK_NBYTES
from daskls.sources.formats import open_source
from daskls.sources.scan import scan_table

PARAMS = {**PAPERS, "cell_size": 300, "C": 10.0, "gamma": 0.5, "random_state": 0}


def make_frame(n_rows=600, seed=0):
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


def fitted(*given, **options):
    return VoronoiSVC(**PARAMS).fit(*given, **options)


@pytest.fixture(scope="module")
def trained():
    return fitted(TRAIN, "kind")


def write(frame, path):
    frame.to_csv(path, index=False)
    return path


def scan(source, seed=0, **options):
    table = open_source(source).open("kind", None)
    return scan_table(table, "kind", TableOptions(**options), seed=seed).encoding


def test_features_are_what_pandas_makes_of_the_columns(trained, tmp_path):
    median = TRAIN.age.median()
    assert trained.feature_names_in_.tolist() == CODED
    same = fitted(by_hand(TRAIN, median), TRAIN.kind.to_numpy())
    X = by_hand(TEST, median)
    np.testing.assert_array_equal(trained.decision_function(TEST), same.decision_function(X))
    assert trained.score(TEST) == same.score(X, TEST.kind.to_numpy())
    # A text file has no types, and gives the same model.
    model = fitted(write(TRAIN, tmp_path / "1.csv"), "kind")
    assert model.table_ == trained.table_
    queries = write(TEST, tmp_path / "2.csv")
    assert model.predict(queries).tolist() == trained.predict(TEST).tolist()
    # The encoding is JSON in the model.
    trained.save(tmp_path / "m")
    table = read_plain(tmp_path / "m" / "root")[0]["meta"]["table"]
    assert table["label"] == "kind"
    assert {"name": "age", "kind": "number", "fill": median} in table["columns"]
    assert daskls.load(tmp_path / "m").table_ == trained.table_
    assert "color: 3 categories" in run("info", tmp_path / "m").stdout


def test_medians_are_of_the_same_rows_however_they_are_dealt():
    n_rows = 3 * MEDIAN_SAMPLE
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_cauchy(n_rows), "kind": rng.integers(0, 2, n_rows)})
    frame.loc[::5, "a"] = np.nan
    whole = scan(frame, seed=3).columns[0].fill
    for n_parts in (1, 7):
        dealt = scan(dd.from_pandas(frame, npartitions=n_parts), seed=3)
        assert dealt.columns[0].fill == whole
    # A sample: near the median of all, another with another seed.
    assert abs(whole - frame.a.median()) < 0.05
    assert scan(frame, seed=4).columns[0].fill != whole
    assert scan(frame[:1000], seed=3).columns[0].fill == frame.a[:1000].median()


def test_missing_values_may_be_refused(tmp_path):
    row = int(TRAIN.age.isna().argmax())
    strict = fitted(TRAIN.dropna(), "kind", missing="refuse")
    gap = make_frame(200, 1).fillna({"age": 30.0, "city": "Bern"})
    gap.loc[5, "color"] = None
    lazily = dd.from_pandas(gap, npartitions=3)
    for train, queries in ((TRAIN, gap), (write(TRAIN, tmp_path / "t.csv"), lazily)):
        with pytest.raises(DataError, match=rf"'age' has a missing value in row {row}, .*median"):
            fitted(train, "kind", missing="refuse")
        with pytest.raises(DataError, match=r"'color' has a missing value in row 5 "):
            np.asarray(strict.predict(queries))


def test_queries_may_lack_what_training_rows_had(tmp_path):
    whole = TRAIN.dropna()
    gaps = whole.head(20).assign(age=np.nan)
    model = fitted(whole, "kind")
    filled = gaps.assign(age=whole.age.median())
    model.save(tmp_path / "m")
    for own in (model, daskls.load(tmp_path / "m")):
        with pytest.warns(UserWarning, match=r"none: 20 in 'age'\. Numbers count as the median"):
            found = own.decision_function(gaps)
        np.testing.assert_array_equal(found, model.decision_function(filled))


@pytest.mark.filterwarnings("default:Values that no training row had")
def test_an_unseen_category_is_an_error_or_zeros(tmp_path):
    strange = TEST.copy()
    strange.loc[[3, 9], "color"] = ["violet", "pink"]
    strict = fitted(TRAIN, "kind", unknown="error")
    with pytest.raises(DataError, match=r"'color' holds 'violet' in row 3 .*blue, green, red"):
        strict.predict(strange)
    zeros = by_hand(strange, TRAIN.age.median())
    assert (zeros[[3, 9], 3:6] == 0).all()
    told = "no training row had: 2 in 'color' ('violet' in row 3 "
    with pytest.warns(UserWarning, match=re.escape(told)):
        answers = fitted(TRAIN, "kind").predict(strange).tolist()
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert strict.predict(zeros).tolist() == answers
    # A model may be asked in another way than it was trained.
    strict.save(tmp_path / "m")
    test = write(strange, tmp_path / "test.csv")
    command = ("predict", tmp_path / "m", test, tmp_path / "out.csv", *HERE)
    assert "--unknown zero" in run(*command, code=1).stderr
    assert told in run(*command, "--unknown", "zero").stderr
    assert pd.read_csv(tmp_path / "out.csv").kind.tolist() == answers


def test_a_client_is_warned_of_what_its_workers_read(one_worker):
    model = fitted(TRAIN, "kind")
    lazy = dd.from_pandas(TEST.assign(color="violet"), npartitions=2)
    with connected(one_worker) as client, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        client.compute(model.predict(lazy.partitions[0])).result()
        # The worker's words come after its answers.
        end = time.monotonic() + 60
        while not told and time.monotonic() < end:
            time.sleep(0.02)
    assert "in 'color' ('violet' in row 0" in str(told[0].message)


def test_features_of_one_name_and_options_of_tables_for_arrays_are_refused(tmp_path):
    X, y = by_hand(TRAIN, 0.0), TRAIN.kind.to_numpy()
    twice = TRAIN[["income", "color", "kind"]].rename(columns={"income": "color=red"})
    odd = TRAIN.assign(**{"a,b": [[1, 2]] * 600, "c": [{"d": 1}] * 600})
    for given, options, kind, words in (
        ((twice, "kind"), {}, DataError, "two columns become the feature 'color=red'"),
        ((X, y), {"unknown": "error"}, ParameterError, "no effect on an array"),
        ((TRAIN, "kind"), {"missing": "mean"}, ParameterError, "missing is 'mean'"),
        ((odd, "kind"), {}, DataError, r"'a,b' holds list<.*: --drop c --drop a,b, or fit\("),
        ((TRAIN, "kind"), {"drop": "age,size"}, DataError, "has no column 'size' to leave out;"),
    ):
        with pytest.raises(kind, match=words):
            fitted(*given, **options)
    group = zarr.create_group(tmp_path / "rows.zarr")
    group.create_array("X", data=X)
    group.create_array("y", data=(y == "buys").astype(int))
    fit = ("fit", tmp_path / "rows.zarr", tmp_path / "m", "--label", "y", *HERE)
    assert "are for tables" in run(*fit, code=2).stderr
    (tmp_path / "wide.libsvm").write_text("1 1:1 900000000000:1\n0 2:1\n")
    with pytest.raises(StoreError, match=r"2 rows of 900000000000 features: they are .* MiB"):
        VoronoiSVC().fit(tmp_path / "wide.libsvm")


def test_the_encoder_is_the_transformer_of_what_fit_does(trained, tmp_path):
    encoder = daskls.TableEncoder("kind").fit(TRAIN)
    X = by_hand(TEST, TRAIN.age.median())
    np.testing.assert_array_equal(encoder.transform(TEST), X)
    assert encoder.get_feature_names_out().tolist() == CODED
    assert encoder.table_ == trained.table_
    with pytest.raises(DataError, match=r"Column 'city' holds list<.*Write it as in the training"):
        encoder.transform(TEST.assign(city=[["Bern"]] * len(TEST)))
    lazy = encoder.transform(dd.from_pandas(TEST, npartitions=3))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), X)
    dataset = encoder.to_zarr(write(TRAIN, tmp_path / "train.csv"), tmp_path / "train.zarr")
    np.testing.assert_array_equal(dataset.X[:], by_hand(TRAIN, TRAIN.age.median()))
    unlabelled = write(TEST.drop(columns="kind"), tmp_path / "test.csv")
    assert encoder.to_zarr(unlabelled, tmp_path / "test.zarr").y is None
    for table in (X, tmp_path / "test.zarr"):
        with pytest.raises(DataError, match="no named columns"):
            daskls.TableEncoder().fit(table)
    with pytest.raises(DataError, match="to_zarr"):
        encoder.transform(unlabelled)


def test_a_batch_is_in_memory_at_a_time(tmp_path):
    # Just more than the bound of a batch.
    frame = pd.DataFrame(np.random.default_rng(0).random((100_000, 12))).add_prefix("c")
    frame.to_parquet(tmp_path / "rows.parquet")
    text = tmp_path / "rows.csv"
    pa.csv.write_csv(pa.Table.from_pandas(frame), text)
    for source in (frame, tmp_path / "rows.parquet", pl.from_pandas(frame), text):
        batches = list(open_source(source).open(None, tmp_path).batches([*frame.columns]))
        assert sum(batch.num_rows for batch in batches) == len(frame)
        bound = 2 * TEXT_BLOCK_NBYTES if source is text else 8 * BATCH_FIELDS
        assert max(batch.nbytes for batch in batches) <= 1.1 * bound < frame.to_numpy().nbytes


def test_a_frame_in_memory_is_answered_without_a_disk(trained, tmp_path):
    by_csv = write(TEST, tmp_path / "test.csv")
    wanted = trained.predict(by_csv).tolist()
    # A folder that is none: whatever is written there fails.
    (tmp_path / "none").touch()
    with dask.config.set({"temporary-directory": str(tmp_path / "none")}):
        for kind in ("pandas", "Polars", "Arrow table"):
            for n in (len(TEST), 1):
                query = TABLES[kind](TEST.head(n), None)
                assert trained.predict(query).tolist() == wanted[:n]
        with pytest.raises(StoreError):
            trained.predict(by_csv)


def test_what_is_done_of_a_file_is_told_and_a_file_without_rows_is_refused(trained, tmp_path):
    seen, path = [], write(TEST, tmp_path / "test.csv")
    trained.predict_to_zarr(path, tmp_path / "out", on_progress=seen.append)
    assert zarr.open_array(tmp_path / "out")[:].tolist() == trained.predict(TEST).tolist()
    last = {own.stage: (own.done, own.total) for own in seen}
    assert last == {"convert": (200, 200), "predict": (1, 1)}
    with pytest.raises(DataError, match=r"test\.csv has no rows, so there is nothing to predict"):
        trained.predict(write(TEST[:0], path))


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
