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
# # Cleaning labels
#
# Handwritten digits of 8 x 8 pixels, labeled carelessly: 5 % of the labels are wrong. A filter
# finds them: for each row it checks whether an SVM trained on the nearest other rows agrees with
# the label.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from daskls import KernelKNNClassifier, KNNSVMNoiseFilter, VoronoiSVC

X, true = load_digits(return_X_y=True)
N_ROWS = min(len(X), int(os.environ.get("DASKLS_ROWS", len(X))))
rng = np.random.default_rng(0)
order = rng.permutation(len(X))[:N_ROWS]
X, true = X[order], true[order]

wrong = rng.random(N_ROWS) < 0.05
given = np.where(wrong, (true + rng.integers(1, 10, N_ROWS)) % 10, true)
train, test = np.arange(N_ROWS) < 0.7 * N_ROWS, np.arange(N_ROWS) >= 0.7 * N_ROWS
print(f"{train.sum():,} rows to train on, {wrong[train].sum()} of them with a wrong label")

# %% [markdown]
# ## Find them
#
# `keep_` is True for the rows to keep.

# %%
noise = KNNSVMNoiseFilter(n_neighbors=60, C=10.0, gamma=0.001, random_state=0)
noise.fit(X[train], given[train])
removed = ~noise.keep_
found = removed & wrong[train]
print(f"{removed.sum()} rows are suspicious: {found.sum()} of {wrong[train].sum()} wrong labels,")
print(f"and {(removed & ~wrong[train]).sum()} that were right")

# %% [markdown]
# ## Look at them
#
# Look at rows before you remove them. About half are plainly wrong. The others have the right label
# and look unlike the rest of their class.

# %%
shown = np.flatnonzero(removed)[:24]
figure, axes = plt.subplots(3, 8, figsize=(11, 5.2), layout="constrained")
for ax in axes.flat:
    ax.axis("off")
for ax, row in zip(axes.flat, shown, strict=False):
    ax.imshow(X[train][row].reshape(8, 8), cmap="gray_r")
    is_wrong = wrong[train][row]
    ax.set_title(
        f"label {given[train][row]}" + (f", is {true[train][row]}" if is_wrong else ", right"),
        fontsize=10,
        color="black" if is_wrong else "#c8501e",
    )
plt.show()

# %% [markdown]
# ## Is it worth it?
#
# It depends on the method. The nearest neighbor copies every wrong label; a vote of five rows, or
# least squares in cells, already average out most of them.


# %%
def compare(model):
    dirty = model.fit(X[train], given[train]).score(X[test], true[test])
    clean = model.fit(X[train][noise.keep_], given[train][noise.keep_]).score(X[test], true[test])
    return 100 * (1 - dirty), 100 * (1 - clean)


models = {
    "nearest row": KernelKNNClassifier(n_neighbors=1),
    "vote of five rows": KernelKNNClassifier(n_neighbors=5),
    "least squares in cells": VoronoiSVC(random_state=0),
}
errors = {name: compare(model) for name, model in models.items()}

# %%
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
places = np.arange(len(errors))
for i, (label, color) in enumerate([("labels as given", "#c8501e"), ("cleaned", "#1f5f99")]):
    widths = [pair[i] for pair in errors.values()]
    bars = ax.barh(places + 0.38 * i, widths, 0.36, color=color, label=label)
    ax.bar_label(bars, fmt="%.1f", padding=3)
ax.set_yticks(places + 0.19, list(errors))
ax.set(xlabel="error on test rows, %")
ax.invert_yaxis()
ax.legend()
plt.show()

# %% [markdown]
# One test row in these bars is 0.2 points: the first difference is significant, the others may not
# be.
#
# For many rows use `FalkNoiseFilter`: it trains one SVM per neighborhood, not one per row, and
# cleans data sets on disk (`clean_dataset`).
