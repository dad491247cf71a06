"""From sizes to a plan: leaves, bundles, and checks of memory.

Pure arithmetic: no Dask, no Zarr, no data. Workers and memory decide only the bundles, never a
leaf or a cell.
"""

from daskls.plan.bundles import (
    Extent,
    Plan,
    Resources,
    SamplePlan,
    bundle_cost,
    group_open,
    n_selecting,
    plan_bundles,
    plan_sample,
)
from daskls.plan.leaves import (
    cell_nbytes,
    group_nbytes,
    leaf_nbytes,
    model_nbytes,
    usual_cells,
)
from daskls.plan.limits import (
    check_block,
    check_gather,
    check_sample,
    check_usable,
    mib,
    usable_nbytes,
)

__all__ = [
    "Extent",
    "Plan",
    "Resources",
    "SamplePlan",
    "bundle_cost",
    "cell_nbytes",
    "check_block",
    "check_gather",
    "check_sample",
    "check_usable",
    "group_nbytes",
    "group_open",
    "leaf_nbytes",
    "mib",
    "model_nbytes",
    "n_selecting",
    "plan_bundles",
    "plan_sample",
    "usable_nbytes",
    "usual_cells",
]
