"""Two fits on one store: the second is refused while the first lives, and goes on when it died."""

import json
import os
import subprocess
import sys

import pytest
from falks import small_falk
from landmarks import small_landmarks
from samplings import small_local
from support import assert_same_model, checkers, python_env, small_svc
from writes import Writes

import daskls
from daskls import StoreError
from daskls.store.owner import OWNER

pytestmark = pytest.mark.slow

# Says where it is after its first bundle, and then waits to be killed or for a line.
RUN = """
import os, sys
import dask, dask.array as da
from support import checkers, python_env, small_svc
from daskls.run import rows
from daskls.methods.cells import fit
from daskls.plan import bundles
rows.BLOCK_NBYTES = 1
bundles.N_BUNDLES = 10_000
bundles.MIN_BUNDLE_WORK = 0.0
write_bundle = fit.write_bundle
def slow_write(*args):
    written = write_bundle(*args)
    print("bundle", flush=True)
    sys.stdin.readline()
    return written
fit.write_bundle = slow_write
X, y = checkers(1200)
with dask.config.set(scheduler="sync"):
    small_svc(store=sys.argv[1]).fit(da.from_array(X, (100, 2)), da.from_array(y, 100))
"""


@pytest.fixture
def fitting(tmp_path):
    """Yield a process that is in the middle of a fit, and its store."""
    store = tmp_path / "m"
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", RUN, str(store)]
    process = subprocess.Popen(command, env=python_env(), text=True, **pipes)
    try:
        assert process.stdout.readline() == "bundle\n", process.stderr.read()
        yield process, store
    finally:
        process.kill()
        process.communicate()


def files_of(store):
    return {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.is_file() and p.name != OWNER}


def test_the_second_fit_is_refused_and_changes_nothing(fitting, data, undisturbed):
    process, store = fitting
    before = files_of(store)
    for X, y in (data, checkers(1200)):
        with pytest.raises(StoreError, match=rf"process {process.pid} on .*call fit again"):
            small_svc(store=store).fit(X, y)
    assert files_of(store) == before
    _, errors = process.communicate("\n" * 100)
    assert process.returncode == 0, errors
    assert_same_model(undisturbed, store)
    assert not (store / OWNER).exists()
    # A finished store is free for the next fit, which has nothing to do.
    assert_same_model(undisturbed, small_svc(store=store).fit(*data))


@pytest.mark.parametrize("make", [small_svc, small_falk, small_landmarks, small_local])
def test_a_fit_that_lost_its_store_is_not_finished(make, data, tmp_path):
    # As of a machine that slept: another one took the store meanwhile, and still has it.
    store = tmp_path / "m"

    def taken_over(name):
        if name == "index":
            owner = json.loads((store / OWNER).read_text())
            owner.update(machine="another", host="desk", pid=77, token="theirs")
            (store / OWNER).write_text(json.dumps(owner))

    with (
        Writes(store, taken_over),
        pytest.raises(StoreError, match=r"taken over by process 77 on desk.*call fit again"),
    ):
        make(store=store).fit(*data)
    with pytest.raises(StoreError, match="not finished"):
        daskls.load(store)
    assert json.loads((store / OWNER).read_text())["token"] == "theirs"
    with pytest.raises(StoreError, match="process 77 on desk"):
        make(store=store).fit(*data)
    os.utime(store / OWNER, (0, 0))
    make(store=store).fit(*data)
    assert daskls.load(store).n_cells_
