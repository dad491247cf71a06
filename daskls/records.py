"""Frozen records that cross layers. They hold numbers and small arrays, never a data set."""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

__all__ = [
    "EPS",
    "F4",
    "F8",
    "LARGEST",
    "LARGEST_FEATURE",
    "LEAVES_NBYTES",
    "MIB",
    "N_GRID",
    "SCORINGS",
    "SMALLEST",
    "AnyArray",
    "Bundle",
    "BundleReport",
    "Bytes",
    "CellReport",
    "Codes",
    "Coding",
    "Decision",
    "FalseAlarmSpec",
    "FeatureCoding",
    "FeatureScale",
    "Float32",
    "Float64",
    "Floats",
    "Frame",
    "Int32",
    "Int64",
    "IntervalSpec",
    "Ints",
    "KernelSpec",
    "Keys",
    "Labels",
    "LeafRows",
    "LocalModel",
    "Mask",
    "MeasuredAs",
    "Reals",
    "Regions",
    "ReserveSpec",
    "RowNumbers",
    "ScalingSpec",
    "Scoring",
    "SolverSpec",
    "Table",
    "TargetKind",
    "Targets",
]

# Arrays by what they hold. One name, one meaning; mypy refuses one where another is due.
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32 | np.float64]
# Rows as a data set or a query has them: of any real dtype, not converted yet.
Reals = npt.NDArray[np.integer[Any] | np.floating[Any]]
# Class codes, of all classes of a model.
Codes = npt.NDArray[np.int32]
# What rows are to be answered with: class codes, or numbers.
Targets = npt.NDArray[np.int32 | np.float64]
# Global numbers of rows in the data set.
RowNumbers = npt.NDArray[np.int64]
# Other whole numbers: leaves, cells and children of nodes are narrow; counts, pointers and
# positions are wide. `Ints` are either.
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32 | np.int64]
# Hashes that decide a draw, and what is left of them by a division.
Keys = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
# Tables of reports, with `CellReport.dtype`.
Table = npt.NDArray[np.void]
# What users call their classes: numbers or text, of any dtype.
Labels = npt.NDArray[Any]
# What is moved without a look inside, to and from files and stores: metadata say the dtype.
AnyArray = npt.NDArray[Any]
# What rows are answered with, and what a loss trains on.
TargetKind = Literal["classes", "numbers"]
# How errors are told: of numbers at levels otherwise than of numbers.
MeasuredAs = Literal["classes", "numbers", "levels"]
# How the functions of a model speak for classes: one a pair of them, or one a class; or they are
# the numbers that are asked for.
Decision = Literal["ovo", "ovr", "values"]
# What becomes of features that are thresholds, orders or categories written as numbers.
Coding = Literal["none", "ranks", "indicators", "both"]

# What a search maximizes on held-out rows in place of the accuracy: see `daskls.solvers.search`.
Scoring = Literal["tpr_x_tnr"]

SCORINGS: tuple[Scoring, ...] = get_args(Scoring)
# Values a parameter of a method's own grid.
N_GRID = 10
# Bounds of C, of gamma, of weights and of their products: solvers compute in float32.
SMALLEST, LARGEST = 1e-30, 1e30
# Bytes of a float32 and of a float64 value.
F4, F8 = 4, 8
MIB = 1 << 20
# Rows of small neighboring leaves are read together, up to so many bytes: known to plan and store.
LEAVES_NBYTES = 4 * MIB
# Between 1 and the next larger float64.
EPS = float(np.finfo(np.float64).eps)
# Of a feature: squared distances of larger values would overflow float32.
LARGEST_FEATURE = 1e18


@dataclass(frozen=True)
class KernelSpec:
    """A kernel: its name in `daskls.kernels.kernel`, and the parameters of its formula."""

    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0


@dataclass(frozen=True)
class SolverSpec:
    """Parameters that every cell is trained with.

    ``C`` and ``gamma`` are candidate values, or None for the method's own grid. ``search`` says
    whether all combinations are trained, or from coarse to fine. ``clipped_gap`` says which
    duality gap ``tol`` is for: that of decision values clipped to [-1, 1], or the plain one.
    ``loss`` and ``target`` name the entry in `daskls.solvers.registry`. ``width``, in units of a
    cell's median distance, gives each cell a gamma of its own where it was chosen for all.
    ``epsilon``, of support vector regression, and its C are in units of y; ``unit`` is the
    deviation of y in such. ``n_grid`` counts the values of C and of gamma of the method's own grid,
    `N_GRID` of each where it is None. ``scoring`` names what is maximized on held-out rows, see
    `daskls.solvers.search`; None: the accuracy. ``cache_size`` bounds the MiB of kernel values of
    a cell; None: all are held. ``quantile`` is the level that is answered, or the levels of a loss
    that takes such, in the order of the answers; ``constant_losses``, one a level, what the best
    constant loses in the mean, which losses of held-out rows are told in units of.
    """

    kernel: str = "rbf"
    C: tuple[float, ...] | None = None
    gamma: tuple[float, ...] | None = None
    degree: int = 3
    coef0: float = 0.0
    cv: int = 5
    tol: float = 1e-3
    refit: Literal["folds", "cell"] = "folds"
    search: Literal["refine", "full"] = "refine"
    fit_intercept: bool = False
    clipped_gap: bool = True
    loss: str = "hinge"
    target: TargetKind = "classes"
    width: float | None = None
    epsilon: float | None = None
    unit: float = 1.0
    n_grid: tuple[int, int] | None = None
    scoring: Scoring | None = None
    cache_size: float | None = None
    quantile: float | tuple[float, ...] | None = None
    constant_losses: tuple[float, ...] | None = None

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels that are answered; none of other losses."""
        if self.quantile is None:
            return ()
        return self.quantile if isinstance(self.quantile, tuple) else (self.quantile,)

    @property
    def n_costs(self) -> int:
        """The number of candidate values of C."""
        if self.C is not None:
            return len(self.C)
        return N_GRID if self.n_grid is None else self.n_grid[0]


@dataclass(frozen=True)
class ScalingSpec:
    """The choices that a fit makes from the data for all cells, before space is cut.

    Attributes
    ----------
    feature_scale : "spread", "learned", a factor a feature, or None for rows as they are
    kernels : tuple of str. What kernels of one width and ridge are chosen from, for all cells; none
        where cells choose their own.
    by_chance : bool. Whether the method's cells are random chunks: then kernel, width and ridge are
        chosen on random rows, however many there are.
    feature_coding : Coding, or "auto" for the best of them
    """

    feature_scale: Literal["spread", "learned"] | tuple[float, ...] | None = None
    kernels: tuple[str, ...] = ()
    by_chance: bool = False
    feature_coding: Coding | Literal["auto"] = "none"


@dataclass(frozen=True)
class FalseAlarmSpec:
    """What a classifier of two classes is to keep its false alarms to.

    Attributes
    ----------
    rate : float in (0, 1). Of the rows of the first class, the share that may get the second.
    delta : float in (0, 1). The probability that more do.
    """

    # In stores, and in the register of what rows are reserved for.
    name: ClassVar[str] = "false_alarm"

    rate: float
    delta: float


@dataclass(frozen=True)
class IntervalSpec:
    """What intervals around a regressor's answers are to cover.

    Attributes
    ----------
    coverage : float in (0, 1). The probability that y lies within, over rows and calibration.
    """

    name: ClassVar[str] = "interval"

    coverage: float


# What rows may be reserved for.
ReserveSpec = FalseAlarmSpec | IntervalSpec


@dataclass(frozen=True)
class CellReport:
    """One row of `fit_report_`: the results of training one cell.

    ``leaf`` counts through all partitions. ``edge`` names the grid axes on whose edge the choice
    lies. ``n_tried`` counts the combinations that were trained; ``coarse_gamma`` and
    ``coarse_cost`` are the point that a coarse pass chose, whose neighbors were tried after it (-1:
    there was no such pass). ``n_at_limit`` counts the solves that ended without reaching ``tol``,
    ``n_read`` leaves that the search of a neighborhood could not exclude: like ``seconds`` it
    depends on what ran beside it.
    """

    cell: int
    leaf: int
    n_rows: int
    n_classes: int
    radius: float
    C: float = float("nan")
    gamma: float = float("nan")
    validation_error: float = float("nan")
    n_steps: int = 0
    n_at_limit: int = 0
    n_support: int = 0
    n_trained: int = 0
    edge: str = ""
    seconds: float = 0.0
    partition: int = 0
    n_read: int = 0
    n_tried: int = 0
    coarse_gamma: int = -1
    coarse_cost: int = -1

    @classmethod
    def dtype(cls) -> np.dtype[Any]:
        """Return the structured dtype of a table of reports."""
        kinds = {int: "i8", float: "f8", str: "U8"}
        return np.dtype([(f.name, kinds[f.type]) for f in fields(cls)])  # type: ignore[index]

    def as_tuple(self) -> tuple[Any, ...]:
        """Return the values in the order of `dtype`."""
        return tuple(getattr(self, f.name) for f in fields(self))


@dataclass(frozen=True, eq=False)
class Frame:
    """The center and the scale of rows in kernels, the same in training and in prediction.

    Attributes
    ----------
    center : float64 array, shape (d,). Subtracted from every row.
    scale : float64 array, shape (d,), > 0, or None for 1. What each feature is then divided by.
    """

    center: Float64
    scale: Float64 | None = None


@dataclass(frozen=True, eq=False)
class FeatureCoding:
    """What each feature is before it is scaled: itself, its rank, or an indicator of each value.

    A feature without points stays as it is. Coded features come in the order of those that they are
    of, indicators in the order of their values.

    Attributes
    ----------
    ptr : int64 array, shape (d + 1,). Feature j owns the points ptr[j] to ptr[j + 1] - 1.
    points : float64 array, shape (p,). Increasing in each feature: knots of the map to ranks, or
        the values that have an indicator each.
    ranks : float64 array, shape (p,). In [0, 1], what knots become; -1 of indicators.
    """

    ptr: Int64
    points: Float64
    ranks: Float64

    @property
    def n_features(self) -> int:
        """The number of features before they are coded."""
        return len(self.ptr) - 1

    @property
    def is_indicated(self) -> Mask:
        """Which features are indicators of their values, bool (d,)."""
        marked = np.r_[0, np.cumsum(self.ranks < 0)]
        found: Mask = marked[self.ptr[1:]] > marked[self.ptr[:-1]]
        return found

    @property
    def sources(self) -> Int64:
        """The feature that each coded one is of, int64 (d',)."""
        counts = np.where(self.is_indicated, np.diff(self.ptr), 1)
        return np.repeat(np.arange(self.n_features), counts)


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """The coding and scale of features that rows are put into first, in training and in prediction.

    Scaled rows have only the features whose factor is not 0, in float32.

    Attributes
    ----------
    center : float64 array, shape (d',). Subtracted from every coded row.
    factors : float64 array, shape (d',), >= 0, not all 0. What each is then multiplied by.
    coding : FeatureCoding, or None where features stay as they are: then d' is d.
    """

    center: Float64
    factors: Float64
    coding: FeatureCoding | None = None

    @property
    def columns(self) -> Int64:
        """The coded features whose factor is not 0, increasing."""
        return np.flatnonzero(self.factors)

    @property
    def sources(self) -> Int64:
        """The feature that each coded one is of, int64 (d',)."""
        return np.arange(len(self.factors)) if self.coding is None else self.coding.sources


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The trained model of one cell, in the layout of the model store.

    Attributes
    ----------
    frame : Frame. Around the mean of the cell's rows, or the origin.
    rows : float32 array, shape (s, d). Support rows in the frame, grouped by class.
    coef : float32 array, shape (r, s). The number of rows depends on the loss. Of one-vs-one r is
        k - 1, as scikit-learn's ``dual_coef_``: a row of class a has one coefficient for each other
        class present, in increasing order of that class.
    classes : int32 array, shape (k,). Codes of the classes present, increasing. One: a constant.
    class_ptr : int64 array, shape (k + 1,). Class i owns ``rows[class_ptr[i]:class_ptr[i + 1]]``.
    intercepts : float64 array, one a decision function, 0 without offset: of one-vs-one shape
        (k (k - 1) / 2,), one a pair of classes.
    kernel : KernelSpec
    report : CellReport
    decision : "ovo": rows have a class, and a function is of a pair of classes; "ovr": a function
        is of a class against all others, or of the second class where there are two, and takes part
        in all rows, which ``class_ptr`` gives to the first class; "values": a function is a number
        of a row's target, and stands in the place of a class.
    errors : float32 array, shape (n_gammas, n_costs), or None. The validation error of each
        combination that ran on all folds; -1 of those that were dropped, or not tried. For people.
    held_out : float64 array, shape (q, r), or None. The values of the rows that were asked for,
        each of a model without it; None of a constant.
    """

    frame: Frame
    rows: Float32
    coef: Float32
    classes: Codes
    class_ptr: Int64
    intercepts: Float64
    kernel: KernelSpec
    report: CellReport
    decision: Decision = "ovo"
    errors: Float32 | None = None
    held_out: Float64 | None = None

    @property
    def center(self) -> Float64:
        """The center of the frame, float64 (d,)."""
        return self.frame.center


@dataclass(frozen=True)
class Bundle:
    """The cells trained in one task: the cells of a contiguous range of leaves.

    ``nbytes`` is the task's projected peak, ``cost`` its share of the training work (rows^2).
    """

    first_leaf: int
    last_leaf: int
    n_rows: int
    cost: float
    nbytes: int


@dataclass(frozen=True)
class BundleReport:
    """The result of `fit_bundle`: counts, never data."""

    first_leaf: int
    last_leaf: int
    n_cells: int
    n_rows: int
    n_support: int = 0
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, eq=False)
class Regions:
    """Parts of space that hold the rows of leaves or cells, for bounds on distances.

    Attributes
    ----------
    centers : float64 array, shape (n, d). Means of the rows.
    r_min, r_max : float64 arrays, shape (n,). Least and largest distance of a row to the center.
    low, high : float64 arrays, shape (n, d). The box around the rows.
    """

    centers: Float64
    r_min: Float64
    r_max: Float64
    low: Float64
    high: Float64

    def take(self, which: slice) -> "Regions":
        """Return some of the regions."""
        return Regions(*(getattr(self, f.name)[which] for f in fields(self)))


@dataclass(frozen=True, eq=False)
class LeafRows:
    """The rows of one leaf as neighbor searches read them: sorted by region, then by row number.

    Attributes
    ----------
    X : array, shape (m, d), the data set's dtype
    numbers : int64 array, shape (m,). Global row numbers.
    region_ptr : int64 array, shape (r + 1,). Region i owns rows region_ptr[i] to
        region_ptr[i + 1] - 1.
    regions : Regions. Of parts of the leaf, each of near rows.
    first_position : int. The position of the first row among the rows of all leaves.
    kept : int array, shape (m,), or None. Which rows of the leaf these are, if not all of them.
    """

    X: Reals
    numbers: RowNumbers
    region_ptr: Int64
    regions: Regions
    first_position: int
    kept: Int64 | None = None

    @property
    def positions(self) -> Int64:
        """The position of each row among the rows of all leaves, int64 (m,)."""
        own = np.arange(len(self.numbers)) if self.kept is None else self.kept
        return own + self.first_position

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, and of the float32 blocks that searches make of them."""
        m, d = self.X.shape
        return int(self.X.nbytes + self.numbers.nbytes + (m + 64) * (4 * (d + 4) + 8))

    def only(self, mask: Mask) -> "LeafRows":
        """Return some of the rows; the bounds of their regions hold for fewer rows, too."""
        kept = np.flatnonzero(mask)
        ptr = np.r_[0, np.cumsum(mask)][self.region_ptr]
        return LeafRows(
            self.X[kept],
            self.numbers[kept],
            ptr,
            self.regions,
            self.first_position,
            kept,
        )
