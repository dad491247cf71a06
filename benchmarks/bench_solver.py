"""One cell of 2000 rows: CPU seconds of the whole model selection, beside the peers' solvers.

Each row is the best of some processes (`peers.py`). daskls and liquidSVM search 10 x 10 candidates
with 5 folds, 500 solves; the SVCs solve 9 points of the same grid, the first, fifth and last of
each axis, on four fifths of the rows, and their time is scaled to 500 solves. Writes
``benchmarks/results/solver.jsonl``, ``.md`` and ``.png``; a run does what is missing. The
vector instructions of the compiled solver are counted on the way.

    python benchmarks/bench_solver.py [--again] [--runs 3]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from journal import Column, Journal, Record, table, versions
from measure import machine
from peers import Data, FitCell, run_peer
from real_sets import to_unit

from daskls.datasets import make_noisy28
from daskls.records import SolverSpec
from daskls.solvers.grid import resolve_grid

RESULTS = Path(__file__).parent / "results"
CELL_SIZE = 2000
N_TEST = 20_000
N_SOLVES = 500
# The first, fifth and last of ten values.
PICKED = (0, 4, 9)
METHODS = {
    "daskls": ("daskls cell", {}),
    "liquidSVM": ("liquidSVM", {}),
    "ThunderSVM": ("svc corners", {"library": "thundersvm"}),
    "scikit-learn SVC": ("svc corners", {"library": "scikit-learn"}),
    "sklearnex SVC": ("svc corners", {"library": "sklearnex"}),
}
INSTRUCTIONS = {
    "zmm": r"zmm",
    "ymm": r"ymm",
    "fused": r"^vfn?m(add|sub)\w*p[sd]\b",
    "vmaxps": r"^vmaxps\b",
    "vminps": r"^vminps\b",
    "vdivps": r"^vdivps\b",
    # A maximum over 64 bit integers does half as much an instruction as one over 32 bits.
    "vpmax 32": r"^vpmax[su]d\b",
    "vpmax 64": r"^vpmax[su]q\b",
}


# The toys


def mixture(d: int) -> Data:
    """Sixteen equal normal clusters, half of them of either class."""
    rng = np.random.default_rng(0)
    centers = 1.2 * rng.normal(size=(16, d))
    cluster = rng.integers(16, size=CELL_SIZE + N_TEST)
    return split(centers[cluster] + 0.7 * rng.normal(size=(len(cluster), d)), 1 - 2 * (cluster % 2))


def split(X: np.ndarray, y: np.ndarray) -> Data:
    train, test = to_unit(X[:CELL_SIZE], X[CELL_SIZE:])
    return Data(train, y[:CELL_SIZE], test, y[CELL_SIZE:])


TOYS = {
    "mixture, 8-d": lambda: mixture(8),
    "mixture, 4-d": lambda: mixture(4),
    "noisy28": lambda: split(*make_noisy28(CELL_SIZE + N_TEST)),
}


def picked_points(X: np.ndarray) -> list[tuple[float, float]]:
    radius = np.linalg.norm(X - X.mean(axis=0, dtype=float), axis=1).max()
    grid = resolve_grid(SolverSpec(), float(radius), *X.shape)
    return [(grid.costs[i], grid.gammas[j]) for i in PICKED for j in PICKED]


# One row


def measure(toy: str, method: str, data: Data, journal: Journal, args: argparse.Namespace) -> None:
    peer, params = METHODS[method]
    if peer == "svc corners":
        params = {**params, "points": picked_points(data.X)}
    python = sys.executable if method == "daskls" else args.peer_python
    with tempfile.TemporaryDirectory() as folder:
        data.save(Path(folder))
        runs = [run_peer(peer, Path(folder), params, args.limit, python) for _ in range(args.runs)]
    best = min(runs, key=lambda run: run.get("train_cpu_s", np.inf))
    journal.add({"toy": toy, "method": method, "machine": machine(), **best})
    print(toy, method, best, flush=True)


# The instructions


def compile_and_count() -> list[Record]:
    """Return the instructions of each function that a search compiled."""
    FitCell().fit(*make_noisy28(200))
    kernels = {name: m for name, m in sys.modules.items() if name.startswith("daskls.kernels.")}
    # By identity: a function is known to each module that imports it.
    compiled = {
        id(function): function
        for module in kernels.values()
        for function in vars(module).values()
        if hasattr(function, "inspect_asm")
    }
    return [
        {"name": f"{function.__module__}.{function.__name__}", **count(assembly)}
        for function in compiled.values()
        for assembly in function.inspect_asm().values()
    ]


def count(assembly: str) -> Counter[str]:
    # What is left without labels, directives and comments.
    lines = [line.strip() for line in assembly.splitlines()]
    code = [line for line in lines if line and not re.match(r"[.#]|\S+:", line)]
    found = Counter(dict.fromkeys(INSTRUCTIONS, 0) | {"all": len(code)})
    for kind, pattern in INSTRUCTIONS.items():
        found[kind] = sum(bool(re.search(pattern, line)) for line in code)
    return found


def instructions() -> list[Record]:
    """Count in a process that compiles: what is loaded from the cache has no assembly."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, __file__, "--instructions"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


# The report


def all_solves(record: Record) -> float:
    return float(record["train_cpu_s"] * N_SOLVES / record.get("solves", N_SOLVES))


def columns(reference: Record | None) -> list[Column]:
    seconds = all_solves(reference) if reference and "train_cpu_s" in reference else None
    return [
        ("method", lambda r: r["method"]),
        (f"{N_SOLVES} solves, CPU s", lambda r: r.get("failure") or f"{all_solves(r):.2f}"),
        ("/ liquidSVM's", lambda r: f"{all_solves(r) / seconds:.2f}" if seconds else ""),
        ("solves measured", lambda r: r.get("solves", N_SOLVES) if "error" in r else ""),
        ("steps", lambda r: r["steps"]),
        ("at step limit", lambda r: r["at_limit"]),
        ("peak MiB (before)", lambda r: f"{r['peak_mib']:.0f} ({r['before_mib']:.0f})"),
        ("test error %", lambda r: f"{100 * r['error']:.2f}"),
    ]


def latest(journal: Journal, toy: str) -> list[Record]:
    found = (journal.find(toy=toy, method=method) for method in METHODS)
    return [record for record in found if record is not None]


def write_table(journal: Journal, path: Path) -> None:
    every = [r for toy in TOYS for r in latest(journal, toy)]
    parts = [
        f"# One cell of {CELL_SIZE} rows\n",
        f"{every[-1]['machine']}; peers: {versions(every)}\n",
        "One thread, CPU seconds, the best of some processes. daskls and liquidSVM: 10 x 10 "
        "candidates, 5 folds, selection included. The SVCs: 9 points of that grid (the first, "
        "fifth and last of each axis), one fold each, scaled to as many solves; their kernel "
        "matrices are not shared between the solves; they answer with the best of the points.\n",
    ]
    for toy in TOYS:
        shown = columns(journal.find(toy=toy, method="liquidSVM"))
        parts += [f"## {toy}\n", table(shown, latest(journal, toy))]
    names = ["all", *INSTRUCTIONS]
    parts += [
        "## Instructions of the compiled solver\n",
        "Lines of assembly of each function that the search compiled: those with a 512 or 256 bit "
        "register, and those of some kinds at any width; fused are packed multiply-adds.\n",
        table(
            [("function", lambda r: f"`{r['name']}`")]
            + [(name, lambda r, name=name: r[name]) for name in names],
            instructions(),
        ),
    ]
    path.write_text("\n".join(parts))


def draw(journal: Journal, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(8, 4.5))
    width = 0.8 / len(METHODS)
    for i, method in enumerate(METHODS):
        found = [journal.find(toy=toy, method=method) or {} for toy in TOYS]
        seconds = [all_solves(r) if "train_cpu_s" in r else np.nan for r in found]
        bars = axes.bar(np.arange(len(TOYS)) + i * width, seconds, width, label=method)
        axes.bar_label(bars, fmt="%.3g", fontsize=7)
    axes.set_xticks(np.arange(len(TOYS)) + 0.4 - width / 2, list(TOYS))
    axes.set(yscale="log", ylabel=f"CPU seconds of {N_SOLVES} solves")
    axes.set_title(f"Model selection in one cell of {CELL_SIZE} rows")
    axes.legend(fontsize=7, ncols=len(METHODS), loc="upper center")
    axes.margins(y=0.12)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--runs", type=int, default=3, help="processes, of which the best counts")
    parser.add_argument("--limit", type=float, default=600, help="seconds of one process")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--peer-python", default=os.environ.get("PEER_PYTHON", sys.executable))
    parser.add_argument("--instructions", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.instructions:
        print(json.dumps(compile_and_count()))
        return
    journal = Journal(args.results / "solver.jsonl")
    for toy, make in TOYS.items():
        data = make()
        for method in args.methods:
            if args.again or not journal.is_done(toy=toy, method=method):
                measure(toy, method, data, journal, args)
    write_table(journal, args.results / "solver.md")
    draw(journal, args.results / "solver.png")


if __name__ == "__main__":
    main()
