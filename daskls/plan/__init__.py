"""From sizes to a plan: leaves, bundles, and what would not fit.

Pure arithmetic: no Dask, no Zarr, no data. Workers and memory decide only the bundles, never a
leaf or a cell.
"""

from daskls.plan.bundles import (
    Plan,
    Resources,
    SamplePlan,
    bundle_cost,
    group_open,
    plan_bundles,
    plan_sample,
)
from daskls.plan.checks import (
    CELL_ROWS,
    SEARCHED_ROWS,
    beside_svc,
    cache_nbytes,
    check_chunks,
    check_landmarks,
    check_memory,
    check_neighborhoods,
    check_sample,
    check_sampling,
    check_trained,
    chunk_size,
    most_pairs,
    plan_chunk,
)

__all__ = [
    "CELL_ROWS",
    "SEARCHED_ROWS",
    "Plan",
    "Resources",
    "SamplePlan",
    "beside_svc",
    "bundle_cost",
    "cache_nbytes",
    "check_chunks",
    "check_landmarks",
    "check_memory",
    "check_neighborhoods",
    "check_sample",
    "check_sampling",
    "check_trained",
    "chunk_size",
    "group_open",
    "most_pairs",
    "plan_bundles",
    "plan_chunk",
    "plan_sample",
]
