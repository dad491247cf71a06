"""
A learned scale, and least squares in cells
===========================================

Only three of 28 features matter. Distances in which all features count equally hide them. A learned
scale finds them, and distances in cells and kernels then depend on little else.

``python examples/plot_learned_scale.py``
"""

from matplotlib import pyplot as plt

from daskls import VoronoiSVC
from daskls.datasets import bayes_accuracy, make_noisy28
from daskls.plotting import FeatureDisplay

# The irrelevant features are spread as widely as the others.
X, y = make_noisy28(8_000, noise=1.0, random_state=0)
X_test, y_test = make_noisy28(10_000, noise=1.0, random_state=1)
plain = VoronoiSVC(loss="squared_error", feature_scale=None, random_state=0).fit(X, y)
learned = VoronoiSVC(loss="squared_error", feature_scale="learned", random_state=0).fit(X, y)

# %%
display = FeatureDisplay.from_estimator(learned, n_shown=8).plot()
best = bayes_accuracy("noisy28")
title = (
    f"right: rows as they are {plain.score(X_test, y_test):.1%}, learned "
    f"{learned.score(X_test, y_test):.1%}, possible {best:.1%}"
)
display.figure_.suptitle(title, fontsize=10)
plt.show()
