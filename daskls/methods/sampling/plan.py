"""Memory of the tasks that train on a sample, and the share of it for a cache.

The parameters of methods that train one SVM on a chosen sample.
"""

import math
from dataclasses import dataclass, replace

from daskls.errors import ParameterError
from daskls.kernels.gram import DECISION_TILE_ROWS, TILE_COLUMNS
from daskls.kernels.kernel import find_kernel
from daskls.memory import TaskSizes, neighbor_search_nbytes
from daskls.methods.scores import LEAST_SLAB_ROWS, slab_rows
from daskls.neighbors.balls import MARKED_PAIRS
from daskls.partition.shuffle import Draws, plan_draws, sampling_sizes
from daskls.plan import (
    Extent,
    Resources,
    check_block,
    check_gather,
    check_usable,
    n_selecting,
    usable_nbytes,
)
from daskls.records import F4, F8, SolverSpec
from daskls.solvers.hinge.large import held_nbytes, large_nbytes
from daskls.solvers.hinge.solver import HINGE


@dataclass(frozen=True)
class SamplingSpec:
    """Parameters of methods that train one SVM on a chosen sample, beyond the solver's.

    Attributes
    ----------
    sample_fraction : float, in (0, 1]. Of all rows, in the first subsamples. None, as for
        n_subsamples: by the number of rows and classes.
    n_subsamples : int, or None
    radius_scale : factor of the median radius, or None for a search
    n_neighbors : int. Of each support row, that a round adds.
    selects : bool. Whether C and gamma are selected from candidates, on a few rows.
    percentiles : candidate widths as percentiles of these rows' distances, decreasing; None where
        gamma is given
    """

    sample_fraction: float | None
    n_subsamples: int | None = 1
    radius_scale: float | None = None
    n_neighbors: int = 5
    selects: bool = False
    percentiles: tuple[float, ...] | None = None

    def n_selecting(self, draws: Draws) -> int:
        """Return how many rows C and gamma are selected on; none of them validates."""
        if not self.selects:
            return 0
        return min(n_selecting(draws.n_rows), draws.n_sampled + draws.n_others)


# What a process holds more once it has loaded scikit-learn's SVC, measured with pandas installed.
SVC_NBYTES = 128 << 20
# Support rows whose neighbors one task searches.
SEARCHED_ROWS = 1 << 11
# Pairs of a ball and a row that wait before those beyond a ball's quota are dropped.
WAITING_PAIRS = 1 << 16
# What a pair of a ball and a row holds while it is sorted.
PAIR_NBYTES = 104


def check_subsamples(
    extent: Extent,
    resources: Resources,
    sample_fraction: float | None,
    n_subsamples: int | None,
    split: str = "",
) -> tuple[Draws, float]:
    """Refuse, before any training, subsamples that would not fit in the memory of a task.

    Parameters
    ----------
    extent : Extent
    resources : Resources. What is left beside the SVC.
    sample_fraction : float or None
    n_subsamples : int or None
    split : str. A remedy that makes subsamples smaller, where there is one.

    Returns
    -------
    draws : Draws. Of the sizes that follow.
    sample_fraction : float

    Raises
    ------
    ParameterError : when a subsample would have fewer than two rows
    MemoryPlanError : when a block, a leaf, or a subsample needs more than a task may use. The
        message names the parameter to change.
    """
    sizes, n_rows = extent.sizes, extent.n_rows
    fraction, n_drawn = sampling_sizes(sample_fraction, n_subsamples, n_rows, sizes.n_classes)
    draws = plan_draws(n_rows, fraction, n_drawn, 0)
    if draws.subsample_rows < 2:
        raise ParameterError(
            f"sample_fraction={fraction:g} of {n_rows} rows, of which {draws.n_validation} "
            f"validate, in n_subsamples={n_drawn} gives subsamples of {draws.subsample_rows} "
            f"row(s), but an SVM needs 2 at least; {_larger_subsamples(draws, fraction)}."
        )
    check_block(extent, resources)
    check_gather(extent, resources)
    remedy = f"{split}lower sample_fraction below {fraction:g}"
    check_trained(sizes, draws.subsample_rows, resources, what="A subsample", remedy=remedy)
    return draws, fraction


def check_selection(extent: Extent, resources: Resources, n_rows: int) -> None:
    """Refuse to select C and gamma on more rows than a task holds.

    Raises
    ------
    MemoryPlanError
    """
    sizes = extent.sizes
    needed = 2 * n_rows * sizes.row_nbytes + HINGE.nbytes(sizes, n_rows)
    what = f"Selecting C and gamma on {n_rows} rows x {sizes.n_features} features"
    check_usable(what, needed, resources, "give one value of each")


def check_rounds(extent: Extent, resources: Resources, draws: Draws, n_neighbors: int) -> None:
    """Refuse searches of more neighbors than a task holds.

    Raises
    ------
    MemoryPlanError
    """
    # As in the fit: no row has more neighbors than all others.
    n_trained = extent.n_rows - draws.n_validation
    found, queries = min(n_neighbors, n_trained - 1), min(SEARCHED_ROWS, n_trained)
    needed, least = (
        neighbor_search_nbytes(extent.sizes, queries, k + 1, extent.leaf_rows) for k in (found, 1)
    )
    what = f"Searching {found} neighbors of {queries} support rows"
    check_usable(what, needed, resources, f"lower n_neighbors below {found}", least)


def most_pairs(
    sizes: TaskSizes, n_balls: int, leaf_rows: int, resources: Resources, fraction: float
) -> int:
    """Return how many pairs of a ball and a row a task may keep.

    ``resources`` are those beside the SVC, ``fraction`` is the parameter to lower.

    Raises
    ------
    MemoryPlanError : not even the pairs that wait to be merged fit
    """
    usable = usable_nbytes(resources)
    needed, least = (ball_nbytes(sizes, m, leaf_rows, WAITING_PAIRS) for m in (n_balls, 2))
    what = f"Drawing around up to {n_balls} support rows"
    check_usable(what, needed, resources, f"lower sample_fraction below {fraction:g}", least)
    return pairs_within(sizes, n_balls, leaf_rows, usable)


def _larger_subsamples(draws: Draws, fraction: float) -> str:
    """Say what gives subsamples of two rows: only what does, by itself or together."""
    n, available = draws.n_rows, draws.n_rows - draws.n_validation
    drawn = plan_draws(n, fraction, 1, 0).subsample_rows
    remedies = []
    if drawn >= 2:
        remedies.append(f"lower n_subsamples to {drawn // 2} or less")
    if available >= 2 * draws.n_subsamples:
        remedies.append(f"raise sample_fraction to {_rounded_up(2 * draws.n_subsamples / n)}")
    if not remedies and available >= 2:
        remedies.append(
            f"lower n_subsamples to 1 and raise sample_fraction to {_rounded_up(2 / n)}"
        )
    return ", or ".join([*remedies, "fit on more rows"])


def _rounded_up(value: float) -> str:
    """Return a positive number with two figures, never a smaller one."""
    digits = 1 - math.floor(math.log10(value))
    # What two figures say exactly may be a little more as a product.
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.2g}"


def check_trained(
    sizes: TaskSizes, n_rows: int, resources: Resources, *, what: str, remedy: str
) -> None:
    """Refuse to train one SVM on more rows than a task holds.

    Raises
    ------
    MemoryPlanError : with the remedy
    """
    what = f"{what} of {n_rows} rows x {sizes.n_features} features"
    check_usable(what, sample_nbytes(sizes, n_rows), resources, remedy)


def beside_svc(resources: Resources) -> Resources:
    """Return what is left where tasks load scikit-learn's SVC: of little memory, half."""
    if resources.has_svc:
        return resources
    left = max(resources.task_nbytes - SVC_NBYTES, resources.task_nbytes // 2)
    return replace(resources, task_nbytes=left)


def cache_nbytes(sizes: TaskSizes, n_rows: int, resources: Resources) -> int:
    """Return what is left of a task's memory for kernel values while it trains on a sample."""
    return max(usable_nbytes(resources) - sample_nbytes(sizes, n_rows), 0)


def sample_nbytes(sizes: TaskSizes, n_rows: int) -> int:
    """Peak bytes of training one SVM on a sample without a matrix of all its rows.

    A bound: every row may become a support row. The model then predicts the validation rows.
    """
    m, d = n_rows, sizes.n_features
    held = held_nbytes(sizes, m)
    evaluating = held + m * d * (2 * F4 + F8) + _decision_nbytes(sizes.spec, m)
    return max(large_nbytes(sizes, m), evaluating) + 2 * m * sizes.row_nbytes


def _decision_nbytes(spec: SolverSpec, n_support: int) -> int:
    """Bytes of the kernel values of the queries that a model answers together, and of a product."""
    if find_kernel(spec.kernel).decides_in_tiles:
        # A tile of products; kernel values are kept of one query.
        return DECISION_TILE_ROWS * n_support * F8
    slab = slab_rows(n_support) * n_support * F8
    return slab + LEAST_SLAB_ROWS * min(n_support, TILE_COLUMNS) * F8


def ball_nbytes(sizes: TaskSizes, n_balls: int, leaf_rows: int, n_pairs: int) -> int:
    """Peak bytes of drawing from balls: their centers, a leaf, and pairs of a ball and a row.

    ``n_pairs`` of them are kept; before the others are dropped, as many more wait.
    """
    centers = n_balls * (sizes.row_nbytes + 2 * sizes.n_features * F8 + 4 * F8)
    leaf = 2 * leaf_rows * (sizes.n_features * F8 + 20)
    marked = min(MARKED_PAIRS, n_balls * leaf_rows)
    return centers + leaf + (n_pairs + max(WAITING_PAIRS, n_pairs) + marked) * PAIR_NBYTES


def pairs_within(sizes: TaskSizes, n_balls: int, leaf_rows: int, nbytes: int) -> int:
    """Return how many pairs of a ball and a row a task keeps in so many bytes.

    The bytes are enough for `WAITING_PAIRS` of them.
    """
    free = nbytes - ball_nbytes(sizes, n_balls, leaf_rows, WAITING_PAIRS)
    return WAITING_PAIRS + free // (2 * PAIR_NBYTES)
