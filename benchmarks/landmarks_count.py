"""Random landmarks against principal components, as figure 4 of the L3-SVMs paper.

A fifth of MNIST's rows, 100 clusters; for each number of landmarks the best of three C. The
seconds of selection are those of all 60,000 training rows, as the paper's.
"""

import numpy as np

from benchmarks.landmarks import rows_of, timed
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, grid, page
from benchmarks.suite.figures import Figure, plt
from daskls import LandmarkSVC
from daskls.kernels.landmarks import Normalization
from daskls.solvers.landmarks import draw_landmarks, find_components

COUNTS = (5, 10, 20, 50, 100, 200, 400, 784)
# The best C falls as the projections grow.
COSTS = {"random": (1e-6, 1e-5, 1e-4), "pca": (1e-4, 1e-3, 1e-2)}
COLUMNS = """
landmarks = n_landmarks | kind = method | accuracy % = accuracy:.2f
selection, CPU s = selection_s:.2f
fit, CPU s = fit_s:.1f | predict, CPU s = predict_s:.2f
"""
TEXT = (
    "{machine}; one thread, 12,000 training rows, 100 clusters, the best of three C. Selection: of "
    "all 60,000 rows."
)


def measure(run: Run, method: str, n_landmarks: int, part: str = "fit") -> Record:
    if part == "selection":
        X = rows_of("mnist").X
        return {"selection_s": cpu_of(lambda: select(X, method, n_landmarks))[1]}
    given = {"n_landmarks": n_landmarks, "landmarks": method, "random_state": 0}
    data = rows_of("mnist").first(12_000)
    found = [timed(LandmarkSVC(100, C=C, **given), data) for C in COSTS[method]]
    return max(found, key=lambda r: r["accuracy"])


def select(X: np.ndarray, method: str, n_landmarks: int) -> np.ndarray:
    """Return landmarks of some rows."""
    if method == "random":
        return draw_landmarks(X, Normalization(X.mean(axis=0, dtype=float), 1.0), n_landmarks, (0,))
    return find_components(X, Normalization(X.mean(axis=0, dtype=float), 1.0), n_landmarks)[0]


def rows(journal: Journal) -> list[Record]:
    """Return the records of fits, with the seconds of selection."""
    selections = journal.where(part="selection")
    seconds = {(r["method"], r["n_landmarks"]): r["selection_s"] for r in selections}
    fits = [r for r in journal.latest("n_landmarks", "method", "part") if "accuracy" in r]
    return [r | {"selection_s": seconds.get((r["method"], r["n_landmarks"]), "")} for r in fits]


def draw(journal: Journal) -> Figure:
    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    for kind, color in (("random", "#1f5a99"), ("pca", "#c8501e")):
        own = sorted(
            (r for r in rows(journal) if r["method"] == kind), key=lambda r: r["n_landmarks"]
        )
        counts = [r["n_landmarks"] for r in own]
        for ax, field in zip(axes, ("accuracy", "fit_s", "selection_s"), strict=True):
            ax.plot(counts, [r[field] or np.nan for r in own], "o-", color=color, label=kind)
    axes[0].set(xlabel="landmarks", ylabel="test accuracy, %", xscale="log")
    axes[1].set(xlabel="landmarks", ylabel="fit at one C, CPU s", xscale="log")
    axes[2].set(xlabel="landmarks", ylabel="selection of landmarks, CPU s", xscale="log")
    axes[0].legend()
    figure.suptitle("MNIST, 12,000 training rows, 100 clusters, the best of three C")
    return figure


EXPERIMENT = Experiment(
    [
        *grid(n_landmarks=COUNTS, method=COSTS),
        *grid(n_landmarks=COUNTS, method=COSTS, part=["selection"]),
    ],
    measure,
    page("Landmarks of MNIST", TEXT, COLUMNS, rows),
    draw,
    dpi=100,
)
