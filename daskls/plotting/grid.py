"""The candidates of a fit, by C and width: what each cell chose, or all neighborhoods together."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskls.errors import DataError, ParameterError
from daskls.kernels.kernel import find_kernel
from daskls.live.record import MEASURES, Measure
from daskls.methods.base import method_of
from daskls.plotting.plane import SingleAxesDisplay, import_matplotlib
from daskls.records import Float64, Int64, SolverSpec
from daskls.solvers.grid import find_choice, resolve_grid
from daskls.solvers.registry import find_loss
from daskls.store.layout import spec_from_json
from daskls.store.reader import ModelReader


@dataclass(repr=False)
class GridDisplay(SingleAxesDisplay):
    """A heat map over the grid of C and gamma: errors, and how many cells chose each combination.

    A number counts the cells that chose a combination. Its color is the mean, over the cells that
    tried it on all folds, of its error above that of the cell's choice: 0 is as good. White
    combinations were tried to the end by no cell.

    A grid that is scaled to each cell is drawn in its own coordinates: the regularization
    ``lambda = 1 / (2 C m)``, and the width ``1 / sqrt(gamma)`` between 5 r and 0.2 r m^(-1/d). Many
    cells on an edge mean that the best value may lie beyond it.

    Make it with `from_estimator`.

    Parameters
    ----------
    counts : int array (n_gammas, n_costs). Cells that chose each combination.
    cost_labels, gamma_labels : the values, in increasing order
    names : the axes' labels
    edge_share : float. Share of the trained cells whose choice lies on an edge.
    errors : float array (n_gammas, n_costs). Mean validation error above that of the
        cell's choice, over the cells that tried the combination on all folds; NaN: none did.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : AxesImage
    text_ : list of Text, one per combination that was chosen

    Examples
    --------
    >>> from daskls import VoronoiSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = VoronoiSVC(
    ...     cell_size=300, loss="hinge", C=[1, 10], gamma=[3, 30], random_state=0
    ... ).fit(X, y)
    >>> display = GridDisplay.from_estimator(model).plot()
    >>> int(display.counts.sum()) == model.n_cells_
    True
    """

    counts: Int64
    cost_labels: list[str]
    gamma_labels: list[str]
    names: tuple[str, str]
    edge_share: float
    errors: Float64

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Count the choices of a fitted estimator.

        Parameters
        ----------
        estimator : fitted VoronoiSVC or RandomChunkSVC with ``loss="hinge"``

        Returns
        -------
        display : GridDisplay, not drawn yet

        Raises
        ------
        DataError : no cell had two classes, so nothing was chosen
        ParameterError : a model whose cells do not search a grid each
        """
        if not method_of(estimator._reader.method).has_grids:
            raise ParameterError(
                f"A {type(estimator).__name__} has no cells that search a grid each; GridDisplay "
                "draws those of a VoronoiSVC or a RandomChunkSVC; what a FalkSVC selected is "
                "drawn by SelectionDisplay."
            )
        spec = spec_from_json(estimator._reader.meta["spec"])
        if find_loss(spec).is_global:
            drawn = (
                "The candidates of that choice are listed by `daskls info`."
                if spec.target == "numbers"
                else 'GridDisplay draws the choices of cells of loss="hinge".'
            )
            raise ParameterError(
                f"Cells of loss={spec.loss!r} choose nothing of their own: kernel, width and C are "
                f"one choice for all, which `daskls info` prints. {drawn}"
            )
        report = estimator.fit_report_
        trained = report[report.n_trained > 0]
        if not len(trained):
            raise DataError("No cell of the model selected anything: each holds one class.")
        points = [find_choice(row, spec, estimator._reader.width) for row in trained]
        counts = np.zeros((len(resolve_grid(spec, 1.0, 100, 2).gammas), spec.n_costs), int)
        np.add.at(counts, tuple(np.array(points).T), 1)
        return cls(
            counts=counts,
            **_describe_axes(spec, len(counts)),
            edge_share=float(np.mean(trained.edge != "")),
            errors=_mean_excess(estimator._reader, counts.shape),
        )

    def _draw(self, *axes: Any) -> None:
        ax = axes[0]
        chosen = {(i, j): str(self.counts[i, j]) for i, j in np.argwhere(self.counts).tolist()}
        errors = np.ma.masked_invalid(100 * self.errors)
        labels = self.cost_labels, self.gamma_labels
        self.image_, self.text_ = _draw_squares(ax, errors, chosen, *labels)
        label = "error above that of the choice, points"
        self.figure_.colorbar(self.image_, ax=ax, label=label)
        if max(map(len, self.cost_labels)) * len(self.cost_labels) > 40:
            ax.tick_params(axis="x", rotation=45)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        n_trained = int(self.counts.sum())
        title = f"selected in {n_trained} cells; {100 * self.edge_share:.0f} % on an edge"
        ax.set_title(title, fontsize=10)


def has_grid(estimator: Any) -> bool:
    reader = estimator._reader
    chose = method_of(reader.method).has_grids and not find_loss(reader.spec).is_global
    return chose and bool((reader.report.n_tried > 1).any())


def _mean_excess(reader: ModelReader, shape: tuple[int, int]) -> Float64:
    """Return the mean error of each combination above the chosen one; NaN where never tried."""
    errors = reader.grid_errors(shape[0] * shape[1])
    above = np.ma.masked_invalid(errors) - reader.report.validation_error[:, None]
    # The error of the choice is stored in float64, the others in float32, which may be below it.
    mean: Any = np.maximum(above.mean(axis=0), 0.0)
    excess: Float64 = np.ma.filled(mean, np.nan).reshape(shape)
    return excess


def _describe_axes(spec: SolverSpec, n_gammas: int) -> dict[str, Any]:
    """Return the labels of C and gamma; of a scaled grid only the ends have one."""
    costs, cost = ["50/m", *[""] * (spec.n_costs - 2), "500"], "C, scaled to each cell's m rows"
    if spec.C is not None:
        costs, cost = [f"{value:.3g}" for value in sorted(spec.C)], "C"
    gammas = ["5 r", *[""] * (n_gammas - 2), "0.2 r\n$m^{-1/d}$"]
    gamma = "kernel width, scaled to each cell's radius r"
    if spec.gamma is not None or not find_kernel(spec.kernel).has_width:
        gammas, gamma = [f"{value:.3g}" for value in sorted(spec.gamma or [1.0])], "gamma"
    return {"cost_labels": costs, "gamma_labels": gammas, "names": (cost, gamma)}


@dataclass(repr=False)
class SelectionDisplay(SingleAxesDisplay):
    """Heat maps of the errors of all candidates: width against C, for each number of neighbors.

    For a `FalkSVC` with ``selection="local"``. The chosen candidate is framed. An
    error that falls toward an edge means that a better value may lie beyond it.

    Make it with `from_estimator`.

    Parameters
    ----------
    errors : float array (n_k, n_widths, n_costs)
    n_neighbors : list of int
    width_labels : list of str, widest first
    cost_labels : list of str
    chosen : tuple of int. Index of the chosen candidate in ``errors``.
    measure : Measure. How errors are named and written.

    Attributes
    ----------
    axes_ : array (n_k,) of matplotlib Axes
    figure_ : matplotlib Figure
    images_ : list of AxesImage
    frame_ : Rectangle around the chosen candidate

    Examples
    --------
    >>> from daskls import FalkSVC
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1200)
    >>> model = FalkSVC(n_neighbors=[50, 100], C=[1, 10], selection="local", random_state=0)
    >>> display = SelectionDisplay.from_estimator(model.fit(X, y)).plot()
    >>> display.n_neighbors
    [50, 100]
    """

    errors: Float64
    n_neighbors: list[int]
    width_labels: list[str]
    cost_labels: list[str]
    chosen: tuple[int, ...]
    measure: Measure

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the errors that a fitted estimator keeps.

        Parameters
        ----------
        estimator : fitted FalkSVC with ``selection="local"``, or KNNSVC

        Returns
        -------
        display : SelectionDisplay, not drawn yet

        Raises
        ------
        ParameterError : the estimator has made no selection for all its neighborhoods together, or
            does not keep the errors of all candidates
        """
        check_is_fitted(estimator)
        selected = getattr(estimator, "selected_", None)
        if selected is None:
            raise ParameterError(
                f"This {type(estimator).__name__} has made no selection for all neighborhoods; "
                'SelectionDisplay draws that of a FalkSVC with selection="local", or of a '
                "KNNSVC."
            )
        if "errors" not in selected:
            raise ParameterError(
                f"A {type(estimator).__name__} stores only the chosen candidate, in selected_; "
                "SelectionDisplay draws the errors of all candidates, which a FalkSVC stores."
            )
        meta, gamma = estimator._reader.meta, estimator._reader.spec.gamma
        candidates = sorted({min(k, meta["n_rows"]) for k in meta["method"]["n_neighbors"]})
        percentiles = meta["method"]["percentiles"]
        if percentiles is not None:
            widths = [f"{p:g} %" for p in percentiles]
            width = percentiles.index(selected["percentile"])
        else:
            values = sorted(meta["spec"]["gamma"] or gamma or [1.0])
            widths = [f"{gamma:.3g}" for gamma in values]
            width = values.index(selected["gamma"]) if selected["gamma"] in values else 0
        costs = sorted(meta["spec"]["C"])
        return cls(
            errors=np.array(selected["errors"]),
            measure=MEASURES[estimator._reader.target.measured_as],
            n_neighbors=candidates,
            width_labels=widths,
            cost_labels=[f"{C:.3g}" for C in costs],
            # Not the place of the smallest error: that may be a candidate which was dropped early,
            # after it erred less on few rows.
            chosen=(candidates.index(selected["n_neighbors"]), width, costs.index(selected["C"])),
        )

    def of_chosen(self) -> Self:
        """Return a display of the chosen number of neighbors only.

        Returns
        -------
        display : SelectionDisplay, not drawn yet
        """
        k, *place = self.chosen
        return replace(
            self, errors=self.errors[[k]], n_neighbors=[self.n_neighbors[k]], chosen=(0, *place)
        )

    def plot(self, axes: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, one per number of neighbors, or None for a new figure

        Returns
        -------
        self

        Raises
        ------
        ImportError : no ``axes``, and matplotlib is not installed
        ParameterError : another number of axes
        """
        return super().plot(axes)

    @property
    def _layout(self) -> tuple[int, tuple[float, float]]:
        return len(self.n_neighbors), (3.6, 3.4)

    def _draw(self, *axes: Any) -> None:
        errors = self.measure.factor * self.errors
        ends = {"vmin": errors.min(), "vmax": errors.max()}
        self.images_ = []
        for ax, k, values in zip(axes, self.n_neighbors, errors, strict=True):
            texts = {place: f"{value:.3g}" for place, value in np.ndenumerate(values)}
            labels = self.cost_labels, self.width_labels
            self.images_.append(_draw_squares(ax, values, texts, *labels, **ends)[0])
            ax.set(xlabel="C", title=f"k = {k}")
        axes[0].set_ylabel("percentile of distances" if "%" in self.width_labels[0] else "gamma")
        self.figure_.colorbar(self.images_[-1], ax=list(axes), label=self.measure.label)
        k, g, c = self.chosen
        # White inside black, which is visible on every color.
        for color, width in (("black", 4.5), ("white", 2)):
            self.frame_ = import_matplotlib("patches").Rectangle(
                (c - 0.5, g - 0.5), 1, 1, fill=False, edgecolor=color, lw=width, clip_on=False
            )
            axes[k].add_patch(self.frame_)


def _draw_squares(
    ax: Any, values: Any, texts: dict[Any, str], costs: list[str], widths: list[str], **ends: float
) -> tuple[Any, list[Any]]:
    """Draw a heat map of widths by C, with some texts in its squares, light on dark."""
    image = ax.imshow(values, origin="lower", aspect="auto", cmap="viridis_r", **ends)
    shades = np.ma.filled(image.norm(image.get_array()), 0.0)
    style = {"ha": "center", "va": "center", "fontsize": 8}
    written = [
        ax.text(j, i, text, color="white" if shades[i, j] > 0.5 else "#333333", **style)
        for (i, j), text in texts.items()
    ]
    ax.set_xticks(range(len(costs)), costs)
    ax.set_yticks(range(len(widths)), widths)
    return image, written
