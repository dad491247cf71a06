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
# # Ten million rows on a laptop
#
# Rows stay on disk, two workers of 2 GiB train, and memory does not grow with the number of rows.
# Three of the 28 features of the set decide the class. One label in ten is wrong, so that no model
# can have an accuracy above 90 %.

# %%
import os

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pandas
from distributed import Client, LocalCluster

from daskls import VoronoiSVC
from daskls.datasets import bayes_accuracy, write
from daskls.plotting import FeatureDisplay

N_ROWS = int(os.environ.get("DASKLS_ROWS", 10_000_000))

# %% [markdown]
# ## Rows on disk
#
# `write` draws a data set one chunk at a time. Your own data may be Parquet or CSV: `fit` takes the
# path.

# %%
train = write("noisy28", "train.zarr", N_ROWS)
test = write("noisy28", "test.zarr", 200_000, random_state=1)
print(f"{train.n_rows:,} rows, {train.X.nbytes / 2**20:,.0f} MiB in {train.X.nchunks} chunks")

# %% [markdown]
# ## Two workers
#
# Each has one thread; the fit finds them by itself. No worker gets a task that needs more than its
# memory limit, because the fit projects the largest task first.

# %%
cluster = LocalCluster(
    n_workers=2,
    threads_per_worker=1,
    memory_limit="2GiB",
    dashboard_address=":0",
    silence_logs="CRITICAL",
)
client = Client(cluster)

# %% [markdown]
# ## Watch it
#
# `verbose=1` shows the fit below the cell: its stages, the time left, the mean validation error so
# far, and a map of space that fills in. The dashboard's page `/daskls` shows the same. You can
# interrupt the fit at any time: with `store=` the next `fit` continues with what is missing.

# %%
model = VoronoiSVC(store="model.zarr", random_state=0, verbose=1)
model.fit(train.path)

# %% [markdown]
# ## How good is it?
#
# The prediction for a Zarr array is lazy: each block is predicted when it is computed, and the
# whole is never in memory.

# %%
labels = model.predict(test.X)
true = np.asarray(test.classes)[da.from_zarr(test.y, chunks=labels.chunks)]
accuracy, best = (labels == true).mean().compute(), bayes_accuracy("noisy28")
print(f"{accuracy:.2%} of {test.n_rows:,} labels are right; possible: {best:.2%}")

# %%
report = pandas.DataFrame(model.fit_report_)
shown = ["n_rows", "n_support", "validation_error", "seconds"]
report[shown].describe().loc[["mean", "min", "max"]]

# %% [markdown]
# ## What it has found
#
# The fit learns from the rows which features matter: the first three, as it should be. The error of
# each cell is measured on 64 of its rows, left out one by one. In every cell about one label in ten
# is wrong.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.3), layout="constrained")
FeatureDisplay.from_estimator(model, n_shown=8).plot(left)
errors = 100 * report["validation_error"].dropna()
right.hist(errors, bins=100 * (np.arange(25) - 0.5) / 64, color="#5b8db8")
right.axvline(10, color="#c8501e", linestyle="--", label="wrong labels")
right.set(xlabel="validation error of a cell, %", ylabel="cells")
right.legend()
plt.show()

# %%
client.close()
cluster.close()
