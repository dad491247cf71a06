"""Excess risk of VoronoiSVC on the 2017 paper's two Gaussians as n grows, beside its rate.

Figure 2 of Thomann et al., AISTATS 2017: dimensions 4, 8 and 16, dashed the rate n^(-2 / (3 + d))
scaled to the first point. As there, cells shrink as theorem 3.2 says: a radius of n^(-1 / (3 + d))
leaves a cell a share n^(3 / (3 + d)) of the rows, so ``cell_size`` grows by that power.
"""

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np

from benchmarks.suite import Experiment, Journal, Record, Run, page
from benchmarks.suite.figures import Figure, plt
from benchmarks.suite.papers import PaperSVC
from benchmarks.suite.sets import RISKS, TwoGaussians

DIMENSIONS = (4, 8, 16)
SMALLEST = 1000
N_TEST = 200_000
N_RUNS = 20
COLUMNS = """
d = d | n = rows | cell_size = cell_size | excess risk (mean) = mean:.5f
deviation = deviation:.5f | slope so far = slope:.3f | paper's rate = rate:.3f
"""


def cell_size(d: int, n: int) -> int:
    """Return the theorem's rows of a cell; all rows at `SMALLEST`."""
    return round(SMALLEST * (n / SMALLEST) ** (3 / (3 + d)))


def keys(run: Run) -> Iterator[Record]:
    for i in range(8):
        for d in DIMENSIONS if SMALLEST << i <= run.settings["largest"] else ():
            yield from ({"d": d, "rows": SMALLEST << i, "run": j} for j in range(N_RUNS))


def measure(this: Run, d: int, rows: int, run: int) -> Record:
    X, y = TwoGaussians(d).rows(0, rows, 1 + run)
    X_test, y_test = TwoGaussians(d).rows(0, N_TEST, 10_001 + run)
    model = PaperSVC(cell_size=cell_size(d, rows), random_state=run).fit(X, y)
    error = float(np.mean(model.predict(X_test) != y_test))
    return {"excess": error - RISKS[d]}


def line(journal: Journal, d: int) -> list[Record]:
    """Return a record a number of rows: the mean of the runs, and the slope up to there."""
    found: list[Record] = []
    for n in sorted({r["rows"] for r in journal.where(d=d)}):
        risks = [r["excess"] for r in journal.latest("run", d=d, rows=n)]
        own = {"d": d, "rows": n, "cell_size": cell_size(d, n), "rate": -2 / (3 + d)}
        own |= {"mean": np.mean(risks), "deviation": np.std(risks, ddof=1)}
        found.append(own)
        if len(found) > 1:
            logs = np.log([[r["rows"], r["mean"]] for r in found])
            own["slope"] = np.polyfit(logs[:, 0], logs[:, 1], 1)[0]
    return found


def draw(journal: Journal) -> Figure:
    figure, axes = plt.subplots(figsize=(7, 5))
    for d, color in zip(DIMENSIONS, ("C0", "C1", "C2"), strict=True):
        if own := line(journal, d):
            sizes = np.array([r["rows"] for r in own])
            mean = np.array([r["mean"] for r in own])
            deviation = [r["deviation"] for r in own]
            style = {"fmt": "o-", "color": color, "capsize": 3, "label": f"d = {d}"}
            axes.errorbar(sizes, mean, deviation, **style)
            axes.plot(sizes, mean[0] * (sizes / sizes[0]) ** own[0]["rate"], "--", color=color)
    axes.set(xscale="log", yscale="log", xlabel="training rows", ylabel="excess risk")
    axes.set_title("Two Gaussians: excess risk, and the paper's rate (dashed)")
    axes.legend()
    figure.tight_layout()
    return figure


EXPERIMENT = Experiment(
    keys,
    measure,
    page(
        "Excess risk on two Gaussians",
        f"{{machine}}; {N_RUNS} runs, as the paper, {N_TEST} test rows",
        COLUMNS,
        lambda journal: [record for d in DIMENSIONS for record in line(journal, d)],
    ),
    draw,
    place=nullcontext,
    settings={"largest": 32_000},
)
