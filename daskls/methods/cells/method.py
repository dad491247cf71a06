"""Voronoi cells of space, and random chunks, each cross-validated on its own."""

from dataclasses import dataclass
from typing import Any

from daskls.methods.average import mean_of_all, mean_of_views
from daskls.partition.base import Partition
from daskls.partition.stored import read_partition
from daskls.plan import Demand, Extent, Outlook, Resources, SamplePlan, demand_of_cells
from daskls.records import Float64, Reals
from daskls.run.contract import Beginning, Method
from daskls.run.progress import StageClock
from daskls.store.contents import BRANCHES_HELD, TREES_HELD, StorePart
from daskls.store.layout import Root
from daskls.store.models import finished_bundles
from daskls.store.reader import ModelReader

__all__ = ["Chunked", "Voronoi"]

CELL_PARTS = (
    StorePart("index", "methods/cells", f"{TREES_HELD}; leaf_cells int64 leaves + 1"),
    StorePart(
        "bundles/*",
        "methods/cells",
        f"branch_nodes int64 leaves; {BRANCHES_HELD}; errors float32 cells, combinations",
        kind="bundles",
    ),
)


@dataclass(frozen=True)
class Voronoi(Method):
    """Thomann et al.: an SVM for each Voronoi cell, of one partition or several."""

    name = ""
    is_local = True
    knows_held_out = True
    has_grids = True

    @classmethod
    def parts(cls) -> tuple[StorePart, ...]:
        """As of `Method`."""
        return CELL_PARTS

    def to_json(self) -> dict[str, Any]:
        """As of `Method`; stores of this method, the oldest one, keep no name."""
        return {}

    def check(self, extent: Extent, resources: Resources) -> None:
        """As of `Method`."""
        from daskls.methods.cells.plan import check_cells

        check_cells(extent, resources)

    def cut(self, begun: Beginning) -> Partition:
        """Grow trees on the sample."""
        from daskls.run.begin import grow_trunks

        return grow_trunks(begun)

    def fit(self, begun: Beginning, clock: StageClock, client: Any) -> None:
        """As of `Method`."""
        from daskls.methods.cells.fit import fit_cells

        fit_cells(begun, clock, client)

    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Evaluate one cell a partition, or all cells where they have no place in space."""
        views = self.space(reader).find(X)
        return mean_of_all(reader, X) if views is None else mean_of_views(reader, X, views)

    def check_index(self, reader: ModelReader) -> None:
        """As of `Method`."""
        self.space(reader)

    def progress(self, root: Root) -> str:
        """As of `Method`."""
        group = root.find_group("partition")
        if group is None:
            return "space is not cut yet"
        done = sum(last - first + 1 for first, last in finished_bundles(root.store))
        return f"{done} of {read_partition(group).n_leaves} groups of cells are trained"


@dataclass(frozen=True)
class Chunked(Voronoi):
    """The paper's baseline: rows assigned at random, the mean of all chunks predicts."""

    name = "chunks"
    is_local = False
    # All chunks answer a query, and a row is held out of its own alone.
    knows_held_out = False

    def to_json(self) -> dict[str, Any]:
        """As of `Method`."""
        return {"name": self.name}

    def check(self, extent: Extent, resources: Resources) -> None:
        """As of `Method`."""
        from daskls.methods.cells.plan import check_chunks

        check_chunks(extent, resources)

    def cut(self, begun: Beginning) -> Partition:
        """Assign all rows to as few chunks as their size allows."""
        from daskls.methods.cells.fit import assign_chunks

        return assign_chunks(begun)

    def expected_leaves(self, n_rows: int, sampling: SamplePlan, cell_size: int) -> int:
        """As of `Method`: the chunks."""
        return -(-n_rows // cell_size)

    def demand(self, outlook: Outlook) -> Demand:
        """As of `Method`: nothing is grown, and chunks are of equal size."""
        n_chunks = outlook.n_leaves // outlook.n_partitions
        return demand_of_cells(outlook, (n_chunks, outlook.extent.n_rows // n_chunks))
