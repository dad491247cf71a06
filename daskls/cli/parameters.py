"""A parameter of estimators as an option: its values, its help, and what its words stand for.

Its values come from `_parameter_constraints`, its help and the order of its words from docstrings.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import typer

from daskls.cli.inputs import parse_class_weight, parse_numbers
from daskls.registry import METHODS, load_object

# Of each method that of classes, and that of numbers where there is one.
METHOD_ESTIMATORS = {entry.option: entry.estimators for entry in METHODS}
NONE = "none"


class Parameter:
    """A parameter of one or several estimators, as an option.

    Parameters
    ----------
    name : str
    methods : tuple of str. Those that the option is for, whether they take it or not.
    """

    def __init__(self, name: str, methods: tuple[str, ...]) -> None:
        self.name, self.methods = name, methods
        self.defaults: dict[str, Any] = {}
        self.estimators: dict[str, type[Any]] = {}
        self._takers_of: dict[str, list[type[Any]]] = {}

    def add(self, method: str, estimator: type[Any]) -> None:
        """Add an estimator that takes it; of a method the first is what help speaks of."""
        self._takers_of.setdefault(method, []).append(estimator)
        if method not in self.estimators:
            self.defaults[method] = inspect.signature(estimator).parameters[self.name].default
            self.estimators[method] = estimator

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @cached_property
    def constraints(self) -> list[Any]:
        """What any of the estimators takes."""
        return [own for method in self.estimators for own in self._constraints_of(method)]

    def _constraints_of(self, method: str) -> list[Any]:
        """Return what any estimator of one method takes."""
        everyone = self._takers_of[method]
        return [own for one in everyone for own in one._parameter_constraints[self.name]]

    @cached_property
    def names(self) -> list[str]:
        """The words that it takes, in the order of the docstrings."""
        words = {word for method in self.estimators for word in self._words_of(method)}
        entries = map(self._entry, self.estimators)
        # Python drops docstrings where it is asked to.
        ordered = [word for entry in entries for word in entry.words] + sorted(words)
        return [word for word in dict.fromkeys(ordered) if word in words]

    def _words_of(self, method: str) -> set[str]:
        """Return the words that one method takes."""
        constraints = self._constraints_of(method)
        named = [own for own in constraints if hasattr(own, "options")]
        words = {word for own in named for word in own.options - own.deprecated}
        if "boolean" in constraints and words:
            words |= {"true", "false"}
        if None in constraints and words:
            words |= {NONE}
        return words

    @property
    def _intervals(self) -> list[Any]:
        """The constraints of numbers."""
        return [own for own in self.constraints if hasattr(own, "closed")]

    @property
    def _is_list(self) -> bool:
        return "array-like" in self.constraints or dict in self.constraints

    @property
    def _allows_none(self) -> bool:
        return None in self.constraints or "random_state" in self.constraints

    @property
    def _number(self) -> type[int] | type[float]:
        """What its numbers are."""
        kinds = {own.type.__name__ for own in self._intervals}
        return int if kinds == {"Integral"} or "random_state" in self.constraints else float

    @property
    def _least(self) -> float | None:
        """The least number that it takes, if there is one."""
        if "random_state" in self.constraints:
            return 0
        if not self._intervals or {own.closed for own in self._intervals} - {"left", "both"}:
            return None
        least: float | None = min(own.left for own in self._intervals)
        return least

    def to_signature(self, is_told: bool) -> inspect.Parameter:
        """Return the parameter of a function that typer makes the option of."""
        kind: Any = str
        if self._is_list:
            # Of numbers that are candidates the option may come again.
            kind = list[str] if self._is_repeatable else str
        elif self.names:
            kind = Literal[tuple(self.names)]
        elif "boolean" in self.constraints:
            kind = bool
        option = typer.Option(
            self.option,
            metavar=self._metavar if kind in (str, list[str]) else None,
            help=self._help if is_told else None,
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
    def _is_repeatable(self) -> bool:
        return self._is_list and bool(self._intervals)

    @property
    def _metavar(self) -> str:
        """What stands for one or several values, or for one of several kinds."""
        numbers = "LABEL=WEIGHT" if dict in self.constraints else self._number.__name__.upper()
        words = [*self.names, f"{numbers},..." if self._is_list else numbers]
        return "|".join([*words, NONE] if self._allows_none and NONE not in words else words)

    @property
    def _help(self) -> str:
        """What docstrings say of it first and of None, who takes what of it, and its default."""
        said = [self._said("sentence", "{0}: {1}"), self._said("none", "None ({0}): {1}")]
        notes = [*self._takers(), *self._told_words(), *self._told_defaults()]
        if self._least is not None:
            notes.append(f">= {self._least:g}")
        if self._is_repeatable:
            notes.append("repeatable")
        return " ".join([*filter(None, said), *([f" [{'; '.join(notes)}]"] if notes else [])])

    def _takers(self) -> Iterator[str]:
        """Yield which methods take the option, or do not, where not all do."""
        others = [own for own in self.methods if own not in self.defaults]
        if others:
            few = len(self.defaults) <= len(others)
            yield f"of {', '.join(self.defaults)}" if few else f"not of {', '.join(others)}"

    def _told_words(self) -> Iterator[str]:
        """Yield which methods take a word, where not all that have the option do."""
        by_takers: dict[tuple[str, ...], list[str]] = {}
        for word in self.names:
            takers = tuple(own for own in self.estimators if word in self._words_of(own))
            by_takers.setdefault(takers, []).append(word)
        for takers, words in by_takers.items():
            if len(takers) < len(self.estimators):
                yield f"{', '.join(map(str, words))}: of {', '.join(takers)}"

    def _told_defaults(self) -> Iterator[str]:
        """Yield the default, or those of methods, the most frequent one last."""
        by_default: dict[str, list[str]] = {}
        for method, value in self.defaults.items():
            by_default.setdefault(_word(value), []).append(method)
        *first, (last, _) = sorted(by_default.items(), key=lambda own: len(own[1]))
        yield from (f"{', '.join(methods)}: {word}" for word, methods in first)
        if first or last not in (NONE, "false"):
            yield f"{'others' if first else 'default'}: {last}"

    def _said(self, part: str, named: str) -> str:
        """Return a part of what docstrings say, with the methods' names where it differs."""
        by_text: dict[str, tuple[str, list[str]]] = {}
        for method in self.estimators:
            text = getattr(self._entry(method), part)
            if text:
                # Docstrings of chunks are those of cells, but for the word.
                by_text.setdefault(text.replace("chunk", "cell"), (text, []))[1].append(method)
        if len(by_text) == 1:
            ((text, _),) = by_text.values()
            return f"None: {text}." if part == "none" else f"{text}."
        told = [named.format(", ".join(methods), text) for text, methods in by_text.values()]
        return " ".join(f"{text}." for text in told)

    def _entry(self, method: str) -> "_Entry":
        """Return what the docstring of a method's estimator says of it."""
        own = _Entry.of(self.estimators[method], self.name)
        if own != _Entry() or method not in METHOD_ESTIMATORS:
            return own
        # Filters leave what they have in common with methods to these.
        return _Entry.of(load_object(METHOD_ESTIMATORS[method][0]), self.name)

    def parse(self, word: Any, classes: Sequence[Any] | None) -> Any:
        """Return the value that an option's words stand for, spelled as in Python.

        Parameters
        ----------
        word : str, list of str or bool. As typer read it.
        classes : sequence or None. The classes of a data set, which weights are of.

        Raises
        ------
        typer.BadParameter
        """
        if isinstance(word, bool):
            return word
        text = word if isinstance(word, str) else ",".join(word)
        if text == NONE and self._allows_none:
            return None
        if text in self.names:
            return {"true": True, "false": False}.get(text, text)
        if dict in self.constraints:
            return parse_class_weight(text, classes)
        if not self._is_list:
            return self._in_bounds([self._one_number(text)])[0]
        values = self._in_bounds(parse_numbers(self.option[2:], text, self._number))
        # One number where numbers are taken at all; else a list of one.
        return values[0] if len(values) == 1 and self._intervals else values

    def check(self, word: Any) -> None:
        """Refuse words that are no value, whatever the data are.

        Raises
        ------
        typer.BadParameter
        """
        if dict not in self.constraints:
            self.parse(word, None)

    def _one_number(self, text: str) -> float:
        try:
            return self._number(text)
        except ValueError as error:
            what = "whole number" if self._number is int else "number"
            what += ", nor none" if self._allows_none else ""
            raise typer.BadParameter(f"{self.option} {text!r} is not a {what}") from error

    def _in_bounds(self, values: Sequence[float]) -> Sequence[float]:
        """Refuse numbers below the least, by the option's name."""
        least = self._least
        if least is not None and min(values) < least:
            raise typer.BadParameter(
                f"{self.option} holds {min(values):g}, but takes {least:g} at the least"
            )
        return values


def _word(value: Any) -> str:
    """Return a default as it is spelled on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return NONE if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class _Entry:
    """What a docstring says of a parameter.

    Attributes
    ----------
    words : tuple of str. Values, in the order of the line of types.
    sentence : str. The first one.
    none : str. What None stands for.
    """

    words: tuple[str, ...] = ()
    sentence: str = ""
    none: str = ""

    @classmethod
    def of(cls, estimator: type[Any], name: str) -> "_Entry":
        """Return what an estimator's docstring says; nothing where it has none."""
        text = inspect.cleandoc(estimator.__doc__ or "")
        entry = re.search(rf"^{name} : (.*)\n((?:    .*\n?)*)", text, re.MULTILINE)
        if entry is None:
            return cls()
        # A short entry goes on behind the type; a long one below it.
        types, _, short = entry[1].partition(". ")
        words = re.findall(r"\bbool\b|\bNone\b|(?<=\")\w+(?=\")", types)
        spelled = {"bool": ("false", "true"), "None": (NONE,)}
        told = " ".join(f"{short}\n{entry[2]}".split()).replace("`", "")
        # References lead nowhere from a terminal.
        told = re.sub(r" \(see [^)]*\)", "", told).rstrip(".")
        first, *rest = re.split(r"(?<! )\.(?= [A-Z\"(])|;(?= None: )", told)
        none = [own.strip() for own in (first, *rest) if own.strip().startswith("None: ")]
        return cls(
            tuple(spelled_as for word in words for spelled_as in spelled.get(word, (word,))),
            "" if first.startswith("None: ") else first.partition("; ")[0],
            none[0].removeprefix("None: ") if none else "",
        )
