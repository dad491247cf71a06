"""Commands whose options include the parameters of estimators.

An option's name comes from the signature, its help from the docstring, and the estimator refuses
what is no value of it. Parameters are named here only to group them in `--help`.
"""

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields, is_dataclass
from functools import cache, update_wrapper
from inspect import cleandoc
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast, get_args, get_origin

import typer
from typer.core import TyperCommand

from daskls.cli.cluster import ClusterOptions
from daskls.cli.inputs import expand, parse_class_weight
from daskls.registry import FILTERS, METHODS, load_object

if TYPE_CHECKING:
    from daskls.records import TargetKind


# The estimators of each method: the classifier, then regressors if there are any.
METHOD_ESTIMATORS = {entry.option: entry.estimators for entry in METHODS}
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
    "search": ("n_grid", "cv", "scoring", "search", "selection", "percentiles"),
    "running": ("random_state", *(field.name for field in fields(ClusterOptions))),
    "output": ("quiet", "help"),
}
EPILOG = (
    "In brackets: the methods that have an option, where not all do. What is said of it is said of "
    "the first of them; --method NAME --help tells the options of one method. Values are spelled "
    "as in Python (0.5, None, True), several of them joined by commas."
)
GROUP_OF = {name: group for group, names in OPTION_GROUPS.items() for name in names}
KEYWORD = inspect.Parameter.KEYWORD_ONLY
ENTRY = re.compile(r"^(\w+) : (.*)((?:\n    .*)*)", re.MULTILINE)
# Where sentences of a docstring end.
STOP = re.compile(r"(?<! )\.(?: (?=[A-Z\"`(])|$)")


class EstimatorCommand(TyperCommand):
    estimators: ClassVar[dict[str, Any]]

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "epilog": EPILOG})

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own options and those of the estimators; --help stays last."""
        *params, help_option = super().get_params(ctx)
        methods = ctx.meta.get("methods", tuple(self.estimators))
        # Asked for several times in one command.
        if methods not in ctx.meta:
            ctx.meta[methods] = self._options(methods)
        return [*params, *ctx.meta[methods], help_option]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse with the options of the given method alone."""
        ctx.meta["methods"] = self._find_methods(args)
        return list(super().parse_args(ctx, args))

    def _find_methods(self, args: list[str]) -> tuple[str, ...]:
        """Return the method of a command line; all methods if only --help is asked, or none is."""
        default = next(param.default for param in self.params if param.name == "method")
        method = None if "--help" in args else default
        for word, after in pairwise([*args, ""]):
            option, _, value = word.partition("=")
            if option == "--method":
                method = value or after
        return (method,) if method in self.estimators else tuple(self.estimators)

    def _options(self, methods: tuple[str, ...]) -> list[Any]:
        """Return an option for each parameter of these methods."""
        from daskls.parsed_code import defaults_of

        takers: dict[str, list[str]] = {}
        for method in methods:
            names = [name for place in self.estimators[method] for name in defaults_of(place)]
            for name in dict.fromkeys(names):
                takers.setdefault(name, []).append(method)
        taken = []
        for name in (own for own in takers if own not in OWN):
            told = self._help(name, takers[name], len(methods))
            option = typer.Option(option_of(name), metavar="VALUE", help=told, show_default=False)
            kind = Annotated[list[str] | None, option]
            taken.append(inspect.Parameter(name, KEYWORD, default=None, annotation=kind))
        stand_in = typer.Typer(add_completion=False)
        # Never called.
        stand_in.command()(_with_signature(lambda **_: None, taken))
        return list(typer.main.get_command(stand_in).params)

    def _help(self, name: str, methods: list[str], n_methods: int) -> str:
        # A filter does not describe again the parameters that it shares with a method.
        places = (*self.estimators[methods[0]], *METHOD_ESTIMATORS[methods[0]])
        told = next(filter(None, (_explain(place, name) for place in places)), "")
        return told if len(methods) == n_methods else f"{told} [{', '.join(methods)}]"

    def invoke(self, ctx: Any) -> Any:
        """Run the command; the words given for estimators' options are put into ``ctx.obj``."""
        names = {option.name for option in self.params}
        words = {name: ctx.params.pop(name) for name in [*ctx.params] if name not in names}
        ctx.obj = {name: values for name, values in words.items() if values}
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        records: dict[str, list[Any]] = {group: [] for group in OPTION_GROUPS}
        for option in self.get_params(ctx):
            records[GROUP_OF.get(option.name, "model")].append(option.get_help_record(ctx))
        for group, entries in records.items():
            if entries:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(entries)


class FitCommand(EstimatorCommand):
    estimators: ClassVar[dict[str, Any]] = METHOD_ESTIMATORS


class FilterCommand(EstimatorCommand):
    estimators: ClassVar[dict[str, Any]] = {name: (own,) for name, own in FILTERS.items()}


if TYPE_CHECKING:
    MethodName = str
    Filtering = str
else:
    # The command line offers what is registered, which no static type can list.
    MethodName, Filtering = Literal[tuple(METHOD_ESTIMATORS)], Literal[tuple(FILTERS)]


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer takes it.

    Fields of arguments' dataclasses are options of their own, and the help of an option is its
    entry in the docstring of the command, or of the dataclass.
    """
    records: dict[str, dict[str, inspect.Parameter]] = {}
    signature = inspect.signature(command)
    parameters = [_explained(own, command) for own in signature.parameters.values()]
    for at, parameter in [*enumerate(parameters)][::-1]:
        kind: Any = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            options = {
                f.name: parameter.replace(name=f.name, default=f.default, annotation=f.type)
                for f in fields(kind)
                if f.type is not None
            }
            told = {name: _explained(own, *kind.__mro__) for name, own in options.items()}
            records[parameter.name], parameters[at : at + 1] = told, told.values()

    def run(**given: Any) -> None:
        for name, options in records.items():
            record = signature.parameters[name].annotation
            given[name] = record(**{option: given.pop(option) for option in options})
        command(**given)

    flattened: Any = _with_signature(update_wrapper(run, command), parameters)
    flattened.__doc__ = (command.__doc__ or "").partition("\n\n    Parameters\n")[0]
    return cast("Callable[..., None]", flattened)


def _explained(parameter: inspect.Parameter, *described: Any) -> inspect.Parameter:
    """Return a parameter with its help: an option if it is keyword-only, else a path."""
    kind, is_option = parameter.annotation, parameter.kind is KEYWORD
    if kind is typer.Context or is_dataclass(kind):
        return parameter.replace(kind=KEYWORD)
    flag = [option_of(parameter.name)] if kind is bool else []
    info: Any = typer.Option(*flag) if is_option else typer.Argument(callback=expand)
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    info, docs = copy(info), (find_entries(cleandoc(own.__doc__ or "")) for own in described)
    told = next((own[parameter.name] for own in docs if parameter.name in own), None)
    info.help = info.help if told is None else " ".join("".join(told).split())
    return parameter.replace(kind=KEYWORD, annotation=Annotated[kind, info])


def _with_signature(run: Any, parameters: list[inspect.Parameter]) -> Any:
    """Give a function the signature that typer reads, in two places."""
    run.__signature__ = inspect.Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def option_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@cache
def _entries(place: str) -> dict[str, tuple[str, str]]:
    from daskls.estimators.docs import written_docs

    return find_entries(written_docs(place))


def find_entries(doc: str) -> dict[str, tuple[str, str]]:
    """Return the entries of a docstring: what follows the name on its line, and the lines below."""
    # The first of a name is a parameter, another an attribute.
    return {name: (types, below) for name, types, below in reversed(ENTRY.findall(doc))}


def _explain(place: str, name: str) -> str:
    """Return types and first sentence of a docstring's entry, and what it says of None."""
    if name not in _entries(place):
        return ""
    types, below = _entries(place)[name]
    # The text of a short entry follows the types on the same line; of a long one, below.
    text = " ".join(f"{types}{' ' if STOP.search(types) else '. '}{below}".split())
    types, *said = filter(None, map(str.strip, STOP.split(text)))
    told = [types, *said[:1], *(part for part in said[1:] if part.startswith("None: "))]
    return f"{'. '.join(told)}.".replace("`", "")


def _value_of(name: str, words: Sequence[str], classes: Sequence[Any] | None) -> Any:
    """Return the value of an option's words, which are spelled as in Python."""
    text = ",".join(words)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return parse_class_weight(text, classes) if name == "class_weight" else text


def build_estimator(
    ctx: typer.Context,
    method: str,
    classes: Sequence[Any] | None = None,
    kind: "TargetKind | None" = "classes",
) -> Any:
    """Return a method's estimator with the options that were given: the first that takes them."""
    command: Any = ctx.command
    places = command.estimators[method]
    if kind == "numbers" and len(places) < 2:
        able = ", ".join(name for name, paths in command.estimators.items() if len(paths) > 1)
        raise typer.BadParameter(
            f"--method {method} learns classes only, but the targets are numbers; use --method "
            f"{able}, or pass --task classification where they are classes"
        )
    params = {name: _value_of(name, words, classes) for name, words in ctx.obj.items()}
    refusals, lacking = [], []
    # A method's first estimator is the classifier.
    for place in {"classes": places[:1], "numbers": places[1:], None: places}[kind]:
        estimator: type[Any] = load_object(place)
        missing = params.keys() - inspect.signature(estimator).parameters
        if missing:
            options = ", ".join(option_of(name) for name in sorted(missing))
            lacking.append(f"{estimator.__name__} has no {options}")
            continue
        built = estimator(**params)
        try:
            built._request()
        except ValueError as error:
            refusals.append(error)
        else:
            return built
    raise refusals[0] if refusals else typer.BadParameter("; ".join(lacking))
