"""
Cells: VoronoiSVC
=================

How ``VoronoiSVC`` cuts a checkerboard into cells, and what each cell predicts and selects.

``python examples/plot_partition.py partition.png`` saves the picture; without a file name it is
shown.
"""

import sys

from matplotlib import pyplot as plt

from daskls import VoronoiSVC
from daskls.datasets import make_checkerboard
from daskls.plotting import CellDisplay, GridDisplay, PartitionDisplay


def main(path: str | None = None) -> None:
    """Train, draw four pictures, save or show them."""
    X, y = make_checkerboard(8_000)
    model = VoronoiSVC(cell_size=400, loss="hinge", feature_scale=None, cv=3, random_state=0).fit(
        X, y
    )
    figure, axes = plt.subplots(2, 2, figsize=(11, 10), layout="constrained")
    partition = PartitionDisplay.from_estimator(model, X=X[:1500], y=y[:1500])
    partition.plot(axes[0, 0])
    axes[0, 0].set_title(f"{model.n_cells_} cells and the decision boundary")
    partition.plot(axes[0, 1], fill="validation_error", show_rows=False)
    axes[0, 1].set_title("validation error of each cell")
    GridDisplay.from_estimator(model).plot(axes[1, 0])
    CellDisplay.from_estimator(model, fields=["seconds"]).plot(axes[1, 1])
    if path is not None:
        figure.savefig(path, dpi=100)
    plt.show()


if __name__ == "__main__":
    main(*sys.argv[1:2])
