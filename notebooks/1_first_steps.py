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
# # First steps: from a CSV to labels
#
# A typical table: text, a category, missing values. What grows on a plot of land depends on its
# position, its soil and the rain. One label in forty is wrong, and in one row of twenty the rain is
# missing.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas

from daskls import VoronoiSVC

N_ROWS = min(20_000, int(os.environ.get("DASKLS_ROWS", 20_000)))


# %%
def draw_table(n_rows, seed):
    rng = np.random.default_rng(seed)
    table = pandas.DataFrame(rng.random((n_rows, 2)).round(4), columns=["east", "north"])
    table["soil"] = rng.choice(["clay", "loam", "sand"], n_rows)
    rain = rng.normal(800, 200, n_rows).round()
    wet = (rain - 800) / 400 + table["soil"].map({"clay": 0.3, "loam": 0.0, "sand": -0.3})
    hill = ((4 * table["east"]).astype(int) + (4 * table["north"]).astype(int)) % 2 - 0.5
    table["rain"] = np.where(rng.random(n_rows) < 0.05, np.nan, rain)
    grows = np.where(hill + wet > 0, "forest", "field")
    wrong = rng.random(n_rows) < 0.025
    table["grows"] = np.where(wrong, np.where(grows == "field", "forest", "field"), grows)
    return table


draw_table(N_ROWS, seed=0).to_csv("train.csv", index=False)
draw_table(5_000, seed=1).to_csv("test.csv", index=False)
pandas.read_csv("train.csv").head()

# %% [markdown]
# ## Train
#
# The path of the file and the name of the column to predict are enough. `verbose=1` shows the
# progress of the fit, and what becomes of the columns:

# %%
model = VoronoiSVC(random_state=0, verbose=1)
model.fit("train.csv", "grows")
list(model.feature_names_in_)

# %% [markdown]
# Each soil has become a column, and another column says whether the rain is missing. Queries are
# converted in the same way, by the names of their columns.
#
# ## How good is it?
#
# On rows that it was not trained on:

# %%
test = pandas.read_csv("test.csv")
predicted = model.predict(test)
print(f"{np.mean(predicted == test['grows']):.1%} of {len(test):,} labels are right")
pandas.crosstab(test["grows"], predicted, colnames=["predicted"])

# %% [markdown]
# ## What it has learned
#
# The model's map (forest is blue) for three soils, in a dry year and in a wet one. The squares are
# the hills. Clay holds water: in a wet year forest grows everywhere on clay, in a dry year nowhere
# on sand.

# %%
side = np.linspace(0, 1, 120)
east, north = np.meshgrid(side, side)
places = pandas.DataFrame({"east": east.ravel(), "north": north.ravel()})
figure, axes = plt.subplots(2, 3, figsize=(10, 7), layout="constrained", sharex=True, sharey=True)
for row, rain in zip(axes, [650, 950], strict=True):
    for ax, soil in zip(row, ["clay", "loam", "sand"], strict=True):
        grows = model.predict(places.assign(soil=soil, rain=rain)).reshape(east.shape)
        levels, colors = [-1, 0.5, 2], ["#f6d5b0", "#5b8db8"]
        ax.contourf(east, north, grows == "forest", levels=levels, colors=colors)
        ax.set(title=f"{soil}, {rain} mm: {np.mean(grows == 'forest'):.0%} forest", aspect="equal")
axes[1, 0].set(xlabel="east", ylabel="north")
plt.show()

# %% [markdown]
# ## Keep it
#
# A model is saved as a folder. `daskls predict forest.zarr test.csv out.csv` reads it as well.

# %%
from daskls import load

model.save("forest.zarr")
test["predicted"] = load("forest.zarr").predict("test.csv")
test.to_csv("out.csv", index=False)
assert (test["predicted"] == predicted).all()
test.head()
