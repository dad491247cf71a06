"""Options of commands that fit: those of the estimators, which are written where they are taken.

A parameter of an estimator is an option of the command: its name from the signature, its values
from `_parameter_constraints`, its help from the docstring. Nothing here names one, but to group it.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import typer
from typer.core import TyperCommand

from daskls.cli.inputs import parse_class_weight, parse_numbers
from daskls.registry import FILTERS, METHODS, load_object

__all__ = ["EstimatorCommand", "FilterCommand", "FitCommand", "build_estimator"]

# What the command itself gives to an estimator.
OWN = ("store", "client", "verbose")
# The groups of `--help` in their order; what no other one names is of the model.
OPTION_GROUPS = {
    "arguments": ("data", "model", "out"),
    "data": ("label", "weight", "missing", "unknown", "drop", "class_weight"),
    "model": (),
    "search": ("cv", "search", "refit", "selection", "percentiles", "n_selected"),
    "running": (
        "random_state",
        "scheduler",
        "workers",
        "threads_per_worker",
        "memory_limit",
        "dashboard",
    ),
    "output": ("quiet", "help"),
}
EPILOG = (
    "In brackets: the methods that take an option, where not all do; its default, or those of "
    "methods; its bounds. Values are spelled as in Python, None as none."
)
GROUP_OF = {name: group for group, names in OPTION_GROUPS.items() for name in names}
NONE = "none"


def is_given(ctx: Any, option: str) -> bool:
    """Whether an option stands on the command line."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


class EstimatorCommand(TyperCommand):
    """A command with the options of several estimators, one of which its ``--method`` names.

    Attributes
    ----------
    estimators : dict of str to str. Of each method's name, the estimator's module and class.
    """

    estimators: ClassVar[dict[str, str]]

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "epilog": EPILOG})

    @cached_property
    def parameters(self) -> dict[str, "Parameter"]:
        """The parameters of all estimators by name: read when a command line needs them."""
        found: dict[str, Parameter] = {}
        for method, path in self.estimators.items():
            estimator = load_object(path)
            for name in inspect.signature(estimator).parameters:
                if name not in OWN:
                    own = found.setdefault(name, Parameter(name, [*self.estimators]))
                    own.add(method, estimator)
        return found

    @cached_property
    def _options(self) -> list[Any]:
        """The options as typer makes them of a function that has them all."""

        def function(**_: Any) -> None:
            """Stand for the command."""

        taken = [parameter.to_signature() for parameter in self.parameters.values()]
        function.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        function.__annotations__ = {own.name: own.annotation for own in taken}
        stand_in = typer.Typer(add_completion=False)
        stand_in.command()(function)
        return list(typer.main.get_command(stand_in).params)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own options, and those of the estimators."""
        *own, help_option = super().get_params(ctx)
        return [*own, *self._options, help_option]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the words of estimators' options wait in the context."""
        words = {name: ctx.params.pop(name) for name in self.parameters}
        ctx.obj = {name: word for name, word in words.items() if is_given(ctx, name)}
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options group by group."""
        records: dict[str, list[Any]] = {group: [] for group in OPTION_GROUPS}
        for option in self.get_params(ctx):
            records[GROUP_OF.get(option.name, "model")].append(option.get_help_record(ctx))
        for group, own in records.items():
            if own:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(own)


class FitCommand(EstimatorCommand):
    """With the options of every method."""

    estimators: ClassVar[dict[str, str]] = {entry.option: entry.estimator for entry in METHODS}


class FilterCommand(EstimatorCommand):
    """With the options of the noise filters."""

    estimators: ClassVar[dict[str, str]] = FILTERS


class Parameter:
    """A parameter of one or several estimators, as an option.

    Parameters
    ----------
    name : str
    methods : list of str. Those of the command.
    """

    def __init__(self, name: str, methods: list[str]) -> None:
        self.name, self.methods = name, methods
        self.defaults: dict[str, Any] = {}
        self.constraints: list[Any] = []
        self.estimators: list[type[Any]] = []

    def add(self, method: str, estimator: type[Any]) -> None:
        """Add what an estimator says of it: its default, and what it takes."""
        self.defaults[method] = inspect.signature(estimator).parameters[self.name].default
        self.estimators.append(estimator)
        self.constraints += estimator._parameter_constraints[self.name]

    @property
    def names(self) -> list[str]:
        """The words that it takes, in the order of their letters."""
        words = {word for own in self._all("options") for word in own.options - own.deprecated}
        if "boolean" in self.constraints and words:
            words |= {"true", "false"}
        if None in self.constraints and words:
            words |= {NONE}
        return sorted(words)

    def _all(self, attribute: str) -> list[Any]:
        """Return the constraints of one kind: names have options, numbers an interval."""
        return [own for own in self.constraints if hasattr(own, attribute)]

    @property
    def _is_list(self) -> bool:
        return "array-like" in self.constraints or dict in self.constraints

    @property
    def _number(self) -> type[int] | type[float]:
        """What its numbers are."""
        kinds = {own.type.__name__ for own in self._all("closed")}
        return int if kinds == {"Integral"} else float

    def to_signature(self) -> inspect.Parameter:
        """Return the parameter of a function that typer makes the option of."""
        least = None
        if self._is_list:
            # Of numbers that are candidates the option may come again.
            kind: Any = list[str] if self._all("closed") else str
        elif self.names:
            kind = Literal[tuple(self.names)]
        elif "boolean" in self.constraints:
            kind = bool
        else:
            kind = int if "random_state" in self.constraints else self._number
            least = 0 if kind is int else None
            if self._all("closed") and kind is int:
                least = min(own.left for own in self._all("closed"))
        option = typer.Option(
            f"--{self.name.replace('_', '-')}",
            metavar=self._metavar if self._is_list else None,
            min=least,
            help=self._help,
            show_default=False,
        )
        default, kind = (False, kind) if kind is bool else (None, kind | None)
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, option],
        )

    @property
    def _metavar(self) -> str:
        """What stands for several values, or for one of several kinds."""
        numbers = "LABEL=WEIGHT" if dict in self.constraints else self._number.__name__.upper()
        return "|".join([*self.names, f"{numbers},..."])

    @property
    def _help(self) -> str:
        """The first sentence of its docstring, who takes it, and its default."""
        told = "; ".join([*self._takers(), *self._told_defaults()])
        return f"{self._sentence}.  [{told}]" if told else f"{self._sentence}."

    def _takers(self) -> Iterator[str]:
        """Yield which methods take the option, or do not, where not all do."""
        others = [own for own in self.methods if own not in self.defaults]
        if others:
            few = len(self.defaults) <= len(others)
            yield f"of {', '.join(self.defaults)}" if few else f"not of {', '.join(others)}"

    def _told_defaults(self) -> Iterator[str]:
        """Yield the default, or those of methods, the most frequent one last."""
        by_default: dict[str, list[str]] = {}
        for method, value in self.defaults.items():
            by_default.setdefault(_word(value), []).append(method)
        *first, (last, _) = sorted(by_default.items(), key=lambda own: len(own[1]))
        yield from (f"{', '.join(methods)}: {word}" for word, methods in first)
        if first or last not in (NONE, "false"):
            yield f"{'others' if first else 'default'}: {last}"

    @property
    def _sentence(self) -> str:
        """What most docstrings say of it first."""
        said = self._sentences(self.estimators)
        if not said:
            # Filters name what they have in common with methods, and leave the rest to these.
            methods = FitCommand.estimators
            paths = [methods[own] for own in self.defaults if own in methods]
            said = self._sentences(map(load_object, paths or methods.values()))
        return max(said, key=said.count, default="")

    def _sentences(self, estimators: Iterable[type[Any]]) -> list[str]:
        """Return the first sentence of each docstring that has one of the parameter."""
        found = [_first_sentence(own, self.name) for own in estimators]
        return [own for own in found if own]

    def parse(self, word: Any, classes: Sequence[Any] | None) -> Any:
        """Return the value that an option's words stand for, spelled as in Python.

        Parameters
        ----------
        word : str, list of str, int, float or bool. As typer read it.
        classes : sequence or None. The classes of a data set, which weights are of.

        Raises
        ------
        typer.BadParameter
        """
        if not (self._is_list or isinstance(word, str)):
            return word
        text = word if isinstance(word, str) else ",".join(word)
        if text == NONE and None in self.constraints:
            return None
        if text in self.names:
            return {"true": True, "false": False}.get(text, text)
        if dict in self.constraints:
            return parse_class_weight(text, classes)
        values = parse_numbers(self.name.replace("_", "-"), text, self._number)
        # One number where numbers are taken at all; else a list of one.
        return values[0] if len(values) == 1 and self._all("closed") else values


def _word(value: Any) -> str:
    """Return a default as it is spelled on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return NONE if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _first_sentence(estimator: type[Any], name: str) -> str:
    """Return what a docstring says of a parameter first."""
    # Python drops docstrings where it is asked to.
    text = inspect.cleandoc(estimator.__doc__ or "")
    entry = re.search(rf"^{name} : (.*)\n((?:    .*\n)*)", text, re.MULTILINE)
    if entry is None:
        return ""
    # A short entry goes on behind the type; a long one below it.
    _, _, short = entry[1].partition(". ")
    told = " ".join(f"{short}\n{entry[2]}".split())
    return re.split(r"\.(?= [A-Z\"])|; ", told)[0].rstrip(".").replace("`", "")


def build_estimator(ctx: typer.Context, method: str, classes: Sequence[Any] | None = None) -> Any:
    """Return a command's estimator with the options that were given; others keep its defaults.

    Parameters
    ----------
    ctx : typer.Context. Of a command that is an `EstimatorCommand`.
    method : str. Its name on the command line.
    classes : sequence or None. The classes of a data set.

    Raises
    ------
    typer.BadParameter : an option that the method has no use for, or words that are no value of it
    """
    command: Any = ctx.command
    given = {}
    for name, word in ctx.obj.items():
        parameter = command.parameters[name]
        if method not in parameter.defaults:
            raise typer.BadParameter(
                f"--method {method} has no option --{name.replace('_', '-')}", ctx=ctx
            )
        given[name] = parameter.parse(word, classes)
    return load_object(command.estimators[method])(**given)
