"""The command line: what each command prints, and how each way to fail ends."""

import json
import sys

import numpy as np
import pytest
import zarr
from support import HERE, PAPERS, as_options
from support import run_cli as run
from typer.testing import CliRunner

import daskls
from daskls.cli import app
from daskls.datasets import make_checkerboard, write
from daskls.store.dataset import DatasetWriter

N_ROWS = 1200
SMALL = (*as_options(cell_size=300, cv=2, C=[1, 10], gamma=20, **PAPERS), "--gamma", "80")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def data(folder):
    write("checkerboard", folder / "data.zarr", N_ROWS, chunk_rows=500)
    return folder / "data.zarr"


@pytest.fixture(scope="module")
def model(folder, data):
    path = folder / "model.zarr"
    result = run("fit", data, path, *SMALL, "--random-state", "3", *HERE)
    assert "VoronoiSVC" in result.stdout
    return path


def test_fit_is_the_estimators_fit(model, data):
    X, _ = make_checkerboard(N_ROWS)
    same = daskls.VoronoiSVC(300, cv=2, C=[1, 10], gamma=[20, 80], random_state=3, **PAPERS)
    same.fit(str(data))
    loaded = daskls.load(model)
    np.testing.assert_array_equal(loaded.decision_function(X), same.decision_function(X))


def test_predict_writes_the_estimators_labels(model, data, folder):
    out = folder / "labels.zarr"
    result = run("predict", model, data, out, *HERE)
    assert f"{N_ROWS:,} labels" in result.stdout
    X, _ = make_checkerboard(N_ROWS)
    np.testing.assert_array_equal(zarr.open_array(out)[:], daskls.load(model).predict(X))
    # A bare array of rows gives the same.
    run("predict", model, data / "X", folder / "labels-of-array.zarr", *HERE)
    np.testing.assert_array_equal(
        zarr.open_array(folder / "labels-of-array.zarr")[:], zarr.open_array(out)[:]
    )
    for name, options, words in (
        (out, (), "exists already"),
        (folder / "out.xlsx", (), "not written as xlsx files: give a path that ends in .csv"),
        (folder / "out.csv", ("--proba",), "has no probabilities, as it was fitted without maps"),
    ):
        assert words in run("predict", model, data, name, *options, *HERE, code=1).stderr


def test_score_counts_every_row(model, data, folder):
    write("checkerboard", folder / "test.zarr", 1000, random_state=1, chunk_rows=300)
    X, y = make_checkerboard(1000, random_state=1)
    labels = daskls.load(model).predict(X)
    measures = json.loads(run("score", model, folder / "test.zarr", "--json", *HERE).stdout)
    tpr, tnr = (np.mean(labels[y == c] == c) for c in (1, -1))
    precision = np.mean(y[labels == 1] == 1)
    assert measures["n_rows"] == 1000
    assert measures["accuracy"] == pytest.approx(np.mean(labels == y))
    assert measures["error"] == pytest.approx(np.mean(labels != y))
    assert measures["tpr_x_tnr"] == pytest.approx(tpr * tnr)
    assert measures["f"] == pytest.approx(2 * precision * tpr / (precision + tpr))
    assert [c["recall"] for c in measures["classes"]] == pytest.approx([tnr, tpr])
    table = run("score", model, folder / "test.zarr", *HERE).stdout
    assert f"{100 * tpr:.2f} %" in table
    assert "TPR x TNR" in table


def test_score_of_foreign_labels_is_refused(model, folder):
    with DatasetWriter(folder / "words.zarr", 2, "float32", classes=["no", "yes"]) as writer:
        writer.append(np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1]))
    result = run("score", model, folder / "words.zarr", *HERE, code=1)
    assert "they have none in common" in result.stderr


# On the command line a warning is a line, not an error as elsewhere in the tests.
@pytest.mark.filterwarnings("default:No label column")
def test_convert_then_info(folder):
    source = folder / "rows.csv"
    source.write_text("a,b,label\n1,2,yes\n3,4,no\n5,6,yes\n")
    result = run("convert", source, folder / "rows.zarr", "--label", "label", "-q")
    assert "3 rows x 2 features, 2 classes" in result.stdout
    assert "no, yes" in run("info", folder / "rows.zarr").stdout
    result = run("convert", source, folder / "rows.zarr", "-q", code=1)
    assert "overwrite" in result.stderr
    again = run("convert", source, folder / "rows.zarr", "--overwrite", "-q")
    assert "No label column was named; it is 'label'" in again.stderr
    result = run("convert", source, folder / "rows.zarr", "--dtype", "word", code=2)
    assert "--dtype 'word' is not a numeric dtype; write float32" in result.stderr
    source.write_text("a,b,kind\n1,2,yes\n")
    result = run("convert", source, folder / "other.zarr", "-q", code=1)
    assert "its 3 columns are: a, b, kind. Name it: --label NAME" in result.stderr


BAD_ARGUMENTS = {
    "no such command": (("train", "x", "y"), "train"),
    "missing argument": (("fit", "x"), "'model'"),
    "no such option": (("fit", "x", "y", "--cellsize", "3"), "--cellsize"),
    "no such method": (("fit", "x", "y", "--method", "magic"), "magic"),
    "data that is not there": (("fit", "nowhere.zarr", "m.zarr"), "nowhere.zarr"),
    "a model that is not there": (("predict", "nowhere.zarr", "x", "out.zarr"), "nowhere.zarr"),
    "a file that is not there": (("convert", "nowhere.csv", "out.zarr"), "nowhere.csv"),
    "nothing to describe": (("info", "nowhere.zarr"), "nowhere.zarr"),
}


@pytest.mark.parametrize(("args", "words"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_arguments_exit_with_2(args, words):
    # Versions of typer differ in how they write the name of an argument.
    assert words in run(*args, code=2).stderr.lower()


BAD_FIT_OPTIONS = {
    "no number": (("--C", "1,two"), "Got '1,two' instead"),
    "negative": (("--C", "1,-2"), "C holds -2; every value must be positive"),
    "too large": (("--gamma", "1e39"), "gamma holds 1e+39"),
    "tolerance of zero": (("--tol", "0"), "'tol' parameter"),
    "value out of range": (("--n-partitions", "0"), "n_partitions"),
    "negative weight": (("--class-weight", "1=-3"), "class_weight of 1 is -3.0; it must be"),
    "no weight": (("--class-weight", "heavy"), "balanced"),
    "no size": (("--memory-limit", "lots"), "2GiB"),
    "no certificates": (("--scheduler", "tls://127.0.0.1:1"), "distributed.comm.tls.ca-file"),
    "both places": (("--scheduler", "tcp://127.0.0.1:1", "--workers", "2"), "exclude"),
    "of chunks": (("--method", "chunks", "--C", "0"), "'C' parameter"),
    "of landmarks": (("--method", "l3", "--C", "1e39"), "C holds 1e+39"),
    "of neighborhoods": (("--method", "falk", "--n-neighbors", "0"), "n_neighbors"),
    "of samples": (("--method", "cglq", "--C", "1,-2"), "C holds -2; every value must be"),
}


@pytest.mark.always
@pytest.mark.parametrize(("options", "words"), BAD_FIT_OPTIONS.values(), ids=BAD_FIT_OPTIONS)
def test_options_are_checked_before_a_cluster_starts(data, folder, options, words, no_cluster):
    where = () if "--scheduler" in options else ("--workers", 1)
    assert words in run("fit", data, folder / "never.zarr", *options, *where, code=2).stderr
    assert not (folder / "never.zarr").exists()


def test_a_class_that_is_not_there_is_refused(data, folder):
    options = ("--class-weight", "7=2", *HERE)
    found = run("fit", data, folder / "never.zarr", *options, code=2)
    assert "classes are -1, 1" in found.stderr


def test_an_error_that_nobody_foresaw_is_one_sentence(data, monkeypatch):
    def fail(*_):
        raise KeyError("surprise")

    # The function `info` hides its module from monkeypatch's dotted names.
    monkeypatch.setattr(sys.modules["daskls.cli.info"], "_print_dataset", fail)
    result = run("info", data, code=1)
    assert "--debug" in result.stderr
    traced = CliRunner().invoke(app, ["info", str(data), "--debug"]).stderr
    assert 'raise KeyError("surprise")' in traced


def test_a_scheduler_that_does_not_answer_is_named(data, folder, monkeypatch):
    monkeypatch.setattr("daskls.cli.cluster.CONNECT_TIMEOUT_S", 0.1)
    asked = ("--scheduler", "tcp://127.0.0.1:9")
    assert asked[1] in run("fit", data, folder / "never.zarr", *asked, code=1).stderr


def test_a_model_without_cells_says_so(data, folder):
    run("fit", data, folder / "knn.zarr", "--method", "knn", *HERE)
    assert "none: it trains when it predicts" in run("info", folder / "knn.zarr").stdout


METHODS = {
    "chunks": {"chunk_size": 300, "cv": 2, "C": 10, "gamma": 20, **PAPERS},
    "l3": {"n_cells": 20, "n_landmarks": 5, "landmarks": "random", "C": [1, 100]},
    "local-sampling": {
        **{"sample_fraction": 0.2, "n_subsamples": 2, "radius_scale": 1},
        **{"C": 10, "gamma": 20},
    },
    "cglq": {"sample_fraction": 0.2, "n_neighbors": 3, "C": 10, "gamma": 20},
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_scores_and_describes_itself(method, folder, data):
    path = folder / f"{method}.zarr"
    options = as_options(method=method, random_state=0, **METHODS[method])
    summary = run("fit", data, path, *options, *HERE).stdout
    assert "support rows" in summary
    assert ("choice on a grid edge" in summary) == (method in ("chunks", "l3"))
    measures = json.loads(run("score", path, data, "--json", *HERE).stdout)
    X, y = make_checkerboard(N_ROWS)
    assert measures["accuracy"] == pytest.approx(daskls.load(path).score(X, y))
    assert measures["accuracy"] > 0.7
    assert type(daskls.load(path)).__name__ in run("info", path).stdout


def test_the_home_folder_in_every_path(tmp_path, monkeypatch):
    """A shell leaves ~ inside a word, as after an equals sign, to the program."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home, elsewhere):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(elsewhere)
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    np.savetxt(home / "rows.csv", np.column_stack([X, X[:, 0] > 0.5]), delimiter=",")
    options = ("--label", 2, "--dtype", "float64", "--quiet")
    run("convert", "~/rows.csv", "~/data.zarr", *options)
    run("fit", "~/data.zarr", "~/model", *SMALL, "--random-state", 0, *HERE)
    measures = json.loads(run("score", "~/model", "~/data.zarr", "--json", *HERE).stdout)
    assert measures["accuracy"] > 0.9
    run("predict", "~/model", "~/data.zarr", "~/labels", *HERE)
    expected = daskls.load(home / "model").predict(X)
    np.testing.assert_array_equal(zarr.open_array(home / "labels")[:], expected)
    for path in ("~/model", "~/data.zarr"):
        assert "rows" in run("info", path).stdout
    run("denoise", "~/data.zarr", "~/clean", "--n-neighbors", 30, "--random-state", 0, *HERE)
    made = {"rows.csv", "data.zarr", "model", "labels", "clean"}
    assert {path.name for path in home.iterdir()} == made
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("limit", ["10MiB", "200MiB"])
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_workers_too_small_to_begin_are_refused(command, limit, data, model, no_cluster, tmp_path):
    arguments = [data] if command == "fit" else [model, data]
    found = run(command, *arguments, tmp_path / "out", "--memory-limit", limit, code=1)
    assert f"memory limit of {limit[:-3]} MiB" in found.stderr
    assert "give each worker 512 MiB or more" in found.stderr
    assert not (tmp_path / "out").exists()
