"""What a newcomer sees: of calls that look right and are not, and of events that need no help."""

import os
import signal
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from support import HERE, PAPERS, as_options, assert_same_model, checkers, python_env, small_svc
from support import run_cli as run

import daskls
from daskls import DasklsError, DataError, StoreError
from daskls.store.dataset import DatasetWriter

X, Y = checkers(300)
SMALL = as_options(cell_size=100, cv=2, C=10, gamma=20, **PAPERS)
# A feature has the name that labels often have.
ROWS = pd.DataFrame(X, columns=["x", "y"])


def test_the_package_is_a_program():
    command = [sys.executable, "-m", "daskls", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=python_env())
    assert done.stdout == f"daskls {daskls.__version__}\n"


# Labels of a table


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return a folder with the model of a table, one of an array, one of named columns; tables."""
    folder = tmp_path_factory.mktemp("models")
    ROWS.to_csv(folder / "bare.csv", index=False)
    ROWS.assign(t=Y).to_csv(folder / "rows.csv", index=False)
    small_svc(store=folder / "table").fit(folder / "rows.csv", "t")
    small_svc(store=folder / "array").fit(X, Y)
    small_svc(store=folder / "named").fit(ROWS, Y)
    return folder


KNOWN = "has no column 't'; its 2 columns are: x, y. The training table had its labels there."
UNKNOWN = "has no known label column; its 2 columns are: x, y. Name the column"


@pytest.mark.parametrize(
    ("model", "told"), [("table", KNOWN), ("array", UNKNOWN), ("named", UNKNOWN)]
)
def test_a_label_is_never_guessed_in_scoring(model, told, models):
    error = run("score", models / model, models / "bare.csv", *HERE, code=1).stderr
    assert told in error
    assert "--label NAME" in error
    with pytest.raises(DataError, match="Name the column that holds the labels"):
        daskls.load(models / model).score(models / "bare.csv")
    named = ("score", models / "named", models / "rows.csv", "--label", "y", *HERE)
    assert "The label 'y' is a feature that the model was trained on." in run(*named, code=1).stderr


# Things that are no rows, no values, no places


@pytest.fixture(scope="module")
def lazy():
    """Return functions that make a delayed object and a future of a value."""
    with Client(processes=False, dashboard_address=":0", set_as_default=False) as client:
        yield {"compute": dask.delayed, "result": client.scatter}


@pytest.mark.parametrize("call", ["compute", "result"])
def test_what_is_not_computed_yet_is_told_by_its_kind(call, lazy):
    late, model = lazy[call], small_svc().fit(X, Y)
    said = rf"shape is not known .*{{}}\.{call}\(\).*dask\.array\.from_delayed"
    for ask in (model.predict, lambda rows: small_svc().fit(rows, Y)):
        with pytest.raises(DataError, match=said.format("X")):
            ask(late(X))
    with pytest.raises(DataError, match=said.format("y")):
        small_svc().fit(X, late(Y))
    with pytest.raises(DataError, match=said.format("sample_weight")):
        small_svc().fit(X, Y, late(np.ones(300)))


@pytest.mark.parametrize("value", [1.1e18, -1e200])
def test_a_value_that_is_too_large_is_not_called_missing(value):
    rows = X.copy()
    rows[7, 1] = value
    with pytest.raises(DataError, match=r"contains .*e\+.*, first in row 7.*at most 1e\+18"):
        small_svc().fit(rows, Y)
    rows[7, 1] = np.inf
    with pytest.raises(DataError, match=r"infinity, first in row 7.*finite.*Remove such rows"):
        small_svc().fit(rows, Y)


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("", "store is an empty string"),
        ("~nobody-here/x", r"no home folder of that user.*'\./~nobody-here/x'"),
    ],
)
def test_a_store_that_names_no_place_leaves_nothing(store, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=said):
        small_svc(store=store).fit(X, Y)
    ROWS.assign(t=Y).to_csv("rows.csv", index=False)
    error = run("fit", "rows.csv", store, "--label", "t", *SMALL, *HERE, code=1).stderr
    assert ("empty" if not store else "no home folder") in error
    assert os.listdir() == ["rows.csv"]


@pytest.mark.parametrize(
    ("rows", "refused", "said"),
    [
        (X, {"feature_scale": [1.0]}, "holds 1 factors"),
        (X, {"feature_scale": [1e19, 1.0]}, "multiplies feature 0"),
        (np.tile(X[:1], (300, 1)) + X * 1e-300, {"probability": True}, "can be held out"),
    ],
)
def test_a_refused_fit_leaves_its_store_to_the_next(rows, refused, said, tmp_path):
    store = tmp_path / "m"
    with pytest.raises(DasklsError, match=said):
        small_svc(store=store, **refused).fit(rows, Y)
    assert_same_model(small_svc(store=store).fit(X, Y), small_svc().fit(X, Y))


# Where commands run


def test_small_data_starts_no_cluster_unless_asked(models, tmp_path, no_cluster):
    rows, model = models / "rows.csv", tmp_path / "m"
    run("fit", rows, model, "--label", "t", *SMALL, "-q")
    run("score", model, rows, "-q")
    run("predict", model, rows, tmp_path / "out.csv", "-q")
    with DatasetWriter(tmp_path / "d", 2, "f8") as writer:
        writer.append(X, Y)
    run("score", models / "array", tmp_path / "d", "-q")
    for asked in (("--workers", 1), ("--dashboard", ":0"), ("--threads-per-worker", 2)):
        assert "a cluster was started" in run("score", model, rows, *asked, "-q", code=1).stderr


# Events


@pytest.mark.parametrize(("is_kept", "said"), [(True, "goes on from there"), (False, "store=")])
def test_an_interrupt_says_how_to_go_on(is_kept, said, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("daskls.pipeline.run_fit", interrupted)
    with pytest.raises(KeyboardInterrupt, match=said) as caught:
        small_svc(store=tmp_path / "m" if is_kept else None).fit(X, Y)
    assert (str(tmp_path / "m") in str(caught.value)) == is_kept


def die_once(block, marker):
    """End the process that holds this block, the first time."""
    if not os.path.exists(marker):
        open(marker, "x").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_lost_worker_is_followed_by_a_line_that_all_is_well(two_workers, tmp_path, caplog):
    rows = da.from_array(X, chunks=(100, 2))
    deadly = rows.map_blocks(die_once, str(tmp_path / "died"), dtype=X.dtype, meta=X)
    with Client(two_workers, set_as_default=False) as client:
        client.wait_for_workers(2)
        model = small_svc(client=client).fit(deadly, Y)
        assert "1 of 2 worker(s) left the cluster during the fit" in caplog.text
        assert "the model is the same" in caplog.text
        caplog.clear()
        client.wait_for_workers(2)
        same = small_svc(client=client).fit(rows, Y)
        assert "left the cluster" not in caplog.text
    assert_same_model(same, model)
