# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Which method?
#
# Three kinds of local methods on one set: two spirals, with so much noise that the best possible
# accuracy is 88.6 %.
#
# - **Cells** (`VoronoiSVC`): space is cut into cells, with one model per cell.
# - **Neighborhoods** (`FalkSVC`): an SVM around each of many centers; a query goes to the nearest.
# - **Landmarks** (`LandmarkSVC`): clusters, but with one linear problem for all of them, on
#   projections on landmarks.
#
# They are compared with scikit-learn's `SVC`, on as many rows as it can train on quickly.

# %%
import os
import time

import matplotlib.pyplot as plt
import pandas
from sklearn.svm import SVC

from daskls import FalkSVC, LandmarkSVC, VoronoiSVC
from daskls.datasets import bayes_accuracy, make_two_spirals
from daskls.plotting import PartitionDisplay

N_ROWS = min(200_000, int(os.environ.get("DASKLS_ROWS", 200_000)))
X, y = make_two_spirals(N_ROWS, random_state=0)
X_test, y_test = make_two_spirals(20_000, random_state=1)

# %%
models = {
    "cells": VoronoiSVC(random_state=0),
    "cells, the paper's": VoronoiSVC(loss="hinge", feature_scale=None, random_state=0),
    "neighborhoods": FalkSVC(n_neighbors=500, assign="center", random_state=0),
    "landmarks": LandmarkSVC(n_cells=1000, n_landmarks=10, random_state=0),
}

# %% [markdown]
# ## Measure
#
# A small fit first compiles the kernels, so that the times do not include compilation.


# %%
def measure(model, n_rows):
    start = time.perf_counter()
    model.fit(X[:n_rows], y[:n_rows])
    fitted = time.perf_counter()
    model.predict(X_test[:100])
    ready = time.perf_counter()
    error = 1 - model.score(X_test, y_test)
    seconds = time.perf_counter() - ready
    return {
        "rows": n_rows,
        "error, %": 100 * error,
        "fit, s": fitted - start,
        "predict, microseconds a row": 1e6 * seconds / len(X_test),
    }


for model in models.values():
    model.fit(X[:1500], y[:1500]).predict(X_test[:100])
measured = {name: measure(model, N_ROWS) for name, model in models.items()}
measured["SVC of few rows"] = measure(SVC(C=10, gamma=30), min(5_000, N_ROWS))
table = pandas.DataFrame(measured).T
table.style.format("{:,.1f}").format("{:,.0f}", subset="rows")

# %%
figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
for (name, row), marker in zip(table.iterrows(), "osD^v", strict=True):
    label = f"{name}, {row['fit, s']:.1f} s"
    ax.plot(row["predict, microseconds a row"], row["error, %"], marker, markersize=9, label=label)
ax.axhline(100 * (1 - bayes_accuracy("two_spirals")), color="0.3", linestyle="--", label="possible")
ax.set(xscale="log", xlabel="prediction, microseconds a row", ylabel="error, %")
ax.legend(title="seconds of training")
plt.show()

# %% [markdown]
# The defaults of cells first learn a scale of the features and compare kernels. That takes seconds,
# and pays off with more than two features. Landmarks predict fastest and have the highest error.
# With two features 5,000 rows are nearly enough: try a plain SVM of few rows first.
#
# ## What they look like
#
# The plots show the parts of space and the decision boundary. Neighborhoods are not drawn, because
# they are many and overlap; the center nearest to a query predicts it.

# %%
figure, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
for ax, name in zip(axes, ("cells", "landmarks"), strict=True):
    PartitionDisplay.from_estimator(models[name], X=X[:1500], y=y[:1500]).plot(ax, fill="class")
    ax.set_title(f"{name}: {100 - table.loc[name, 'error, %']:.1f} % right")
plt.show()

# %% [markdown]
# One set in two dimensions says nothing about your data. Begin with cells. The documentation's page
# on methods compares them on five real sets, and says when another method is worth its price.
