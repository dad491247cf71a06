"""
Nearest rows: KNNSVC and KernelKNNClassifier
============================================

Neither trains beforehand: a query finds its nearest rows, and is predicted by their majority or by
an SVM that is trained on them.

``python examples/plot_nearest.py``
"""

import numpy as np
from matplotlib import pyplot as plt

from daskls import KNNSVC, KernelKNNClassifier
from daskls.datasets import make_two_spirals

X, y = make_two_spirals(600, n_turns=1.5, noise=0.11, random_state=0)
X_test, y_test = make_two_spirals(1_000, n_turns=1.5, noise=0.11, random_state=1)
models = [
    KernelKNNClassifier(n_neighbors=1, random_state=0),
    KernelKNNClassifier(n_neighbors=15, random_state=0),
    KNNSVC(n_neighbors=60, C=1.0, gamma=10.0, random_state=0),
]

# %%
# A vote of few rows follows the noise, and a vote of many rows cuts corners. A local SVM of many
# rows follows the boundary.
side = np.linspace(-1.4, 1.4, 80)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(np.float32)
figure, axes = plt.subplots(1, 3, figsize=(14, 4.8), layout="constrained")
for ax, model in zip(axes, models, strict=True):
    answers = model.fit(X, y).predict(plane).reshape(len(side), -1)
    ax.contourf(side, side, answers, levels=[-2, 0, 2], colors=["#f6d5b0", "#bcd7ee"])
    for label, color in ((-1, "#c8501e"), (1, "#1f5f99")):
        ax.plot(*X[y == label].T, ".", color=color, markersize=3)
    name = f"{type(model).__name__}(n_neighbors={model.n_neighbors})"
    ax.set_title(f"{name}: {model.score(X_test, y_test):.1%} right", fontsize=10)
    ax.set_aspect("equal")
plt.show()
