"""Memory of the tasks of an L3-SVM, and the most landmarks that there may be."""

from daskls.errors import MemoryPlanError, ParameterError
from daskls.memory import TaskSizes
from daskls.methods.landmarks.choice import COST_SHARES, count_clusters
from daskls.methods.landmarks.spec import LandmarkSpec
from daskls.plan import Extent, Resources, check_block, mib, plan_sample
from daskls.records import F8, SolverSpec
from daskls.run.begin import share_of
from daskls.solvers.base import ROW_TEMPORARIES

__all__ = ["check_landmarks", "most_landmarks", "n_candidates"]


def check_landmarks(method: LandmarkSpec, extent: Extent, resources: Resources) -> None:
    """Refuse more landmarks than there can be, and cells that would not fit a task.

    Clusters may be of any size: before the rows are regrouped the mean size is expected.

    Raises
    ------
    ParameterError : more landmarks than the sample gives
    MemoryPlanError : when a block or a cell needs more than a task may use
    """
    sizes, n_rows = extent.sizes, extent.n_rows
    most = most_landmarks(method, n_rows, sizes.n_features)
    wanted = method.n_landmarks or 1
    if wanted > most:
        raise ParameterError(
            f"n_landmarks={wanted}, but {n_rows} rows of {sizes.n_features} features give at most "
            f"{most} landmarks with landmarks={method.landmarks!r}; lower it."
        )
    check_block(extent, resources)
    rows = min(sizes.cell_size, n_rows) if extent.at == "expected" else extent.leaf_rows
    n_problems = n_candidates(sizes.spec) * (1 if sizes.n_classes == 2 else sizes.n_classes)
    used = method.n_landmarks or sizes.n_features
    needed = landmark_nbytes(sizes, rows, used, n_problems)
    if needed > resources.task_nbytes:
        raise MemoryPlanError(
            f"The largest cell ({rows} rows {extent.at}, {used} landmarks, {n_problems} problems) "
            f"needs {mib(needed)} but a task may use {mib(resources.task_nbytes)}; "
            f"raise n_cells, lower n_landmarks, give fewer values of C, or {resources.more}"
        )


def most_landmarks(method: LandmarkSpec, n_rows: int, n_features: int) -> int:
    """Return how many landmarks there may be: drawn rows come from the sample."""
    cell_size = share_of(n_rows, method.n_cells or count_clusters(n_rows))
    n_sample = plan_sample(n_rows, n_features, cell_size).n_sample
    return min(n_sample, n_features) if method.landmarks == "pca" else n_sample


def n_candidates(spec: SolverSpec) -> int:
    """Return how many models of two classes a round may solve."""
    n_costs = len(spec.C or COST_SHARES)
    return n_costs * spec.cv if n_costs > 1 else 1


def landmark_nbytes(sizes: TaskSizes, n_rows: int, n_landmarks: int, n_problems: int) -> int:
    """Peak bytes of solving a cell of an L3-SVM: read, projected, inner products, a factor."""
    reading = 2 * n_rows * sizes.row_nbytes
    projected = n_rows * n_landmarks * F8
    inner = n_rows**2 * F8 if n_rows <= 2 * n_landmarks else 0
    factor = min(n_rows, n_landmarks) ** 2 * F8
    states = 4 * n_problems * (n_landmarks + 16) * F8
    tile = 1024 * (sizes.n_features + 3 * n_landmarks) * F8
    return reading + projected + inner + factor + states + tile + n_rows * ROW_TEMPORARIES
