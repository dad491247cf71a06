"""Boundaries of L3-SVMs on toys, as figures 1 and 2 of their paper, beside SVMs.

xor and the swiss roll, 400 training rows, 10 landmarks. The picture shows fitted models, which the
journal does not hold: it is drawn where something is measured.
"""

from functools import cache
from typing import Any

import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.landmarks import COSTS
from benchmarks.suite import Experiment, Record, Run, grid, page
from benchmarks.suite.data import Data
from benchmarks.suite.figures import Figure, plt
from daskls import LandmarkSVC
from daskls.datasets import make_swiss_roll, make_xor
from daskls.plotting import PartitionDisplay

# What makes the rows, and two numbers of clusters.
TOYS = {"xor": (make_xor, (2, 4)), "swiss roll": (make_swiss_roll, (2, 100))}


@cache
def rows_of(toy: str) -> Data:
    (X, y), (X_test, y_test) = (TOYS[toy][0](400, random_state=seed) for seed in (0, 1))
    return Data(X / X.std(axis=0), y, X_test / X.std(axis=0), y_test)


def models(toy: str) -> dict[str, Any]:
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


@cache
def fitted(toy: str, method: str) -> Any:
    return models(toy)[method].fit(rows_of(toy).X, rows_of(toy).y)


def measure(run: Run, set: str, method: str) -> Record:
    model, data = fitted(set, method), rows_of(set)
    return {"accuracy": model.score(data.X_test, data.y_test), "support": n_support(model)}


def n_support(model: Any) -> int:
    if isinstance(model, LandmarkSVC):
        return int(model.fit_report_.n_support.sum())
    return int(model.best_estimator_.n_support_.sum())


COLUMNS = """
set = set | method = method | accuracy % = 100 * accuracy:.1f | support rows = support
"""
TEXT = (
    "{machine}\n\n400 training and 400 test rows, features of standard deviation 1, 10 landmarks."
)


def draw() -> Figure:
    figure, axes = plt.subplots(2, 6, figsize=(20, 7), layout="constrained")
    for line, toy in zip(axes, TOYS, strict=True):
        data = rows_of(toy)
        for ax, method in zip(line, models(toy), strict=True):
            model = fitted(toy, method)
            draw_model(ax, model, data)
            told = f"test {100 * model.score(data.X_test, data.y_test):.1f} %"
            ax.set_title(f"{toy}: {method}\n{told}, {n_support(model)} support rows", fontsize=9)
    return figure


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
    [key for toy in TOYS for key in grid(set=[toy], method=models(toy))],
    measure,
    page("L3-SVMs on toys", TEXT, COLUMNS, "set method"),
    sketches={"landmarks": draw},
    dpi=80,
)
