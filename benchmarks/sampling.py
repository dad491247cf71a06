"""LocalSamplingSVC and NeighborSamplingSVC beside the SVM of all rows: error, rows and CPU seconds.

As tables 5 and 7 of the paper: ijcnn1, and covtype cut to 100,000 training rows. One process, one
thread. With each of ten seeds every radius (or round) is trained, also those beyond the one where
the search would stop; the table marks what the search chooses.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite.data import Data, loaded, scaled
from benchmarks.suite.figures import Figure, plt
from benchmarks.suite.searches import chosen, trace
from daskls import LocalSamplingSVC, NeighborSamplingSVC

# Labels of points nearer than this would cover each other.
LABEL_PIXELS = 24
# The kernel and C of the paper.
SETS = {"ijcnn1": {"C": 10.0, "gamma": 0.1}, "covtype": {"C": 10.0, "gamma": 5.0}}
# Radii, or rounds, that are tried.
N_STEPS = {"ijcnn1": {"local sampling": 14, "CGLQ": 8}, "covtype": {"local sampling": 8, "CGLQ": 6}}
METHODS: dict[str, Callable[..., Any]] = {
    "local sampling": LocalSamplingSVC,
    "CGLQ": NeighborSamplingSVC,
}
COLUMNS = """
set = set | method = method | beta or round = step | seeds = n_seeds
error / SVC's = mean_of(ratio, 3) | rows = mean_of(n_rows, 0) | support rows = mean_of(n_support, 0)
% of SVC's CPU = mean_of([100 * part for part in share], 1)
"""


@lru_cache(maxsize=1)
def rows_of(name: str) -> Data:
    return loaded(name) if name == "ijcnn1" else scaled(name).first(100_000)


def keys(run: Run) -> Iterator[Record]:
    for name in SETS:
        yield {"set": name, "method": "SVC"}
        for seed in range(run.settings["seeds"]):
            yield from ({"set": name, "method": method, "seed": seed} for method in METHODS)


def measure(run: Run, set: str, method: str, seed: int | None = None) -> Record:
    data = rows_of(set)
    with threadpool_limits(1):
        if seed is None:
            return whole(data, SETS[set])
        model = METHODS[method](random_state=seed, **SETS[set])
        return trace(model, data, N_STEPS[set][method])


def whole(data: Data, params: dict[str, float]) -> Record:
    """Train scikit-learn's SVC on all rows."""
    svc, fit_s = cpu_of(lambda: SVC(cache_size=2000, **params).fit(data.X, data.y))
    error = float(np.mean(svc.predict(data.X_test) != data.y_test))
    n_support = len(svc.support_)
    return {"error": error, "fit_cpu_s": fit_s, "n_support": n_support, "n_rows": len(data.X)}


def steps(journal: Journal) -> list[Record]:
    """Return a record a set, method and step: means and deviations over the seeds."""
    found = []
    for name in SETS:
        svc = journal.find(set=name, method="SVC")
        for method in METHODS if svc else ():
            own = journal.latest("seed", set=name, method=method)
            for value in sorted({v for r in own for v in r["values"]}):
                at = [(r, r["values"].index(value)) for r in own if value in r["values"]]
                shares = [share(r, i, svc) for r, i in at]
                row = _row(f"{value:g}", at, shares, svc)
                found.append({"set": name, "method": method, "value": value, **row})
            if own:
                found.append({"set": name, "method": method, **_choice(own, svc)})
    return found


def _row(step: str, at: list[tuple[Record, int]], shares: list[float], svc: Record) -> Record:
    """Return what the table tells of a step of each seed's record."""
    return {
        "step": step,
        "n_seeds": len(at),
        "ratio": [r["errors"][i] / svc["error"] for r, i in at],
        "n_rows": [r["n_rows"][i] for r, i in at],
        "n_support": [r["n_support"][i] for r, i in at],
        "share": shares,
    }


def share(r: Record, i: int, svc: Record) -> float:
    """Return the CPU seconds that a step needs, by those of the SVC."""
    seconds = r["step_cpu_s"]
    if r["method"] == "CGLQ":
        # A round needs those before it,
        return sum(seconds[: i + 1]) / svc["fit_cpu_s"]
    # and a radius needs what comes before the first one, about.
    return (seconds[i] + (seconds[0] if i else 0.0)) / svc["fit_cpu_s"]


def _choice(own: list[Record], svc: Record) -> Record:
    picks = [(r, *chosen(r["validation_error"], r["method"] == "CGLQ")) for r in own]
    text = "searched: " + ", ".join(f"{r['values'][i]:g}" for r, _, i in picks)
    shares = [sum(r["step_cpu_s"][: stop + 1]) / svc["fit_cpu_s"] for r, stop, _ in picks]
    return _row(text, [(r, i) for r, _, i in picks], shares, svc)


def report(journal: Journal) -> str:
    lines = [
        f"{name}: {r['n_rows']:,} rows, {r['n_support']:,} support rows, error "
        f"{100 * r['error']:.2f} %, {r['fit_cpu_s']:.1f} CPU s."
        for name in SETS
        if (r := journal.find(set=name, method="SVC"))
    ]
    return (
        "# SVMs on samples around support rows, beside the SVM of all rows\n\n"
        f"{journal.machine}; one process, one thread. Means and standard deviations over the "
        "seeds.\n\n"
        + table(COLUMNS, steps(journal))
        + "\nscikit-learn's SVC on all rows: "
        + " ".join(lines)
        + " The share of a radius is that of a fit with this radius given, of a round that of all "
        "rounds up to it; that of a search is of all that it trains. The paper, 10 runs: local "
        "sampling 1.02 on ijcnn1 (10 % of the time), 1.22 on covtype (28 %, other rows); CGLQ 1.29 "
        "(5 %) and 1.22 (31 %).\n"
    )


def draw(journal: Journal) -> Figure:
    """Plot the error ratio against the share of CPU seconds, a panel a set."""
    found = [r for r in steps(journal) if "value" in r]
    names = list(dict.fromkeys(r["set"] for r in found))
    figure, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4), squeeze=False)
    points: list[tuple[Any, ...]] = []
    for ax, name in zip(axes[0], names, strict=True):
        for method, color in zip(METHODS, ("tab:blue", "tab:orange"), strict=True):
            own = [r for r in found if (r["set"], r["method"]) == (name, method)]
            if own:
                x = [100 * np.mean(r["share"]) for r in own]
                ratios = [r["ratio"] for r in own]
                mean, deviation = [np.mean(r) for r in ratios], [np.std(r) for r in ratios]
                ax.errorbar(x, mean, deviation, color=color, marker="o", ms=4, label=method)
                points.append((ax, [r["step"] for r in own], x, mean, color))
        ax.axhline(1.0, color="0.5", lw=0.8)
        ax.set(title=name, xlabel="% of the CPU seconds of scikit-learn's SVC on all rows")
        ax.set_ylabel("test error / that of the SVC")
        ax.legend(title="labels: beta, or round")
    figure.tight_layout()
    figure.canvas.draw()
    for own in points:
        label(*own)
    return figure


def label(ax: Any, texts: list[str], x: list[float], y: list[float], color: str) -> None:
    """Write what points are beside those that are apart from the last one with a label."""
    last = np.full(2, -np.inf)
    for text, point in zip(texts, np.column_stack([x, y]), strict=True):
        at = ax.transData.transform(point)
        if np.abs(at - last).max() > LABEL_PIXELS:
            # One method's labels above its points, the other's below.
            down = color == "tab:orange"
            where = {"xytext": (0, -13 if down else 6), "textcoords": "offset points"}
            ax.annotate(text, point, color=color, ha="right" if down else "left", **where)
            last = at


EXPERIMENT = Experiment(
    keys,
    measure,
    report,
    draw,
    warm=lambda: [make(0.2) for make in METHODS.values()],
    settings={"seeds": 10},
    dpi=110,
)
