"""Random landmarks against principal components, as figure 4 of the L3-SVMs paper.

A fifth of MNIST's rows, 100 clusters; for each number of landmarks the best of three C.
"""

from benchmarks.landmarks import rows_of, timed
from benchmarks.suite import Experiment, Journal, Record, Run, grid, page
from benchmarks.suite.figures import Figure, plt
from daskls import LandmarkSVC

COUNTS = (5, 10, 20, 50, 100, 200, 400, 784)
# The best C falls as the projections grow.
COSTS = {"random": (1e-6, 1e-5, 1e-4), "pca": (1e-4, 1e-3, 1e-2)}
COLUMNS = """
landmarks = n_landmarks | kind = method | accuracy % = accuracy:.2f | fit, CPU s = fit_s:.1f
predict, CPU s = predict_s:.2f
"""
TEXT = "{machine}; one thread, 12,000 training rows, 100 clusters, the best of three C."


def measure(run: Run, method: str, n_landmarks: int) -> Record:
    given = {"n_landmarks": n_landmarks, "landmarks": method, "random_state": 0}
    data = rows_of("mnist").first(12_000)
    found = [timed(LandmarkSVC(100, C=C, **given), data) for C in COSTS[method]]
    return max(found, key=lambda r: r["accuracy"])


def draw(journal: Journal) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for kind, color in (("random", "#1f5a99"), ("pca", "#c8501e")):
        own = [journal.find(method=kind, n_landmarks=n) for n in COUNTS]
        for ax, field in zip(axes, ("accuracy", "fit_s"), strict=True):
            ax.plot(COUNTS, [r[field] for r in own if r], "o-", color=color, label=kind)
    axes[0].set(xlabel="landmarks", ylabel="test accuracy, %", xscale="log")
    axes[1].set(xlabel="landmarks", ylabel="fit at one C, CPU s", xscale="log")
    axes[0].legend()
    figure.suptitle("MNIST, 12,000 training rows, 100 clusters, the best of three C")
    return figure


EXPERIMENT = Experiment(
    grid(n_landmarks=COUNTS, method=COSTS),
    measure,
    page("Landmarks of MNIST", TEXT, COLUMNS, "n_landmarks method"),
    draw,
    dpi=100,
)
