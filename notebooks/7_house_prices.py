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
# Numbers in place of classes: a table of made-up houses, whose price depends on where they stand,
# on their size and age and on how they are heated; a tenth of it is luck. What a model of cells
# makes of it, and where it errs.

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
# The name of the column is all that is needed: categories become features, the scale of the
# features is learned. `score` is R2.

# %%
model = VoronoiSVR(random_state=0).fit(houses, "price")
print(f"R2 on other houses: {model.score(fresh, 'price'):.4f}; {model.n_cells_} cells")
model

# %% [markdown]
# ## What counts
#
# How far each feature moves the answers, in the scale that was learned.

# %%
weights = pandas.Series(model.feature_importances_, model.feature_names_in_)
weights.sort_values().plot.barh(figsize=(6, 2.5), xlabel="share of distances")
plt.show()

# %% [markdown]
# ## Where it errs
#
# A tenth of the price is more money where houses are dear. A model of the price counts money, and
# is off by larger shares where they are cheap; one of its logarithm, turned back, counts shares.

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
# What one and the same house, of 150 square meters and of 1990, costs where.

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
# ## From ... to
#
# One number is not enough for an offer. Quantiles say what prices are likely: of houses like this
# one, a tenth is below the first and a tenth above the last. They never cross.

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
# Or the model of the price says how far it may be off: with `interval=0.8` it holds a fifth of the
# rows out, and from what it misses of these it knows how wide four fifths of all misses are. That
# is so of all houses together; of a certain kind it may be more or fewer.

# %%
covering = VoronoiSVR(interval=0.8, random_state=0).fit(houses, "price")
low, high = covering.predict_interval(fresh).T
print(f"{np.mean((low <= fresh.price) & (fresh.price <= high)):.1%} are between, of 80 %")
