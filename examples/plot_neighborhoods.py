"""
Neighborhoods: FalkSVC
======================

How ``FalkSVC`` works: neighborhoods that cover all rows, and the predictions they make together.
The picture follows figures 1 and 2 of Segata and Blanzieri, 2009.

``python examples/plot_neighborhoods.py neighborhoods.png`` saves the picture; without a file name
it is shown.
"""

import sys

import numpy as np
from matplotlib import pyplot as plt

from daskls import FalkSVC
from daskls.plotting import NeighborhoodDisplay


def main(path: str | None = None) -> None:
    """Train on a few rows, draw two pictures, save or show them."""
    rng = np.random.default_rng(3)
    X = rng.random((185, 2)) * [3, 2]
    height = 1 + 0.5 * np.sin(2.2 * X[:, 0]) + 0.08 * rng.normal(size=len(X))
    y = np.where(X[:, 1] > height, "above", "below")
    # Far fewer neighbors than any real data needs, so that the circles can be seen.
    model = FalkSVC(n_neighbors=15, n_assigned=4, C=10, gamma=4, random_state=0).fit(X, y)
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(8.5, 9.5), layout="constrained")
    display = NeighborhoodDisplay.from_estimator(model, feature_names=("x", "y"))
    display.plot(upper, show_joint=False)
    upper.set_title("What is trained: 15 rows around each center", fontsize=10)
    display.plot(lower, show_circles=False, show_local=False, show_regions=True)
    lower.set_title("What is predicted: each center answers for its own rows", fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=100)
    plt.show()


if __name__ == "__main__":
    main(*sys.argv[1:2])
