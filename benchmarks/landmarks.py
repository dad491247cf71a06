"""LandmarkSVC on the sets of the L3-SVMs paper, beside a linear and an RBF SVM.

Accuracy and CPU seconds as tables 3 and 4 of the paper: features divided by their standard
deviation, K as in its table 2, as many landmarks as features, C by 5-fold cross-validation; five
seeds, of MNIST two at the C that the first one's cross-validation chose. The linear SVM is
liblinear (`LinearSVC`), its C from 1e-5 to 100 by 5 folds on at most 20,000 rows (fewer of many
features); the RBF SVM is `SVC` with C and gamma from a small grid on at most 3000 rows. One
thread. USPS is measured three times: also with one factor for all pixels, which gives all grey
values together a standard deviation of 1, and with grey values in [0, 1]. Figures 1 and 2
show models of two toys, which the journal does not hold: they are drawn where something is
measured. Figure 4 is that of `landmarks_count`.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

from benchmarks.suite import Experiment, Journal, Record, Run, cpu_of, table
from benchmarks.suite.data import Data, by_deviation, loaded
from benchmarks.suite.figures import Figure, plt
from benchmarks.suite.sets import make_xor
from benchmarks.suite.tables import mean_of
from daskls import LandmarkSVC
from daskls.datasets import make_swiss_roll
from daskls.plotting import PartitionDisplay

# Clusters of table 2; accuracies of table 3 and training seconds of table 4: RBF, linear, L3.
USPS = (80, (94.07, 91.72, 92.12), (44.34, 1.44, 34.91))
SETS = {
    "svmguide1": (100, (96.53, 95.38, 95.73), (0.39, 0.04, 0.22)),
    "ijcnn1": (100, (97.08, 89.68, 95.74), (104.02, 0.74, 14.08)),
    "usps": USPS,
    "usps1": USPS,
    "usps01": USPS,
    "mnist": (90, (96.62, 91.8, 95.05), (2699.42, 24.29, 276.15)),
}
METHODS = ("SVC", "LinearSVC", "LandmarkSVC")
COSTS = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0]
SMALLER = [1e-5, 1e-4]
N_TUNED = 3000
# What makes the rows of a toy, and two numbers of clusters.
TOYS = {"xor": (make_xor, (2, 4)), "swiss roll": (make_swiss_roll, (2, 100))}
COLUMNS = """
set = set | method = method | clusters = n_cells | accuracy % = accuracy | paper % = paper
difference = apart:+.2f | C = C
choice of C, s = choice | fit, CPU s = fit | predict, CPU s = predict | paper, s = paper_s
"""


@lru_cache(maxsize=1)
def rows_of(name: str) -> Data:
    """Return a set's rows: each feature of standard deviation 1, but see the USPS sets above."""
    data = loaded("usps" if name.startswith("usps") else name)
    X, X_test = (np.asarray(part, np.float64) for part in (data.X, data.X_test))
    if name == "usps01":
        X, X_test = (X + 1) / 2, (X_test + 1) / 2
    elif name == "usps1":
        X, X_test = X / X.std(), X_test / X.std()
    else:
        X, X_test = by_deviation(X, X_test)
    return data._replace(X=X, X_test=X_test)


def timed(estimator: Any, data: Data) -> Record:
    """Return accuracy and CPU seconds of one fit and one prediction."""
    _, fit_s = cpu_of(lambda: estimator.fit(data.X, data.y))
    predicted, predict_s = cpu_of(lambda: estimator.predict(data.X_test))
    accuracy = 100 * float((predicted == data.y_test).mean())
    return {"accuracy": accuracy, "fit_s": fit_s, "predict_s": predict_s}


def keys(run: Run) -> Iterator[Record]:
    for name in SETS:
        for seed in range(2 if name == "mnist" else 5):
            yield {"set": name, "method": "LandmarkSVC", "seed": seed}
        yield from ({"set": name, "method": method} for method in ("LinearSVC", "SVC"))


def measure(run: Run, set: str, method: str, seed: int = 0) -> Record:
    data = rows_of(set)
    if method != "LandmarkSVC":
        return linear(data) if method == "LinearSVC" else rbf(data)
    # Of MNIST the second seed has the C that the first one chose.
    first = run.journal.find(set=set, method=method, seed=0) if set == "mnist" and seed else None
    model = LandmarkSVC(SETS[set][0], C=first and first["C"], random_state=seed)
    record = timed(model, data)
    return {
        **record,
        "C": float(model.fit_report_.C[0]),
        "errors": None if first else model.selected_["errors"],
        "choice_s": model.stage_s_.get("select", 0.0),
    }


def linear(data: Data) -> Record:
    # liblinear needs long for hundreds of features; its dual solver does not end at large C.
    tuned = min(len(data.X), 2_000_000 // data.X.shape[1], 20_000)
    estimator = LinearSVC(dual="auto", random_state=0)
    return tuned_on(tuned, estimator, {"C": [*SMALLER, *COSTS]}, 5, data)


def rbf(data: Data) -> Record:
    scale = 1.0 / (data.X.shape[1] * data.X.var())
    grid = {"C": [1.0, 10.0, 100.0], "gamma": [scale * factor for factor in (0.2, 1.0, 5.0)]}
    return tuned_on(N_TUNED, SVC(cache_size=1000), grid, 3, data)


def tuned_on(n: int, estimator: Any, grid: Record, cv: int, data: Data) -> Record:
    """Choose parameters on the first n rows, then train on all."""
    search = GridSearchCV(estimator, grid, cv=cv)
    _, choice_s = cpu_of(lambda: search.fit(data.X[:n], data.y[:n]))
    found = timed(estimator.set_params(**search.best_params_), data)
    return {"choice_s": choice_s, **search.best_params_, **found}


# The report


def summary(own: list[Record], place: int) -> Record:
    """Return what a row of the table shows of one set and method."""
    n_cells, accuracies, seconds = SETS[own[0]["set"]]

    def spread(field: str, digits: int) -> str:
        values = [r[field] for r in own]
        if len(values) == 2 and field != "accuracy":
            # One with the choice of C, one without: no mean.
            return " / ".join(f"{value:.{digits}f}" for value in values)
        return mean_of(values, digits)

    return {
        "set": own[0]["set"],
        "method": own[0]["method"],
        "n_cells": n_cells if place == 2 else "",
        "accuracy": spread("accuracy", 2),
        "C": ", ".join(f"{c:.2g}" for c in sorted({r["C"] for r in own})),
        "choice": spread("choice_s", 1),
        "fit": spread("fit_s", 2),
        "predict": spread("predict_s", 2),
        "paper": accuracies[place],
        "apart": sum(r["accuracy"] for r in own) / len(own) - accuracies[place],
        "paper_s": seconds[place],
    }


def report(journal: Journal) -> str:
    rows = [
        summary(own, place)
        for name in SETS
        for place, method in enumerate(METHODS)
        if (own := journal.latest("seed", set=name, method=method))
    ]
    return (
        "# L3-SVMs\n\n"
        f"`benchmarks/landmarks.py`, one thread, {journal.machine}. Features of standard deviation "
        '1, of "usps1" all grey values together; "usps01" has them in [0, 1]. LandmarkSVC: mean '
        'and deviation over seeds, "fit" with the choice of C among 8 candidates by 5 folds (of '
        "MNIST with it / the second seed without); its choice is wall seconds. The others: fit at "
        "the chosen parameters. The paper's seconds are of another machine.\n\n"
        + table(COLUMNS, rows)
        + "\n![xor and swiss roll](landmarks.png)\n\n"
        "Figures 1 and 2 of the paper: 400 training rows, 10 landmarks; above the accuracy on as "
        "many test rows, and the rows that the solution rests on.\n\n"
        "![landmarks](landmarks_count.png)\n\n"
        "Figure 4: random rows against principal components as landmarks.\n"
    )


# Figures 1 and 2


def draw_toys() -> Figure:
    """Draw boundaries of SVMs and L3-SVMs on toys of two features."""
    figure, axes = plt.subplots(2, 6, figsize=(20, 7), layout="constrained")
    for line, toy in zip(axes, TOYS, strict=True):
        data = toy_rows(toy)
        for ax, (method, model) in zip(line, toy_models(toy).items(), strict=True):
            model.fit(data.X, data.y)
            draw_model(ax, model, data)
            told = f"test {100 * model.score(data.X_test, data.y_test):.1f} %"
            ax.set_title(f"{toy}: {method}\n{told}, {n_support(model)} support rows", fontsize=9)
    return figure


def toy_rows(toy: str) -> Data:
    (X, y), (X_test, y_test) = (TOYS[toy][0](400, random_state=seed) for seed in (0, 1))
    return Data(X / X.std(axis=0), y, X_test / X.std(axis=0), y_test)


def toy_models(toy: str) -> dict[str, Any]:
    """Return a linear and an RBF SVM, and L3-SVMs of growing numbers of clusters."""
    found: dict[str, Any] = {
        "linear SVM": GridSearchCV(SVC(kernel="linear"), {"C": COSTS}, cv=5),
        "RBF SVM": GridSearchCV(SVC(), {"C": COSTS}, cv=5),
    }
    for projection in ("linear", "rbf"):
        for n in TOYS[toy][1]:
            found[f"L3, {n} clusters, {projection}"] = LandmarkSVC(
                n, n_landmarks=10, projection=projection, random_state=0
            )
    return found


def n_support(model: Any) -> int:
    if isinstance(model, LandmarkSVC):
        return int(model.fit_report_.n_support.sum())
    return int(model.best_estimator_.n_support_.sum())


def draw_model(ax: Any, model: Any, data: Data) -> None:
    """Draw cells and boundary, or of an SVM the boundary."""
    if isinstance(model, LandmarkSVC):
        shown = PartitionDisplay.from_estimator(model, X=data.X, y=data.y, resolution=300)
        shown.plot(ax, fill="class")
        ax.get_legend().remove()
        return
    DecisionBoundaryDisplay.from_estimator(
        model, data.X, response_method="decision_function", plot_method="contour", levels=[0.0],
        colors="black", ax=ax, grid_resolution=300,
    )  # fmt: skip
    ax.scatter(*data.X.T, c=np.where(data.y == data.y.min(), "#1f5a99", "#c8501e"), s=5)
    ax.set_aspect("equal")


EXPERIMENT = Experiment(
    keys,
    measure,
    report,
    warm=lambda: [LandmarkSVC(2, C=[1.0, 2.0], random_state=0)],
    sketches={"landmarks": draw_toys},
    dpi=80,
)
