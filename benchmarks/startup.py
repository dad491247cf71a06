"""What a process pays before its first row: imports, and compilation with and without a cache.

Each line is the best of some fresh processes. "Empty cache" is the first process on a machine;
"warm" is every later one. Writes ``benchmarks/results/startup.md``.

    python benchmarks/startup.py
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Cost, machine, measured

from daskls import VoronoiSVC
from daskls.datasets import make_noisy28

RESULTS = Path(__file__).parent / "results"
N_RUNS = 3

IMPORTS = {
    "python": "pass",
    "import daskls": "import daskls",
    "import sklearn.base, zarr, dask.array, numba": "import sklearn.base, zarr, dask.array, numba",
    "from daskls import VoronoiSVC": "from daskls import VoronoiSVC",
}
DRAW = "from daskls.datasets import make_noisy28\nX, y = make_noisy28(400)\n"
WORK = {
    "daskls.load(model).predict(X)": (
        f"import sys, daskls\n{DRAW}daskls.load(sys.argv[1]).predict(X)"
    ),
    "VoronoiSVC().fit(X, y).predict(X)": (
        f"from daskls import VoronoiSVC\n{DRAW}VoronoiSVC(200, C=1, gamma=1).fit(X, y).predict(X)"
    ),
}


def run(code: str, model: Path, cache: Path) -> Cost:
    """Return the cost of one fresh process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    # A user's interpreter keeps the bytecode of what it imported.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with measured() as cost:
        subprocess.run([sys.executable, "-c", code, str(model)], env=environment, check=True)
    return cost


def best(costs: list[Cost]) -> str:
    """Return CPU and wall seconds of the cheapest process as two columns."""
    cheapest = min(costs, key=lambda cost: cost.cpu_s)
    return f"{cheapest.cpu_s:.2f} | {cheapest.wall_s:.2f} |"


def rows(model: Path, folder: Path) -> list[str]:
    """Return the lines of the table."""
    cache = folder / "cache"
    lines = []
    for name, code in IMPORTS.items():
        run(code, model, cache)
        lines.append(f"| `{name}` | | {best([run(code, model, cache) for _ in range(N_RUNS)])}")
        print(lines[-1], flush=True)
    for name, code in WORK.items():
        empty = best([run(code, model, folder / f"{len(lines)}-{i}") for i in range(N_RUNS)])
        run(code, model, cache)
        warm = best([run(code, model, cache) for _ in range(N_RUNS)])
        lines += [f"| `{name}` | empty | {empty}", f"| `{name}` | warm | {warm}"]
        print(*lines[-2:], sep="\n", flush=True)
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.zarr"
        VoronoiSVC(200, C=1, gamma=1, random_state=0).fit(*make_noisy28(400)).save(model)
        lines = rows(model, Path(folder))
    header = "| a process that runs | kernels on disk | CPU s | wall s |\n|---|---|---|---|"
    text = f"# What a process pays before its first row\n\n{machine()}; best of {N_RUNS}\n\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "startup.md").write_text("\n".join([text + header, *lines]) + "\n")


if __name__ == "__main__":
    main()
