"""daskls: local support vector machines on Dask and Zarr, for data that does not fit in memory."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from daskls._version import __version__
from daskls.registry import FILTERS, METHODS

if TYPE_CHECKING:
    from daskls.errors import (
        AdviceWarning,
        ClusterError,
        DasklsError,
        DataError,
        GridEdgeWarning,
        MemoryPlanError,
        NonConvergenceWarning,
        ParameterError,
        StoreError,
    )
    from daskls.estimators.chunks import RandomChunkSVC, RandomChunkSVR
    from daskls.estimators.encoder import TableEncoder
    from daskls.estimators.falk import FalkSVC, FalkSVR
    from daskls.estimators.knn import KNNSVC, KernelKNNClassifier, KernelKNNRegressor
    from daskls.estimators.landmark import LandmarkSVC
    from daskls.estimators.load import load
    from daskls.estimators.noise import FalkNoiseFilter, KNNSVMNoiseFilter
    from daskls.estimators.sampling import LocalSamplingSVC, NeighborSamplingSVC
    from daskls.estimators.voronoi import VoronoiQuantileRegressor, VoronoiSVC, VoronoiSVR

__all__ = [
    "KNNSVC",
    "AdviceWarning",
    "ClusterError",
    "DasklsError",
    "DataError",
    "FalkNoiseFilter",
    "FalkSVC",
    "FalkSVR",
    "GridEdgeWarning",
    "KNNSVMNoiseFilter",
    "KernelKNNClassifier",
    "KernelKNNRegressor",
    "LandmarkSVC",
    "LocalSamplingSVC",
    "MemoryPlanError",
    "NeighborSamplingSVC",
    "NonConvergenceWarning",
    "ParameterError",
    "RandomChunkSVC",
    "RandomChunkSVR",
    "StoreError",
    "TableEncoder",
    "VoronoiQuantileRegressor",
    "VoronoiSVC",
    "VoronoiSVR",
    "__version__",
    "load",
]

_PATHS = (*(path for entry in METHODS for path in entry.estimators), *FILTERS.values())
# The module of each public name; imported on first use, so that `import daskls` is instant.
_HOMES = {
    **{path.partition(":")[2]: f"daskls.{path.partition(':')[0]}" for path in _PATHS},
    "load": "daskls.estimators.load",
    "TableEncoder": "daskls.estimators.encoder",
    **dict.fromkeys(
        (
            "AdviceWarning",
            "ClusterError",
            "DasklsError",
            "DataError",
            "GridEdgeWarning",
            "MemoryPlanError",
            "NonConvergenceWarning",
            "ParameterError",
            "StoreError",
        ),
        "daskls.errors",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'daskls' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
