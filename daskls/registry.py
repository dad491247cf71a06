"""The registry of methods: the names, the estimators and the implementation of each.

It names modules but imports none, so that every layer may import it.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class MethodEntry:
    """The names of one method, in stores and as an option; classes are ``module:class``.

    `regressor` and `of_levels`, of quantiles, are empty where the method has none.
    """

    name: str
    option: str
    estimator: str
    method: str
    regressor: str = ""
    of_levels: str = ""

    @property
    def estimators(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.estimator, self.regressor, self.of_levels)))


METHODS = (
    MethodEntry(
        "",
        "voronoi",
        "estimators.voronoi:VoronoiSVC",
        "methods.cells.method:CellMethod",
        "estimators.voronoi:VoronoiSVR",
        "estimators.voronoi:VoronoiQuantileRegressor",
    ),
    MethodEntry(
        "chunks",
        "chunks",
        "estimators.chunks:RandomChunkSVC",
        "methods.cells.method:RandomChunks",
        "estimators.chunks:RandomChunkSVR",
    ),
    MethodEntry("l3", "l3", "estimators.landmark:LandmarkSVC", "methods.landmarks.method:L3"),
    MethodEntry(
        "local-sampling",
        "local-sampling",
        "estimators.sampling:LocalSamplingSVC",
        "methods.sampling.method:LocalSampling",
    ),
    MethodEntry(
        "cglq", "cglq", "estimators.sampling:NeighborSamplingSVC", "methods.sampling.method:CGLQ"
    ),
    MethodEntry(
        "falk",
        "falk",
        "estimators.falk:FalkSVC",
        "methods.neighborhoods.method:Falk",
        "estimators.falk:FalkSVR",
    ),
    MethodEntry("knnsvm", "knnsvm", "estimators.knn:KNNSVC", "methods.neighborhoods.method:KNNSVM"),
    MethodEntry(
        "knn",
        "knn",
        "estimators.knn:KernelKNNClassifier",
        "methods.neighborhoods.method:KNN",
        "estimators.knn:KernelKNNRegressor",
    ),
)
# The noise filters, by the method's option on the command line.
FILTERS = {
    "falk": "estimators.noise:FalkNoiseFilter",
    "knnsvm": "estimators.noise:KNNSVMNoiseFilter",
}


def find_class(name: str) -> str | None:
    """Return the path ``module:class`` of the public class of that name; None if there is none.

    >>> find_class("VoronoiSVR")
    'estimators.voronoi:VoronoiSVR'
    """
    known = (path for entry in METHODS for path in entry.estimators)
    return next((path for path in known if path.partition(":")[2] == name), None)


def load_object(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"daskls.{module}"), name)
