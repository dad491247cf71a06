"""The demo's picture: the partition with the decision boundary; or numbers beside answers."""

from pathlib import Path
from typing import Any

N_SHOWN_ROWS = 1500
# Side of the magnified window, which begins at 0.4,, as a share of the whole.
WINDOW = 0.25
N_COLORS = 64


def draw_demo(output: Path) -> Path:
    """Draw `model.zarr` and rows of `test.zarr` into `demo.png`; return its path.

    Raises
    ------
    ImportError : without matplotlib
    """
    import numpy as np

    import daskls
    from daskls.plotting import PartitionDisplay
    from daskls.plotting.plane import import_figure
    from daskls.store.dataset import open_dataset

    figure = import_figure()(figsize=(11, 5.2), layout="constrained")
    estimator = daskls.load(output / "model.zarr")
    test = open_dataset(output / "test.zarr")
    if test.y is None:
        raise AssertionError("the demo's rows have labels")
    X, codes = np.asarray(test.X[:100_000]), np.asarray(test.y[:100_000])
    low, high = X.min(axis=0), X.max(axis=0)
    corner = low + 0.4 * (high - low)
    window = np.stack([corner, corner + WINDOW * (high - low)], axis=1)
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
    n_rows = int(estimator.fit_report_.n_rows.sum())
    whole.set_title(f"{n_rows:,} rows in {estimator.n_cells_} cells")
    magnified.set_title("magnified, with test rows")
    return _saved(figure, output)


def draw_numbers(output: Path) -> Path:
    """Draw answers of `model.zarr` beside the numbers of `test.zarr` into `demo.png`.

    Raises
    ------
    ImportError : without matplotlib
    """
    import numpy as np

    import daskls
    from daskls.plotting.plane import import_figure
    from daskls.store.dataset import open_dataset

    figure = import_figure()(figsize=(11, 5.2), layout="constrained")
    estimator, test = daskls.load(output / "model.zarr"), open_dataset(output / "test.zarr")
    if test.y is None:
        raise AssertionError("the demo's rows have numbers")
    X, y = np.asarray(test.X[:50_000]), np.asarray(test.y[:50_000])
    found = estimator.predict(X)
    beside, missed = figure.subplots(1, 2)
    beside.hexbin(found, y, gridsize=70, mincnt=1, bins="log", cmap="Blues")
    ends = [float(y.min()), float(y.max())]
    beside.plot(ends, ends, color="black", lw=0.8)
    beside.set(xlabel="answer", ylabel="y", title=f"{len(y):,} test rows")
    missed.hist(y - found, bins=101, color="C0")
    n_rows = int(estimator.fit_report_.n_rows.sum())
    title = f"{n_rows:,} rows in {estimator.n_cells_} cells"
    missed.set(xlabel="y less the answer", ylabel="rows", title=title)
    return _saved(figure, output)


def _saved(figure: Any, output: Path) -> Path:
    """Save the picture; return its path."""
    path = output / "demo.png"
    figure.savefig(path, dpi=100)
    from PIL import Image  # which matplotlib needs, too

    # Few colors take a fifth of the bytes, and look the same.
    Image.open(path).convert("RGB").quantize(N_COLORS).save(path, optimize=True)
    return path
