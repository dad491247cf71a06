"""The neighborhoods of FaLK-SVM in the plane, their local boundaries and the joint boundary.

Source: figures 1 and 2 of Segata and Blanzieri, Fast local support vector machines for large
datasets, 2009.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskls.errors import ParameterError
from daskls.kernels.kernel import find_kernel
from daskls.methods.base import method_of
from daskls.methods.neighborhoods.method import Falk
from daskls.methods.neighborhoods.parts import center_rows, find_owners, open_centers
from daskls.methods.scores import model_scores
from daskls.neighbors.search import find_nearest
from daskls.partition.polygons import color_cells
from daskls.plotting.plane import (
    CELL_COLORS,
    Decisions,
    check_least,
    class_entries,
    draw_boundary,
    draw_dots,
    draw_frame,
    fill_pixels,
    find_decisions,
    new_axes,
    pad_limits,
    pixel_grid,
    polar_grid,
)
from daskls.plotting.surface import axis_names
from daskls.records import Codes, Float64, Int64, Labels, Reals
from daskls.store.leaves import LeafReader, open_leaves
from daskls.store.reader import ModelReader

# More circles would hide each other.
MOST_CENTERS = 200
LOCAL_COLOR = "#008b8b"
INNER_COLOR, OUTER_COLOR, ONE_CLASS_COLOR = "#4a4a4a", "#8a8f96", "#c9cdd2"


@dataclass(repr=False)
class NeighborhoodDisplay:
    """Centers, circles around their k' and k nearest rows, local boundaries and the joint one.

    Make it with `from_estimator`.

    Parameters
    ----------
    numbers : int array (c,), increasing. The drawn centers, numbered as in the model's report.
    centers : array (c, 2)
    center_classes : int array (c,). Indices of their classes.
    radii : array (c, 2). Distances of each center to its k'-th and its k-th nearest row; the first
        one is the center itself.
    counts : (k', k)
    discs : dict center -> array (radii, angles). Predictions of the SVM of each center that trained
        one, on a polar grid in its circle of k rows: decision values of two classes; of more
        classes, the index of the winner.
    joint : array (resolution, resolution). The same predictions of the whole model at each pixel.
    cells : int array (resolution, resolution). The center that predicts at each pixel.
    limits : array (2, 2). The drawn range of each axis.
    classes : array (n_classes,) of labels
    names : the axes' labels
    rows : array (m, 2). Training rows to draw.
    row_classes : int array (m,). Indices of their classes.
    totals : (centers, centers that trained an SVM, rows) of the whole model

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    rows_ : PathCollection
    centers_ : PathCollection
    inner_, outer_ : PatchCollection. The circles of k' and of k rows, one per center.
    local_ : list of ContourSet. The local boundaries, one per center whose circle one crosses.
    joint_ : ContourSet, or None where one class wins everywhere
    regions_ : AxesImage. The center that predicts at each pixel.

    Examples
    --------
    >>> from daskls import FalkSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = FalkSVC(n_neighbors=100, C=1, gamma=30, random_state=0).fit(X, y)
    >>> display = NeighborhoodDisplay.from_estimator(model, n_centers=5).plot()
    >>> display.centers.shape
    (5, 2)
    """

    numbers: Int64
    centers: Reals
    center_classes: Codes
    radii: Float64
    counts: tuple[int, int]
    discs: dict[int, Decisions]
    joint: Decisions
    cells: Int64
    limits: Float64
    classes: Labels
    names: tuple[str, ...]
    rows: Reals
    row_classes: Codes
    totals: tuple[int, int, int]
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    rows_: Any = field(default=None, init=False)
    centers_: Any = field(default=None, init=False)
    inner_: Any = field(default=None, init=False)
    outer_: Any = field(default=None, init=False)
    local_: Any = field(default=None, init=False)
    joint_: Any = field(default=None, init=False)
    regions_: Any = field(default=None, init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_centers: int | None = None,
        n_rows: int = 3000,
        limits: Any = None,
        resolution: int = 400,
        feature_names: Any = None,
        random_state: int = 0,
    ) -> Self:
        """Compute what `plot` draws.

        Parameters
        ----------
        estimator : fitted FalkSVC of two features, with ``assign="point"``
        n_centers : int, >= 1, or None: 200. The most centers to draw; of more, a random choice.
        n_rows : int, >= 1. The most training rows to draw; of more, a random choice.
        limits : array (2, 2), the range of each axis, or None: that of the rows and of the circles
            of k' rows. Centers outside of it are not drawn.
        resolution : int, >= 2. Pixels along a side, for the joint boundary.
        feature_names : sequence of str, or None: those of the columns trained on, if any
        random_state : int. Chooses centers and rows.

        Returns
        -------
        display : NeighborhoodDisplay, not drawn yet

        Raises
        ------
        ParameterError : a model whose neighborhoods are no circles in a plane, or that keeps no
            rows; limits that contain no center; numbers below their least value
        NotFittedError : an estimator that is not fitted
        """
        n_centers = MOST_CENTERS if n_centers is None else n_centers
        check_least("n_centers", n_centers, 1)
        check_least("n_rows", n_rows, 1)
        check_least("resolution", resolution, 2)
        reader = _open_falk(estimator)
        leaves = open_leaves(reader.root.where(), reader.fingerprint)
        rng = np.random.default_rng(random_state)
        window = None if limits is None else np.asarray(limits, np.float64)
        numbers = _choose(_centers_in(reader, window), n_centers, rng)
        own = leaves.read_positions(open_centers(reader).positions[numbers])
        centers = own.X.astype(np.float64)
        counts = _neighbor_counts(estimator, reader, leaves.n_rows)
        radii = _find_radii(centers, counts, leaves)
        drawn = leaves.read_positions(_choose(_positions_in(leaves, window), n_rows, rng))
        if window is None:
            window = _find_limits(drawn.X, centers, radii[:, 0])
        pixels = pixel_grid(window, resolution).reshape(2, -1).T
        shape = (resolution, resolution)
        return cls(
            numbers=numbers,
            centers=centers,
            center_classes=own.codes,
            radii=radii,
            counts=counts,
            discs=_decide_discs(reader, numbers, centers, radii[:, 1]),
            joint=find_decisions(estimator._predict_in_kind(pixels, "scores")).reshape(shape),
            cells=find_owners(reader, pixels).reshape(shape),
            limits=window,
            classes=estimator.classes_,
            names=axis_names((0, 1), feature_names, estimator),
            rows=drawn.X,
            row_classes=drawn.codes,
            totals=(reader.n_cells, int((reader.report.n_support > 0).sum()), leaves.n_rows),
        )

    def plot(
        self,
        ax: Any = None,
        *,
        show_rows: bool = True,
        show_circles: bool = True,
        show_local: bool = True,
        show_joint: bool = True,
        show_regions: bool = False,
        legend: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or None for a new figure
        show_rows : bool. Training rows, in their classes' colors.
        show_circles : bool. Circles around the k' (bold) and the k nearest rows (thin) of each
            center; paler where the k rows trained no SVM, mostly because they have one class.
        show_local : bool. Each local boundary inside its circle of k rows: what was trained.
        show_joint : bool. The boundary of the whole model: what is predicted.
        show_regions : bool. The region in which each center predicts, as a pale area.
        legend : bool. Whether to draw a legend, beside the axes.

        Returns
        -------
        self

        Raises
        ------
        ImportError : no ``ax``, and matplotlib is not installed
        """
        if ax is None:
            _, (ax,) = new_axes(size=(7.6, 5.0) if legend else (6.0, 5.0))
        self.ax_, self.figure_ = ax, ax.figure
        self.regions_ = self._draw_regions() if show_regions else None
        self.rows_ = self._draw_rows() if show_rows else None
        self.inner_, self.outer_ = self._draw_circles() if show_circles else (None, None)
        self.local_ = self._draw_local() if show_local else []
        self.joint_ = self._draw_joint() if show_joint else None
        self.centers_ = self._draw_centers()
        if legend:
            self._draw_legend()
        ax.set_title(self._title(), fontsize=10)
        draw_frame(ax, self.limits, self.names)
        return self

    def _draw_regions(self) -> Any:
        """Fill the region in which each center predicts; neighbors have different colors."""
        colors = color_cells(self.cells, int(self.cells.max()) + 1, len(CELL_COLORS))
        return fill_pixels(self.ax_, colors[self.cells], self.limits, CELL_COLORS)

    def _draw_rows(self) -> Any:
        """Draw the rows as dots, smaller and paler where there are many."""
        share = min(300 / max(len(self.rows), 1), 1.0)
        style = {"s": 4 + 16 * share, "linewidths": 0, "alpha": 0.55 + 0.3 * share, "zorder": 2}
        return draw_dots(self.ax_, self.rows, self.row_classes, **style)

    def _draw_circles(self) -> tuple[Any, Any]:
        """Draw both circles of every center, dotted; paler where nothing was trained."""
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Circle

        trained = np.isin(self.numbers, list(self.discs))
        styles: tuple[dict[str, Any], ...] = (
            {"edgecolor": np.where(trained, INNER_COLOR, ONE_CLASS_COLOR), "linewidth": 1.4},
            {"edgecolor": np.where(trained, OUTER_COLOR, ONE_CLASS_COLOR), "linewidth": 0.7},
        )
        drawn = []
        for radii, style in zip(self.radii.T, styles, strict=True):
            circles = [Circle(tuple(c), r) for c, r in zip(self.centers, radii, strict=True)]
            style.update(facecolor="none", linestyle=":", zorder=1.5)
            drawn.append(self.ax_.add_collection(PatchCollection(circles, **style)))
        return drawn[0], drawn[1]

    def _draw_centers(self) -> Any:
        """Mark the centers: rows like any other, with a black edge."""
        style = {"s": 34, "edgecolors": "black", "linewidths": 1.3, "zorder": 5}
        return draw_dots(self.ax_, self.centers, self.center_classes, **style)

    def _draw_local(self) -> list[Any]:
        """Draw the local boundaries that cross their circles of k rows."""
        style = {"colors": LOCAL_COLOR, "linewidths": 1.1, "zorder": 3}
        drawn = []
        for i, number in enumerate(self.numbers.tolist()):
            if number in self.discs:
                grid, decisions = polar_grid(self.centers[i], self.radii[i, 1]), self.discs[number]
                drawn.append(draw_boundary(self.ax_, grid, decisions, len(self.classes), **style))
        return [boundary for boundary in drawn if boundary is not None]

    def _draw_joint(self) -> Any:
        """Draw the boundary of the whole model."""
        grid = pixel_grid(self.limits, len(self.joint))
        style = {"colors": "black", "linewidths": 1.8, "linestyles": ":", "zorder": 4}
        return draw_boundary(self.ax_, grid, self.joint, len(self.classes), **style)

    def _draw_legend(self) -> None:
        """Explain what is drawn, beside the axes."""
        from matplotlib.lines import Line2D

        def entry(label: str, **style: Any) -> Any:
            return Line2D([], [], label=label, **{"linestyle": "none", **style})

        entries = []
        if self.rows_ is not None:
            entries += class_entries(self.classes)
        entries.append(entry("center", marker="o", ms=6, mfc="none", mec="black", mew=1.3))
        if self.inner_ is not None:
            inner, outer = self.counts
            entries += [
                entry(f"its k' = {inner} nearest rows", ls=":", lw=1.4, color=INNER_COLOR),
                entry(f"its k = {outer} nearest rows", ls=":", lw=0.8, color=OUTER_COLOR),
            ]
        if self.local_:
            entries.append(entry("local boundaries", ls="-", lw=1.1, color=LOCAL_COLOR))
        if self.joint_ is not None:
            entries.append(entry("joint boundary", ls=":", lw=1.8, color="black"))
        self.ax_.legend(
            handles=entries, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9
        )

    def _title(self) -> str:
        """Return the numbers of centers, SVMs and rows, and how many centers are drawn."""
        n_centers, n_trained, n_rows = self.totals
        title = f"{n_centers} centers and {n_trained} local SVMs for {n_rows} rows"
        if len(self.numbers) < n_centers:
            title += f"\n(drawn: {len(self.numbers)} of the {n_centers} centers)"
        return title


def _open_falk(estimator: Any) -> ModelReader:
    """Return the reader of a model that can be drawn; refuse any other."""
    name = type(estimator).__name__
    if not hasattr(type(estimator), "_reader"):
        raise ParameterError(
            f"The estimator is a {name}; neighborhoods can be drawn for a FalkSVC only."
        )
    check_is_fitted(estimator)
    reader: ModelReader = estimator._reader
    method = method_of(reader.method)
    if not isinstance(method, Falk):
        raise ParameterError(
            f"The estimator is a {name}, which has no centers; neighborhoods can be drawn for "
            "a FalkSVC only."
        )
    if estimator.n_features_in_ != 2:
        raise ParameterError(
            f"The model has {estimator.n_features_in_} features; neighborhoods are circles only "
            "in a plane: train on two features."
        )
    if method.assign != "point":
        raise ParameterError(
            f"The model was trained with assign={method.assign!r} and has not kept its rows, "
            'which its neighborhoods consist of; train with assign="point".'
        )
    if not find_kernel(reader.spec.kernel).is_euclidean:
        raise ParameterError(
            f'The model has kernel="{reader.spec.kernel}", whose neighborhoods are not circles but '
            'balls in the kernel\'s feature space; train with kernel="rbf" or "linear".'
        )
    return reader


def _choose(candidates: Int64, most: int, rng: np.random.Generator) -> Int64:
    """Return at most ``most`` candidates, chosen at random, in their order."""
    if len(candidates) <= most:
        return candidates
    chosen: Int64 = np.sort(rng.choice(candidates, most, replace=False, shuffle=False))
    return chosen


def _centers_in(reader: ModelReader, window: Float64 | None) -> Int64:
    """Return the numbers of the centers in a window (2, 2); None means everywhere."""
    centers, _ = center_rows(reader)
    if window is None:
        return np.arange(len(centers))
    inside = ((centers >= window[:, 0]) & (centers <= window[:, 1])).all(axis=1)
    if not inside.any():
        raise ParameterError(
            f"limits is {window.tolist()}, but none of the {len(centers)} centers lies in it; "
            "widen it."
        )
    return np.flatnonzero(inside)


def _positions_in(leaves: LeafReader, window: Float64 | None) -> Int64:
    """Return the positions of the rows in all leaves that overlap a window (2, 2)."""
    if window is None:
        return np.arange(leaves.n_rows)
    regions = leaves.regions
    touches = ((regions.low <= window[:, 1]) & (regions.high >= window[:, 0])).all(axis=1)
    return np.flatnonzero(np.repeat(touches, np.diff(leaves.first_positions)))


def _neighbor_counts(estimator: Any, reader: ModelReader, n_rows: int) -> tuple[int, int]:
    """Return k' and k as they were trained: k is the given or selected one, at most all rows."""
    method = method_of(reader.method)
    assert isinstance(method, Falk)
    selected = estimator.selected_
    k = min(selected["n_neighbors"] if selected else method.n_neighbors[0], n_rows)
    return min(method.inner(k), k), k


def _find_radii(centers: Reals, counts: tuple[int, int], leaves: LeafReader) -> Float64:
    """Return the distances of each center to its k'-th and k-th nearest row, (c, 2)."""
    found = find_nearest(centers, counts[1], leaves.regions, leaves.read_leaf)
    radii: Float64 = np.sqrt(found.distances[:, [count - 1 for count in counts]])
    return radii


def _find_limits(rows: Reals, centers: Reals, radii: Float64) -> Float64:
    """Return the range of each axis, (2, 2): the rows, the circles of k' rows and a margin."""
    low = np.minimum(rows.min(axis=0), (centers - radii[:, None]).min(axis=0)).astype(np.float64)
    high = np.maximum(rows.max(axis=0), (centers + radii[:, None]).max(axis=0))
    return pad_limits(low, high)


def _decide_discs(
    reader: ModelReader, numbers: Int64, centers: Reals, radii: Float64
) -> dict[int, Decisions]:
    """Return the predictions of each center's own SVM inside its circle of k rows.

    Centers whose rows have one class are left out.
    """
    discs = {}
    models = reader.read_cells(numbers)
    for number, center, radius, model in zip(numbers.tolist(), centers, radii, models, strict=True):
        if len(model.classes) > 1:
            grid = polar_grid(center, radius)
            scores = model_scores(model, grid.reshape(2, -1).T, reader.n_classes)
            discs[number] = find_decisions(scores).reshape(grid.shape[1:])
    return discs
