"""Every input that a person may have: fitted, asked and scored, in Python and on the command line.

The route through NumPy is the oracle: the same columns, encoded here by hand, give the same labels.
"""

import gzip
import json
import re
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import xarray as xr
import zarr
from pyarrow import feather, orc
from sklearn.datasets import dump_svmlight_file
from support import HERE, PAPERS, as_options
from support import run_cli as run

import daskls
from daskls.datasets import convert
from daskls.sources.encoding import ColumnEncoding, TableEncoding
from daskls.sources.formats import open_source
from daskls.sources.write import encoded, write_features

N_ROWS = 700
PARAMS = {
    **PAPERS,
    "cell_size": 300,
    "cv": 2,
    "C": [1.0, 10.0],
    "gamma": [20.0, 80.0],
    "random_state": 0,
}
SMALL = as_options(**PARAMS)


def make_frame(n_rows, seed):
    """Return rows of numbers, and text that only a curve in the plane tells apart."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"east": rng.random(n_rows), "north": rng.random(n_rows)})
    frame["level"] = rng.integers(0, 3, n_rows)
    is_forest = (frame.east > 0.5) ^ (frame.north + 0.1 * frame.level > 0.6)
    frame["kind"] = np.where(is_forest, "forest", "field")
    return frame


TRAIN, TEST = make_frame(N_ROWS, 0), make_frame(200, 1)
FEATURES = ["east", "north", "level"]


@pytest.fixture(scope="module")
def by_numpy():
    """Return the labels that the route through NumPy gives to the test rows, and its score."""
    model = daskls.VoronoiSVC(**PARAMS).fit(TRAIN[FEATURES].to_numpy(), TRAIN.kind.to_numpy())
    X = TEST[FEATURES].to_numpy()
    return model.predict(X), model.score(X, TEST.kind.to_numpy())


def codes(frame):
    """Return labels as numbers, for formats that hold nothing else."""
    return (frame.kind == "forest").to_numpy().astype(int)


def csv(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def csv_moved(frame, folder):
    frame[["kind", "level", "north", "east"]].to_csv(folder / "moved.csv", index=False)
    return folder / "moved.csv"


def csv_packed(frame, folder):
    with gzip.open(folder / "rows.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    return folder / "rows.csv.gz"


def tsv(frame, folder):
    frame.to_csv(folder / "rows.tsv", sep="\t", index=False)
    return folder / "rows.tsv"


def semicolons(frame, folder):
    frame.to_csv(folder / "semi.csv", sep=";", index=False)
    return folder / "semi.csv"


def decimal_commas(frame, folder):
    frame.to_csv(folder / "commas.csv", sep=";", decimal=",", index=False)
    return folder / "commas.csv"


def wide(frame, folder):
    frame.to_csv(folder / "wide.csv", index=False, encoding="utf-16")
    return folder / "wide.csv"


def parts(frame, folder):
    """Write twelve files: part 10 comes after part 9."""
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), 12)):
        frame.iloc[rows].to_csv(folder / f"part-{i}.csv", index=False)
    return folder / "part-*.csv"


def parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet", row_group_size=64)
    return folder / "rows.parquet"


def parquet_folder(frame, folder):
    (folder / "many").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), 12)):
        frame.iloc[rows].to_parquet(folder / "many" / f"part.{i}.parquet")
    return folder / "many"


def feather_file(frame, folder):
    feather.write_feather(frame, folder / "rows.feather", chunksize=64)
    return folder / "rows.feather"


def orc_file(frame, folder):
    orc.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "rows.orc")
    return folder / "rows.orc"


def json_lines(frame, folder):
    frame.to_json(folder / "rows.jsonl", orient="records", lines=True, double_precision=15)
    return folder / "rows.jsonl"


def npz(frame, folder):
    np.savez(folder / "rows.npz", X=frame[FEATURES].to_numpy(), y=frame.kind.to_numpy(str))
    return folder / "rows.npz"


def libsvm(frame, folder):
    path = folder / "rows.libsvm"
    dump_svmlight_file(frame[FEATURES].to_numpy(), codes(frame), str(path), zero_based=False)
    return path


def data_set(frame, folder):
    convert(csv(frame, folder), folder / "rows.zarr", label="kind", dtype="float64")
    return folder / "rows.zarr"


def own_group(frame, folder):
    group = zarr.create_group(folder / "own.zarr")
    group.create_array("X", data=frame[FEATURES].to_numpy(), chunks=(100, 3))
    group.create_array("y", data=codes(frame), chunks=(100,))
    return folder / "own.zarr"


def pandas_frame(frame, folder):
    return frame


def pandas_categories(frame, folder):
    return frame.astype({"kind": "category"})


def dask_frame(frame, folder):
    return dd.from_pandas(frame, npartitions=3)


def polars_frame(frame, folder):
    return pl.from_pandas(frame)


def polars_lazy(frame, folder):
    return pl.from_pandas(frame).lazy()


def arrow_table(frame, folder):
    return pa.Table.from_pandas(frame, preserve_index=False)


def xarray_dataset(frame, folder):
    return xr.Dataset.from_dataframe(frame).chunk({"index": 150})


def npy(frame, folder):
    np.save(folder / "rows.npy", np.column_stack([frame[FEATURES].to_numpy(), codes(frame)]))
    return folder / "rows.npy"


def numpy_array(frame, folder):
    return frame[FEATURES].to_numpy()


def dask_array(frame, folder):
    return da.from_array(frame[FEATURES].to_numpy(), chunks=(150, 3))


def zarr_path(frame, folder):
    zarr.create_array(folder / "X.zarr", data=frame[FEATURES].to_numpy(), chunks=(150, 3))
    return folder / "X.zarr"


def zarr_array(frame, folder):
    return zarr.open_array(zarr_path(frame, folder), mode="r")


def data_array(frame, folder):
    return xr.DataArray(frame[FEATURES].to_numpy(), dims=("row", "feature"))


# Every input, by its name in docs/data.md.
FILES = {
    "CSV": csv,
    "CSV, columns in another order": csv_moved,
    "CSV, packed (.gz)": csv_packed,
    "CSV of semicolons": semicolons,
    "CSV of decimal commas": decimal_commas,
    "CSV in UTF-16": wide,
    "TSV": tsv,
    "pattern of CSV files": parts,
    "Parquet file": parquet,
    "Parquet folder": parquet_folder,
    "Feather or Arrow file": feather_file,
    "ORC": orc_file,
    "JSON lines": json_lines,
}
ARRAY_FILES = {
    ".npz": npz,
    ".npy": npy,
    "LIBSVM": libsvm,
    "data set (Zarr)": data_set,
    "your own Zarr group": own_group,
}
FRAMES = {
    "pandas": pandas_frame,
    "pandas with categories": pandas_categories,
    "Dask DataFrame": dask_frame,
    "Polars": polars_frame,
    "Polars, lazy": polars_lazy,
    "Arrow table": arrow_table,
    "xarray Dataset": xarray_dataset,
}
ARRAYS = {
    "NumPy array": numpy_array,
    "Dask array": dask_array,
    "path of a Zarr array": zarr_path,
    "Zarr array": zarr_array,
    "xarray DataArray": data_array,
}
ALL = {**FILES, **ARRAY_FILES, **FRAMES, **ARRAYS}
ON_DISK = [*FILES, *ARRAY_FILES]
# Labels of these are numbers.
CODED = ("LIBSVM", ".npy", "your own Zarr group")
# What is predicted lazily.
LAZY = ("Dask DataFrame", "data set (Zarr)", "your own Zarr group")
LAZY += ("Dask array", "path of a Zarr array", "Zarr array")
# Distances of columns in another order are the same but for their rounding.
MOVED = "CSV, columns in another order"


def label_of(name, frame):
    """Return what `fit` and `score` take as labels."""
    if name in ARRAYS:
        return frame.kind.to_numpy()
    if name == ".npy":
        return "3"
    return None if name in ARRAY_FILES else "kind"


class Cases:
    """Sources of every kind, and the models of them, each made once."""

    def __init__(self, folder):
        self.folder, self._sources, self._models = folder, {}, {}

    def source(self, name, part):
        if (name, part) not in self._sources:
            home = self.folder / f"{len(self._sources)}"
            home.mkdir()
            self._sources[name, part] = ALL[name]({"train": TRAIN, "test": TEST}[part], home)
        return self._sources[name, part]

    def model(self, name):
        if name not in self._models:
            train = self.source(name, "train")
            self._models[name] = daskls.VoronoiSVC(**PARAMS).fit(train, label_of(name, TRAIN))
        return self._models[name]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return Cases(tmp_path_factory.mktemp("cases"))


def assert_agrees(name, answers, by_numpy):
    labels, _ = by_numpy
    wanted = (labels == "forest").astype(int) if name in CODED else labels
    if name == MOVED:
        assert (answers == wanted).mean() > 0.98
    else:
        assert answers.tolist() == wanted.tolist()


def assert_scores(name, score, by_numpy):
    if name == MOVED:
        assert abs(score - by_numpy[1]) < 0.02
    else:
        assert score == by_numpy[1]


def check_fit(name, cases, by_numpy):
    """Compare a model of any source with that of the NumPy route, by rows in memory."""
    model = cases.model(name)
    if name in (*FILES, *FRAMES):
        # By name, in any order of columns, with others between them.
        queries = TEST[["kind", "north", "level", "east"]].assign(other="x")
    elif hasattr(model, "feature_names_in_"):
        queries = TEST[FEATURES]
    else:
        queries = TEST[FEATURES].to_numpy()
    assert_agrees(name, model.predict(queries), by_numpy)


def check_predict(name, cases, by_numpy):
    test = cases.source(name, "test")
    if name == ".npy":
        test = bare_queries(cases)
    answers = cases.model(name).predict(test)
    assert isinstance(answers, da.Array) == (name in LAZY)
    assert_agrees(name, np.asarray(answers), by_numpy)


def bare_queries(cases):
    """Return the path of an array of queries: it holds no label, whatever its width."""
    np.save(cases.folder / "queries.npy", TEST[FEATURES].to_numpy())
    return cases.folder / "queries.npy"


def check_score(name, cases, by_numpy):
    score = cases.model(name).score(cases.source(name, "test"), label_of(name, TEST))
    assert_scores(name, score, by_numpy)


ROUTES = {"fit": check_fit, "predict": check_predict, "score": check_score}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", ALL)
def test_python_gives_the_labels_of_the_numpy_route(name, route, cases, by_numpy):
    ROUTES[route](name, cases, by_numpy)


@pytest.mark.parametrize("name", ON_DISK)
def test_the_command_line_gives_the_labels_of_the_numpy_route(name, cases, tmp_path, by_numpy):
    train, test = cases.source(name, "train"), cases.source(name, "test")
    label = label_of(name, TRAIN)
    label = () if label is None else ("--label", label)
    model, out = tmp_path / "model.zarr", tmp_path / "out.csv"
    run("fit", train, model, *label, *SMALL, *HERE)
    # A table's label is known from training; the columns of an array have no names.
    own = label if name == ".npy" else ()
    printed = json.loads(run("score", model, test, "--json", *own, *HERE).stdout)
    assert_scores(name, printed["accuracy"], by_numpy)
    queries = bare_queries(cases) if name == ".npy" else test
    run("predict", model, queries, out, *HERE)
    assert_agrees(name, pd.read_csv(out).iloc[:, 0].to_numpy(), by_numpy)
    # Nothing but what was asked for stays.
    assert {path.name for path in tmp_path.iterdir()} == {"model.zarr", "out.csv"}


def test_the_command_line_predicts_a_zarr_array(cases, tmp_path, by_numpy):
    name = "path of a Zarr array"
    cases.model("NumPy array").save(tmp_path / "model.zarr")
    queries = cases.source(name, "test")
    run("predict", tmp_path / "model.zarr", queries, tmp_path / "out.csv", *HERE)
    assert_agrees(name, pd.read_csv(tmp_path / "out.csv").iloc[:, 0].to_numpy(), by_numpy)
    for command in ("fit", "score"):
        paths = (
            (queries, tmp_path / "n") if command == "fit" else (tmp_path / "model.zarr", queries)
        )
        assert "is not a daskls data set" in run(command, *paths, *HERE, code=1).stderr


# The page

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text()


def rows_below(heading):
    """Return the cells of the table below a heading of the page."""
    lines = PAGE.split(f"{heading}\n", 1)[1].split("\n## ")[0].splitlines()
    table = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in table[2:]]


def test_the_page_lists_what_is_tested():
    listed = {row[0]: row[1:] for row in rows_below("## Every input")}
    on_disk = {**dict.fromkeys(ON_DISK, "yes"), "path of a Zarr array": "predict"}
    assert listed == {name: ["yes"] * 3 + [on_disk.get(name, "")] for name in ALL}


def table(**columns):
    """Return a small table with labels."""
    return pd.DataFrame({"a": np.arange(80.0), "kind": [0, 1] * 40}).assign(**columns)


def spreadsheet(folder):
    (folder / "rows.xlsx").touch()
    return folder / "rows.xlsx"


GAP = [None, *[1.0] * 79]
CODES = np.arange(80) % 2
NESTED = xr.Dataset({"a": (("r", "c"), np.ones((80, 2))), "kind": (("r",), CODES)})
# What `fit` is given, by its name in docs/data.md.
REFUSED = {
    "numbers with commas that may be decimal, or not": lambda _: (table(a="1,000"), "kind"),
    'missing values, with `missing="refuse"`': lambda _: (table(b=GAP), "kind"),
    "a missing label": lambda _: (table(kind=GAP), "kind"),
    "no label named, nor of a usual name": lambda _: (table(), None),
    "a label column that is not there": lambda _: (table(), "sort"),
    "one label for all rows": lambda _: (table(kind=1), "kind"),
    "two columns of one name": lambda _: (pd.concat([table(), table()], axis=1), "kind"),
    "a file of another suffix": lambda folder: (spreadsheet(folder), "kind"),
    "a scipy sparse matrix whose dense rows take more than half of the free memory": lambda _: (
        scipy.sparse.eye(10**7, format="csr"),
        CODES,
    ),
    "a dict, a generator": lambda _: ({"a": CODES}, CODES),
    "an xarray Dataset of several dimensions": lambda _: (NESTED, "kind"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_page_prints_the_sentence_of_what_is_refused(name, tmp_path):
    sentences = dict(rows_below("## What is refused"))
    assert set(sentences) == set(REFUSED)
    options = {"missing": "refuse"} if "refuse" in name else {}
    with pytest.raises(daskls.DataError) as told:
        daskls.VoronoiSVC().fit(*REFUSED[name](tmp_path), **options)
    said = " ".join(str(told.value).split())
    parts = [part.strip() for part in sentences[name].strip("`").split("...")]
    assert re.search(".*".join(map(re.escape, parts)), said), said


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet", "zarr"])
def test_the_suffix_of_the_answers_decides_their_format(suffix, tmp_path, by_numpy):
    train, test = csv(TRAIN, tmp_path), parquet(TEST, tmp_path)
    run("fit", train, tmp_path / "m.zarr", "--label", "kind", *SMALL, *HERE)
    out = tmp_path / f"out.{suffix}"
    arguments = ("predict", tmp_path / "m.zarr", test, out, *HERE)
    run(*arguments)
    if suffix == "zarr":
        answers = zarr.open_array(out)[:].tolist()
    elif suffix == "parquet":
        answers = pd.read_parquet(out).kind.tolist()
    else:
        answers = pd.read_csv(out, sep="\t" if suffix == "tsv" else ",").kind.tolist()
    assert answers == by_numpy[0].tolist()
    before = sorted(tmp_path.iterdir())
    assert "exists already" in run(*arguments, code=1).stderr
    assert sorted(tmp_path.iterdir()) == before


def test_probabilities_have_one_named_column_a_class(tmp_path):
    train, test = csv(TRAIN, tmp_path), parquet(TEST, tmp_path)
    options = ("--label", "kind", "--probability", "sigmoid", *SMALL, *HERE)
    run("fit", train, tmp_path / "m.zarr", *options)
    model = daskls.load(tmp_path / "m.zarr")
    for name, read in (("out.csv", pd.read_csv), ("out.parquet", pd.read_parquet)):
        run("predict", tmp_path / "m.zarr", test, tmp_path / name, "--proba", *HERE)
        found = read(tmp_path / name)
        assert found.columns.tolist() == ["field", "forest"]
        np.testing.assert_allclose(found.to_numpy(), model.predict_proba(TEST), rtol=1e-12)


def test_a_model_of_numpy_answers_a_table(tmp_path, by_numpy):
    model = daskls.VoronoiSVC(**PARAMS).fit(TRAIN[FEATURES].to_numpy(), TRAIN.kind.to_numpy())
    path = csv(TEST[FEATURES], tmp_path)
    assert model.predict(path).tolist() == by_numpy[0].tolist()
    TEST.rename(columns={"kind": "label"}).to_csv(tmp_path / "more.csv", index=False)
    assert model.score(tmp_path / "more.csv", "label") == by_numpy[1]
    with pytest.raises(daskls.DataError, match=r"2 columns of features.*3 features"):
        model.predict(csv(TEST[["east", "north"]], tmp_path))


def test_progress_ends_with_all_rows_that_were_not_counted_before(tmp_path):
    source = open_source(csv(TEST, tmp_path)).open(None, tmp_path)
    assert source.n_rows is None
    encoding = TableEncoding(tuple(map(ColumnEncoding, FEATURES)))
    seen = []
    features = encoded(source, encoding)
    write_features(features, str(tmp_path / "rows"), on_rows=lambda *rows: seen.append(rows))
    assert seen[0] == (len(TEST), None)
    assert seen[-1] == (len(TEST), len(TEST))
