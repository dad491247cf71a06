"""What a process pays before its first row: imports, and compilation once a machine.

Each test looks at a fresh process: this one has everything loaded and compiled.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support import checkers, small_svc

import daskls

pytestmark = pytest.mark.slow

PACKAGE = Path(daskls.__file__).parent
X, Y = checkers(400)

# Modules that only training needs; `load` and `predict` leave them on disk.
TRAINERS = {
    "daskls.methods.sampling.balls",
    "daskls.methods.sampling.fit",
    "daskls.methods.cells.fit",
    "daskls.pipeline",
    "daskls.methods.neighborhoods.fit",
    "daskls.methods.neighborhoods.select",
    "daskls.methods.neighborhoods.train",
    "daskls.run.regroup",
    "daskls.run.sample",
    "daskls.methods.sampling.train",
    "daskls.methods.sampling.search",
    "daskls.kernels.hinge",
    "daskls.partition.grow",
    "daskls.solvers.hinge.solver",
    "daskls.solvers.hinge.large",
    "daskls.solvers.hinge.neighborhood",
    "daskls.solvers.hinge.width",
    "daskls.solvers.width",
    "daskls.solvers.search",
}

LOAD_AND_PREDICT = """
import json, sys
import numpy as np
import daskls
model = daskls.load(sys.argv[1])
labels = model.predict(np.load(sys.argv[2]))
print(json.dumps({"labels": labels.tolist(), "modules": sorted(sys.modules)}))
"""

FIT_ALONE = """
import json, sys
import numpy as np
import daskls
from daskls.run.resources import available_nbytes
X = np.load(sys.argv[1])
daskls.VoronoiSVC(cell_size=100, C=10.0, gamma=20.0).fit(X, X[:, 0] > 0.5).predict(X)
loaded = sorted(sys.modules)
import psutil, distributed.system
limit = distributed.system.MEMORY_LIMIT
available = min(psutil.virtual_memory().available, limit)
print(json.dumps({"loaded": loaded, "error": abs(available_nbytes() / available - 1)}))
"""

FIT_AND_COUNT = """
import json, sys
import numpy as np
import daskls
X = np.load(sys.argv[1])
daskls.VoronoiSVC(cell_size=100, C=10.0, gamma=20.0).fit(X, X[:, 0] > 0.5).predict(X)
kernels = [module for name, module in sys.modules.items() if name.startswith("daskls.kernels.")]
compiled = {id(f): f for module in kernels for f in vars(module).values() if hasattr(f, "stats")}
print(json.dumps({
    "home": daskls.__file__,
    "from_disk": sum(sum(f.stats.cache_hits.values()) for f in compiled.values()),
    "compiled": sum(sum(f.stats.cache_misses.values()) for f in compiled.values()),
}))
"""


@pytest.fixture
def rows(tmp_path):
    """Return the path of an array of rows."""
    np.save(tmp_path / "X.npy", X)
    return tmp_path / "X.npy"


def run_python(code, *args, path=PACKAGE.parent, cwd=None, **environment):
    """Return what a fresh process prints as JSON; nothing moves its cache."""
    ours = ("NUMBA_", "XDG_CACHE_HOME")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        env={**inherited, "PYTHONPATH": str(path), **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_loads_nothing_else():
    loaded = run_python("import json, sys, daskls; print(json.dumps(sorted(sys.modules)))")
    packages = {name.split(".")[0] for name in loaded}
    assert not packages & {"numpy", "numba", "dask", "distributed", "sklearn", "zarr"}


HELP = """
import contextlib, io, json, sys
from daskls.cli import app
with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.suppress(SystemExit):
    app(sys.argv[1:])
assert "--C" in told.getvalue()
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("command", ["fit", "plan", "denoise"])
@pytest.mark.parametrize("options", [(), ("--method", "falk")])
def test_help_of_estimators_loads_none(command, options):
    loaded = run_python(HELP, command, *options, "--help")
    packages = {name.split(".")[0] for name in loaded}
    assert not packages & {"numpy", "numba", "dask", "distributed", "sklearn", "zarr", "pyarrow"}


def test_a_fit_without_a_client_loads_no_cluster(rows):
    seen = run_python(FIT_ALONE, rows)
    assert "dask.array" in seen["loaded"]
    assert not [name for name in seen["loaded"] if name.split(".")[0] in ("distributed", "tornado")]
    # What others on the machine take and give back meanwhile is little.
    assert seen["error"] < 0.2


def test_prediction_neither_loads_nor_compiles_the_trainers(tmp_path, rows):
    model = small_svc().fit(X, Y)
    model.save(tmp_path / "model.zarr")
    cache = tmp_path / "cache"
    code_and_paths = (LOAD_AND_PREDICT, tmp_path / "model.zarr", rows)
    seen = run_python(*code_and_paths, NUMBA_CACHE_DIR=str(cache))
    assert seen["labels"] == model.predict(X).tolist()
    assert not TRAINERS & set(seen["modules"])
    compiled = {file.name.split(".")[0] for file in cache.rglob("*.nbi")}
    assert compiled == {"decisions", "gram", "precision", "route"}


def test_the_trainers_are_modules():
    # A renamed module would make the test above pass whatever is loaded.
    assert all(map(find_spec, TRAINERS))


@pytest.mark.slow
def test_a_read_only_installation_compiles_once(tmp_path, rows):
    site, home = tmp_path / "site", tmp_path / "home"
    shutil.copytree(PACKAGE, site / "daskls", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (site / "daskls").rglob("*/"):
        # Permissions do not stop root; a file in the folder's place stops everyone.
        (folder / "__pycache__").touch()
    places = {"path": site, "cwd": tmp_path, "HOME": str(home)}
    first, second = (run_python(FIT_AND_COUNT, rows, **places) for _ in range(2))
    assert Path(first["home"]).is_relative_to(site)
    assert first["compiled"] > 0
    assert second["compiled"] == 0
    assert second["from_disk"] > 0
    assert list(home.rglob("*.nbi"))
