"""The parameters of L3-SVMs, the memory of their tasks, and the rules of their choices."""

from collections.abc import Sequence
from dataclasses import dataclass

from daskls.errors import MemoryPlanError, ParameterError
from daskls.kernels.kernel import find_kernel
from daskls.kernels.route import GEMM_ROWS
from daskls.memory import TaskSizes
from daskls.plan.bundles import Resources, group_neighbors, plan_sample, share_of
from daskls.plan.checks import check_block, excess
from daskls.plan.fit import FitCost
from daskls.records import F8, Mask, SolverSpec
from daskls.solvers.base import ROW_TEMPORARIES

# Candidates of C, times the mean squared norm of the projected rows. Small data sets and those
# with hundreds of features choose 0.3 to 300, ijcnn1 and letter 3000 to 30,000, covtype the last.
COST_SHARES = (0.03, 0.3, 3.0, 30.0, 300.0, 3e3, 3e4, 3e5)
# The paper's number of clusters on data sets of 3000 to 60,000 rows, and the number of rows for
# which `count_clusters` would give one. Few rows support few clusters; the more clusters, the
# smaller they may be: with less than some 300 rows per cluster, 500 to 1600 rows lose to a linear
# SVM, while 7000 rows of 10 classes need 80 clusters.
MOST_CLUSTERS = 100
ROWS_OF_ONE = 400
# Landmarks of a kernel whose number is left open, at least: its features are of so many points.
LEAST_OF_KERNEL = 100
# Cells are solved in groups of about this many bytes, and in at least so many groups, to keep
# workers busy. Groups depend on the data alone, so a fit may resume with other workers.
GROUP_NBYTES = 16 << 20
MIN_GROUPS = 16
# A cell's matrix of inner products is worth its memory up to this many rows per landmark.
ROWS_PER_LANDMARK = 2


@dataclass(frozen=True)
class LandmarkSpec:
    """Parameters of L3-SVMs beyond the solver's; None leaves a number to rows or features."""

    n_cells: int | None
    n_landmarks: int | None
    landmarks: str
    projection: str
    kernel_gamma: float | None = None


def count_clusters(n_rows: int) -> int:
    """Return the default number of clusters.

    >>> [count_clusters(n) for n in (10, 500, 3000, 7000, 1_000_000)]
    [2, 2, 20, 73, 100]
    """
    return min(max(int((n_rows / ROWS_OF_ONE) ** 1.5), 2), MOST_CLUSTERS)


def check_landmarks(method: LandmarkSpec, sizes: TaskSizes, resources: Resources) -> None:
    """Refuse more landmarks than the data allows, and cells that would not fit in a task."""
    n_rows = sizes.n_rows
    most = most_landmarks(method, n_rows, sizes.n_features)
    wanted = method.n_landmarks or 1
    if wanted > most:
        raise ParameterError(
            f"n_landmarks={wanted}, but {n_rows} rows of {sizes.n_features} features give at most "
            f"{most} landmarks with landmarks={method.landmarks!r}; lower it."
        )
    check_block(sizes, resources)
    rows = min(sizes.cell_size, n_rows) if sizes.at == "expected" else sizes.leaf_rows
    n_problems = n_candidates(sizes.spec) * sizes.n_outputs
    used = asked_landmarks(method, sizes.spec, sizes.n_features)
    needed = landmark_nbytes(sizes, rows, used, n_problems)
    if needed > resources.task_nbytes:
        raise MemoryPlanError(
            f"The largest cell ({rows} rows {sizes.at}, {used} landmarks, {n_problems} problems) "
            f"needs {excess(needed, resources.task_nbytes)}; "
            f"raise n_cells, lower n_landmarks, give fewer values of C, or {resources.more}"
        )


def expected_landmarks(method: LandmarkSpec, sizes: TaskSizes, n_cells: int) -> FitCost:
    rows = max(sizes.n_rows // n_cells, 1)
    n_landmarks = asked_landmarks(method, sizes.spec, sizes.n_features)
    n_problems = n_candidates(sizes.spec) * sizes.n_outputs
    groups = group_cells([rows] * n_cells, sizes.n_features, n_landmarks, n_problems)
    nbytes = landmark_nbytes(sizes, rows, n_landmarks, n_problems)
    models = n_cells * (n_landmarks + sizes.n_features) * sizes.n_outputs + n_landmarks**2
    return FitCost(len(groups), n_cells, nbytes, models * F8 + map_nbytes(sizes.spec, n_landmarks))


def has_map(spec: SolverSpec) -> bool:
    """Whether projections are mapped to a kernel's features; inner products need no map."""
    return find_kernel(spec.kernel).has_gamma


def map_nbytes(spec: SolverSpec, n_landmarks: int) -> int:
    """Return the bytes of a feature map: its points and the root."""
    return 2 * n_landmarks**2 * F8 if has_map(spec) else 0


def most_landmarks(method: LandmarkSpec, n_rows: int, n_features: int) -> int:
    """Return the most landmarks: the rows of the sample; for principal components, its rank."""
    cell_size = share_of(n_rows, method.n_cells or count_clusters(n_rows))
    n_sample = plan_sample(n_rows, n_features, cell_size).n_sample
    return min(n_sample, n_features) if method.landmarks == "pca" else n_sample


def asked_landmarks(method: LandmarkSpec, spec: SolverSpec, n_features: int) -> int:
    """Return the number of landmarks, if there are as many."""
    least = LEAST_OF_KERNEL if has_map(spec) else 0
    return method.n_landmarks or max(n_features, least)


def n_candidates(spec: SolverSpec) -> int:
    n_costs = len(spec.C or COST_SHARES)
    return n_costs * spec.cv if n_costs > 1 else 1


def default_costs(norm: float) -> list[float]:
    # A norm of 0 means that no C can separate the projected rows: any candidates will do.
    return [share / (norm or 1.0) for share in COST_SHARES]


def group_cells(
    leaf_rows: Sequence[int], n_features: int, n_landmarks: int, n_problems: int
) -> list[tuple[int, int]]:
    state_nbytes = 2 * F8 * n_problems * n_landmarks
    row_nbytes = F8 * (n_landmarks + n_features)
    nbytes = [rows * row_nbytes + state_nbytes for rows in leaf_rows]
    limit = min(GROUP_NBYTES, sum(nbytes) // MIN_GROUPS)
    return group_neighbors(nbytes, limit)


def landmark_nbytes(sizes: TaskSizes, n_rows: int, n_landmarks: int, n_problems: int) -> int:
    reading = 2 * n_rows * sizes.row_nbytes
    projected = n_rows * n_landmarks * F8
    inner = n_rows**2 * F8 if n_rows <= ROWS_PER_LANDMARK * n_landmarks else 0
    factor = min(n_rows, n_landmarks) ** 2 * F8
    states = 4 * n_problems * (n_landmarks + 16) * F8
    copies = 6 if has_map(sizes.spec) else 3
    tile = GEMM_ROWS * (sizes.n_features + copies * n_landmarks) * F8
    tile += map_nbytes(sizes.spec, n_landmarks)
    return reading + projected + inner + factor + states + tile + n_rows * ROW_TEMPORARIES


def pick_cost(errors: Sequence[float], unsolved: Mask, varied: Mask) -> int:
    """Return the index of the best candidate of C, of increasing ones.

    Unsolved candidates are ignored, unless all are; those that predict one class for all rows come
    last. Ties: candidates inside the grid come first, so that a choice on the edge means that it
    was better; then the smallest C.
    """
    solved = [i for i in range(len(errors)) if not unsolved[i]] or list(range(len(errors)))
    least = min(errors[i] for i in solved)
    tied = [i for i in solved if errors[i] == least]
    informative = [i for i in tied if varied[i]]
    if not informative:
        return tied[-1]
    return next((i for i in informative if 0 < i < len(errors) - 1), informative[0])


def edge_of(C: float, candidates: Sequence[float]) -> str:
    """Return "C" if the choice lies on the edge of more than two candidates, else ""."""
    return "C" if len(candidates) > 2 and C in (min(candidates), max(candidates)) else ""
