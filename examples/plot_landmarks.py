"""
Landmarks: LandmarkSVC
======================

``LandmarkSVC`` on a swiss roll: clusters, their predictions, and accuracy against their number.

``python examples/plot_landmarks.py landmarks.png`` saves the picture; without a file name it is
shown.
"""

import sys

from matplotlib import pyplot as plt

from daskls import LandmarkSVC
from daskls.datasets import make_swiss_roll
from daskls.plotting import PartitionDisplay


def main(path: str | None = None) -> None:
    """Train with more and more clusters, draw two of the models and the curve."""
    X, y = make_swiss_roll(4_000, random_state=0)
    X_test, y_test = make_swiss_roll(4_000, random_state=1)
    figure, axes = plt.subplots(1, 3, figsize=(16, 5), layout="constrained")
    counts, accuracies = [1, 3, 10, 30, 100, 300], []
    for n_cells in counts:
        model = LandmarkSVC(n_cells, n_landmarks=10, C=[0.1, 10.0], random_state=0).fit(X, y)
        accuracies.append(100 * model.score(X_test, y_test))
        if n_cells in (10, 100):
            ax = axes[0] if n_cells == 10 else axes[1]
            display = PartitionDisplay.from_estimator(model, X=X[:1500], y=y[:1500])
            display.plot(ax, fill="class")
            ax.set_title(f"{model.n_cells_} clusters, one bias: {accuracies[-1]:.1f} % right")
    axes[2].plot(counts, accuracies, "o-")
    axes[2].set(xscale="log", xlabel="clusters", ylabel="test accuracy, %")
    if path is not None:
        figure.savefig(path, dpi=100)
    plt.show()


if __name__ == "__main__":
    main(*sys.argv[1:2])
