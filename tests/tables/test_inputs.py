"""Every input that a person may have: fitted, asked and scored, in Python and on the command line.

The route through NumPy is the oracle: the same columns, encoded here by hand, give the same labels.
"""

import json
import re
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xarray as xr
import zarr
from sklearn.datasets import dump_svmlight_file
from support import HERE, PAPERS, as_options
from support import run_cli as run
from tables.containers import FILES, FRAMES, csv

import daskls
from daskls.datasets import convert

PARAMS = {**PAPERS, "cell_size": 200, "C": 10.0, "gamma": 20.0, "random_state": 0}
SMALL = as_options(**PARAMS)
FEATURES = ["east", "north", "level"]


def make_frame(n_rows, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"east": rng.random(n_rows), "north": rng.random(n_rows)})
    frame["level"] = rng.integers(0, 3, n_rows)
    is_forest = (frame.east > 0.5) ^ (frame.north + 0.1 * frame.level > 0.6)
    frame["kind"] = np.where(is_forest, "forest", "field")
    return frame


TRAIN, TEST = make_frame(450, 0), make_frame(150, 1)


@pytest.fixture(scope="module")
def by_numpy():
    model = daskls.VoronoiSVC(**PARAMS).fit(numbers(TRAIN), TRAIN.kind.to_numpy())
    return model.predict(numbers(TEST)), model.score(numbers(TEST), TEST.kind.to_numpy())


def numbers(frame, _=None):
    return frame[FEATURES].to_numpy()


def codes(frame):
    """Return labels as numbers, for formats that hold nothing else."""
    return (frame.kind == "forest").to_numpy(int)


def npz(frame, folder):
    np.savez(folder / "rows.npz", X=numbers(frame), y=frame.kind.to_numpy(str))
    return folder / "rows.npz"


def npy(frame, folder):
    np.save(folder / "rows.npy", np.column_stack([numbers(frame), codes(frame)]))
    return folder / "rows.npy"


def libsvm(frame, folder):
    path = folder / "rows.libsvm"
    dump_svmlight_file(numbers(frame), codes(frame), str(path), zero_based=False)
    return path


def data_set(frame, folder):
    convert(csv()(frame, folder), folder / "rows.zarr", label="kind", dtype="float64")
    return folder / "rows.zarr"


def own_group(frame, folder):
    group = zarr.create_group(folder / "own.zarr")
    group.create_array("X", data=numbers(frame), chunks=(100, 3))
    group.create_array("y", data=codes(frame), chunks=(100,))
    return folder / "own.zarr"


def zarr_path(frame, folder):
    zarr.create_array(folder / "X.zarr", data=numbers(frame), chunks=(150, 3))
    return folder / "X.zarr"


ARRAY_FILES = {
    **{".npz": npz, ".npy": npy, "LIBSVM": libsvm, "data set (Zarr)": data_set},
    "your own Zarr group": own_group,
}
ARRAYS = {
    "NumPy array": numbers,
    "Dask array": lambda frame, _: da.from_array(numbers(frame), chunks=(150, 3)),
    "path of a Zarr array": zarr_path,
    "Zarr array": lambda frame, folder: zarr.open_array(zarr_path(frame, folder), mode="r"),
    "xarray DataArray": lambda frame, _: xr.DataArray(numbers(frame), dims=("row", "feature")),
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
    if name in ARRAYS:
        return frame.kind.to_numpy()
    if name == ".npy":
        return "3"
    return None if name in ARRAY_FILES else "kind"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Sources of every kind, each made once; queries of a `.npy` file hold no label."""
    made = {}

    def get(name, frame):
        key = name, len(frame)
        if key not in made:
            folder = tmp_path_factory.mktemp("source")
            made[key] = ALL[name](frame, folder)
            if name == ".npy" and frame is TEST:
                np.save(folder / "queries.npy", numbers(frame))
        return made[key]

    return get


def queries_of(name, test):
    return test.with_name("queries.npy") if name == ".npy" else test


def check_answers(name, answers, by_numpy):
    wanted = (by_numpy[0] == "forest").astype(int) if name in CODED else by_numpy[0]
    assert (answers == wanted).mean() >= (0.98 if name == MOVED else 1)


def check_score(name, score, by_numpy):
    assert abs(score - by_numpy[1]) <= (0.02 if name == MOVED else 0)


@pytest.mark.parametrize("name", ALL)
def test_python_gives_the_labels_of_the_numpy_route(name, source, by_numpy):
    train, test = source(name, TRAIN), source(name, TEST)
    model = daskls.VoronoiSVC(**PARAMS).fit(train, label_of(name, TRAIN))
    in_memory = numbers(TEST)
    if name in (*FILES, *FRAMES):
        # By name, in any order of columns, with others between them.
        in_memory = TEST[["kind", "north", "level", "east"]].assign(other="x")
    elif hasattr(model, "feature_names_in_"):
        in_memory = TEST[FEATURES]
    check_answers(name, model.predict(in_memory), by_numpy)
    answers = model.predict(queries_of(name, test))
    assert isinstance(answers, da.Array) == (name in LAZY)
    check_answers(name, np.asarray(answers), by_numpy)
    check_score(name, model.score(test, label_of(name, TEST)), by_numpy)


@pytest.mark.parametrize("name", ON_DISK)
def test_the_command_line_gives_the_labels_of_the_numpy_route(name, source, tmp_path, by_numpy):
    train, test = source(name, TRAIN), source(name, TEST)
    label = label_of(name, TRAIN)
    label = () if label is None else ("--label", label)
    model, out = tmp_path / "model.zarr", tmp_path / "out.csv"
    run("fit", train, model, *label, *SMALL, *HERE)
    # A table's label is known from training; the columns of an array have no names.
    own = label if name == ".npy" else ()
    printed = json.loads(run("score", model, test, "--json", *own, *HERE).stdout)
    check_score(name, printed["accuracy"], by_numpy)
    run("predict", model, queries_of(name, test), out, *HERE)
    check_answers(name, pd.read_csv(out).iloc[:, 0].to_numpy(), by_numpy)
    # Nothing but what was asked for stays.
    assert {path.name for path in tmp_path.iterdir()} == {"model.zarr", "out.csv"}


def test_answers_of_the_command_line(source, tmp_path, by_numpy):
    options = ("--label", "kind", "--probability", "sigmoid", *SMALL, *HERE)
    run("fit", source("CSV", TRAIN), tmp_path / "m", *options)
    readers = {
        "out.csv.gz": pd.read_csv,
        "out.tsv": lambda path: pd.read_csv(path, sep="\t"),
        "out.parquet": pd.read_parquet,
        "out.zarr": lambda path: pd.DataFrame({"kind": zarr.open_array(path)[:]}),
    }
    # The suffix decides their format.
    for name, read in readers.items():
        arguments = ("predict", tmp_path / "m", source("Parquet file", TEST), tmp_path / name)
        run(*arguments, *HERE)
        assert read(tmp_path / name).kind.tolist() == by_numpy[0].tolist()
        before = sorted(tmp_path.iterdir())
        assert "exists already" in run(*arguments, *HERE, code=1).stderr
        assert sorted(tmp_path.iterdir()) == before
    # Probabilities have a named column a class.
    run("predict", tmp_path / "m", source("CSV", TEST), tmp_path / "proba.csv", "--proba", *HERE)
    found = pd.read_csv(tmp_path / "proba.csv")
    assert found.columns.tolist() == ["field", "forest"]
    wanted = daskls.load(tmp_path / "m").predict_proba(TEST)
    np.testing.assert_allclose(found.to_numpy(), wanted, rtol=1e-12)


def test_a_model_of_numpy_answers_tables_and_zarr_arrays(source, tmp_path, by_numpy):
    model = daskls.VoronoiSVC(**PARAMS).fit(numbers(TRAIN), TRAIN.kind.to_numpy())
    assert model.predict(csv()(TEST[FEATURES], tmp_path)).tolist() == by_numpy[0].tolist()
    lazy = model.predict(dd.from_pandas(TEST[FEATURES], npartitions=2))
    assert lazy.compute().tolist() == by_numpy[0].tolist()
    labeled = csv()(TEST.rename(columns={"kind": "label"}), tmp_path)
    assert model.score(labeled, "label") == by_numpy[1]
    with pytest.raises(daskls.DataError, match=r"2 columns of features.*3 features"):
        model.predict(csv()(TEST[["east", "north"]], tmp_path))
    fit = ("fit", source("path of a Zarr array", TEST), tmp_path / "m", *HERE)
    assert "is not a daskls data set" in run(*fit, code=1).stderr


PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text()


def rows_below(heading):
    lines = PAGE.split(f"{heading}\n", 1)[1].split("\n## ")[0].splitlines()
    table = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in table[2:]]


def test_the_page_lists_what_is_tested():
    listed = {row[0]: row[1:] for row in rows_below("## Every input")}
    on_disk = {**dict.fromkeys(ON_DISK, "yes"), "path of a Zarr array": "predict"}
    assert listed == {name: ["yes"] * 3 + [on_disk.get(name, "")] for name in ALL}


def table(**columns):
    return pd.DataFrame({"a": np.arange(80.0), "kind": [0, 1] * 40}).assign(**columns)


GAP = [None, *[1.0] * 79]
CODES = np.arange(80) % 2
NESTED = xr.Dataset({"a": (("r", "c"), np.ones((80, 2))), "kind": (("r",), CODES)})
WIDE = "a scipy sparse matrix whose dense rows take more than half of the free memory"
# What `fit` is given, by its name in docs/data.md.
REFUSED = {
    "numbers with commas that may be decimal, or not": (table(a="1,000"), "kind"),
    'missing values, with `missing="refuse"`': (table(b=GAP), "kind"),
    "a missing label": (table(kind=GAP), "kind"),
    "no label named, nor of a usual name": (table(), None),
    "a label column that is not there": (table(), "sort"),
    "one label for all rows": (table(kind=1), "kind"),
    "two columns of one name": (pd.concat([table(), table()], axis=1), "kind"),
    "a file of another suffix": ("rows.xlsx", "kind"),
    WIDE: (scipy.sparse.eye(10**7, format="csr"), CODES),
    "a dict, a generator": ({"a": CODES}, CODES),
    "an xarray Dataset of several dimensions": (NESTED, "kind"),
}


def test_the_page_prints_the_sentence_of_what_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.xlsx").touch()
    sentences = dict(rows_below("## What is refused"))
    assert set(sentences) == set(REFUSED)
    for name, given in REFUSED.items():
        options = {"missing": "refuse"} if "refuse" in name else {}
        with pytest.raises(daskls.DataError) as told:
            daskls.VoronoiSVC().fit(*given, **options)
        said = " ".join(str(told.value).split())
        parts = [part.strip() for part in sentences[name].strip("`").split("...")]
        assert re.search(".*".join(map(re.escape, parts)), said), said
