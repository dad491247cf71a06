"""LandmarkSVC on the sets of the L3-SVMs paper, beside a linear and an RBF SVM; and its figures.

Accuracy and CPU seconds as tables 3 and 4 of the paper: features divided by their standard
deviation, K as in its table 2, as many landmarks as features, C by 5-fold cross-validation; five
seeds, of MNIST two at the C that the first one's cross-validation chose. The linear SVM is
liblinear (`LinearSVC`), its C from 1e-5 to 100 by 5 folds on at most 20,000 rows (fewer of many
features); the RBF SVM is `SVC` with C and gamma from a small grid on at most 3000 rows. One
thread. USPS is measured three times: also with one factor for all pixels, which gives all grey
values together a standard deviation of 1, and with grey values in [0, 1]. Rows that are done are in
``benchmarks/results/landmarks.jsonl``.

    python benchmarks/landmarks.py [--sets svmguide1 ijcnn1 ...] [--parts table figures]

The sets are read from the folder in DASKLS_DATA. Figures 1 and 2 (xor, swiss roll) go to
``landmarks.png``, figure 4 (random landmarks against principal components) to
``landmarks_count.png``.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
from journal import Column, Journal, Record, table
from measure import machine
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

from daskls import LandmarkSVC
from daskls.datasets import load_real, make_swiss_roll, make_xor
from daskls.plotting import PartitionDisplay

RESULTS = Path(__file__).parent / "results"
# Clusters of table 2; accuracies of table 3 and training seconds of table 4: RBF, linear, L3.
SETS = {
    "svmguide1": (100, (96.53, 95.38, 95.73), (0.39, 0.04, 0.22)),
    "ijcnn1": (100, (97.08, 89.68, 95.74), (104.02, 0.74, 14.08)),
    "usps": (80, (94.07, 91.72, 92.12), (44.34, 1.44, 34.91)),
    "usps1": (80, (94.07, 91.72, 92.12), (44.34, 1.44, 34.91)),
    "usps01": (80, (94.07, 91.72, 92.12), (44.34, 1.44, 34.91)),
    "mnist": (90, (96.62, 91.8, 95.05), (2699.42, 24.29, 276.15)),
}
COSTS = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]
SMALLER = [1e-5, 1e-4]
N_TUNED = 3000
Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def load(name: str) -> Rows:
    """Return a set's rows: each feature of standard deviation 1, but see the USPS sets above."""
    data = load_real("usps" if name.startswith("usps") else name)
    X, X_test = (np.asarray(part, np.float64) for part in (data.X, data.X_test))
    if name == "usps01":
        return (X + 1) / 2, data.y, (X_test + 1) / 2, data.y_test
    scale = np.full(X.shape[1], X.std()) if name == "usps1" else X.std(axis=0)
    scale[scale == 0] = 1.0
    return X / scale, data.y, X_test / scale, data.y_test


def timed(estimator: Any, rows: Rows) -> Record:
    """Return accuracy and CPU seconds of one fit and one prediction."""
    X, y, X_test, y_test = rows
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
    fitted = time.process_time()
    accuracy = float((estimator.predict(X_test) == y_test).mean())
    return {
        "accuracy": 100 * accuracy,
        "fit_s": fitted - started,
        "predict_s": time.process_time() - fitted,
    }


def measure_landmarks(journal: Journal, name: str, rows: Rows) -> None:
    """Measure all seeds; of MNIST two, the second at the C that the first one chose."""
    n_cells = SETS[name][0]
    for seed in range(2 if name == "mnist" else 5):
        if journal.is_done(set=name, method="LandmarkSVC", seed=seed):
            continue
        first = journal.find(set=name, method="LandmarkSVC", seed=0)
        given = first["C"] if name == "mnist" and seed and first else None
        model = LandmarkSVC(n_cells, C=given, random_state=seed)
        record = timed(model, rows)
        record["C"] = float(model.fit_report_.C[0])
        record["errors"] = None if given else model.selected_["errors"]
        record["choice_s"] = model.stage_s_.get("select", 0.0)
        journal.add({"set": name, "method": "LandmarkSVC", "seed": seed, **record})


def measure_linear(journal: Journal, name: str, rows: Rows) -> None:
    if journal.is_done(set=name, method="LinearSVC"):
        return
    X, y, *_ = rows
    # liblinear's own loss for this size; its dual solver does not end at large C.
    linear = LinearSVC(dual="auto", random_state=0)
    # liblinear needs long for hundreds of features.
    tuned = min(len(X), 2_000_000 // X.shape[1], 20_000)
    search = GridSearchCV(linear, {"C": [*SMALLER, *COSTS]}, cv=5)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X[:tuned], y[:tuned])
    choice_s = time.process_time() - started
    record = timed(linear.set_params(**search.best_params_), rows)
    journal.add(
        {"set": name, "method": "LinearSVC", "choice_s": choice_s, **search.best_params_, **record}
    )


def measure_rbf(journal: Journal, name: str, rows: Rows) -> None:
    if journal.is_done(set=name, method="SVC"):
        return
    X, y, *_ = rows
    scale = 1.0 / (X.shape[1] * X.var())
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [scale * factor for factor in (0.2, 1.0, 5.0)]}
    started = time.process_time()
    search = GridSearchCV(SVC(), grid, cv=3).fit(X[:N_TUNED], y[:N_TUNED])
    choice_s = time.process_time() - started
    svc = SVC(cache_size=1000, **search.best_params_)
    journal.add(
        {"set": name, "method": "SVC", "choice_s": choice_s, **search.best_params_}
        | timed(svc, rows)
    )


def report(journal: Journal) -> str:
    """Return the table, one row a set and method."""
    rows: list[Record] = []
    for name, (n_cells, accuracies, seconds) in SETS.items():
        for place, method in enumerate(("SVC", "LinearSVC", "LandmarkSVC")):
            own = [r for r in journal.records if (r["set"], r["method"]) == (name, method)]
            if own:
                rows.append(summary(name, method, n_cells, own) | {
                    "paper": accuracies[place], "paper_s": seconds[place],
                })  # fmt: skip
    columns: list[Column] = [
        ("set", lambda r: r["set"]),
        ("method", lambda r: r["method"]),
        ("clusters", lambda r: r["n_cells"]),
        ("accuracy %", lambda r: r["accuracy"]),
        ("paper %", lambda r: r["paper"]),
        ("C", lambda r: r["C"]),
        ("choice of C, s", lambda r: r["choice"]),
        ("fit, CPU s", lambda r: r["fit"]),
        ("predict, CPU s", lambda r: r["predict"]),
        ("paper, s", lambda r: r["paper_s"]),
    ]
    return (
        "# L3-SVMs\n\n"
        f"`benchmarks/landmarks.py`, one thread, {machine()}. Features of standard deviation 1, "
        'of "usps1" all grey values together; "usps01" has them in [0, 1]. LandmarkSVC: mean and '
        'deviation over seeds, "fit" with the choice of C among 8 candidates by 5 folds (of MNIST '
        "with it / the second seed without); its choice is wall seconds. The others: fit at the "
        "chosen parameters. The paper's seconds are of another machine.\n\n"
        + table(columns, rows)
        + "\n"
        + PICTURES
    )


PICTURES = (
    "![xor and swiss roll](landmarks.png)\n\n"
    "Figures 1 and 2 of the paper: 400 training rows, 10 landmarks; above the accuracy on as many "
    "test rows, and the rows that the solution rests on.\n\n"
    "![landmarks](landmarks_count.png)\n\n"
    "Figure 4: random rows against principal components as landmarks.\n"
)


def summary(name: str, method: str, n_cells: int, own: list[Record]) -> Record:
    def spread(field: str, digits: int) -> str:
        values = np.array([r[field] for r in own])
        if len(values) == 2 and field != "accuracy":
            # One with the choice of C, one without: no mean.
            return " / ".join(f"{value:.{digits}f}" for value in values)
        more = f" ± {values.std():.{digits}f}" if len(values) > 1 else ""
        return f"{values.mean():.{digits}f}{more}"

    return {
        "set": name,
        "method": method,
        "n_cells": n_cells if method == "LandmarkSVC" else "",
        "accuracy": spread("accuracy", 2),
        "C": ", ".join(f"{c:.2g}" for c in sorted({r["C"] for r in own})),
        "choice": spread("choice_s", 1),
        "fit": spread("fit_s", 2),
        "predict": spread("predict_s", 2),
    }


# Figures


def draw_toys(path: Path) -> None:
    """Draw figures 1 and 2: linear and RBF SVM, and L3-SVMs of growing numbers of clusters."""
    from matplotlib import pyplot as plt

    makers: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
        "xor": (make_xor, (2, 4)),
        "swiss roll": (make_swiss_roll, (2, 100)),
    }
    figure, axes = plt.subplots(2, 6, figsize=(20, 7), layout="constrained")
    for line, (name, (make, counts)) in zip(axes, makers.items(), strict=True):
        X, y = make(400, random_state=0)
        X_test, y_test = make(400, random_state=1)
        scale = X.std(axis=0)
        X, X_test = X / scale, X_test / scale
        grid = {"C": COSTS}
        models: dict[str, Any] = {
            "linear SVM": GridSearchCV(SVC(kernel="linear"), grid, cv=5),
            "RBF SVM": GridSearchCV(SVC(), grid, cv=5),
        }
        for projection in ("linear", "rbf"):
            for n_cells in counts:
                models[f"L3, {n_cells} clusters, {projection}"] = LandmarkSVC(
                    n_cells, n_landmarks=10, projection=projection, random_state=0
                )
        for ax, (title, model) in zip(line, models.items(), strict=True):
            model.fit(X, y)
            draw_toy(ax, model, X, y, X_test, y_test)
            ax.set_title(f"{name}: {title}\n{describe(model, X_test, y_test)}", fontsize=9)
    figure.savefig(path, dpi=80)


def describe(model: Any, X_test: np.ndarray, y_test: np.ndarray) -> str:
    if isinstance(model, LandmarkSVC):
        n_support = int(model.fit_report_.n_support.sum())
    else:
        n_support = int(model.best_estimator_.n_support_.sum())
    return f"test {100 * model.score(X_test, y_test):.1f} %, {n_support} support rows"


def draw_toy(ax: Any, model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> None:
    """Draw cells and boundary, or of an SVM the boundary."""
    if isinstance(model, LandmarkSVC):
        PartitionDisplay.from_estimator(model, X=X, y=y, resolution=300).plot(ax, fill="class")
        ax.get_legend().remove()
        return
    from sklearn.inspection import DecisionBoundaryDisplay

    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="decision_function", plot_method="contour", levels=[0.0],
        colors="black", ax=ax, grid_resolution=300,
    )  # fmt: skip
    ax.scatter(*X.T, c=["#1f5a99" if label == y.min() else "#c8501e" for label in y], s=5)
    ax.set_aspect("equal")


def draw_counts(journal: Journal, path: Path) -> None:
    """Measure and draw figure 4, on a tenth of MNIST's rows: 100 clusters need time for each L."""
    from matplotlib import pyplot as plt

    X, y, X_test, y_test = load("mnist")
    rows = X[:12_000], y[:12_000], X_test, y_test
    counts = (5, 10, 20, 50, 100, 200, 400, 784)
    for n_landmarks in counts:
        for kind in ("random", "pca"):
            key = {"set": "figure 4", "method": kind, "n_landmarks": n_landmarks}
            if journal.is_done(**key):
                continue
            given: dict[str, Any] = {"n_landmarks": n_landmarks, "landmarks": kind}
            # The best C falls as the projections grow.
            found = [
                timed(LandmarkSVC(100, **given, C=C, random_state=0), rows)
                for C in ((1e-6, 1e-5, 1e-4) if kind == "random" else (1e-4, 1e-3, 1e-2))
            ]
            journal.add({**key, **max(found, key=lambda r: r["accuracy"])})
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for kind, color in (("random", "#1f5a99"), ("pca", "#c8501e")):
        own = [journal.find(set="figure 4", method=kind, n_landmarks=n) for n in counts]
        for ax, field in zip(axes, ("accuracy", "fit_s"), strict=True):
            ax.plot(counts, [r[field] for r in own if r], "o-", color=color, label=kind)
    axes[0].set(xlabel="landmarks", ylabel="test accuracy, %", xscale="log")
    axes[1].set(xlabel="landmarks", ylabel="fit at one C, CPU s", xscale="log")
    axes[0].legend()
    figure.suptitle("MNIST, 12,000 training rows, 100 clusters, the best of three C")
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--parts", nargs="*", default=["table", "figures"])
    chosen = parser.parse_args()
    journal = Journal(RESULTS / "landmarks.jsonl")
    with dask.config.set(scheduler="sync"):
        # Compiling is no part of the first seed's seconds.
        LandmarkSVC(2, C=[1.0, 2.0], random_state=0).fit(*make_xor(200, random_state=0))
        for name in chosen.sets if "table" in chosen.parts else ():
            rows = load(name)
            for measure in (measure_landmarks, measure_linear, measure_rbf):
                measure(journal, name, rows)
                (RESULTS / "landmarks.md").write_text(report(journal))
        if "figures" in chosen.parts:
            draw_toys(RESULTS / "landmarks.png")
            draw_counts(journal, RESULTS / "landmarks_count.png")


if __name__ == "__main__":
    main()
