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
# # A rare class, and its probability
#
# Three parts in a hundred are faulty. A classifier that calls all of them sound has an accuracy of
# 97 %, and is useless. Instead, predict probabilities, and decide by the cost of each mistake.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas
from sklearn.calibration import calibration_curve
from sklearn.metrics import precision_recall_curve

from daskls import VoronoiSVC
from daskls.plotting import RocDisplay

N_ROWS = min(200_000, int(os.environ.get("DASKLS_ROWS", 200_000)))


def draw(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    faulty = rng.random(n_rows) < 0.03
    X[faulty, :2] = 0.5 * X[faulty, :2] + 1.2
    return X, np.where(faulty, "faulty", "sound")


X, y = draw(N_ROWS, seed=0)
X_test, y_test = draw(100_000, seed=1)
is_faulty = y_test == "faulty"
print(f"{np.mean(y == 'faulty'):.1%} of {N_ROWS:,} parts are faulty")

# %% [markdown]
# ## Accuracy says little

# %%
plain = VoronoiSVC(probability="isotonic", random_state=0).fit(X, y)
balanced = VoronoiSVC(class_weight="balanced", random_state=0).fit(X, y)


def describe(labels):
    return {
        "right": np.mean(labels == y_test),
        "of the faulty, found": np.mean(labels[is_faulty] == "faulty"),
        "alarms of sound parts": np.mean(labels[~is_faulty] == "faulty"),
    }


answers = {
    "all sound": np.full(len(y_test), "sound"),
    "plain": plain.predict(X_test),
    "balanced": balanced.predict(X_test),
}
table = pandas.DataFrame({name: describe(labels) for name, labels in answers.items()}).T
table.style.format("{:.1%}")

# %% [markdown]
# ## Probabilities
#
# Of the parts that get a probability of 20 %, 20 % should be faulty. The maps from scores to
# probabilities are fitted to held-out rows; here they are checked on test rows.

# %%
proba = plain.predict_proba(X_test)[:, list(plain.classes_).index("faulty")]
shares, means = calibration_curve(is_faulty, proba, n_bins=12, strategy="quantile")
precision, recall, _ = precision_recall_curve(is_faulty, proba)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
left.plot([0, 1], [0, 1], "--", color="0.5", label="as it should be")
left.plot(means, shares, "o-", color="#1f5f99", label="this model")
upper = 1.1 * max(means.max(), shares.max())
left.set(xlabel="predicted probability of a fault", ylabel="share of faulty parts")
left.set(xlim=(0, upper), ylim=(0, upper))
left.legend()
right.plot(recall[:-1], precision[:-1], color="#1f5f99", label="all thresholds")
for (name, labels), marker in zip(list(answers.items())[1:], "os", strict=True):
    found = labels == "faulty"
    place = np.mean(found[is_faulty]), np.mean(is_faulty[found]) if found.any() else 1.0
    right.plot(*place, marker, color="#c8501e", markersize=9, label=name)
right.set(xlabel="share of the faulty that is found", ylabel="share of alarms that are right")
right.legend()
plt.show()

# %% [markdown]
# ## Decide by cost
#
# Say an alarm costs 10, and an overlooked fault c: an alarm pays off where c p > 10 (1 - p). Class
# weights fit only one cost ratio, the one that makes both classes count alike. Probabilities serve
# every cost, and no model is trained again.

# %%
ALARM = 10


def cost(alarms, missed):
    overlooked, false = is_faulty & ~alarms, ~is_faulty & alarms
    return missed * overlooked.mean() + ALARM * false.mean()


costs = {
    f"a fault costs {missed:,}": {
        **{name: cost(labels == "faulty", missed) for name, labels in answers.items()},
        "by probability": cost(missed * proba > ALARM * (1 - proba), missed),
    }
    for missed in (30, 100, 300, 3_000)
}
pandas.DataFrame(costs).T.style.format("{:.2f}").highlight_min(axis=1, color="#bcd7ee")

# %% [markdown]
# ## A bound on false alarms
#
# Sometimes nobody knows what a mistake costs, but at most one sound part in a hundred may be
# stopped. The fit holds some rows out of everything and takes its threshold from their scores:
# except in 5 % of fits, at most the requested share of the first class is predicted as the second.

# %%
bounded = VoronoiSVC(max_false_alarm=0.01, delta=0.05, random_state=0).fit(X, y == "faulty")
alarms = bounded.predict(X_test)
print(bounded.false_alarm_)
print(f"of {np.sum(~is_faulty):,} other sound parts {alarms[~is_faulty].mean():.2%} are stopped,")
print(f"of the faulty {alarms[is_faulty].mean():.1%}")

# %% [markdown]
# The curve shows what other bounds would find, on the same rows: each point of it is a threshold.

# %%
display = RocDisplay.from_estimator(bounded).plot()
