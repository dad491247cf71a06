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
# # Any table as it is
#
# Salaries of made-up employees: titles of many spellings, dates, departments, gaps, and a number
# that only names the row. The notebook shows what becomes of each column, what a model makes of
# titles that it has never seen, and that scikit-learn's tools take the table, too.

# %%
import os
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas
from sklearn.inspection import permutation_importance
from sklearn.model_selection import cross_val_score

from daskls import VoronoiSVR

N_ROWS = min(20_000, int(os.environ.get("DASKLS_ROWS", 20_000)))
LEVELS = {"Chief": 0.5, "Senior": 0.25, "": 0.0, "Assistant": -0.2, "Junior": -0.25}
TRADES = ("Engineer", "Nurse", "Librarian", "Inspector", "Accountant", "Architect", "Planner")
UNITS = "Health Transport Finance Parks Police Housing Water Schools Energy Courts Taxes Harbors"
UNITS = (*UNITS.split(), *(f"{own} South" for own in UNITS.split()))
GRADES = {"I": -0.1, "II": 0.0, "III": 0.1, "IV": 0.2}


def draw(n_rows, seed):
    rng = np.random.default_rng(seed)
    level, grade = rng.choice(list(LEVELS), n_rows), rng.choice(list(GRADES), n_rows)
    trade, unit = rng.integers(0, len(TRADES), n_rows), rng.integers(0, len(UNITS), n_rows)
    hired = pandas.Timestamp("2000-01-01") + pandas.to_timedelta(rng.integers(0, 9000, n_rows), "D")
    log_salary = 11 + np.array([LEVELS[own] for own in level]) + 0.1 * np.cos(2 * trade)
    log_salary += 0.08 * np.sin(3 * unit) + np.array([GRADES[own] for own in grade])
    log_salary -= 0.02 * (hired.year - 2000) + rng.normal(0, 0.08, n_rows)
    words = zip(level, trade, unit, grade, strict=True)
    table = pandas.DataFrame(
        {
            "badge": [f"{seed}-{own:06d}" for own in rng.permutation(n_rows)],
            "title": [f"{a} {TRADES[b]} {d}, {UNITS[c]}".strip() for a, b, c, d in words],
            "hired": hired,
            "site": pandas.Categorical(rng.choice(["north", "south", "east"], n_rows)),
            "hours": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(38, 4, n_rows)),
        }
    )
    return table, pandas.Series(np.exp(log_salary), name="salary")


X, salary = draw(N_ROWS, seed=0)
fresh, of_fresh = draw(5_000, seed=1)
X.assign(salary=salary).head()

# %% [markdown]
# ## Fit
#
# The table and the numbers to predict, as scikit-learn passes them. `table_` says what became of
# each column; a warning names the column that is left out.

# %%
model = VoronoiSVR(random_state=0)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    model.fit(X, salary)
for warning in told:
    print(warning.message)
for line in model.table_.describe():
    print("-", line)

# %% [markdown]
# ## Titles that no training row had
#
# New titles have a place by the letters that they share with known ones. Dots are employees of the
# other table; noise alone leaves a typical error of 5.4 %.

# %%
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    answers = model.predict(fresh)
is_new = ~fresh.title.isin(set(X.title))
error = np.abs(np.log(answers / of_fresh))
print(f"{is_new.sum():,} of {len(fresh):,} titles are new.")
print(
    f"Typical error: {error[~is_new].median():.1%} for known titles, "
    f"{error[is_new].median():.1%} for new ones."
)

_, axes = plt.subplots(figsize=(5, 5))
for chosen, name in ((~is_new, "known title"), (is_new, "new title")):
    axes.scatter(of_fresh[chosen], answers[chosen], s=4, label=name)
axes.axline((60_000, 60_000), slope=1, color="black", linewidth=0.8)
axes.set(xlabel="salary", ylabel="predicted", xscale="log", yscale="log")
axes.legend()
# %% [markdown]
# ## With scikit-learn's tools
#
# Each fold counts its own statistics, so that none sees the salaries that it is scored on.

# %%
some = X.drop(columns="badge")[:3000]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    scores = cross_val_score(VoronoiSVR(random_state=0), some, salary[:3000], cv=3)
    found = permutation_importance(
        VoronoiSVR(random_state=0).fit(some, salary[:3000]),
        some,
        salary[:3000],
        n_repeats=2,
        random_state=0,
    )
print("R2 by folds:", scores.round(3))
_, axes = plt.subplots(figsize=(5, 2.5))
pandas.Series(found.importances_mean, some.columns).sort_values().plot.barh(
    ax=axes, xlabel="loss of R2"
)
