"""Arguments of the command line: what is refused before anything starts, and paths with ~."""

import json

import numpy as np
import pytest
import zarr
from support import HERE, PAPERS, as_options
from support import run_cli as run

import daskls
from daskls.datasets import write

# Of small data none would start without being asked for.
CLUSTER = ("--workers", "1")
SMALL = as_options(cell_size=300, cv=2, C=[1, 10], gamma=20, **PAPERS)


@pytest.fixture
def data(tmp_path):
    write("checkerboard", tmp_path / "data.zarr", 600, chunk_rows=250)
    return tmp_path / "data.zarr"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--C", "1,-2"), "C holds -2; every value must be positive"),
        (("--gamma", "1e39"), "gamma holds 1e+39"),
        (("--tol", "0"), "'tol' parameter"),
        (("--class-weight", "1=-3"), "class_weight of 1 is -3.0; it must be a number"),
        (("--class-weight", "1=nan"), "class_weight of 1 is nan; it must be a number"),
        (("--method", "chunks", "--C", "0"), "'C' parameter"),
        (("--method", "l3", "--C", "1e39"), "C holds 1e+39"),
        (("--method", "falk", "--n-neighbors", "0"), "n_neighbors"),
        (("--method", "cglq", "--C", "1,-2"), "C holds -2; every value must be positive"),
    ],
)
def test_parameters_are_checked_before_a_cluster_starts(options, message, data, no_cluster):
    result = run("fit", data, data.parent / "model", *options, *CLUSTER, code=2)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (data.parent / "model").exists()


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
def test_workers_too_small_to_begin_are_refused(command, limit, data, no_cluster, tmp_path):
    if command == "predict":
        run("fit", data, tmp_path / "m", *SMALL, *HERE)
    arguments = [data] if command == "fit" else [tmp_path / "m", data]
    found = run(command, *arguments, tmp_path / "out", "--memory-limit", limit, code=1)
    assert f"memory limit of {limit[:-3]} MiB" in found.stderr
    assert "give each worker 512 MiB or more" in found.stderr
    assert not (tmp_path / "out").exists()
