"""The estimator that a `--method` names, and the options that it takes."""

import inspect
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskls.registry import FILTERS, METHODS, load_object

__all__ = ["ESTIMATORS", "FILTERS", "FilterName", "MethodName", "build_estimator"]

# Where the estimator of each `--method` of `daskls fit` is.
ESTIMATORS = {entry.option: entry.estimator for entry in METHODS}
if TYPE_CHECKING:
    Fitted = str
    Denoised = str
else:
    # The choices that the command line shows: as many as there are methods.
    Fitted = StrEnum("Fitted", {option.upper(): option for option in ESTIMATORS})
    Denoised = StrEnum("Denoised", {option.upper(): option for option in FILTERS})
MethodName = Annotated[Fitted, typer.Option(help="The method.")]
FilterName = Annotated[
    Denoised,
    typer.Option(help="falk: fast; knnsvm: an SVM a row, the row itself left out."),
]


def build_estimator(path: str, method: str, options: dict[str, Any], ctx: typer.Context) -> Any:
    """Return an estimator with the options that were given; the others keep its own defaults.

    Parameters
    ----------
    path : str. The estimator's module and class, as `daskls.registry` has it.
    method : str. Its name on the command line.
    options : dict. Estimator parameters, given on the command line or not.
    ctx : typer.Context. Tells which of them were given.

    Raises
    ------
    typer.BadParameter : when an option was given that the method has no use for
    """
    estimator = load_object(path)
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
