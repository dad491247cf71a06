"""One parameter of estimators as an option: its values, its help, the parsing of its words.

The values come from `_parameter_constraints`; help and the order of words come from docstrings.
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

# The estimators of each method: the classifier, then regressors if there are any.
METHOD_ESTIMATORS = {entry.option: entry.estimators for entry in METHODS}
NONE = "none"


class Parameter:
    """A parameter of one or several estimators, as an option.

    Parameters
    ----------
    name : str
    methods : tuple of str. The methods of the command, whether they have the parameter or not.
    """

    def __init__(self, name: str, methods: tuple[str, ...]) -> None:
        self.name, self.methods = name, methods
        self.defaults: dict[str, Any] = {}
        self.estimators: dict[str, type[Any]] = {}
        self._takers_of: dict[str, list[type[Any]]] = {}

    def add(self, method: str, estimator: type[Any]) -> None:
        """Add an estimator that has it; help describes the first one of each method."""
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
        """scikit-learn's constraints of the parameter, those of all estimators together."""
        return [own for method in self.estimators for own in self._constraints_of(method)]

    def _constraints_of(self, method: str) -> list[Any]:
        """Return the constraints of all estimators of one method."""
        takers = self._takers_of[method]
        return [own for taker in takers for own in taker._parameter_constraints[self.name]]

    @cached_property
    def words(self) -> list[str]:
        """The words among its values, in the order of the docstrings."""
        words = {word for method in self.estimators for word in self._words_of(method)}
        entries = map(self._entry, self.estimators)
        # With `python -OO` there are no docstrings: then the words are sorted.
        ordered = [word for entry in entries for word in entry.words] + sorted(words)
        return [word for word in dict.fromkeys(ordered) if word in words]

    def _words_of(self, method: str) -> set[str]:
        """Return the words among the values of one method."""
        constraints = self._constraints_of(method)
        options = [own for own in constraints if hasattr(own, "options")]
        words = {word for own in options for word in own.options}
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
        """The type of its numbers."""
        kinds = {own.type.__name__ for own in self._intervals}
        return int if kinds == {"Integral"} or "random_state" in self.constraints else float

    @property
    def _least(self) -> float | None:
        """The least number that it takes, or None if there is none."""
        if "random_state" in self.constraints:
            return 0
        if not self._intervals or {own.closed for own in self._intervals} - {"left", "both"}:
            return None
        least: float | None = min(own.left for own in self._intervals)
        return least

    def to_signature(self, with_help: bool) -> inspect.Parameter:
        """Return the function parameter of which typer makes the option."""
        kind: Any = str
        if self._is_list:
            # Candidates may also be given by repeating the option.
            kind = list[str] if self._is_repeatable else str
        elif self.words:
            kind = Literal[tuple(self.words)]
        elif "boolean" in self.constraints:
            kind = bool
        option = typer.Option(
            self.option,
            metavar=self._metavar if kind in (str, list[str]) else None,
            help=self._help if with_help else None,
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
        """The placeholder for its values in help."""
        numbers = "LABEL=WEIGHT" if dict in self.constraints else self._number.__name__.upper()
        values = [*self.words, f"{numbers},..." if self._is_list else numbers]
        return "|".join([*values, NONE] if self._allows_none and NONE not in values else values)

    @property
    def _help(self) -> str:
        """The docstrings' first sentences and what they say about None; then notes in brackets."""
        sentences = [
            self._merge_texts("sentence", "{0}: {1}"),
            self._merge_texts("none", "None ({0}): {1}"),
        ]
        notes = [*self._note_takers(), *self._note_words(), *self._note_defaults()]
        if self._least is not None:
            notes.append(f">= {self._least:g}")
        if self._is_repeatable:
            notes.append("repeatable")
        return " ".join([*filter(None, sentences), *([f" [{'; '.join(notes)}]"] if notes else [])])

    def _note_takers(self) -> Iterator[str]:
        """Yield the methods that have the option, or those that lack it, unless all have it."""
        others = [own for own in self.methods if own not in self.defaults]
        if others:
            few = len(self.defaults) <= len(others)
            yield f"of {', '.join(self.defaults)}" if few else f"not of {', '.join(others)}"

    def _note_words(self) -> Iterator[str]:
        """Yield the methods that take a word, unless all methods with the option take it."""
        by_takers: dict[tuple[str, ...], list[str]] = {}
        for word in self.words:
            takers = tuple(own for own in self.estimators if word in self._words_of(own))
            by_takers.setdefault(takers, []).append(word)
        for takers, words in by_takers.items():
            if len(takers) < len(self.estimators):
                yield f"{', '.join(map(str, words))}: of {', '.join(takers)}"

    def _note_defaults(self) -> Iterator[str]:
        """Yield the default, or the defaults by method, the most frequent one last."""
        by_default: dict[str, list[str]] = {}
        for method, value in self.defaults.items():
            by_default.setdefault(_spell(value), []).append(method)
        *first, (last, _) = sorted(by_default.items(), key=lambda own: len(own[1]))
        yield from (f"{', '.join(methods)}: {word}" for word, methods in first)
        if first or last not in (NONE, "false"):
            yield f"{'others' if first else 'default'}: {last}"

    def _merge_texts(self, part: str, form: str) -> str:
        """Return a part of the methods' docstrings; where texts differ, name the methods by form.

        Parameters
        ----------
        part : str. A field of `_DocEntry`.
        form : str. A format of (methods, text).
        """
        by_text: dict[str, tuple[str, list[str]]] = {}
        for method in self.estimators:
            text = getattr(self._entry(method), part)
            if text:
                # Texts that differ only by "chunk" and "cell" count as one.
                by_text.setdefault(text.replace("chunk", "cell"), (text, []))[1].append(method)
        if len(by_text) == 1:
            ((text, _),) = by_text.values()
            return f"None: {text}." if part == "none" else f"{text}."
        texts = [form.format(", ".join(methods), text) for text, methods in by_text.values()]
        return " ".join(f"{text}." for text in texts)

    def _entry(self, method: str) -> "_DocEntry":
        """Return the entry of the parameter in the docstring of a method's estimator."""
        own = _DocEntry.of(self.estimators[method], self.name)
        if own != _DocEntry() or method not in METHOD_ESTIMATORS:
            return own
        # A filter does not describe again the parameters that it shares with a method.
        return _DocEntry.of(load_object(METHOD_ESTIMATORS[method][0]), self.name)

    def parse(self, word: Any, classes: Sequence[Any] | None) -> Any:
        """Return the value of an option's text, which is spelled as in Python.

        Parameters
        ----------
        word : str, list of str or bool, as typer returns it
        classes : sequence or None. The classes of a data set, for ``class_weight``.

        Raises
        ------
        typer.BadParameter : no value of the parameter
        """
        if isinstance(word, bool):
            return word
        text = word if isinstance(word, str) else ",".join(word)
        if text == NONE and self._allows_none:
            return None
        if text in self.words:
            return {"true": True, "false": False}.get(text, text)
        if dict in self.constraints:
            return parse_class_weight(text, classes)
        if not self._is_list:
            return self._in_bounds([self._one_number(text)])[0]
        values = self._in_bounds(parse_numbers(self.option[2:], text, self._number))
        # A single number, unless the parameter takes lists only.
        return values[0] if len(values) == 1 and self._intervals else values

    def check(self, word: Any) -> None:
        """Refuse text that is no value, whatever the data are.

        Raises
        ------
        typer.BadParameter
        """
        # Class weights depend on the data's classes.
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
        """Return numbers; refuse any below the least."""
        least = self._least
        if least is not None and min(values) < least:
            raise typer.BadParameter(
                f"{self.option} holds {min(values):g}, but must be at least {least:g}"
            )
        return values


def _spell(value: Any) -> str:
    """Return a default as it is spelled on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return NONE if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class _DocEntry:
    """The entry of a parameter in a docstring; empty fields where there is none.

    Attributes
    ----------
    words : tuple of str. The words among its values, in the order of the line of types.
    sentence : str. The first sentence.
    none : str. The meaning of None.
    """

    words: tuple[str, ...] = ()
    sentence: str = ""
    none: str = ""

    @classmethod
    def of(cls, estimator: type[Any], name: str) -> "_DocEntry":
        """Return the entry in an estimator's docstring."""
        text = inspect.cleandoc(estimator.__doc__ or "")
        entry = re.search(rf"^{name} : (.*)\n((?:    .*\n?)*)", text, re.MULTILINE)
        if entry is None:
            return cls()
        # The text of a short entry follows the types on the same line; of a long one, below.
        types, _, short = entry[1].partition(". ")
        words = re.findall(r"\bbool\b|\bNone\b|(?<=\")\w+(?=\")", types)
        spelled = {"bool": ("false", "true"), "None": (NONE,)}
        text = " ".join(f"{short}\n{entry[2]}".split()).replace("`", "")
        # References lead nowhere from a terminal.
        text = re.sub(r" \(see [^)]*\)", "", text).rstrip(".")
        # Split into sentences; "; None: ..." counts as one.
        first, *rest = re.split(r"(?<! )\.(?= [A-Z\"(])|;(?= None: )", text)
        none = [own.strip() for own in (first, *rest) if own.strip().startswith("None: ")]
        return cls(
            tuple(spelled_as for word in words for spelled_as in spelled.get(word, (word,))),
            "" if first.startswith("None: ") else first.partition("; ")[0],
            none[0].removeprefix("None: ") if none else "",
        )
