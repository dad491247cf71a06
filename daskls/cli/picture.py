"""The demo's picture: cells and the decision boundary, or true numbers beside predicted ones.

Both functions raise an ImportError that says what to install where matplotlib is missing.
"""

from pathlib import Path
from typing import Any

N_SHOWN_ROWS = 1500
# The magnified window begins at this share of each axis, and is as long as that share.
WINDOW_START, WINDOW_SIDE = 0.4, 0.25
N_COLORS = 64


def draw_cells(output: Path) -> Path:
    """Draw `model.zarr` and rows of `test.zarr` into `demo.png`; return its path."""
    import numpy as np

    from daskls.plotting import PartitionDisplay

    figure, estimator, test = _open_demo(output)
    X, codes = np.asarray(test.X[:100_000]), np.asarray(test.y[:100_000])
    low, high = X.min(axis=0), X.max(axis=0)
    corner = low + WINDOW_START * (high - low)
    window = np.stack([corner, corner + WINDOW_SIDE * (high - low)], axis=1)
    whole, magnified = figure.subplots(1, 2)
    PartitionDisplay.from_estimator(estimator, X=X, resolution=600).plot(
        ax=whole, show_rows=False, border_width=0.4
    )
    inside = np.all(np.abs(X - window.mean(axis=1)) <= np.diff(window).T / 2, axis=1)
    rows = np.flatnonzero(inside)[:N_SHOWN_ROWS]
    labels = np.asarray(test.classes)[codes[rows]]
    PartitionDisplay.from_estimator(estimator, X=X[rows], y=labels, limits=window).plot(
        ax=magnified
    )
    whole.indicate_inset(
        (window[0, 0], window[1, 0], *(window[:, 1] - window[:, 0])), edgecolor="black"
    )
    whole.set_title(_describe_model(estimator))
    magnified.set_title("magnified, with test rows")
    return _save(figure, output)


def draw_predictions(output: Path) -> Path:
    """Draw predictions of `model.zarr` for rows of `test.zarr` into `demo.png`; return its path."""
    import numpy as np

    figure, estimator, test = _open_demo(output)
    X, y = np.asarray(test.X[:50_000]), np.asarray(test.y[:50_000])
    predicted = estimator.predict(X)
    scatter, residuals = figure.subplots(1, 2)
    scatter.hexbin(predicted, y, gridsize=70, mincnt=1, bins="log", cmap="Blues")
    ends = [float(y.min()), float(y.max())]
    scatter.plot(ends, ends, color="black", lw=0.8)
    scatter.set(xlabel="predicted", ylabel="true", title=f"{len(y):,} test rows")
    residuals.hist(y - predicted, bins=101, color="C0")
    title = _describe_model(estimator)
    residuals.set(xlabel="true - predicted", ylabel="rows", title=title)
    return _save(figure, output)


def _open_demo(output: Path) -> tuple[Any, Any, Any]:
    """Return a new figure, the model and the test set."""
    import daskls
    from daskls.plotting.plane import import_matplotlib
    from daskls.store.dataset import open_dataset

    # The figure first: without matplotlib nothing needs to be read.
    figure = import_matplotlib("figure").Figure(figsize=(11, 5.2), layout="constrained")
    return figure, daskls.load(output / "model.zarr"), open_dataset(output / "test.zarr")


def _describe_model(estimator: Any) -> str:
    """Return the numbers of rows and cells."""
    n_rows = int(estimator.fit_report_.n_rows.sum())
    return f"{n_rows:,} rows in {estimator.n_cells_} cells"


def _save(figure: Any, output: Path) -> Path:
    """Save the picture; return its path."""
    path = output / "demo.png"
    figure.savefig(path, dpi=100)
    from PIL import Image  # a dependency of matplotlib

    # With few colors the file takes a fifth of the bytes and looks the same.
    Image.open(path).convert("RGB").quantize(N_COLORS).save(path, optimize=True)
    return path
