"""Commands whose options include the parameters of estimators.

Every parameter of an estimator is an option: its name comes from the signature, its values from
`_parameter_constraints`, its help from the docstring. Parameters are named here only to group them
in `--help`.
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


# Parameters that the command itself sets.
OWN = ("store", "client", "verbose")
# The groups of `--help`, in order; an option that none of them names belongs to "model".
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
        "selection",
        "percentiles",
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
    "the defaults by method; the least value; whether the option is repeatable. Values are spelled "
    "as in Python, None as none."
)
GROUP_OF = {name: group for group, names in OPTION_GROUPS.items() for name in names}


def is_given(ctx: Any, option: str) -> bool:
    """Whether an option was given on the command line."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


class EstimatorCommand(TyperCommand):
    """A command with the options of several methods' estimators; ``--method`` chooses one.

    Attributes
    ----------
    estimators : dict of str to tuple of str. The estimators of each method, as "module:class".
    """

    estimators: ClassVar[dict[str, tuple[str, ...]]]

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "epilog": EPILOG})
        # The methods whose options the command has: all, except while a command line is parsed.
        self._methods = tuple(self.estimators)
        # Caches, as every method that is read has to be imported.
        self._parameters_of: dict[tuple[str, ...], dict[str, Parameter]] = {}
        self._options_of: dict[tuple[str, ...], list[Any]] = {}

    def parameters(self, methods: tuple[str, ...]) -> dict[str, Parameter]:
        """Return the parameters of some methods' estimators by name; imports these methods only."""
        if methods not in self._parameters_of:
            found: dict[str, Parameter] = {}
            for method in methods:
                for place in self.estimators[method]:
                    estimator = load_object(place)
                    for name in inspect.signature(estimator).parameters:
                        if name not in OWN:
                            parameter = found.setdefault(name, Parameter(name, methods))
                            parameter.add(method, estimator)
            self._parameters_of[methods] = found
        return self._parameters_of[methods]

    def _options(self, methods: tuple[str, ...]) -> list[Any]:
        """Return the options that typer makes of a function with all these parameters."""
        if methods in self._options_of:
            return self._options_of[methods]

        def function(**_: Any) -> None:
            """Have the signature that typer reads; never called."""

        # `--help` shows the options of all methods; a single method's need no help text.
        with_help = methods == tuple(self.estimators)
        taken = [own.to_signature(with_help) for own in self.parameters(methods).values()]
        function.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        function.__annotations__ = {own.name: own.annotation for own in taken}
        stand_in = typer.Typer(add_completion=False)
        stand_in.command()(function)
        self._options_of[methods] = list(typer.main.get_command(stand_in).params)
        return self._options_of[methods]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own options and those of the estimators; --help stays last."""
        *own, help_option = super().get_params(ctx)
        return [*own, *self._options(self._methods), help_option]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse with the options of the given method; if one is unknown, with those of all.

        Reading an estimator's options imports its method, which takes seconds.
        """
        given, all_methods = [*args], self._methods
        try:
            self._methods = self._find_method(given)
            return list(super().parse_args(ctx, args))
        except Exception as error:
            # No such option: maybe one of another method, which `invoke` then names. Recognized
            # by an attribute, as typer may bundle its own click.
            if not hasattr(error, "possibilities"):
                raise
            self._methods = all_methods
            return list(super().parse_args(ctx, given))
        finally:
            self._methods = all_methods

    def _find_method(self, args: list[str]) -> tuple[str, ...]:
        """Return the method of a command line as a tuple; an empty one if it does not exist."""
        method = next(own.default for own in self.params if own.name == "method")
        for word, after in pairwise([*args, ""]):
            option, _, value = word.partition("=")
            if option == "--method":
                method = value or after
        return (method,) if method in self.estimators else ()

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the words given for estimators' options are put into ``ctx.obj``.

        Raises
        ------
        typer.BadParameter : an option that the method does not have, or a number out of range
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
    """A command with the options of every method."""

    estimators: ClassVar[dict[str, tuple[str, ...]]] = METHOD_ESTIMATORS


class FilterCommand(EstimatorCommand):
    """A command with the options of the noise filters."""

    estimators: ClassVar[dict[str, tuple[str, ...]]] = {
        name: (place,) for name, place in FILTERS.items()
    }


def build_estimator(
    ctx: typer.Context,
    method: str,
    classes: Sequence[Any] | None = None,
    kind: "TargetKind | None" = "classes",
) -> Any:
    """Return a method's estimator with the options that were given.

    Where a method has several regressors, the first one that takes the options and their words.

    Parameters
    ----------
    ctx : typer.Context. Its command must be an `EstimatorCommand`.
    method : str. Its name on the command line.
    classes : sequence or None. The classes of a data set.
    kind : "classes" or "numbers". What to predict; None where that is not known yet.

    Raises
    ------
    typer.BadParameter : a word that is no value of its option, an option that only estimators of
        the other kind have, or kind="numbers" for a method without a regressor
    """
    command: Any = ctx.command
    parameters = command.parameters((method,))
    given = {name: parameters[name].parse(word, classes) for name, word in ctx.obj.items()}
    places = command.estimators[method]
    if kind == "numbers" and len(places) < 2:
        able = ", ".join(name for name, own in command.estimators.items() if len(own) > 1)
        raise typer.BadParameter(
            f"--method {method} learns classes only, but the targets are numbers; use --method "
            f"{able}, or pass --task classification where they are classes"
        )
    # A method's first estimator is the classifier.
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
    """Return the first estimator that takes all given options; if none does, simply the first.

    Raises
    ------
    typer.BadParameter : no estimator takes all of them, and the kind is not known
    """
    estimators: list[type[Any]] = [load_object(place) for place in places]
    takers = [own for own in estimators if all(_takes(own, *pair) for pair in given.items())]
    if not known and not takers:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise typer.BadParameter(
            f"no estimator of --method {method} takes all of {options} with these values; "
            f"{' and '.join(own.__name__ for own in estimators)} take some of them"
        )
    return (takers or estimators)[0]


def _takes(estimator: Any, name: str, value: Any) -> bool:
    """Whether an estimator has a parameter and, if the value is a word, takes this word."""
    if name not in inspect.signature(estimator).parameters:
        return False
    named = [
        own.options for own in estimator._parameter_constraints[name] if hasattr(own, "options")
    ]
    return not (isinstance(value, str) and named) or any(value in words for words in named)
