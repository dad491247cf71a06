"""The parameters of methods on neighborhoods, and the memory of their tasks."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes, neighbor_search_nbytes
from daskls.neighbors.approximate import building_nbytes, group_nbytes, most_grouped
from daskls.plan.bundles import Resources, cell_nbytes, model_nbytes
from daskls.plan.checks import check_block, check_gather, check_usable, excess, usable_nbytes
from daskls.records import F8

# Neighborhoods that local selection evaluates.
N_SELECTED = 10
# Bytes of the neighborhoods' rows that a task gathers at once.
BATCH_NBYTES = 24 << 20
# Bytes of the models of a bundle, unless it is of one center.
MODELS_NBYTES = 4 << 20
# A row is in some four neighborhoods of all centers together, of n_assigned = k / 2.
SHARED_BY = 5


@dataclass(frozen=True)
class NeighborSpec:
    """Parameters of methods on neighborhoods beyond the solver's.

    A query is predicted by the center of its nearest row, `assign` "point", the nearest one,
    "center", or the nearest `n_centers` together, "k_centers". `percentiles`, decreasing, are
    widths of a neighborhood's distances, None where gamma is given. Neighbors are approximate, of
    `n_groups` groups of leaves, unless that is None.
    """

    n_neighbors: tuple[int, ...]
    n_assigned: int | None = None
    assign: str = "point"
    n_centers: int = 3
    selection: str | None = None
    percentiles: tuple[float, ...] | None = None
    n_groups: int | None = None

    # Whether neighbors vote or are averaged, instead of training a model.
    votes: ClassVar[bool] = False

    @property
    def selects_once(self) -> bool:
        """Whether a fit selects parameters for all neighborhoods."""
        return self.selection in ("local", "left_out")

    def inner(self, n_neighbors: int) -> int:
        return self.n_assigned or max(n_neighbors // 2, 1)

    def for_rows(self, n_rows: int) -> Self:
        candidates = tuple(sorted({min(k, n_rows) for k in self.n_neighbors}))
        n_assigned = self.n_assigned and min(self.n_assigned, n_rows)
        return replace(self, n_neighbors=candidates, n_assigned=n_assigned)


def check_neighborhoods(
    sizes: TaskSizes, resources: Resources, n_neighbors: int, n_groups: int | None
) -> None:
    check_block(sizes, resources)
    check_gather(sizes, resources)
    leaf_rows, usable = sizes.leaf_rows, usable_nbytes(resources)
    exact = ""
    if n_groups is not None:
        exact = 'pass neighbors="exact", '
        n_rows = grouped_rows(sizes.n_features, leaf_rows, sizes.n_rows)
        check_usable(
            f"The graph of {n_rows} rows x {sizes.n_features} features",
            building_nbytes(n_rows, sizes.n_features),
            resources,
            'pass neighbors="exact"',
        )
    k = min(n_neighbors, sizes.n_rows)
    n_rows = sizes.n_rows
    arguments = leaf_rows, n_rows, 1, n_groups
    needed = neighborhood_nbytes(sizes, k, *arguments)
    if needed > usable:
        fitting = k
        while fitting > 1 and neighborhood_nbytes(sizes, fitting, *arguments) > usable:
            fitting //= 2
        raise MemoryPlanError(
            f"A neighborhood of {k} rows x {sizes.n_features} features needs "
            f"{excess(needed, usable)} for it; lower "
            f"n_neighbors to about {fitting}, {exact}or {resources.more}"
        )


def grouped_rows(n_features: int, leaf_rows: int, n_rows: int) -> int:
    return min(max(most_grouped(n_features), leaf_rows), n_rows)


def neighborhood_nbytes(
    sizes: TaskSizes,
    n_neighbors: int,
    leaf_rows: int,
    n_rows: int,
    batch: int,
    n_groups: int | None = None,
) -> int:
    """Return the peak bytes of a task that gathers and trains ``batch`` neighborhoods at once.

    It holds the lists of neighbors, their rows, the matrices of one neighborhood, and the models of
    its bundle, which are copied when they are written.
    """
    d, n_searched, group = sizes.n_features, batch, 0
    if n_groups is not None:
        # All rows of a task ask a group that is read, and most are those of a bundle.
        n_searched = min(max(MODELS_NBYTES // model_nbytes(sizes, n_neighbors), 256), n_rows)
        group = group_nbytes(grouped_rows(d, leaf_rows, n_rows), d)
    rows = batch * n_neighbors * _row_nbytes(d, sizes.target_nbytes)
    searching = group + neighbor_search_nbytes(sizes, n_searched, n_neighbors, leaf_rows)
    bundle = min(model_nbytes(sizes, SHARED_BY * n_rows), MODELS_NBYTES)
    models = 2 * max(model_nbytes(sizes, n_neighbors), bundle)
    return max(searching, rows + cell_nbytes(sizes, n_neighbors)) + rows + models


def plan_batch(
    sizes: TaskSizes,
    n_neighbors: int,
    leaf_rows: int,
    n_rows: int,
    resources: Resources,
    n_groups: int | None,
) -> int:
    batch = batch_size(n_neighbors, sizes.n_features, sizes.target_nbytes)
    usable = usable_nbytes(resources)
    arguments = sizes, n_neighbors, leaf_rows, n_rows
    while batch > 1 and neighborhood_nbytes(*arguments, batch, n_groups) > usable:
        batch //= 2
    return batch


def batch_size(n_neighbors: int, n_features: int, target_nbytes: int) -> int:
    return max(BATCH_NBYTES // (n_neighbors * _row_nbytes(n_features, target_nbytes)), 1)


def _row_nbytes(n_features: int, target_nbytes: int) -> int:
    return n_features * F8 + target_nbytes + 16
