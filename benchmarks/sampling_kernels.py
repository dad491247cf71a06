"""Samples around support rows with three kernels on ijcnn1, as tables 4 and 5 of their paper.

Linear, polynomial (homogeneous, degree 3) and RBF kernels, C and gamma of table 4; subsamples of
2 % of the rows. LocalSamplingSVC at one radius after the other and NeighborSamplingSVC round by
round, beside scikit-learn's SVC of all rows and the paper's numbers. One process, one thread.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.sampling import share
from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, grid, table
from benchmarks.suite.data import Data, by_deviation, loaded
from benchmarks.suite.searches import chosen, trace
from benchmarks.suite.tables import mean_of
from daskls import LocalSamplingSVC, NeighborSamplingSVC

rows_of = cache(loaded)
# Table 4.
KERNELS: dict[str, Record] = {
    "linear": {"kernel": "linear", "C": 5.0},
    "polynomial": {"kernel": "poly", "degree": 3, "C": 0.1, "gamma": 0.5},
    "radial basis": {"kernel": "rbf", "C": 10.0, "gamma": 0.1},
}
# With 20 subsamples, 5 neighbors.
METHODS: dict[str, Any] = {"local sampling": LocalSamplingSVC, "CGLQ": NeighborSamplingSVC}
N_STEPS = {"local sampling": 8, "CGLQ": 5}
SHOWN = {"local sampling": (0.2, 0.4, 0.8), "CGLQ": (1, 3, 5)}
# Support rows, error and seconds of the SVM of all rows.
PAPER_SVC = {
    "linear": (8577, 0.078, 63.99),
    "polynomial": (9377, 0.071, 62.5),
    "radial basis": (5731, 0.028, 63.45),
}
# Support rows: initial, final, real, these as % of all; error and deviation, ratio, % of the time.
PAPER = {
    "local sampling": {
        "linear": (347, 834, 711, 8.29, 0.069, 0.002, 0.89, 3.09),
        "polynomial": (503, 407, 317, 3.38, 0.06, 0.008, 0.85, 3.48),
        "radial basis": (395, 1055, 610, 10.64, 0.028, 0.001, 1.02, 9.82),
    },
    "CGLQ": {
        "linear": (180, 673, 607, 7.07, 0.068, 0.005, 0.87, 3.68),
        "polynomial": (263, 295, 235, 2.5, 0.07, 0.01, 1.08, 1.23),
        "radial basis": (197, 394, 234, 4.09, 0.036, 0.0008, 1.29, 4.78),
    },
}
SVC_COLUMNS = """
kernel = kernel | support rows = support:, | the paper's = paper[0]:, | error % = 100 * error:.2f
the paper's = 100 * paper[1]:.1f | CPU s = fit_cpu_s:.1f | the paper's s = paper[2]
"""
FEATURES = ("as they are", "mean 0, deviation 1")
FEW = grid(kernel=["polynomial"], method=["SVC of few rows"], features=FEATURES, rows=[1000, 5000])
FEW_COLUMNS = """
features = features | rows = rows:, | support rows = support:, | error % = 100 * error:.2f
"""
COLUMNS = """
kernel = kernel | method = method | beta or round = step | initial = initial | final = final
real = real | % of full = full | error % = error | less the paper's = less
error / SVC's = ratio | % of SVC's CPU = share
"""


def keys(run: Run) -> Iterator[Record]:
    for kernel in KERNELS:
        yield {"kernel": kernel, "method": "SVC"}
        for seed in range(run.settings["seeds"]):
            yield from ({"kernel": kernel, "method": m, "seed": seed} for m in METHODS)
    yield from FEW


def measure(run: Run, kernel: str, method: str, seed: int | None = None, **few: Any) -> Record:
    if few:
        return of_few(kernel, **few)
    svc, found = whole(kernel)
    if seed is None:
        return found
    model = METHODS[method](sample_fraction=0.02, random_state=seed, **KERNELS[kernel])
    with threadpool_limits(1):
        return trace(model, rows_of("ijcnn1"), N_STEPS[method], svc.support_)


@cache
def whole(kernel: str) -> tuple[SVC, Record]:
    """Train scikit-learn's SVC on all rows."""
    return svc_of(kernel, rows_of("ijcnn1"))


def svc_of(kernel: str, data: Data) -> tuple[SVC, Record]:
    svc, fit_s = cpu_of(lambda: SVC(cache_size=2000, **KERNELS[kernel]).fit(data.X, data.y))
    error = float(np.mean(svc.predict(data.X_test) != data.y_test))
    return svc, {"error": error, "fit_cpu_s": fit_s, "support": len(svc.support_)}


def of_few(kernel: str, features: str, rows: int) -> Record:
    """Train scikit-learn's SVC on a few drawn rows."""
    data = rows_of("ijcnn1")
    drawn = np.random.default_rng(0).permutation(len(data.X))[:rows]
    data = data._replace(X=data.X[drawn], y=data.y[drawn])
    if features != FEATURES[0]:
        X, X_test = by_deviation(data.X, data.X_test)
        data = data._replace(X=X - X.mean(axis=0), X_test=X_test - X.mean(axis=0))
    return svc_of(kernel, data)[1]


# The report


def svcs(journal: Journal) -> list[Record]:
    found = [journal.find(kernel=kernel, method="SVC") for kernel in KERNELS]
    return [{**r, "paper": PAPER_SVC[r["kernel"]]} for r in found if r]


def rows(journal: Journal) -> Iterator[Record]:
    """Yield what the table tells of each kernel, method and step, the paper's last."""
    for svc in svcs(journal):
        for method in METHODS:
            about = {"kernel": svc["kernel"], "method": method}
            if own := journal.latest("seed", **about):
                for value in SHOWN[method]:
                    at = [(r, r["values"].index(value)) for r in own if value in r["values"]]
                    if at:
                        yield {**about, "step": f"{value:g}", **row(at, costs_of(at, svc), svc)}
                yield {**about, **choice(own, svc)}
            yield {**about, **papers(*PAPER[method][svc["kernel"]])}


def costs_of(at: list[tuple[Record, int]], svc: Record) -> list[float]:
    return [share(r, i, svc) for r, i in at]


def choice(own: list[Record], svc: Record) -> Record:
    """Return the row of what the search chooses, which costs all that it trains."""
    picks = [(r, *chosen(r["validation_error"], r["method"] == "CGLQ")) for r in own]
    text = "searched: " + ", ".join(f"{r['values'][i]:g}" for r, _, i in picks)
    costs = [sum(r["step_cpu_s"][: stop + 1]) / svc["fit_cpu_s"] for r, stop, _ in picks]
    return {"step": text, **row([(r, i) for r, _, i in picks], costs, svc)}


def row(at: list[tuple[Record, int]], costs: list[float], svc: Record) -> Record:
    errors = [r["errors"][i] for r, i in at]
    real = [r["n_real"][i] for r, i in at]
    paper = PAPER[at[0][0]["method"]][svc["kernel"]][4]
    return {
        "initial": mean_of([r["n_initial_support"] for r, _ in at], 0),
        "final": mean_of([r["n_support"][i] for r, i in at], 0),
        "real": mean_of(real, 0),
        "full": f"{100 * np.mean(real) / svc['support']:.1f}",
        "error": mean_of([100 * error for error in errors], 2),
        "less": f"{100 * (np.mean(errors) - paper):+.1f}",
        "ratio": f"{np.mean(errors) / svc['error']:.2f}",
        "share": mean_of([100 * cost for cost in costs], 1),
    }


def papers(*numbers: float) -> Record:
    """Return the paper's row; its beta is 0.2, its round is not told."""
    initial, final, real, full, error, deviation, ratio, time = numbers
    return {
        "step": "the paper",
        "initial": initial,
        "final": f"{final:,}",
        "real": real,
        "full": f"{full:.1f}",
        "error": f"{100 * error:.1f} ± {100 * deviation:.1f}",
        "ratio": f"{ratio:.2f}",
        "share": f"{time:.1f}",
    }


def report(journal: Journal) -> str:
    n_seeds = len(journal.latest("seed", method="CGLQ", kernel="linear"))
    return (
        "# Samples around support rows, three kernels\n\n"
        f"`benchmarks/sampling_kernels.py`, {journal.machine}; one process, one thread, beside "
        f"other work. ijcnn1 as it is, 91,701 test rows (the paper: 15,000). Means and deviations "
        f"of {n_seeds} seeds (the paper: 10 runs). Support rows of the subsamples (initial), of "
        "the last SVM (final), and those of them that the SVC of all rows has too (real), these "
        "in % of that SVC's. The share of a radius is that of a fit with this radius given, of a "
        "round that of all rounds up to it; that of a search is of all that it trains. The "
        "paper's beta is 0.2 with every kernel, its number of rounds is not told, its time is "
        "that of the search.\n\n"
        "## The SVC of all rows\n\n"
        + table(SVC_COLUMNS, svcs(journal))
        + "\n## Samples\n\n"
        + table(COLUMNS, rows(journal))
        + "\n## The polynomial kernel on few rows\n\n"
        "scikit-learn's SVC on drawn rows. As the features are, it predicts the larger class "
        "(9.5 % are of the other) nearly everywhere, as samples of as many rows do above; the "
        "paper's errors and support rows of its samples are nearer to those of scaled features, "
        "those of all rows are of features as they are.\n\n"
        + table(FEW_COLUMNS, filter(None, (journal.find(**key) for key in FEW)))
    )


EXPERIMENT = Experiment(
    keys,
    measure,
    report,
    warm=lambda: [make(0.2, **p) for make in METHODS.values() for p in KERNELS.values()],
    settings={"seeds": 5},
)
