"""`daskls plan`: what it prints, of data and of shapes, and how it refuses."""

import re

import pytest
from support import PAPERS, as_options
from support import run_cli as run

from daskls.datasets import write

SHAPE = ("--rows", "1e6", "--features", "28")


def pairs_of(text):
    """Return the names and values that a command prints below each other."""
    found = (re.match(r"(\w[\w ,]*?)  +(\S.*?) *$", line) for line in text.splitlines())
    return {match[1]: match[2] for match in found if match}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "data.zarr"
    write("checkerboard", path, 5000, chunk_rows=1000)
    return path


def test_data_are_planned_without_a_cluster_and_without_a_store(data, no_cluster):
    before = sorted(path.name for path in data.parent.iterdir())
    told = run("plan", data, *as_options(cell_size=500, cv=2, **PAPERS)).stdout
    assert told.startswith("VoronoiSVC: 5,000 rows, 2 features\n")
    pairs = pairs_of(told)
    assert int(pairs["models"]) in range(10, 14)
    assert sorted(path.name for path in data.parent.iterdir()) == before
    # The data name their classes.
    assert "assumed" not in told.lower()
    # Of as many rows, and classes, as one likes.
    more = run("plan", data, "--rows", 10_000, *as_options(cell_size=500, cv=2, **PAPERS)).stdout
    assert more.startswith("VoronoiSVC: 10,000 rows, 2 features\n")
    assert int(pairs_of(more)["models"]) in range(20, 28)
    for given in (("--rows", 10_000, data), (*SHAPE, "--classes", 5)):
        assert pairs_of(run("plan", *given).stdout)["assumed"] == "float32 features"
    assert pairs_of(run("plan", *SHAPE).stdout)["assumed"] == "2 classes"
    assert "for a plan without DATA" in run("plan", data, "--features", 3, code=2).stderr
    (data.parent / "rows.csv").write_text("a,y\n1,0\n2,1\n")
    refused = run("plan", data.parent / "rows.csv", "--label", "y", "--rows", 9, code=2).stderr
    assert "a table is planned as it is. Convert it first" in refused


@pytest.mark.parametrize("method", ["falk", "l3", "cglq", "knn"])
def test_every_kind_of_method(method):
    told = run("plan", "--rows", "20000", "--features", "4", "--method", method).stdout
    assert "largest task" in told


def test_what_would_be_refused_is_told_with_the_parameter_to_change():
    small = ("--workers", "2", "--memory-limit", "512MiB", "--cell-size", "30000")
    told = " ".join(run("plan", *SHAPE, *small).stdout.split())
    assert "refused" in told
    assert "lower cell_size to about" in told
    roomy = run("plan", *SHAPE, "--workers", "2", "--memory-limit", "64GiB").stdout
    assert "refused" not in roomy


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 2),
        (("--rows", "1000"), 2),
        (("--rows", "many", "--features", "3"), 2),
        (("--rows", "1.5", "--features", "3"), 2),
        (("nowhere.zarr",), 2),
        ((*SHAPE, "--memory", "much"), 2),
        ((*SHAPE, "--workers", "1", "--scheduler", "tcp://x:1"), 2),
        ((*SHAPE, "--method", "knn", "--cell-size", "3"), 2),
        ((*SHAPE, "--method", "l3", "--task", "regression"), 2),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(args, code):
    run("plan", *args, code=code)
