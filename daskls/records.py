"""Frozen records that all layers share. They hold numbers and small arrays, never a data set."""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

# Array types by content. Each name has one meaning; mypy rejects one where another is expected.
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32 | np.float64]
# Rows of a data set or a query: of any real dtype, not converted yet.
Reals = npt.NDArray[np.integer[Any] | np.floating[Any]]
# Class codes: indices into all classes of a model.
Codes = npt.NDArray[np.int32]
# Targets of rows: class codes, or numbers.
Targets = npt.NDArray[np.int32 | np.float64]
# Global numbers of rows in the data set.
RowNumbers = npt.NDArray[np.int64]
# Other integers: 32 bits for leaves, cells and children of nodes; 64 for counts, pointers and
# positions. `Ints` are either.
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32 | np.int64]
# Hashes that decide a draw, and their remainders.
Keys = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
# Tables of reports, with `CellReport.dtype`.
Table = npt.NDArray[np.void]
# Class labels as users give them: numbers or text, of any dtype.
Labels = npt.NDArray[Any]
# Arrays that are copied to and from files and stores without a look inside; metadata hold the
# dtype.
AnyArray = npt.NDArray[Any]
# The targets of a model, and of a loss in training: labels of classes, or numbers.
TargetKind = Literal["classes", "numbers"]
# How errors are measured: levels of a number have a measure of their own.
MeasuredAs = Literal["classes", "numbers", "levels"]
# The meaning of a model's decision functions: pairs of classes, classes against the rest, or
# predicted numbers.
Decision = Literal["ovo", "ovr", "values"]
# How features are coded that are thresholds, orders or categories written as numbers.
Coding = Literal["none", "ranks", "indicators", "both"]

# The score that a search maximizes on held-out rows, not the accuracy: see `daskls.solvers.search`.
Scoring = Literal["tpr_x_tnr"]

SCORINGS: tuple[Scoring, ...] = get_args(Scoring)
# Values per parameter of the default grid of C and gamma.
N_GRID = 10
# The default epsilon of support vector regression, in units of y's spread.
DEFAULT_EPSILON = 0.1
# Bounds of C, of gamma, of weights and of their products: solvers compute in float32.
SMALLEST, LARGEST = 1e-30, 1e30
# Bytes of a float32 and of a float64 value.
F4, F8 = 4, 8
MIB = 1 << 20
# Rows of small neighboring leaves are read together up to this many bytes. It is here because both
# the plan and the store need it.
LEAVES_NBYTES = 4 * MIB
# The distance from 1 to the next larger float64.
EPS = float(np.finfo(np.float64).eps)
# The largest magnitude of a feature: squared distances of larger values would overflow float32.
LARGEST_FEATURE = 1e18
# Beyond it float64 does not hold all integers: 2**53 + 1 becomes 2**53.
EXACT = 2**53
INEXACT = (
    "integers beyond 2**53 = 9,007,199,254,740,992 become equal as float64. Subtract a constant "
    "from them, or leave the column out if it only names the rows"
)


def first_inexact(values: AnyArray) -> int | None:
    """Return the place of the first integer that float64 does not hold, in row order; or None."""
    is_wide = values.dtype.kind in "iu" and values.itemsize > 4 and values.size > 0
    if not is_wide or (values.max() <= EXACT and values.min() >= -EXACT):
        return None
    numbers = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        # The largest integers become a float that no integer of the dtype is.
        bad = (numbers.astype(values.dtype) != values) | (
            numbers >= float(np.iinfo(values.dtype).max)
        )
    return int(bad.argmax()) if bad.any() else None


@dataclass(frozen=True)
class KernelSpec:
    name: str = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0


@dataclass(frozen=True)
class SolverSpec:
    """The parameters that every cell is trained with.

    Attributes
    ----------
    kernel, degree, coef0 : as scikit-learn's
    C, gamma : tuples of float. Candidate values; None: the default grid.
    cv : int. Folds.
    tol : float. The duality gap that solvers reach, see ``clipped_gap``.
    search : "full" or "refine". Whether all combinations are trained, or from coarse to fine.
    fit_intercept : bool
    clipped_gap : bool. Whether ``tol`` is for the gap of decision values clipped to [-1, 1]; else
        it is for the plain one.
    loss, target : str. Name the entry in `daskls.solvers.registry`.
    width : float, or None. The width chosen for all cells, in units of a cell's median distance;
        each cell derives its gamma from it.
    epsilon : float, or None. Of support vector regression, in units of y, as is its C.
    unit : float. The spread of y that solvers divide by, in units of y.
    n_grid : (int, int), or None. Values of C and of gamma in the default grid; None: `N_GRID`.
    scoring : Scoring, or None. What is maximized on held-out rows; None: the accuracy.
    cache_size : float, or None. Bounds the MiB of kernel values of a cell; None: all are held.
    quantile : float, tuple of float or None. The level that is predicted, or the levels of a loss
        that takes several, in the order of the predictions.
    constant_losses : tuple of float, or None. Per level, the mean loss of the best constant; of
        support vector regression the variance. Losses of held-out rows are in units of it.
    """

    kernel: str = "rbf"
    C: tuple[float, ...] | None = None
    gamma: tuple[float, ...] | None = None
    degree: int = 3
    coef0: float = 0.0
    cv: int = 5
    tol: float = 1e-3
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
    def tube(self) -> float:
        """Epsilon in units of y's spread."""
        return DEFAULT_EPSILON if self.epsilon is None else self.epsilon / self.unit

    @property
    def levels(self) -> tuple[float, ...]:
        if self.quantile is None:
            return ()
        return self.quantile if isinstance(self.quantile, tuple) else (self.quantile,)

    @property
    def n_costs(self) -> int:
        if self.C is not None:
            return len(self.C)
        return N_GRID if self.n_grid is None else self.n_grid[0]


@dataclass(frozen=True)
class ScalingSpec:
    """The choices that a fit makes from the data for all cells, before space is cut.

    `kernels` are the candidates for the kernel of all cells, chosen with width and ridge; empty
    where each cell chooses its own. `by_chance`: cells are random chunks, so they are chosen on
    random rows.
    """

    feature_scale: Literal["spread", "learned"] | tuple[float, ...] | None = None
    kernels: tuple[str, ...] = ()
    # The name is part of a fit's identity in stores.
    by_chance: bool = False
    feature_coding: Coding | Literal["auto"] = "none"


@dataclass(frozen=True)
class FalseAlarmSpec:
    """A bound on the share of false alarms, which holds but with probability ``delta``."""

    # The key in stores, and in the table of what rows are reserved for.
    name: ClassVar[str] = "false_alarm"

    rate: float
    delta: float


@dataclass(frozen=True)
class IntervalSpec:
    """The probability that y lies in its interval, over rows and calibration sets."""

    name: ClassVar[str] = "interval"

    coverage: float


# The purposes that rows may be reserved for.
ReserveSpec = FalseAlarmSpec | IntervalSpec


@dataclass(frozen=True)
class CellReport:
    """One row of `fit_report_`: the results of training one cell.

    Leaves are numbered through all partitions; `n_at_limit` solves stopped before ``tol``; the
    choice lies on the grid's `edge` of these axes. `seconds`, and `n_read`, the leaves that the
    search of a neighborhood could not exclude, depend on what ran at the same time.
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

    @classmethod
    def dtype(cls) -> np.dtype[Any]:
        kinds = {int: "i8", float: "f8", str: "U8"}
        return np.dtype([(f.name, kinds[f.type]) for f in fields(cls)])  # type: ignore[index]

    def as_tuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))


@dataclass(frozen=True, eq=False)
class Frame:
    """The center (d,) that is subtracted from rows in kernels, and the scale (d,) that divides."""

    center: Float64
    scale: Float64 | None = None


@dataclass(frozen=True, eq=False)
class FeatureCoding:
    """How each feature is coded before scaling: unchanged, as its rank, or as indicators of values.

    Feature j owns the points ptr[j] to ptr[j + 1] - 1, increasing: knots of the map to ranks in [0,
    1], or the values that have an indicator each, of rank -1. Without points it is unchanged.
    """

    ptr: Int64
    points: Float64
    ranks: Float64

    @property
    def n_features(self) -> int:
        return len(self.ptr) - 1

    @property
    def is_indicated(self) -> Mask:
        marked = np.r_[0, np.cumsum(self.ranks < 0)]
        indicated: Mask = marked[self.ptr[1:]] > marked[self.ptr[:-1]]
        return indicated

    @property
    def sources(self) -> Int64:
        counts = np.where(self.is_indicated, np.diff(self.ptr), 1)
        return np.repeat(np.arange(self.n_features), counts)


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """The coding and scale of features, applied to rows first in training and in prediction.

    The center (d',) is subtracted from every coded row; then the factors (d',) multiply it. Scaled
    rows are float32 and have only the features whose factor is not 0.
    """

    center: Float64
    factors: Float64
    coding: FeatureCoding | None = None

    @property
    def columns(self) -> Int64:
        """The numbers of the coded features whose factor is not 0, increasing."""
        return np.flatnonzero(self.factors)

    @property
    def sources(self) -> Int64:
        return np.arange(len(self.factors)) if self.coding is None else self.coding.sources


@dataclass(frozen=True, eq=False)
class LocalModel:
    """The trained model of one cell, in the layout of the model store.

    Attributes
    ----------
    frame : Frame. Centered at the mean of the cell's rows, or at the origin.
    rows : float32 array, shape (s, d). Support rows in the frame, grouped by class.
    coef : float32 array, shape (r, s). r depends on the loss. In one-vs-one it is k - 1, as in
        scikit-learn's ``dual_coef_``: a row of class a has one coefficient for each other class
        present, in increasing order of that class.
    classes : int32 array, shape (k,). Codes of the classes present, increasing. A single class
        makes the model a constant.
    intercepts : float64 array. One per decision function, 0 without an intercept; in one-vs-one of
        shape (k (k - 1) / 2,), one per pair of classes.
    decision : "ovo", "ovr" or "values". "ovo": rows are grouped by class, and each function
        separates two classes. "ovr": each function separates one class from all others (with two
        classes there is one, of the second) and uses all rows, which ``class_ptr`` assigns to the
        first class. "values": each function is one number of the target and takes the place of a
        class.
    errors : float32 array, shape (n_gammas, n_costs), or None. The validation error of each
        combination that ran on all folds; -1 for those dropped or not tried. Only for display.
    held_out : float64 array, shape (q, r), or None. The values of the requested rows, each from a
        model trained without it; None for a constant.
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
        return self.frame.center


@dataclass(frozen=True)
class Bundle:
    """The cells of some leaves, trained in one task; its projected peak, and its work (rows^2)."""

    first_leaf: int
    last_leaf: int
    n_rows: int
    work: float
    nbytes: int


@dataclass(frozen=True)
class BundleReport:
    first_leaf: int
    last_leaf: int
    n_cells: int
    n_rows: int
    n_support: int = 0
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, eq=False)
class Regions:
    """The balls and boxes around the rows of n leaves or cells, for bounds on distances.

    The centers (n, d) are means of rows; r_min and r_max the least and largest distance of a row.
    """

    centers: Float64
    r_min: Float64
    r_max: Float64
    low: Float64
    high: Float64

    def take(self, which: slice) -> "Regions":
        return Regions(*(getattr(self, f.name)[which] for f in fields(self)))


@dataclass(frozen=True, eq=False)
class LeafRows:
    """The rows (m, d) of one leaf as neighbor searches read them: sorted by region, then by number.

    Region i owns rows region_ptr[i] to region_ptr[i + 1] - 1. `first_position` is that of the
    leaf's first row among the rows of all leaves. `subset` tells which rows of the leaf these are.
    """

    X: Reals
    numbers: RowNumbers
    region_ptr: Int64
    regions: Regions
    first_position: int
    subset: Int64 | None = None

    @property
    def positions(self) -> Int64:
        """The position of each row among the rows of all leaves, int64 (m,)."""
        rows = np.arange(len(self.numbers)) if self.subset is None else self.subset
        return rows + self.first_position

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and of the float32 blocks that searches make of them."""
        m, d = self.X.shape
        return int(self.X.nbytes + self.numbers.nbytes + (m + 64) * (4 * (d + 4) + 8))

    def only(self, mask: Mask) -> "LeafRows":
        """Return the rows of a mask; the bounds of their regions stay valid for fewer rows."""
        rows = np.flatnonzero(mask)
        ptr = np.r_[0, np.cumsum(mask)][self.region_ptr]
        return LeafRows(
            self.X[rows], self.numbers[rows], ptr, self.regions, self.first_position, rows
        )
