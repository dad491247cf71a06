"""
Neighborhoods: FalkSVC
======================

``FalkSVC`` trains an SVM on the nearest rows of each of a few centers, and the center of a query's
nearest row predicts. With few neighbors the boundary follows the noise; with many, kernels of one
width lose its bends.

``python examples/plot_neighborhoods.py neighborhoods.png`` saves the picture; without a file name
it is shown.
"""

import sys

from matplotlib import pyplot as plt

from daskls import FalkSVC
from daskls.datasets import make_two_spirals
from daskls.plotting import PartitionDisplay


def main(path: str | None = None) -> None:
    """Train with more and more neighbors, draw the predictions, save or show them."""
    X, y = make_two_spirals(2_000, random_state=0)
    X_test, y_test = make_two_spirals(4_000, random_state=1)
    figure, axes = plt.subplots(1, 3, figsize=(16, 5.4), layout="constrained")
    for ax, k in zip(axes, (20, 100, 500), strict=True):
        model = FalkSVC(n_neighbors=k, C=1, gamma=10, random_state=0).fit(X, y)
        PartitionDisplay.from_estimator(model, X=X[:1500], y=y[:1500]).plot(ax)
        score = f"{model.score(X_test, y_test):.1%} right"
        ax.set_title(f"{k} neighbors of each of {model.n_cells_} centers: {score}", fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=100)
    plt.show()


if __name__ == "__main__":
    main(*sys.argv[1:2])
