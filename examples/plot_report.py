"""
A whole fit on one page: ReportDisplay
======================================

The page shows where cells lie and what their errors are, what was chosen, and how good that is
beside a baseline. On rows that were not used in the fit it shows which classes are confused,
whether probabilities are reliable, and which features matter.

``python examples/plot_report.py report.html`` also writes it as a page for a browser; so does
``daskls report model.zarr test.csv --html report.html``.
"""

import sys

from matplotlib import pyplot as plt

from daskls import VoronoiSVC
from daskls.datasets import make_checkerboard
from daskls.plotting import ReportDisplay

X, y = make_checkerboard(8_000, random_state=0)
X_test, y_test = make_checkerboard(4_000, random_state=1)

# %%
# Each cell searches its own grid.
model = VoronoiSVC(
    cell_size=400, loss="hinge", feature_scale=None, probability=True, random_state=0
).fit(X, y)
report = ReportDisplay.from_estimator(model, X_test, y_test).plot()
if len(sys.argv) > 1:
    report.to_html(sys.argv[1])
plt.show()

# %%
# The default, without a test set: one choice for all cells, and no picture that needs test rows.
ReportDisplay.from_estimator(VoronoiSVC(cell_size=400, random_state=0).fit(X, y)).plot()
plt.show()
