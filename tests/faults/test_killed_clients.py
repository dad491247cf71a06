"""A client that dies loses nothing that is finished: a second process runs the rest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small import tiny_tasks
from support import assert_same_model, install_spies, plan_kill, read_log, small_svc

import daskls

RUN = """
import sys
import dask, dask.array as da
from small import tiny_tasks
from support import checkers, install_spies, small_svc
from daskls.plan import bundles as plan
from daskls.run import rows
rows.BLOCK_NBYTES = 1
plan.N_BUNDLES = 10_000
plan.MIN_BUNDLE_COST = 0.0
install_spies(sys.argv[1])
X, y = checkers(1200)
with dask.config.set(scheduler="threads", num_workers=2):
    small_svc(store=sys.argv[2]).fit(da.from_array(X, (100, 2)), da.from_array(y, 100))
"""


def run_fit(log, store, run=RUN):
    root = Path(daskls.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"}
    command = [sys.executable, "-c", run, str(log), str(store)]
    return subprocess.run(command, env=env, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("where", "at"),
    [("sample", 5), ("rows written", 6), ("bundle written", 1), ("bundle written", 6)],
)
def test_a_second_process_finishes(where, at, tmp_path, undisturbed):
    first, second, store = tmp_path / "first", tmp_path / "second", tmp_path / "stores" / "m"
    first.mkdir()
    second.mkdir()
    plan_kill(first, where, at)
    killed = run_fit(first, store)
    assert killed.returncode == -9, killed.stderr
    with pytest.raises(daskls.StoreError, match=r"not finished|no model"):
        daskls.load(store)
    blocks = {int(p.stem[6:]) for p in store.glob("exchange-*/block-*.marker")}
    bundles = {int(p.name[:6]) for p in store.glob("bundles/0*")}
    done = run_fit(second, store)
    assert done.returncode == 0, done.stderr
    assert_same_model(undisturbed, store)
    # Only what had no marker ran, and each once.
    written = sorted(map(int, read_log(second, "rows written")))
    assert written == sorted(set(range(12)) - blocks)
    trained = sorted(map(int, read_log(second, "bundle written")))
    assert trained == sorted(set(range(daskls.load(store).n_cells_)) - bundles)
    if where == "bundle written":
        assert written == []
        assert len(bundles) >= at - 2
    elif where == "rows written":
        assert len(blocks) >= at - 2
    assert [p.name for p in store.parent.iterdir()] == ["m"]
    assert sorted(p.name for p in store.iterdir()) == ["bundles", "index", "partition", "zarr.json"]
    assert not list(store.glob("bundles/.*"))


def test_what_a_killed_client_wrote_of_its_input_goes(tmp_path):
    store = tmp_path / "stores" / "m"
    run = RUN.replace("da.from_array(X, (100, 2)), da.from_array(y, 100)", "X, y")
    run = run.replace("rows.BLOCK_NBYTES = 1", "rows.BLOCK_NBYTES = 1600")
    root = Path(daskls.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'tests'}"}
    plan_kill(tmp_path, "bundle written", 3)
    for returncode in (-9, 0):
        command = [sys.executable, "-c", run, str(tmp_path), str(store)]
        assert subprocess.run(command, env=env, check=False).returncode == returncode
    assert [p.name for p in store.parent.iterdir()] == ["m"]


def test_other_workers_after_a_stop_make_the_same_model(tmp_path, data, undisturbed):
    # What is left is grouped into other bundles than the first process planned.
    plan_kill(tmp_path, "bundle written", 5)
    store = tmp_path / "m"
    assert run_fit(tmp_path, store).returncode == -9
    with tiny_tasks(N_BUNDLES=1, MIN_BUNDLE_COST=3.0 * 100**2):
        model = small_svc(store=store).fit(*data)
    assert_same_model(undisturbed, model)
    assert len(list((store / "bundles").iterdir())) < model.n_cells_


def test_spies_stay_out_of_this_process(tmp_path):
    from daskls.methods.cells import train

    before = train.fit_bundle
    undo = install_spies(tmp_path)
    assert train.fit_bundle is not before
    for owner, name, original in undo:
        setattr(owner, name, original)
    assert train.fit_bundle is before
