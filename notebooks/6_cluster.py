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
# # On a cluster
#
# A scheduler and four workers, here on one machine. On several machines it works the same way, with
# `Client("tcp://host:8786")` and a folder that all of them can read and write. This notebook shows
# that the fit finds the client by itself, that only paths and counts travel, and that the model is
# the same as without a cluster, bit for bit.

# %%
import os
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster, get_task_stream

from daskls import VoronoiSVC, load
from daskls.datasets import make_noisy28, write

N_ROWS = min(1_000_000, int(os.environ.get("DASKLS_ROWS", 1_000_000)))
train = write("noisy28", "train.zarr", N_ROWS)
X_test, y_test = make_noisy28(20_000, random_state=1)

# %% [markdown]
# ## Start it
#
# Use one thread per worker, and as many workers as cores. Elsewhere you start them with `dask
# scheduler` and `dask worker`.

# %%
cluster = LocalCluster(
    n_workers=4,
    threads_per_worker=1,
    memory_limit="1GiB",
    dashboard_address=":0",
    silence_logs="CRITICAL",
)
client = Client(cluster.scheduler_address)
print(f"{len(client.scheduler_info()['workers'])} workers; dashboard: the page /daskls beside it")

# %% [markdown]
# ## Train
#
# The workers read the rows themselves. Every worker must have access to the path of the data and of
# the store; the fit checks this first.

# %%
with get_task_stream(client) as stream:
    model = VoronoiSVC(store="model.zarr", random_state=0).fit(train.path)
print(f"{model.n_cells_} cells, {model.score(X_test, y_test):.2%} right")

# %% [markdown]
# ## Who did what
#
# Rows are sampled; a scale of the features is learned on some regions of space and compared with
# other scales; every block of rows is assigned to cells; then free workers train the cells, in
# bundles.

# %%
stages = {
    "sample_block": ("sample", "#cc79a7"),
    "collect_block": ("scale", "#009e73"),
    "gather_region": ("scale", "#009e73"),
    "region_errors": ("scale", "#009e73"),
    "region_slopes": ("scale", "#009e73"),
    "evaluate_region": ("scale", "#009e73"),
    "assign_block": ("regroup", "#e69f00"),
    "fit_bundle": ("train", "#0072b2"),
}
spans = defaultdict(list)
for task in stream.data:
    name = str(task["key"]).strip("('").split("-")[0].split("'")[0]
    worker = sorted(client.scheduler_info()["workers"]).index(task["worker"])
    for step in task["startstops"]:
        if step["action"] == "compute":
            stage = stages.get(name, ("other", "#999999"))
            spans[stage].append((worker, step["start"], step["stop"]))
start = min(begin for tasks in spans.values() for _, begin, _ in tasks)

figure, ax = plt.subplots(figsize=(11, 3), layout="constrained")
for (label, color), tasks in spans.items():
    workers, begins, ends = map(np.array, zip(*tasks, strict=True))
    ax.barh(
        workers, ends - begins, left=begins - start, color=color, edgecolor="white",
        linewidth=0.5, label=f"{label}: {len(tasks)} tasks",
    )  # fmt: skip
ax.set(xlabel="seconds", yticks=range(4), yticklabels=[f"worker {i}" for i in range(4)])
ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=5, frameon=False)
plt.show()

# %%
client.close()
cluster.close()

# %% [markdown]
# ## The same model without a cluster
#
# On threads of this process, from the same rows and the same seed:

# %%
alone = VoronoiSVC(random_state=0).fit(train.path)
scores = load("model.zarr").decision_function(X_test)
print("the same, bit for bit:", np.array_equal(alone.decision_function(X_test), scores))
