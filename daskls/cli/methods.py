"""Which estimator a `--method` names, and which options it takes."""

import inspect
from enum import StrEnum
from typing import Any

import typer

__all__ = ["Method", "build_estimator"]


class Method(StrEnum):
    """The methods of `daskls fit`; each value's estimator is in `ESTIMATORS`."""

    VORONOI = "voronoi"


ESTIMATORS = {Method.VORONOI: "VoronoiSVC"}


def build_estimator(method: Method, options: dict[str, Any], ctx: typer.Context) -> Any:
    """Return the method's estimator with the options that it takes.

    Parameters
    ----------
    method : Method
    options : dict. Estimator parameters, given on the command line or not.
    ctx : typer.Context. Tells which of them were given.

    Raises
    ------
    typer.BadParameter : when an option was given that the method has no use for
    """
    import daskls

    estimator = getattr(daskls, ESTIMATORS[method])
    taken = inspect.signature(estimator).parameters
    for name in options.keys() - taken.keys():
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(
                f"--method {method} has no option --{name.replace('_', '-')}", ctx=ctx
            )
    return estimator(**{name: value for name, value in options.items() if name in taken})
