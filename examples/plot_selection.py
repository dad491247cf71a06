"""
The choices of a fit: GridDisplay and SelectionDisplay
======================================================

Each cell of a ``VoronoiSVC`` chooses its own C and gamma; a ``FalkSVC`` with ``selection="local"``
chooses one k, C and width for all its neighborhoods. If many choices lie on an edge, a better value
may lie beyond it.

``python examples/plot_selection.py``
"""

import warnings

from matplotlib import pyplot as plt

from daskls import FalkSVC, VoronoiSVC
from daskls.datasets import make_checkerboard
from daskls.plotting import GridDisplay, SelectionDisplay

X, y = make_checkerboard(8_000, random_state=0)

# %%
# The method's own grid, scaled to each cell. The cells in the corner lie inside one square of the
# board. There all values have the same error, and ties go to the widest kernel and the smallest C.
# These choices on an edge mean nothing; the other choices lie inside the grid.
cells = VoronoiSVC(cell_size=400, loss="hinge", feature_scale=None, random_state=0).fit(X, y)
GridDisplay.from_estimator(cells).plot()
plt.show()

# %%
# A grid that ends too early: every cell that a border crosses needs a larger gamma. The fit warns,
# and names the values to try.
narrow = VoronoiSVC(
    cell_size=400, loss="hinge", feature_scale=None, C=[1, 10], gamma=[0.1, 1, 10], random_state=0
)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    narrow.fit(X, y)
print(*(warning.message for warning in told))
GridDisplay.from_estimator(narrow).plot()
plt.show()

# %%
# One choice for all neighborhoods.
falk = FalkSVC(n_neighbors=[100, 300], selection="local", random_state=0).fit(X, y)
SelectionDisplay.from_estimator(falk).plot()
plt.show()
