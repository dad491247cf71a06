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
# # Prices of houses
#
# Regression on a table of made-up houses. The price depends on where a house stands, on its size
# and age, and on its heating; a tenth of it is noise. The notebook shows what a model of cells
# learns, and where its errors are.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas
from sklearn.compose import TransformedTargetRegressor

from daskls import VoronoiQuantileRegressor, VoronoiSVR

N_ROWS = min(100_000, int(os.environ.get("DASKLS_ROWS", 100_000)))
HEATING = {"gas": 0.0, "heat pump": 0.12, "oil": -0.05}


def draw(n_rows, seed):
    rng = np.random.default_rng(seed)
    houses = pandas.DataFrame(
        {
            "east": rng.uniform(-10, 10, n_rows),
            "north": rng.uniform(-10, 10, n_rows),
            "area": rng.gamma(6, 25, n_rows),
            "year": rng.integers(1900, 2025, n_rows),
            "heating": rng.choice(list(HEATING), n_rows),
        }
    )
    center = np.hypot(houses.east, houses.north)
    river = np.exp(-((houses.north - 4 * np.sin(houses.east / 3)) ** 2))
    log_price = 12 + 0.9 * np.log(houses.area / 150) - 0.08 * center + 0.3 * river
    log_price += 0.004 * np.abs(houses.year - 1955) + houses.heating.map(HEATING)
    houses["price"] = np.exp(log_price + rng.normal(0, 0.1, n_rows))
    return houses


houses, fresh = draw(N_ROWS, seed=0), draw(20_000, seed=1)
houses.head()

# %% [markdown]
# ## Fit a table
#
# The name of the column is enough: categories become features, and the scale of the features is
# learned. `score` is R2.

# %%
model = VoronoiSVR(random_state=0).fit(houses, "price")
print(f"R2 on other houses: {model.score(fresh, 'price'):.4f}; {model.n_cells_} cells")
model

# %% [markdown]
# ## Which features matter
#
# The plot shows how much each feature moves the predictions, in the learned scale.

# %%
weights = pandas.Series(model.feature_importances_, model.feature_names_in_)
weights.sort_values().plot.barh(figsize=(6, 2.5), xlabel="share of distances")
plt.show()

# %% [markdown]
# ## Where it errs
#
# A tenth of the price is more money for expensive houses. A model of the price minimizes errors in
# money, so that its relative errors are larger for cheap houses. A model of the logarithm of the
# price, transformed back, minimizes relative errors.

# %%
logs = TransformedTargetRegressor(
    VoronoiSVR(random_state=0), func=np.log, inverse_func=np.exp, check_inverse=False
)
columns = ["east", "north", "area", "year"]
coded = [own[columns].assign(pump=own.heating == "heat pump") for own in (houses, fresh)]
logs.fit(coded[0].astype(float), houses.price)
answers = {"the price": model.predict(fresh), "its logarithm": logs.predict(coded[1].astype(float))}

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, found) in zip(axes, answers.items(), strict=True):
    ax.hexbin(found, fresh.price / found - 1, gridsize=60, mincnt=1, xscale="log", bins="log")
    ax.axhline(0, color="black", lw=0.8)
    ax.set(title=f"a model of {name}", xlabel="answer", ylim=(-0.6, 0.6))
axes[0].set_ylabel("price over answer, less 1")
plt.show()

# %% [markdown]
# ## A map
#
# The map shows what the same house, of 150 square meters and built in 1990, costs in each place.

# %%
side = np.linspace(-10, 10, 120)
east, north = map(np.ravel, np.meshgrid(side, side))
same = pandas.DataFrame(
    {"east": east, "north": north, "area": 150.0, "year": 1990, "heating": "gas"}
)
figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
drawn = ax.pcolormesh(side, side, model.predict(same).reshape(120, 120) / 1000, cmap="viridis")
figure.colorbar(drawn, label="thousands")
ax.set(xlabel="east, km", ylabel="north, km", aspect="equal")
plt.show()

# %% [markdown]
# ## A range of prices
#
# One number is not enough for an offer. Quantiles show the range of likely prices: of houses like
# this one, a tenth cost less than the first quantile, and a tenth cost more than the last.
# Quantiles never cross.

# %%
LEVELS = (0.1, 0.5, 0.9)
some = houses[:10_000]
quantiles = VoronoiQuantileRegressor(quantile=LEVELS, random_state=0).fit(some, "price")
low, middle, high = quantiles.predict(fresh).T
print(f"{np.mean((low <= fresh.price) & (fresh.price <= high)):.1%} are between, of 80 %")

by_answer = np.argsort(middle)[:: len(middle) // 150]
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
place = np.arange(len(by_answer))
ax.fill_between(place, low[by_answer], high[by_answer], color="#bcd7ee", label="from 0.1 to 0.9")
ax.plot(place, middle[by_answer], color="#1f5f99", label="0.5")
ax.plot(place, fresh.price.to_numpy()[by_answer], ".", color="#c8501e", label="price")
ax.set(xlabel="houses, by their median", yscale="log")
ax.legend()
plt.show()

# %% [markdown]
# Alternatively, the model of the price returns an interval. With `interval=0.8` it holds out a
# fifth of the rows; from its errors on them it computes the width that contains four fifths of all
# errors. This share holds for all houses together; for a certain kind of house it may be larger or
# smaller.

# %%
covering = VoronoiSVR(interval=0.8, random_state=0).fit(houses, "price")
low, high = covering.predict_interval(fresh).T
print(f"{np.mean((low <= fresh.price) & (fresh.price <= high)):.1%} are between, of 80 %")
