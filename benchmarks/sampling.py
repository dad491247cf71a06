"""LocalSamplingSVC and NeighborSamplingSVC beside the SVM of all rows: error, rows and CPU seconds.

As tables 5 and 7 of the paper: ijcnn1, and covtype cut to 100,000 training rows. One process, one
thread. With each of ten seeds every radius (or round) is trained, also those beyond the one where
the search would stop; the table marks what the search chooses. Rows that are done are kept in
``benchmarks/results/sampling.jsonl``, from which ``sampling.md`` and ``sampling.png`` are drawn.
The real sets are read from the folder in DASKLS_DATA.

    python benchmarks/sampling.py [--sets ijcnn1 covtype] [--seeds 10] [--draw]
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask
import numpy as np
from journal import Column, Journal, Record, table
from measure import machine
from real_sets import scaled
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from daskls import LocalSamplingSVC, NeighborSamplingSVC
from daskls.datasets import load_real
from daskls.methods.sampling import method as sampling_method
from daskls.methods.sampling import radii as search_radii
from daskls.methods.sampling import rounds as search_rounds
from daskls.methods.sampling.search import Search, stalls
from daskls.methods.scores import labels_of, model_scores
from daskls.store.models import BundleModels

RESULTS = Path(__file__).parent / "results"
N_COVTYPE = 100_000
# Queries that are answered together.
SLAB_ROWS = 512
# Labels of points nearer than this would cover each other.
LABEL_PIXELS = 24
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# The kernel and C of the paper; radii and rounds that are tried.
SETS: dict[str, dict[str, Any]] = {
    "ijcnn1": {"C": 10.0, "gamma": 0.1, "n_radii": 14, "n_rounds": 8},
    "covtype": {"C": 10.0, "gamma": 5.0, "n_radii": 8, "n_rounds": 6},
}
METHODS: dict[str, Callable[..., Any]] = {
    "local sampling": LocalSamplingSVC,
    "CGLQ": NeighborSamplingSVC,
}


def load(name: str) -> Data:
    """Return training and test rows."""
    if name == "ijcnn1":
        data = load_real(name)
        return data.X, data.y, data.X_test, data.y_test
    X, y, X_test, y_test = scaled(name)
    return X[:N_COVTYPE], y[:N_COVTYPE], X_test, y_test


def whole(name: str, data: Data) -> Record:
    """Train scikit-learn's SVC on all rows."""
    X, y, X_test, y_test = data
    params = {key: SETS[name][key] for key in ("C", "gamma")}
    started = time.process_time()
    svc = SVC(cache_size=2000, **params).fit(X, y)
    fitted = time.process_time()
    wrong = [svc.predict(X_test[i : i + 10_000]) != y_test[i : i + 10_000] for i in slabs(X_test)]
    return {
        "error": float(np.concatenate(wrong).mean()),
        "fit_cpu_s": fitted - started,
        "n_support": len(svc.support_),
        "n_rows": len(X),
    }


def slabs(X: np.ndarray) -> range:
    return range(0, len(X), 10_000)


@contextmanager
def every_step(name: str) -> Iterator[list[float]]:
    """Train on past the stop, keep all models; yield the CPU clock at the end of each step."""
    ends: list[float] = []
    train = Search.train

    def timed(self: Any, *args: Any) -> Any:
        step = train(self, *args)
        ends.append(time.process_time())
        return step

    with (
        patch.object(Search, "train", timed),
        patch.object(search_radii, "stalls", lambda *_: False),
        patch.object(search_rounds, "stalls", lambda *_: False),
        patch.object(sampling_method, "drop_others", lambda *_: None),
        patch.object(search_radii, "MAX_RADIUS_STEPS", SETS[name]["n_radii"]),
        patch.object(search_rounds.RoundSearch, "n_rounds", SETS[name]["n_rounds"]),
    ):
        yield ends


def curve(name: str, method: str, seed: int, data: Data) -> Record:
    """Train every step with one seed; judge each model on the test rows."""
    X, y, X_test, y_test = data
    params = {key: SETS[name][key] for key in ("C", "gamma")}
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set(scheduler="sync"),
        every_step(name) as ends,
    ):
        store = Path(folder) / "m"
        started = time.process_time()
        model = METHODS[method](random_state=seed, store=store, **params).fit(X, y)
        path = model.path_
        # The number of a step's bundle is that of the radius; a step that adds no row has none.
        values = path[path.dtype.names[0]]
        numbers = values if method == "CGLQ" else np.round(values * 10).astype(int) - 1
        return {
            "values": values.tolist(),
            "errors": [test_error(store, n, model, X_test, y_test) for n in numbers.tolist()],
            # What comes before the first step is a part of each.
            "step_cpu_s": np.diff([started, *ends]).tolist(),
            **{key: path[key].tolist() for key in ("n_rows", "n_support", "validation_error")},
            "n_initial_support": model.n_initial_support_,
        }


def test_error(store: Path, number: int, model: Any, X: np.ndarray, y: np.ndarray) -> float:
    (local,) = BundleModels(store, number, number, model._reader.spec).read_cells(np.zeros(1, int))
    wrong = 0
    for start in range(0, len(X), SLAB_ROWS):
        scores = model_scores(local, X[start : start + SLAB_ROWS], len(model.classes_))
        labels = labels_of(scores, model.classes_)
        wrong += int((labels != y[start : start + SLAB_ROWS]).sum())
    return wrong / len(X)


def chosen(record: Record) -> tuple[int, int]:
    """Return where the search stops, and the step that it chooses."""
    errors = record["validation_error"]
    rule: tuple[Any, ...] = (search_radii.PATIENCE,)
    if record["method"] == "CGLQ":
        rule = (1, search_rounds.LEAST_FALL)
    ends = (i for i in range(len(errors)) if stalls(errors[: i + 1], *rule))
    stop = next(ends, len(errors) - 1)
    return stop, int(np.argmin(errors[: stop + 1]))


def steps(journal: Journal) -> list[Record]:
    """Return a record a set, method and step: means and deviations over the seeds."""
    found = []
    for name in SETS:
        svc = journal.find(set=name, method="SVC")
        for method in METHODS if svc else ():
            own = [r for r in journal.records if (r["set"], r["method"]) == (name, method)]
            for value in sorted({v for r in own for v in r["values"]}):
                at = [(r, r["values"].index(value)) for r in own if value in r["values"]]
                found.append(_step(name, method, value, at, svc))
            if own:
                found.append(_choice(name, method, own, svc))
    return found


def _step(name: str, method: str, value: float, at: list[Any], svc: Record) -> Record:
    first = [r["step_cpu_s"][0] if i else 0.0 for r, i in at]
    return {
        "set": name,
        "method": method,
        "step": f"{value:g}",
        "value": value,
        "n_seeds": len(at),
        "ratio": [r["errors"][i] / svc["error"] for r, i in at],
        "n_rows": [r["n_rows"][i] for r, i in at],
        "n_support": [r["n_support"][i] for r, i in at],
        # A round needs those before it; a radius needs what comes before the first one, about.
        "share": [
            (sum(r["step_cpu_s"][: i + 1]) if method == "CGLQ" else r["step_cpu_s"][i] + begin)
            / svc["fit_cpu_s"]
            for (r, i), begin in zip(at, first, strict=True)
        ],
    }


def _choice(name: str, method: str, own: list[Record], svc: Record) -> Record:
    picks = [(r, *chosen(r)) for r in own]
    return {
        "set": name,
        "method": method,
        "step": "searched: " + ", ".join(f"{r['values'][i]:g}" for r, _, i in picks),
        "n_seeds": len(own),
        "ratio": [r["errors"][i] / svc["error"] for r, _, i in picks],
        "n_rows": [r["n_rows"][i] for r, _, i in picks],
        "n_support": [r["n_support"][i] for r, _, i in picks],
        "share": [sum(r["step_cpu_s"][: stop + 1]) / svc["fit_cpu_s"] for r, stop, _ in picks],
    }


def spread(values: list[float], digits: int, scale: float = 1.0) -> str:
    mean, deviation = np.mean(values) * scale, np.std(values) * scale
    return f"{mean:,.{digits}f} ± {deviation:,.{digits}f}"


COLUMNS: list[Column] = [
    ("set", lambda r: r["set"]),
    ("method", lambda r: r["method"]),
    ("beta or round", lambda r: r["step"]),
    ("seeds", lambda r: r["n_seeds"]),
    ("error / SVC's", lambda r: spread(r["ratio"], 3)),
    ("rows", lambda r: spread(r["n_rows"], 0)),
    ("support rows", lambda r: spread(r["n_support"], 0)),
    ("% of SVC's CPU", lambda r: spread(r["share"], 1, 100)),
]


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


def draw(found: list[Record]) -> None:
    """Plot the error ratio against the share of CPU seconds, a panel a set."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(r["set"] for r in found))
    figure, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4), squeeze=False)
    points: list[tuple[Any, ...]] = []
    for ax, name in zip(axes[0], names, strict=True):
        for method, color in zip(METHODS, ("tab:blue", "tab:orange"), strict=True):
            own = [r for r in found if (r["set"], r["method"]) == (name, method) and "value" in r]
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
    figure.savefig(RESULTS / "sampling.png", dpi=110)


def write_results(journal: Journal) -> None:
    found = steps(journal)
    known = [(name, journal.find(set=name, method="SVC")) for name in SETS]
    lines = [
        f"{name}: {r['n_rows']:,} rows, {r['n_support']:,} support rows, error "
        f"{100 * r['error']:.2f} %, {r['fit_cpu_s']:.1f} CPU s."
        for name, r in known
        if r
    ]
    (RESULTS / "sampling.md").write_text(
        "# SVMs on samples around support rows, beside the SVM of all rows\n\n"
        f"{machine()}; one process, one thread. Means and standard deviations over the seeds.\n\n"
        + table(COLUMNS, found)
        + "\nscikit-learn's SVC on all rows: "
        + " ".join(lines)
        + " The share of a radius is that of a fit with this radius given, of a round that of all "
        "rounds up to it; that of a search is of all that it trains. The paper, 10 runs: local "
        "sampling 1.02 on ijcnn1 (10 % of the time), 1.22 on covtype (28 %, other rows); CGLQ 1.29 "
        "(5 %) and 1.22 (31 %).\n"
    )
    if found:
        draw(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--draw", action="store_true", help="only write table and plot anew")
    args = parser.parse_args()
    journal = Journal(RESULTS / "sampling.jsonl")
    X = np.random.default_rng(0).random((2000, 2))
    for make in METHODS.values():
        make(0.2).fit(X, X[:, 0] > 0.5).predict(X)
    for name in [] if args.draw else args.sets:
        data = load(name)
        with threadpool_limits(1):
            if journal.find(set=name, method="SVC") is None:
                print(journal.add({"set": name, "method": "SVC", **whole(name, data)}), flush=True)
            for seed in range(args.seeds):
                for method in METHODS:
                    key = {"set": name, "method": method, "seed": seed}
                    if journal.find(**key) is None:
                        print(journal.add({**key, **curve(name, method, seed, data)}), flush=True)
                write_results(journal)
    write_results(journal)


if __name__ == "__main__":
    main()
