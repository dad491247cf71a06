"""
Samples: LocalSamplingSVC and NeighborSamplingSVC
=================================================

Both train one SVM on the rows that matter: the support rows of small subsamples, and rows near
them. ``path_`` lists the models that were tried.

``python examples/plot_sampling.py``
"""

from matplotlib import pyplot as plt

from daskls import LocalSamplingSVC, NeighborSamplingSVC
from daskls.datasets import bayes_accuracy, make_swiss_roll

X, y = make_swiss_roll(20_000, random_state=0)
X_test, y_test = make_swiss_roll(10_000, random_state=1)
params = {"sample_fraction": 0.02, "C": 10.0, "gamma": 100.0, "random_state": 0}
balls = LocalSamplingSVC(n_subsamples=5, **params).fit(X, y)
rounds = NeighborSamplingSVC(n_neighbors=5, **params).fit(X, y)

# %%
# The first draws rows from balls around support rows; the balls grow until the error on held-out
# rows no longer falls. The second adds the nearest rows of the support rows, round by round.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained", sharey=True)
for ax, model, step in ((axes[0], balls, "radius_scale"), (axes[1], rounds, "round")):
    path = model.path_
    ax.plot(path[step], 100 * path.validation_error, "o-", label="validation error, %")
    for place, error, n_rows in zip(path[step], path.validation_error, path.n_rows, strict=True):
        ax.annotate(
            f"{n_rows:,}",
            (place, 100 * error),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    ax.margins(y=0.15)
    ax.set(xlabel=step.replace("_", " "))
    accuracy = f"{model.score(X_test, y_test):.1%} right on test rows"
    ax.set_title(f"{type(model).__name__}: {accuracy}", fontsize=10)
axes[0].set_ylabel("validation error, %")
best = bayes_accuracy("swiss_roll")
figure.suptitle(f"Rows trained on, of {len(X):,}; the best possible accuracy is {best:.1%}")
plt.show()
