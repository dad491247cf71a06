"""The grid of C and gamma: how many cells chose each combination, and the errors of all."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from daskls.errors import DataError, ParameterError
from daskls.kernels.kernel import find_kernel
from daskls.methods.base import method_of
from daskls.plotting.plane import new_axes, write_in_square
from daskls.records import Float64, Int64, SolverSpec
from daskls.solvers.grid import find_choice, resolve_grid
from daskls.solvers.registry import find_loss
from daskls.store.layout import spec_from_json
from daskls.store.reader import ModelReader


@dataclass(repr=False)
class GridDisplay:
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
    ax_: Any = field(default=None, init=False)
    figure_: Any = field(default=None, init=False)
    image_: Any = field(default=None, init=False)
    text_: Any = field(default=None, init=False)

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
        n_gammas = len(resolve_grid(spec, 1.0, 100, 2).gammas)
        counts = np.zeros((n_gammas, spec.n_costs), int)
        np.add.at(counts, tuple(np.array(points).T), 1)
        return cls(
            counts=counts,
            cost_labels=_cost_labels(spec),
            gamma_labels=_gamma_labels(spec, n_gammas),
            names=_axis_names(spec),
            edge_share=float(np.mean(trained.edge != "")),
            errors=_mean_excess(estimator._reader, counts.shape),
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or None for a new figure

        Returns
        -------
        self

        Raises
        ------
        ImportError : no ``ax``, and matplotlib is not installed
        """
        if ax is None:
            _, (ax,) = new_axes()
        self.ax_, self.figure_ = ax, ax.figure
        style: dict[str, Any] = {"origin": "lower", "aspect": "auto", "cmap": "viridis_r"}
        self.image_ = ax.imshow(np.ma.masked_invalid(100 * self.errors), **style)
        label = "error above that of the choice, points"
        self.figure_.colorbar(self.image_, ax=ax, label=label)
        self.text_ = self._write_counts()
        ax.set_xticks(range(len(self.cost_labels)), self.cost_labels)
        ax.set_yticks(range(len(self.gamma_labels)), self.gamma_labels)
        if max(map(len, self.cost_labels)) * len(self.cost_labels) > 40:
            ax.tick_params(axis="x", rotation=45)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        n_trained = int(self.counts.sum())
        title = f"selected in {n_trained} cells; {100 * self.edge_share:.0f} % on an edge"
        ax.set_title(title, fontsize=10)
        return self

    def _write_counts(self) -> list[Any]:
        shades = self.image_.norm(self.image_.get_array()).filled(0.0)
        return [
            write_in_square(self.ax_, j, i, str(self.counts[i, j]), light=bool(shades[i, j] > 0.5))
            for i, j in np.argwhere(self.counts).tolist()
        ]


def has_grid(estimator: Any) -> bool:
    reader = estimator._reader
    chose = method_of(reader.method).has_grids and not find_loss(reader.spec).is_global
    return chose and bool((reader.report.n_tried > 1).any())


def _mean_excess(reader: ModelReader, shape: tuple[int, int]) -> Float64:
    """Return the mean error of each combination above the chosen one; NaN where never tried."""
    errors = reader.grid_errors(shape[0] * shape[1])
    known = np.isfinite(errors)
    above = np.where(known, errors - reader.report.validation_error[:, None], 0.0)
    n_known = known.sum(axis=0)
    mean = np.full(len(n_known), np.nan)
    np.divide(above.sum(axis=0), n_known, out=mean, where=n_known > 0)
    # The error of the choice is stored in float64, the others in float32, which may be below it.
    excess: Float64 = np.maximum(mean, 0.0).reshape(shape)
    return excess


def _cost_labels(spec: SolverSpec) -> list[str]:
    """Return the labels of the candidates of C; of a scaled grid only the ends have one."""
    if spec.C is not None:
        return [f"{value:.3g}" for value in sorted(spec.C)]
    return _ends(spec.n_costs, "50/m", "500")


def _gamma_labels(spec: SolverSpec, n_gammas: int) -> list[str]:
    """Return the labels of the candidates of gamma, starting with the widest kernel."""
    if spec.gamma is not None:
        return [f"{value:.3g}" for value in sorted(spec.gamma)]
    if not find_kernel(spec.kernel).has_width:
        return ["1"]
    return _ends(n_gammas, "5 r", "0.2 r\n$m^{-1/d}$")


def _ends(n: int, first: str, last: str) -> list[str]:
    """Return labels for the ends of an axis, between which values differ from cell to cell."""
    return [first, *[""] * (n - 2), last]


def _axis_names(spec: SolverSpec) -> tuple[str, str]:
    cost = "C" if spec.C is not None else "C, scaled to each cell's m rows"
    if spec.gamma is not None or not find_kernel(spec.kernel).has_width:
        return cost, "gamma"
    return cost, "kernel width, scaled to each cell's radius r"
