"""One cell of 2000 rows: CPU seconds of the whole model selection, beside the peers' solvers.

Each row is the best of some processes (`suite/apart.py`). daskls and liquidSVM search 10 x 10
candidates with 5 folds, 500 solves; the SVCs solve 9 points of the same grid, the first, fifth and
last of each axis, on four fifths of the rows, and their time is scaled to 500 solves.
"""

from functools import cache

import numpy as np

from benchmarks.peers import Data
from benchmarks.suite import PEAK, Experiment, Journal, Record, Run, grid, table
from benchmarks.suite.apart import run_peer
from benchmarks.suite.data import to_unit
from benchmarks.suite.figures import Figure, plt
from benchmarks.suite.tables import versions
from daskls.datasets import make_noisy28
from daskls.records import SolverSpec
from daskls.solvers.grid import resolve_grid

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
COLUMNS = f"""
method = method | {N_SOLVES} solves, CPU s = r.get('failure') or '%.2f' % all_solves(r)
/ liquidSVM's = all_solves(r) / all_solves(reference):.2f
solves measured = r.get('solves', N_SOLVES) if 'error' in r else '' | steps = steps
at step limit = at_limit | {PEAK} | test error % = 100 * error:.2f
"""


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
rows_of = cache(lambda toy: TOYS[toy]())


def picked_points(X: np.ndarray) -> list[tuple[float, float]]:
    radius = np.linalg.norm(X - X.mean(axis=0, dtype=float), axis=1).max()
    grid = resolve_grid(SolverSpec(), float(radius), *X.shape)
    return [(grid.costs[i], grid.gammas[j]) for i in PICKED for j in PICKED]


def measure(run: Run, toy: str, method: str) -> Record:
    (peer, params), data = METHODS[method], rows_of(toy)
    if peer == "svc corners":
        params = {**params, "points": picked_points(data.X)}
    data.save(run.folder / toy)
    limit_s = run.settings["limit_s"]
    runs = [run_peer(peer, run.folder / toy, params, limit_s) for _ in range(run.settings["runs"])]
    return min(runs, key=lambda run: run.get("train_cpu_s", np.inf))


def all_solves(record: Record) -> float:
    return float(record["train_cpu_s"] * N_SOLVES / record.get("solves", N_SOLVES))


def report(journal: Journal) -> str:
    found = {t: [r for m in METHODS if (r := journal.find(toy=t, method=m))] for t in TOYS}
    parts = [
        f"# One cell of {CELL_SIZE} rows\n",
        f"{journal.machine}; peers: {versions(r for own in found.values() for r in own)}\n",
        "One thread, CPU seconds, the best of some processes. daskls and liquidSVM: 10 x 10 "
        "candidates, 5 folds, selection included. The SVCs: 9 points of that grid (the first, "
        "fifth and last of each axis), one fold each, scaled to as many solves; their kernel "
        "matrices are not shared between the solves; they answer with the best of the points.\n",
    ]
    for toy, records in found.items():
        reference = journal.find(toy=toy, method="liquidSVM") or {}
        names = {"all_solves": all_solves, "N_SOLVES": N_SOLVES, "reference": reference}
        parts += [f"## {toy}\n", table(COLUMNS, records, **names)]
    return "\n".join(parts)


def draw(journal: Journal) -> Figure:
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
    return figure


EXPERIMENT = Experiment(
    grid(toy=TOYS, method=METHODS), measure, report, draw, settings={"runs": 3, "limit_s": 600}
)
