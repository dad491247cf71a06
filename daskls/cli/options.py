"""Options of commands that fit: those of the estimators, which are written where they are taken.

A parameter of an estimator is an option of the command: its name from the signature, its values
from `_parameter_constraints`, its help from the docstring. Nothing here names one, but to group it.
"""

import inspect
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand

from daskls.cli.parameters import METHOD_ESTIMATORS, Parameter
from daskls.registry import FILTERS, load_object

if TYPE_CHECKING:
    from daskls.records import TargetKind


# What the command itself gives to an estimator.
OWN = ("store", "client", "verbose")
# The groups of `--help` in their order; what no other one names is of the model.
OPTION_GROUPS = {
    "arguments": ("data", "model", "out"),
    "data": (
        *("rows", "features", "classes", "label", "task"),
        *("weight", "missing", "unknown", "drop", "class_weight"),
    ),
    "model": (),
    "search": (
        "n_grid",
        "cv",
        "scoring",
        "search",
        "refit",
        "selection",
        "percentiles",
        "n_selected",
    ),
    "running": (
        "random_state",
        "scheduler",
        "workers",
        "threads_per_worker",
        "memory_limit",
        "dashboard",
        "timed",
    ),
    "output": ("quiet", "help"),
}
EPILOG = (
    "In brackets: the methods that take an option or a value, where not all do; the default, or "
    "those of methods; the least value; whether the option may come again. Values are spelled as "
    "in Python, None as none."
)
GROUP_OF = {name: group for group, names in OPTION_GROUPS.items() for name in names}


def is_given(ctx: Any, option: str) -> bool:
    """Whether an option stands on the command line."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


class EstimatorCommand(TyperCommand):
    """A command with the options of several estimators, one of which its ``--method`` names.

    Attributes
    ----------
    estimators : dict of str to tuple of str. Of each method's name, module and class of its
        estimators.
    """

    estimators: ClassVar[dict[str, tuple[str, ...]]]

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "epilog": EPILOG})
        # Whose options there are: of all, but while a command line is parsed.
        self._methods = tuple(self.estimators)
        self._read: dict[tuple[str, ...], dict[str, Parameter]] = {}
        self._made: dict[tuple[str, ...], list[Any]] = {}

    def parameters(self, methods: tuple[str, ...]) -> dict[str, Parameter]:
        """Return the parameters of some methods' estimators by name; it loads these alone."""
        if methods not in self._read:
            found: dict[str, Parameter] = {}
            for method in methods:
                for place in self.estimators[method]:
                    estimator = load_object(place)
                    for name in inspect.signature(estimator).parameters:
                        if name not in OWN:
                            own = found.setdefault(name, Parameter(name, methods))
                            own.add(method, estimator)
            self._read[methods] = found
        return self._read[methods]

    def _options(self, methods: tuple[str, ...]) -> list[Any]:
        """Return the options as typer makes them of a function that has them all."""
        if methods in self._made:
            return self._made[methods]

        def function(**_: Any) -> None:
            """Stand for the command."""

        # Help is of all methods.
        is_told = methods == tuple(self.estimators)
        taken = [own.to_signature(is_told) for own in self.parameters(methods).values()]
        function.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        function.__annotations__ = {own.name: own.annotation for own in taken}
        stand_in = typer.Typer(add_completion=False)
        stand_in.command()(function)
        self._made[methods] = list(typer.main.get_command(stand_in).params)
        return self._made[methods]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own options, and those of the estimators."""
        *own, help_option = super().get_params(ctx)
        return [*own, *self._options(self._methods), help_option]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse by the options of the method that is named; by those of all where one is unknown.

        What reads an estimator imports its method, seconds each.
        """
        given, everyone = [*args], self._methods
        try:
            self._methods = self._named(given)
            return list(super().parse_args(ctx, args))
        except Exception as error:
            # An option of another method, or of none (whichever click typer carries).
            if not hasattr(error, "possibilities"):
                raise
            self._methods = everyone
            return list(super().parse_args(ctx, given))
        finally:
            self._methods = everyone

    def _named(self, args: list[str]) -> tuple[str, ...]:
        """Return the method of a command line, or none where there is no such method."""
        method = next(own.default for own in self.params if own.name == "method")
        for word, after in pairwise([*args, ""]):
            option, _, value = word.partition("=")
            if option == "--method":
                method = value or after
        return (method,) if method in self.estimators else ()

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the words of estimators' options wait in the context.

        Raises
        ------
        typer.BadParameter : an option that the method has no use for, or a number out of range
        """
        own = {option.name for option in self.params}
        words = {name: ctx.params.pop(name) for name in [*ctx.params] if name not in own}
        ctx.obj = {name: word for name, word in words.items() if is_given(ctx, name)}
        method = ctx.params["method"]
        parameters = self.parameters((method,))
        for name, word in ctx.obj.items():
            if name not in parameters:
                option = f"--{name.replace('_', '-')}"
                raise typer.BadParameter(f"--method {method} has no option {option}", ctx=ctx)
            parameters[name].check(word)
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of all methods, group by group."""
        self._methods = tuple(self.estimators)
        records: dict[str, list[Any]] = {group: [] for group in OPTION_GROUPS}
        for option in self.get_params(ctx):
            records[GROUP_OF.get(option.name, "model")].append(option.get_help_record(ctx))
        for group, own in records.items():
            if own:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(own)


class FitCommand(EstimatorCommand):
    """With the options of every method."""

    estimators: ClassVar[dict[str, tuple[str, ...]]] = METHOD_ESTIMATORS


class FilterCommand(EstimatorCommand):
    """With the options of the noise filters."""

    estimators: ClassVar[dict[str, tuple[str, ...]]] = {
        name: (place,) for name, place in FILTERS.items()
    }


def build_estimator(
    ctx: typer.Context,
    method: str,
    classes: Sequence[Any] | None = None,
    kind: "TargetKind | None" = "classes",
) -> Any:
    """Return a command's estimator with the options that were given; others keep its defaults.

    Of several that answer numbers it is the first that takes the options and their words.

    Parameters
    ----------
    ctx : typer.Context. Of a command that is an `EstimatorCommand`.
    method : str. Its name on the command line.
    classes : sequence or None. The classes of a data set.
    kind : "classes" or "numbers". What it is to answer; None where that is not known yet.

    Raises
    ------
    typer.BadParameter : words that are no value of an option, options that are for classes or for
        numbers alone, or a method that answers no numbers
    """
    command: Any = ctx.command
    parameters = command.parameters((method,))
    given = {name: parameters[name].parse(word, classes) for name, word in ctx.obj.items()}
    places = command.estimators[method]
    if kind == "numbers" and len(places) < 2:
        able = ", ".join(name for name, own in command.estimators.items() if len(own) > 1)
        raise typer.BadParameter(
            f"--method {method} answers classes alone, but the targets are numbers; take --method "
            f"{able}, or pass --task classification where they are classes"
        )
    of_kind = {"classes": places[:1], "numbers": places[1:]}
    estimator = _choose(method, of_kind[kind] if kind else places, given, known=kind is not None)
    for name in given:
        if name not in inspect.signature(estimator).parameters:
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(
                f"{option} is not for {kind}: {estimator.__name__} has no such parameter"
            )
    return estimator(**given)


def _choose(method: str, places: Sequence[str], given: dict[str, Any], *, known: bool) -> type[Any]:
    """Return the first estimator that takes all that is given; where the kind is known, the first.

    Raises
    ------
    typer.BadParameter : no estimator of any kind takes all of it
    """
    estimators: list[type[Any]] = [load_object(place) for place in places]
    takers = [own for own in estimators if all(_takes(own, *word) for word in given.items())]
    if not known and not takers:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise typer.BadParameter(
            f"no estimator of --method {method} takes all of {options} with these values; "
            f"{' and '.join(own.__name__ for own in estimators)} take some of them"
        )
    return (takers or estimators)[0]


def _takes(estimator: Any, name: str, value: Any) -> bool:
    """Whether an estimator has a parameter, and a word is among those that it takes."""
    if name not in inspect.signature(estimator).parameters:
        return False
    named = [
        own.options for own in estimator._parameter_constraints[name] if hasattr(own, "options")
    ]
    return not (isinstance(value, str) and named) or any(value in words for words in named)
