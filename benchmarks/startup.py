"""What a process pays before its first row: imports, and compilation with and without a cache.

Each line is the best of some fresh processes. "Empty cache" is the first process on a machine;
"warm" is every later one.
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.suite import Experiment, Record, Run, grid, page
from benchmarks.suite.measure import Cost, measured
from daskls import VoronoiSVC
from daskls.datasets import make_noisy28

N_RUNS = 3
IMPORTS = {
    "python": "pass",
    "import daskls": "import daskls",
    "import sklearn.base, zarr, dask.array, numba": "import sklearn.base, zarr, dask.array, numba",
    "from daskls import VoronoiSVC": "from daskls import VoronoiSVC",
}
DRAW = "import sys, daskls\nfrom daskls.datasets import make_noisy28\nX, y = make_noisy28(1000)\n"
WORK = {
    code: DRAW + code
    for code in (
        "daskls.load(sys.argv[1])",
        "daskls.load(sys.argv[1]).predict(X)",
        "daskls.VoronoiSVC().fit(X, y)",
        "daskls.VoronoiSVC().fit(X, y).predict(X)",
        'daskls.VoronoiSVC(loss="hinge", feature_scale=None, C=1, gamma=1).fit(X, y)',
    )
}
COLUMNS = "a process that runs = f'`{code}`' | kernels on disk = kernels | CPU s = cpu_s:.2f | "
COLUMNS += "wall s = wall_s:.2f"
TEXT = f"{{machine}}; best of {N_RUNS}"


def measure(run: Run, code: str, kernels: str) -> Record:
    """Return what the cheapest process took."""
    model, caches = run.folder / "model.zarr", [run.folder / "cache"] * N_RUNS
    if not model.exists():
        VoronoiSVC(random_state=0).fit(*make_noisy28(1000)).save(model)
    text = {**IMPORTS, **WORK}[code]
    if kernels == "empty":
        caches = [run.folder / f"{list(WORK).index(code)}-{i}" for i in range(N_RUNS)]
    else:
        fresh(text, model, caches[0])
    best = min((fresh(text, model, cache) for cache in caches), key=lambda cost: cost.cpu_s)
    return {"cpu_s": best.cpu_s, "wall_s": best.wall_s}


def fresh(code: str, model: Path, cache: Path) -> Cost:
    """Return the cost of one new process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    # A user's interpreter keeps the bytecode of what it imported.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with measured() as cost:
        subprocess.run([sys.executable, "-c", code, str(model)], env=environment, check=True)
    return cost


EXPERIMENT = Experiment(
    grid(code=IMPORTS, kernels=[""]) + grid(code=WORK, kernels=("empty", "warm")),
    measure,
    page("What a process pays before its first row", TEXT, COLUMNS, "code kernels"),
)
