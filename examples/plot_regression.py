"""
Numbers as targets: VoronoiSVR
==============================

Regression in cells: a curve over one feature, a surface over two, and the residuals on rows that
were not used in the fit.

``python examples/plot_regression.py``
"""

import numpy as np
from matplotlib import pyplot as plt

from daskls import VoronoiSVR
from daskls.plotting import PartitionDisplay, ReportDisplay

rng = np.random.default_rng(0)

# %%
# One feature: waves that grow shorter, covered by four cells. Dots are rows, lines are the borders
# of cells.
x = rng.random((1_600, 1))
y = np.sin(20 * x[:, 0] ** 2) + rng.normal(0, 0.2, len(x))
model = VoronoiSVR(cell_size=400, random_state=0).fit(x, y)
display = PartitionDisplay.from_estimator(model, X=x, y=y).plot()
display.ax_.set_title(f"{model.n_cells_} cells, R2 of the rows {model.score(x, y):.3f}")
plt.show()

# %%
# Two features. Left: the predictions, and rows in the colors of their y. Right: the error of each
# cell on held-out rows, and contour lines of the predictions.


def draw_rows(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in a square, and numbers: a ring, noisier to the right."""
    X = rng.uniform(-1, 1, (n_rows, 2))
    ring = np.exp(-20 * (np.hypot(*X.T) - 0.6) ** 2)
    return X, 100 * (ring + 0.5 * X[:, 1] + rng.normal(0, 0.08 + 0.08 * X[:, 0]))


X, y = draw_rows(6_000)
model = VoronoiSVR(cell_size=600, random_state=0).fit(X, y)
_, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
display = PartitionDisplay.from_estimator(model, X=X[:800], y=y[:800]).plot(left)
left.set_title("predicted, and 800 rows")
display.plot(right, fill="validation_error", show_rows=False)
right.set_title("error of each cell")
plt.show()

# %%
# The whole fit on one page: predictions against true values, and residuals.
ReportDisplay.from_estimator(model, *draw_rows(3_000)).plot()
plt.show()
