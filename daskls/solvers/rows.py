"""The rows of one local model as solvers read them, and the model laid out from a solution."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from daskls.kernels.decisions import pairs_of
from daskls.kernels.frame import frame_rows
from daskls.kernels.gram import GRAM_TILE_ROWS
from daskls.kernels.kernel import find_kernel
from daskls.records import (
    F4,
    F8,
    CellReport,
    Float32,
    Float64,
    Frame,
    Int64,
    Ints,
    KernelSpec,
    LocalModel,
    Reals,
    SolverSpec,
)
from daskls.solvers.base import ROW_TEMPORARIES, Sizes
from daskls.solvers.grid import Grid


@dataclass
class CellData:
    """One cell's rows, ordered by fold: centered, in the cell's unit of length, float32 (m, d).

    `base` is their `Kernel.matrix`, (0, 0) where it is not held; `codes` index the classes present.
    """

    rows: Float32
    base: Float32
    codes: Int64
    folds: Int64
    weights: Float32
    n_classes: int

    def pairs(self) -> Iterator[tuple[int, int, Int64, Float32]]:
        """Yield each pair of classes (a, b) with its rows and their signs, -1 for a, +1 for b."""
        for a, b in pairs_of(self.n_classes):
            rows = np.flatnonzero((self.codes == a) | (self.codes == b))
            yield a, b, rows, np.where(self.codes[rows] == b, np.float32(1), np.float32(-1))

    def fold_ptr(self, rows: Int64, n_folds: int) -> Int64:
        """Return where each fold begins among some rows, followed by their number."""
        return np.searchsorted(self.folds[rows], np.arange(n_folds + 1))


@dataclass
class SolverCounts:
    n_steps: int = 0
    n_trained: int = 0
    n_at_limit: int = 0

    def add(self, other: "SolverCounts") -> None:
        self.n_steps += other.n_steps
        self.n_trained += other.n_trained
        self.n_at_limit += other.n_at_limit


@dataclass
class Choice:
    """The chosen candidate, and the mean of its fold models' coefficients.

    ``coef`` is (k - 1, m), as scikit-learn's ``dual_coef_``; ``intercepts`` one per pair of
    classes.
    """

    kernel: KernelSpec
    C: float
    error: float
    coef: Float32
    intercepts: Float64
    counts: SolverCounts
    edge: str = ""
    n_tried: int = 0
    errors: Float32 | None = None


def max_steps(n_rows: int) -> int:
    return 100_000 + 1000 * n_rows


def kernel_of(spec: SolverSpec, gamma: float) -> KernelSpec:
    return KernelSpec(spec.kernel, gamma, spec.degree, spec.coef0)


# Spreads of features that differ by a larger factor are of arbitrary units.
MOST_APART = 100.0


def frame_of(X: Reals, spec: SolverSpec, counts: Int64 | None = None) -> Frame:
    """Return the frame of a local model: its rows' mean, unless the kernel depends on the origin.

    A linear kernel whose C is open also sees features divided by their spread, as the candidates of
    C suit one unit only: by one spread for all, or by each one's own where these are far apart.
    """
    kernel = find_kernel(spec.kernel)
    if kernel.sees_origin:
        return Frame(np.zeros(X.shape[1]))
    # The rounded mean of equal rows may differ from them: test for that before centering.
    if (X[0] == X).all():
        return Frame(X[0].astype(np.float64))
    if counts is None:
        center = X.mean(axis=0, dtype=np.float64)
    else:
        center = np.average(X, axis=0, weights=counts)
    if kernel.has_width or spec.C is not None:
        return Frame(center)
    # A constant's rounded deviation need not be 0.
    varies = X.min(axis=0) < X.max(axis=0)
    variance = np.average((X - center) ** 2, axis=0, weights=counts)
    spread = np.sqrt(np.where(varies, variance, 0.0))
    varying = spread[varies]
    if varying.max() <= MOST_APART * varying.min():
        spread[:] = np.sqrt(np.mean(varying**2))
    return Frame(center, np.where(spread > 0, spread, 1.0))


@dataclass(frozen=True, eq=False)
class LocalRows:
    """Rows in their frame, (m, d), as the model will keep them; `n_rows` counts copies, too.

    `present` is each row's index among the codes `classes`; `radius` the kernel's distance from the
    center to the farthest row.
    """

    frame: Frame
    rows: Float32
    weights: Float64
    classes: Ints
    present: Int64
    radius: float
    spec: SolverSpec
    started: float
    n_rows: int

    @classmethod
    def of(
        cls,
        X: Reals,
        codes: Ints,
        weights: Float64,
        spec: SolverSpec,
        *,
        scale: Float64 | None = None,
        counts: Int64 | None = None,
    ) -> "LocalRows":
        """Put rows into a frame, `frame_of` unless its scale (d,) is given."""
        started = time.perf_counter()
        frame = frame_of(X, spec, counts)
        frame = frame if scale is None else replace(frame, scale=scale)
        # The model keeps float32 rows: training on exactly those gives it the same kernel.
        rows = frame_rows(X, frame).astype(np.float32)
        classes, present = np.unique(codes, return_inverse=True)
        radius = find_kernel(spec.kernel).radius(rows.astype(np.float64))
        n_rows = len(X) if counts is None else int(counts.sum())
        return cls(frame, rows, weights, classes, present, radius, spec, started, n_rows)

    @property
    def are_equal(self) -> bool:
        return bool((self.rows == self.rows[0]).all())

    @property
    def unit(self) -> float:
        """The unit of length for kernels of distances; 1 for other kernels.

        Near the radius, so that float32 neither overflows nor underflows; a power of two, so that
        dividing by it rounds nothing.
        """
        far = find_kernel(self.spec.kernel).has_width and self.radius > 0.0
        return 2.0 ** round(math.log2(self.radius)) if far else 1.0

    def data(self, folds: Int64, *, whole: bool = True) -> tuple[Int64, CellData]:
        """Return an order of the rows that puts each fold's side by side, and the rows in it.

        Without ``whole`` the base of the kernel is left out: no matrix of all rows is held.
        """
        order = np.argsort(folds, kind="stable")
        rows = self.rows[order] / np.float32(self.unit)
        nothing = np.empty((0, 0), np.float32)
        kernel = find_kernel(self.spec.kernel)
        return order, CellData(
            rows,
            kernel.matrix(rows.astype(np.float64)) if whole else nothing,
            self.present[order],
            folds[order],
            self.weights[order].astype(np.float32),
            len(self.classes),
        )

    def in_units(self, grid: Grid) -> Grid:
        return replace(grid, gammas=tuple(gamma * self.gamma_unit for gamma in grid.gammas))

    @property
    def gamma_unit(self) -> float:
        return 1.0 / find_kernel(self.spec.kernel).gamma_of(self.unit)

    def constant(self, report: CellReport) -> LocalModel:
        """Return the model that always predicts the class of the largest weight."""
        code = self.classes[np.bincount(self.present, self.weights).argmax()]
        return LocalModel(
            frame=self.frame,
            rows=np.empty((0, self.rows.shape[1]), np.float32),
            coef=np.empty((0, 0), np.float32),
            classes=np.array([code], np.int32),
            class_ptr=np.zeros(2, np.int64),
            intercepts=np.empty(0),
            kernel=KernelSpec(name="linear"),
            report=self._timed(report),
        )

    def _timed(self, report: CellReport) -> CellReport:
        return replace(report, seconds=time.perf_counter() - self.started)

    def described(self, report: CellReport) -> CellReport:
        return replace(report, n_rows=self.n_rows, n_classes=len(self.classes), radius=self.radius)

    def model(self, choice: Choice, order: Int64, cell: CellData, report: CellReport) -> LocalModel:
        """Return a solution, in the order of `data`, as a model without rows of no coefficients."""
        if not choice.coef.any():
            # Nothing was learned: the weights are too small for float32, or the start satisfies
            # tol. (An offset alone predicts one class, usually the larger one.)
            return self.constant(report)
        by_class = np.argsort(cell.codes, kind="stable")
        coef, codes = choice.coef[:, by_class], cell.codes[by_class]
        support = np.flatnonzero(np.any(coef != 0, axis=0))
        kernel = replace(choice.kernel, gamma=choice.kernel.gamma / self.gamma_unit)
        report = replace(
            report,
            C=choice.C,
            gamma=kernel.gamma,
            validation_error=choice.error,
            n_steps=choice.counts.n_steps,
            n_at_limit=choice.counts.n_at_limit,
            n_trained=choice.counts.n_trained,
            n_support=len(support),
            edge=choice.edge,
            n_tried=choice.n_tried,
        )
        return LocalModel(
            frame=self.frame,
            rows=self.rows[order][by_class][support],
            coef=np.ascontiguousarray(coef[:, support]),
            classes=self.classes.astype(np.int32),
            class_ptr=np.searchsorted(codes[support], np.arange(len(self.classes) + 1)).astype(
                np.int64
            ),
            intercepts=choice.intercepts,
            kernel=kernel,
            report=self._timed(report),
            errors=choice.errors,
        )


def rows_nbytes(sizes: Sizes, n_rows: int) -> int:
    """Return the bytes of `LocalRows` and their `data`: copies of rows, and the base of kernels."""
    m, d = n_rows, sizes.n_features
    copies = m * d * (3 * F8 + 2 * F4) + m * ROW_TEMPORARIES
    panel = GRAM_TILE_ROWS * (2 * m + d) * F8
    return copies + panel + m * m * F4
