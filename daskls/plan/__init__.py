"""From sizes to a plan: leaves, bundles, and checks of memory.

Pure arithmetic: no Dask, no Zarr, no data. Workers and memory decide only the bundles, never a
leaf or a cell.
"""

from daskls.plan.bill import Bill, StageBill, bill_stages
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
from daskls.plan.demand import (
    BUNDLE_S,
    CUT,
    GROW,
    READ,
    Demand,
    Outlook,
    StageDemand,
    Work,
    demand_of_cells,
    expected_cells,
)
from daskls.plan.exchange import ExchangePlan, plan_exchange
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
    "BUNDLE_S",
    "CUT",
    "GROW",
    "READ",
    "Bill",
    "Demand",
    "ExchangePlan",
    "Extent",
    "Outlook",
    "Plan",
    "Resources",
    "SamplePlan",
    "StageBill",
    "StageDemand",
    "Work",
    "bill_stages",
    "bundle_cost",
    "cell_nbytes",
    "check_block",
    "check_gather",
    "check_sample",
    "check_usable",
    "demand_of_cells",
    "expected_cells",
    "group_nbytes",
    "group_open",
    "leaf_nbytes",
    "mib",
    "model_nbytes",
    "n_selecting",
    "plan_bundles",
    "plan_exchange",
    "plan_sample",
    "usable_nbytes",
    "usual_cells",
]
