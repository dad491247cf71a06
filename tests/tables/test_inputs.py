"""Every input that a person may have: fitted, asked and scored, in Python and on the command line.

The route through NumPy is the oracle: the same columns, encoded here by hand, give the same labels.
"""

import gzip
import json

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
import zarr
from sklearn.datasets import dump_svmlight_file
from support import PAPER_OPTIONS, PAPERS
from support import run_cli as run

import daskls
from daskls.datasets import convert

N_ROWS = 700
PARAMS = {
    **PAPERS,
    "cell_size": 300,
    "cv": 2,
    "C": [1.0, 10.0],
    "gamma": [20.0, 80.0],
    "random_state": 0,
}
SMALL = (*PAPER_OPTIONS, "--cell-size", "300", "--cv", "2", "--C", "1,10", "--gamma", "20,80")
HERE = ("--random-state", "0", "--workers", "0", "--quiet")


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


FILES = [csv, csv_moved, csv_packed, tsv, semicolons, parts, parquet, parquet_folder]
ARRAYS = [npz, libsvm, data_set, own_group]
FRAMES = [
    *(pandas_frame, pandas_categories, dask_frame, polars_frame, polars_lazy, arrow_table),
    xarray_dataset,
]
# Labels of these are numbers.
CODED = (libsvm, own_group)
ALL = [*FILES, *ARRAYS, *FRAMES]


def by_name(make):
    return make.__name__


@pytest.fixture
def folders(tmp_path):
    made = []
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
        made.append(tmp_path / name)
    return made


@pytest.mark.parametrize("make", ALL, ids=by_name)
def test_python_gives_the_labels_of_the_numpy_route(make, folders, by_numpy):
    train, test = make(TRAIN, folders[0]), make(TEST, folders[1])
    label = None if make in ARRAYS else "kind"
    model = daskls.VoronoiSVC(**PARAMS).fit(train, label)
    answers = model.predict(test)
    if make is dask_frame or make in (data_set, own_group):
        assert isinstance(answers, da.Array)
        answers = answers.compute()
    assert isinstance(answers, np.ndarray)
    labels, score = by_numpy
    wanted = (labels == "forest").astype(int) if make in CODED else labels
    if make is csv_moved:
        # Other columns first: distances are the same but for their rounding.
        assert (answers == wanted).mean() > 0.98
    else:
        assert answers.tolist() == wanted.tolist()
        assert model.score(test, *(() if label is None else (label,))) == score
    # By name, in any order of columns, with others between them.
    if make not in (*ARRAYS, csv_moved):
        moved = TEST[["kind", "north", "level", "east"]].assign(other="x")
        assert model.predict(moved).tolist() == wanted.tolist()


@pytest.mark.parametrize("make", [*FILES, *ARRAYS], ids=by_name)
def test_the_command_line_gives_the_labels_of_the_numpy_route(make, folders, tmp_path, by_numpy):
    train, test = make(TRAIN, folders[0]), make(TEST, folders[1])
    label = () if make in ARRAYS else ("--label", "kind")
    run("fit", train, tmp_path / "model.zarr", *label, *SMALL, *HERE)
    quiet = ("--workers", "0", "--quiet")
    run("predict", tmp_path / "model.zarr", test, tmp_path / "out.csv", *quiet)
    answers = pd.read_csv(tmp_path / "out.csv").iloc[:, 0]
    labels, score = by_numpy
    wanted = (labels == "forest").astype(int) if make in CODED else labels
    printed = json.loads(run("score", tmp_path / "model.zarr", test, "--json", *quiet).stdout)
    if make is csv_moved:
        assert (answers == wanted).mean() > 0.98
    else:
        assert answers.tolist() == wanted.tolist()
        assert printed["accuracy"] == score
    # Nothing but what was asked for stays.
    assert {path.name for path in tmp_path.iterdir()} == {
        *("train", "test", "model.zarr", "out.csv"),
    }


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet", "zarr"])
def test_the_suffix_of_the_answers_decides_their_format(suffix, tmp_path, by_numpy):
    train, test = csv(TRAIN, tmp_path), parquet(TEST, tmp_path)
    run("fit", train, tmp_path / "m.zarr", "--label", "kind", *SMALL, *HERE)
    out = tmp_path / f"out.{suffix}"
    arguments = ("predict", tmp_path / "m.zarr", test, out, "--workers", "0", "--quiet")
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
    quiet = ("--proba", "--workers", "0", "--quiet")
    model = daskls.load(tmp_path / "m.zarr")
    for name, read in (("out.csv", pd.read_csv), ("out.parquet", pd.read_parquet)):
        run("predict", tmp_path / "m.zarr", test, tmp_path / name, *quiet)
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
