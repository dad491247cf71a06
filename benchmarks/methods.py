"""All methods on the same five sets: error, training, prediction a row, size of the model.

One process a measurement, one thread. Features in [0, 1]; for the linear methods (LandmarkSVC,
LinearSVC) of standard deviation 1. Methods with a grid of their own use it; the others share one C
and gamma a set, found for scikit-learn's SVC with 3 folds of 3000 rows. What takes more than
`LIMIT_S` CPU seconds is stopped and left out; prediction is measured on as many rows as fit into
`PREDICT_S`. Rows that are done are kept in ``benchmarks/results/methods.jsonl``, from which
``methods.md`` and ``.png`` are drawn. The sets are read from the folder in DASKLS_DATA.

    python benchmarks/methods.py [--sets ijcnn1 ...] [--methods VoronoiSVC ...]
    python benchmarks/methods.py --draw    # measure nothing
"""

import argparse
import contextlib
import math
import multiprocessing
import pickle
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from journal import TOO_SLOW, Column, Journal, Record, table
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from measure import machine
from real_sets import scaled
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import daskls

RESULTS = Path(__file__).parent / "results"
SETS = ("svmguide1", "ijcnn1", "usps", "letter", "covtype")
COVTYPE_ROWS = 100_000
LIMIT_S = 180
PREDICT_S = 30
FEWEST_ROWS = 1000
GRID = {"C": [1, 10, 100], "gamma": [0.02, 0.1, 0.5, 2.5, 12.5]}
GRID_ROWS = 3000

Data = tuple[np.ndarray, ...]
# The estimator; whether it takes the shared C and gamma; whether features have deviation 1.
METHODS: dict[str, tuple[Callable[..., Any], bool, bool]] = {
    "VoronoiSVC": (lambda: daskls.VoronoiSVC(random_state=0), False, False),
    "RandomChunkSVC": (lambda: daskls.RandomChunkSVC(random_state=0), False, False),
    "FalkSVC": (lambda: daskls.FalkSVC(1000, selection="local", random_state=0), False, False),
    "FalkSVC, center": (
        lambda: daskls.FalkSVC(1000, selection="local", assign="center", random_state=0),
        False,
        False,
    ),
    "LandmarkSVC": (lambda: daskls.LandmarkSVC(random_state=0), False, True),
    "KNNSVC": (lambda **p: daskls.KNNSVC(random_state=0, **p), True, False),
    "KernelKNNClassifier": (lambda: daskls.KernelKNNClassifier(5, random_state=0), False, False),
    "LocalSamplingSVC": (lambda **p: daskls.LocalSamplingSVC(random_state=0, **p), True, False),
    "NeighborSamplingSVC": (
        lambda **p: daskls.NeighborSamplingSVC(random_state=0, **p),
        True,
        False,
    ),
    "SVC": (lambda **p: SVC(cache_size=1000, **p), True, False),
    "LinearSVC": (lambda: LinearSVC(dual=False), False, True),
}
# Squares are scikit-learn's; diamonds one function everywhere; circles local ones.
MARKERS = {
    **dict.fromkeys(("SVC", "LinearSVC"), "s"),
    **dict.fromkeys(("RandomChunkSVC", "LocalSamplingSVC", "NeighborSamplingSVC"), "D"),
}


def load(name: str) -> Data:
    """Return training and test rows in [0, 1]; test rows in a random order, covtype cut."""
    X, y, X_test, y_test = scaled(name)
    order = np.random.default_rng(0).permutation(len(X_test))
    n = COVTYPE_ROWS if name == "covtype" else len(X)
    return X[:n], y[:n], X_test[order], y_test[order]


def to_deviation(X: np.ndarray, X_test: np.ndarray) -> Data:
    """Give each feature the mean 0 and the standard deviation 1 among training rows."""
    scaler = StandardScaler().fit(X.astype(np.float64))
    return tuple(scaler.transform(part).astype(np.float32) for part in (X, X_test))


def search(data: Data) -> Record:
    """Choose the C and gamma that methods without a grid share."""
    rows = np.random.default_rng(1).permutation(len(data[0]))[:GRID_ROWS]
    found = GridSearchCV(SVC(), GRID, cv=3).fit(data[0][rows], data[1][rows])
    return {"params": found.best_params_, "accuracy": float(found.best_score_)}


def measure(method: str, data: Data, params: dict[str, float]) -> Record:
    """Return what one method costs on one set; in a process of its own."""
    make, takes_params, is_linear = METHODS[method]
    X, y, X_test, y_test = data
    if is_linear:
        X, X_test = to_deviation(X, X_test)
    chosen = params if takes_params else {}
    with dask.config.set(scheduler="sync"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warm_up(make, chosen, X, y)
        begin_limit()
        started = time.process_time()
        model = make(**chosen).fit(X, y)
        fit_s = time.process_time() - started
        n = test_rows(model, X_test)
        predicted, predict_s = timed_predict(model, X_test[:n])
    return {
        "error": float(np.mean(predicted != y_test[:n])),
        "fit_cpu_s": fit_s,
        "predict_us": 1e6 * predict_s / n,
        "test_rows": n,
        "rows": len(X),
        "features": X.shape[1],
        "classes": len(model.classes_),
        "model_nbytes": model_nbytes(model),
        **about(model),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught})[:3],
    }


def warm_up(make: Callable[..., Any], params: dict[str, float], X: np.ndarray, y: Any) -> None:
    """Load the compiled kernels, by a fit of a few rows of two classes."""
    first, second = np.unique(y)[:2]
    rows = np.concatenate([np.flatnonzero(y == label)[:200] for label in (first, second)])
    # What was drawn of so few rows may hold one class alone.
    with contextlib.suppress(daskls.DasklsError):
        make(**params).fit(X[rows], y[rows]).predict(X[:100])


def begin_limit() -> None:
    """Let the system end this process when it has used up its CPU seconds from now on."""
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + LIMIT_S, used + LIMIT_S + 5))


def test_rows(model: Any, X_test: np.ndarray) -> int:
    """Return how many test rows there is time for: all, or ten times as many while they are few."""
    n = FEWEST_ROWS
    model.predict(X_test[:n])  # opens the model
    while n < len(X_test):
        started = time.process_time()
        model.predict(X_test[:n])
        more = min(10 * n, len(X_test))
        # Many rows cost less each than few, as each call reads the models that it needs.
        if (time.process_time() - started) * more / n > PREDICT_S:
            break
        n = more
    return n


def timed_predict(model: Any, X: np.ndarray) -> tuple[np.ndarray, float]:
    """Predict until the clock, which counts in ticks, has something to count."""
    started = time.process_time()
    repeats, seconds = 0, 0.0
    while seconds < 0.2:
        predicted = model.predict(X)
        repeats += 1
        seconds = time.process_time() - started
    return predicted, seconds / repeats


def model_nbytes(model: Any) -> int:
    if not hasattr(model, "save"):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.zarr")
        return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())


def about(model: Any) -> Record:
    """Return how many models there are, and on how many support rows they rest."""
    if isinstance(model, SVC):
        return {"models": 1, "support": int(model.n_support_.sum())}
    if isinstance(model, LinearSVC):
        return {"models": 1}
    selected = getattr(model, "selected_", None) or {}
    return {
        "models": model.n_cells_,
        "support": int(model.fit_report_.n_support.sum()) if model.n_cells_ else 0,
        **{key: selected[key] for key in ("C", "gamma") if selected.get(key) is not None},
    }


def run_child(sender: Any, method: str, data: Data, params: dict[str, float]) -> None:
    try:
        sender.send(measure(method, data, params))
    except Exception as error:
        sender.send({"failure": f"{type(error).__name__}: {error}"})


def measured_apart(method: str, data: Data, params: dict[str, float]) -> Record:
    """Measure in a process of its own, which the system ends at the limit."""
    # Forked, so that the rows need not travel; this process has no threads.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=run_child, args=(sender, method, data, params))
    child.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        found = {"failure": f"{TOO_SLOW}: more than {LIMIT_S} CPU s"}
    child.join()
    return found


def params_of(name: str, data: Data, journal: Journal) -> dict[str, float]:
    found = journal.find(set=name, method="search")
    if found is None:
        found = journal.add({"set": name, "method": "search", **search(data)})
        print(found, flush=True)
    return found["params"]


def columns() -> list[Column]:
    return [
        ("method", lambda r: r["method"]),
        ("error %", lambda r: r.get("failure") or f"{100 * r['error']:.2f}"),
        ("train CPU s", lambda r: shown(r["fit_cpu_s"])),
        ("predict us a row", lambda r: shown(r["predict_us"])),
        ("model MB", lambda r: shown(r["model_nbytes"] / 1e6)),
        ("models", lambda r: f"{r['models']:,}"),
        ("support rows", lambda r: f"{r['support']:,}"),
        ("test rows", lambda r: f"{r['test_rows']:,}"),
    ]


def shown(value: float) -> str:
    """Return two or more digits, however small the value; a hundredth at the least."""
    if value < 0.01:
        return "< 0.01"
    return f"{value:,.{max(0, 1 - math.floor(math.log10(value)))}f}"


def draw(journal: Journal, path: Path) -> None:
    """Draw a panel a set: error against prediction, the area of a mark by the model's size."""
    figure, grid = plt.subplots(2, 3, figsize=(12, 7.5))
    colors = dict(zip(METHODS, (*plt.get_cmap("tab20").colors[::2], (0, 0, 0)), strict=True))
    for axes, name in zip(grid.flat, SETS, strict=False):
        for method in METHODS:
            r = journal.find(set=name, method=method)
            if r and "error" in r:
                axes.scatter(
                    r["predict_us"],
                    100 * r["error"],
                    s=area(r["model_nbytes"]),
                    color=colors[method],
                    marker=MARKERS.get(method, "o"),
                    alpha=0.75,
                    edgecolors="black",
                    linewidths=0.5,
                )
        axes.set(xscale="log", title=name, xlabel="prediction, CPU us a row", ylabel="error %")
        axes.set(xlim=(0.01, 10_000), yscale="log")
        axes.margins(y=0.12)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 6, 8)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(alpha=0.3)
    legend(grid.flat[-1], colors)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def area(nbytes: float) -> float:
    """Return the area of a mark: a tenth of a MB is 30, each factor of 10 doubles it."""
    return 30 * 2 ** max(np.log10(nbytes / 1e5), -1)


def legend(axes: Any, colors: dict[str, Any]) -> None:
    axes.axis("off")

    def mark(label: str, color: Any, size: float, marker: str = "o") -> Line2D:
        style = {"color": color, "markersize": size, "marker": marker, "linestyle": ""}
        return Line2D([], [], label=label, markeredgecolor="black", markeredgewidth=0.5, **style)

    names = [mark(m, c, 8, MARKERS.get(m, "o")) for m, c in colors.items()]
    sizes = [mark(f"{mb:g} MB", "white", np.sqrt(area(mb * 1e6))) for mb in (0.01, 1, 100)]
    title = "circle: local\ndiamond: one function\nsquare: scikit-learn"
    methods = axes.legend(
        handles=names, loc="upper left", fontsize=9, title=title, title_fontsize=9
    )
    axes.add_artist(methods)
    axes.legend(handles=sizes, loc="upper right", title="model", fontsize=9, labelspacing=1)


# What is compared over the sets.
QUANTITIES: tuple[Column, ...] = (
    ("Error, %", lambda r: f"{100 * r['error']:.2f}"),
    ("Training, CPU seconds", lambda r: shown(r["fit_cpu_s"])),
    ("Prediction, CPU microseconds a row", lambda r: shown(r["predict_us"])),
    ("Model, MB", lambda r: shown(r["model_nbytes"] / 1e6)),
)


def overview(journal: Journal) -> str:
    """Return a table of methods and sets for each quantity."""
    rows = [{"name": m, **{s: journal.find(set=s, method=m) or {} for s in SETS}} for m in METHODS]
    parts = []
    for title, show in QUANTITIES:
        columns = [("method", lambda row: row["name"])]
        columns += [(name, partial(of_set, name, show)) for name in SETS]
        parts.append(f"\n{title}:\n\n{table(columns, rows)}")
    return "".join(parts)


def of_set(name: str, show: Callable[[Record], Any], row: Record) -> Any:
    """Return what a method's row of an overview says of one set."""
    record = row[name]
    if not record:
        return "not measured"
    return f"not done (> {LIMIT_S} s)" if "failure" in record else show(record)


def section(name: str, journal: Journal) -> str:
    records = [r for m in METHODS if (r := journal.find(set=name, method=m))]
    first = next((r for r in records if "error" in r), None)
    if first is None:
        return ""
    shared = journal.find(set=name, method="search")["params"]
    return (
        f"\n## {name}: {first['rows']:,} rows, {first['features']} features, "
        f"{first['classes']} classes\n\nShared parameters: C={shared['C']:g}, "
        f"gamma={shared['gamma']:g}.\n\n{table(columns(), records)}"
    )


def write(journal: Journal) -> None:
    (RESULTS / "methods.md").write_text(
        "# All methods on the same sets\n\n"
        f"{machine()}; one process, one thread, one seed, beside other work.\n\n"
        "Features in [0, 1]; of standard deviation 1 for LandmarkSVC and LinearSVC. KNNSVC, "
        "LocalSamplingSVC, NeighborSamplingSVC and SVC share one C and gamma a set, found for SVC "
        f"with 3 folds of at most {GRID_ROWS:,} rows among C={GRID['C']} and gamma={GRID['gamma']} "
        "(not part of the seconds); the others use their "
        "defaults, LinearSVC C=1; FalkSVC has 1000 neighbors and local selection. Errors are of "
        "the first test rows in a random order, as many as the last column says. A model's size "
        "is that of its files, a scikit-learn one's that of its pickle. Prediction is by a model "
        "that has answered before. Above "
        f"{LIMIT_S} CPU s of training and prediction a method is stopped.\n"
        + overview(journal)
        + "".join(section(name, journal) for name in SETS)
        + "\n![Error against prediction](methods.png)\n"
    )
    draw(journal, RESULTS / "methods.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    args = parser.parse_args()
    journal = Journal(RESULTS / "methods.jsonl")
    for name in () if args.draw else args.sets:
        data = load(name)
        params = params_of(name, data, journal)
        for method in args.methods:
            if not journal.is_done(set=name, method=method):
                found = measured_apart(method, data, params)
                found = {"set": name, "method": method, **found, "machine": machine()}
                print({k: v for k, v in journal.add(found).items() if k != "machine"}, flush=True)
    write(journal)


if __name__ == "__main__":
    main()
