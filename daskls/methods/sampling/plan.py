"""The parameters of methods that train one SVM on a chosen sample, and their tasks' memory."""

import math
from dataclasses import dataclass, replace

from daskls.errors import ParameterError
from daskls.kernels.gram import DECISION_TILE_ROWS, TILE_COLUMNS
from daskls.kernels.kernel import find_kernel
from daskls.memory import TaskSizes, neighbor_search_nbytes
from daskls.methods.scores import LEAST_SLAB_ROWS, slab_rows
from daskls.neighbors.balls import MARKED_PAIRS
from daskls.partition.shuffle import DisjointDraws, plan_draws, sampling_sizes
from daskls.plan.bundles import Resources, n_selecting
from daskls.plan.checks import check_block, check_gather, check_usable, usable_nbytes
from daskls.records import F4, F8, SolverSpec
from daskls.solvers.registry import LARGE_LOSSES

# Bytes that loading scikit-learn's SVC adds to a process, measured.
SVC_NBYTES = 72 << 20
# Most support rows whose neighbors one task searches.
SEARCHED_ROWS = 1 << 11
# Pairs of a ball and a row that are collected before those beyond a ball's quota are dropped.
WAITING_PAIRS = 1 << 16
# Bytes of a pair of a ball and a row while pairs are sorted.
PAIR_NBYTES = 104


@dataclass(frozen=True)
class SamplingSpec:
    """Parameters of methods that train one SVM on a chosen sample, beyond the solver's.

    The fraction is of all rows, in the first subsamples together; None: it and their number follow
    from rows and classes. `radius_scale` multiplies the median radius; None searches. `selects`: C
    and gamma are selected, on a few rows; `percentiles`, decreasing, are widths of their distances.
    """

    sample_fraction: float | None
    n_subsamples: int | None = 1
    radius_scale: float | None = None
    n_neighbors: int = 5
    selects: bool = False
    percentiles: tuple[float, ...] | None = None
    loss: str = "hinge"

    def n_selecting(self, draws: DisjointDraws) -> int:
        """Return how many rows C and gamma are selected on; they are not validation rows."""
        if not self.selects:
            return 0
        return min(n_selecting(draws.n_rows), draws.n_sampled + draws.n_others)


def check_subsamples(
    method: SamplingSpec, sizes: TaskSizes, resources: Resources, split: str = ""
) -> tuple[DisjointDraws, float]:
    """Refuse what would not fit in a task; return the draws and the fraction."""
    n_rows = sizes.n_rows
    fraction, n_drawn = sampling_sizes(
        method.sample_fraction, method.n_subsamples, n_rows, sizes.n_classes
    )
    draws = plan_draws(n_rows, fraction, n_drawn, 0)
    if draws.subsample_rows < 2:
        raise ParameterError(
            f"sample_fraction={fraction:g} of {n_rows} rows, less {draws.n_validation} for "
            f"validation, in n_subsamples={n_drawn} gives subsamples of {draws.subsample_rows} "
            f"row(s), but an SVM needs at least 2; {_larger_subsamples(draws, fraction)}."
        )
    check_block(sizes, resources)
    check_gather(sizes, resources)
    remedy = f"{split}lower sample_fraction below {fraction:g}"
    check_trained(
        sizes, draws.subsample_rows, method.loss, resources, what="A subsample", remedy=remedy
    )
    if method.selects:
        check_selection(sizes, resources, method.n_selecting(draws))
    return draws, fraction


def _larger_subsamples(draws: DisjointDraws, fraction: float) -> str:
    """Return advice for subsamples of two rows, with both parameters only if one is too little."""
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
    """Return a positive number rounded up to two significant digits."""
    digits = 1 - math.floor(math.log10(value))
    # The product of a number of two digits may exceed the integer by a rounding error.
    return f"{math.ceil(value * 10**digits - 1e-9) / 10**digits:.2g}"


def check_selection(sizes: TaskSizes, resources: Resources, n_rows: int) -> None:
    # Imported here, as below, so that a process that only predicts never loads the trainers.
    from daskls.solvers.hinge.solver import HINGE

    needed = 2 * n_rows * sizes.row_nbytes + HINGE.nbytes(sizes, n_rows)
    what = f"Selecting C and gamma on {n_rows} rows x {sizes.n_features} features"
    check_usable(what, needed, resources, "give one value of each")


def check_rounds(
    sizes: TaskSizes, resources: Resources, draws: DisjointDraws, n_neighbors: int
) -> None:
    # Capped as in the fit: a row has at most all others as neighbors.
    n_trained = sizes.n_rows - draws.n_validation
    n_neighbors, queries = min(n_neighbors, n_trained - 1), min(SEARCHED_ROWS, n_trained)
    needed, least = (
        neighbor_search_nbytes(sizes, queries, k + 1, sizes.leaf_rows) for k in (n_neighbors, 1)
    )
    what = f"Searching {n_neighbors} neighbors of {queries} support rows"
    check_usable(what, needed, resources, f"lower n_neighbors below {n_neighbors}", least)


def check_trained(
    sizes: TaskSizes, n_rows: int, loss: str, resources: Resources, *, what: str, remedy: str
) -> None:
    what = f"{what} of {n_rows} rows x {sizes.n_features} features"
    if LARGE_LOSSES[loss]:
        remedy += ', or give loss="hinge", which holds no kernel matrix'
    check_usable(what, sample_nbytes(sizes, n_rows, loss), resources, remedy)


def most_pairs(
    sizes: TaskSizes, n_balls: int, leaf_rows: int, resources: Resources, fraction: float
) -> int:
    """Return how many pairs of a ball and a row a task may keep; `WAITING_PAIRS` must fit."""
    needed, least = (ball_nbytes(sizes, m, leaf_rows, WAITING_PAIRS) for m in (n_balls, 2))
    what = f"Drawing around up to {n_balls} support rows"
    check_usable(what, needed, resources, f"lower sample_fraction below {fraction:g}", least)
    return WAITING_PAIRS + (usable_nbytes(resources) - needed) // (2 * PAIR_NBYTES)


def beside_svc(resources: Resources) -> Resources:
    """Return the resources left once tasks have loaded scikit-learn's SVC."""
    if resources.has_svc:
        return resources
    return replace(resources, task_nbytes=max(resources.task_nbytes - SVC_NBYTES, 0))


def cache_nbytes(sizes: TaskSizes, n_rows: int, loss: str, resources: Resources) -> int:
    return max(usable_nbytes(resources) - sample_nbytes(sizes, n_rows, loss), 0)


def sample_nbytes(sizes: TaskSizes, n_rows: int, loss: str = "hinge") -> int:
    """Return the peak bytes of training one SVM on a sample, if every row is a support row."""
    from daskls.solvers.hinge.large import large_nbytes, solution_nbytes

    m, d = n_rows, sizes.n_features
    held = solution_nbytes(sizes, m)
    evaluating = held + m * d * (2 * F4 + F8) + _decision_nbytes(sizes.spec, m)
    return max(large_nbytes(sizes, m, loss), evaluating) + 2 * m * sizes.row_nbytes


def _decision_nbytes(spec: SolverSpec, n_support: int) -> int:
    if find_kernel(spec.kernel).decides_in_tiles:
        # A tile of products, and the one before it.
        return 2 * DECISION_TILE_ROWS * n_support * F8
    slab = slab_rows(n_support) * n_support * F8
    return slab + LEAST_SLAB_ROWS * min(n_support, TILE_COLUMNS) * F8


def ball_nbytes(sizes: TaskSizes, n_balls: int, leaf_rows: int, n_pairs: int) -> int:
    """Return the peak bytes of drawing from balls, which keeps up to twice ``n_pairs`` pairs."""
    centers = n_balls * (sizes.row_nbytes + 2 * sizes.n_features * F8 + 4 * F8)
    leaf = 2 * leaf_rows * (sizes.n_features * F8 + 20)
    marked = min(MARKED_PAIRS, n_balls * leaf_rows)
    return centers + leaf + (n_pairs + max(WAITING_PAIRS, n_pairs) + marked) * PAIR_NBYTES
