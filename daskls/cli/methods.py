"""Which estimator a `--method` names, and which options it takes."""

import inspect
from enum import StrEnum
from typing import Any

import typer

__all__ = ["ESTIMATORS", "FILTERS", "Filter", "Method", "build_estimator"]


class Method(StrEnum):
    """The methods of `daskls fit`; each value's estimator is in `ESTIMATORS`."""

    VORONOI = "voronoi"
    CHUNKS = "chunks"
    L3 = "l3"
    LOCAL_SAMPLING = "local-sampling"
    CGLQ = "cglq"
    FALK = "falk"
    KNNSVM = "knnsvm"
    KNN = "knn"


class Filter(StrEnum):
    """The methods of `daskls denoise`."""

    FALK = "falk"
    KNNSVM = "knnsvm"


ESTIMATORS: dict[StrEnum, str] = {
    Method.VORONOI: "VoronoiSVC",
    Method.CHUNKS: "RandomChunkSVC",
    Method.L3: "LandmarkSVC",
    Method.LOCAL_SAMPLING: "LocalSamplingSVC",
    Method.CGLQ: "NeighborSamplingSVC",
    Method.FALK: "FalkSVC",
    Method.KNNSVM: "KNNSVC",
    Method.KNN: "KernelKNNClassifier",
}
FILTERS: dict[StrEnum, str] = {
    Filter.FALK: "FalkNoiseFilter",
    Filter.KNNSVM: "KNNSVMNoiseFilter",
}


def build_estimator(name: str, method: str, options: dict[str, Any], ctx: typer.Context) -> Any:
    """Return an estimator with the options that were given; the others keep its own defaults.

    Parameters
    ----------
    name : str. The estimator's class.
    method : str. How the command line calls it.
    options : dict. Estimator parameters, given on the command line or not.
    ctx : typer.Context. Tells which of them were given.

    Raises
    ------
    typer.BadParameter : when an option was given that the method has no use for
    """
    import daskls

    estimator = getattr(daskls, name)
    taken = inspect.signature(estimator).parameters
    given = {}
    for option, value in options.items():
        source = ctx.get_parameter_source(option)
        if source is None or source.name != "COMMANDLINE":
            continue
        if option not in taken:
            raise typer.BadParameter(
                f"--method {method} has no option --{option.replace('_', '-')}", ctx=ctx
            )
        given[option] = value
    return estimator(**given)
