"""An experiment as a record: what to measure, how, and what is told of it."""

import ast
import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.suite.journal import Journal, Record
from benchmarks.suite.places import alone

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1]


@dataclass(frozen=True)
class Run:
    """What a measurement may look at.

    Attributes
    ----------
    journal : Journal. What was measured before.
    folder : Path. For data and models; it goes away after the run.
    settings : dict. Those of the experiment, with what the command line gave instead.
    """

    journal: Journal
    folder: Path
    settings: Record


@dataclass(frozen=True)
class Experiment:
    """What one module of the suite measures and tells.

    Attributes
    ----------
    keys : records to measure, the cheap ones first; or a function of a `Run` that returns them
    measure : function of a `Run` and the fields of a key. Returns what was found, a record.
    report : function of a `Journal`. Returns the Markdown text of ``results/NAME.md``.
    draw : function of a `Journal`, or None. Returns the figure ``results/NAME.png``.
    place : function that returns a context in which all keys are measured
    warm : function that returns models to fit on a few rows first, or None
    settings : dict. Numbers that ``--with`` replaces.
    figures : dict of functions of a `Journal` that return more figures, ``results/FILE.png``
    sketches : dict of functions that return a figure of models they fit: no journal has those.
    dpi : int. Of the figures.
    """

    keys: Iterable[Record] | Callable[[Run], Iterable[Record]]
    measure: Callable[..., Record]
    report: Callable[[Journal], str]
    draw: Callable[[Journal], "Figure"] | None = None
    place: Callable[[], AbstractContextManager[Any]] = alone
    warm: Callable[[], Iterable[Any]] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Callable[[Journal], "Figure"]] = field(default_factory=dict)
    sketches: Mapping[str, Callable[[], "Figure"]] = field(default_factory=dict)
    dpi: int = 120


def grid(**fields: Iterable[Any]) -> list[Record]:
    """Return all combinations of some values as keys, the last field changing first."""
    return [dict(zip(fields, values, strict=True)) for values in product(*fields.values())]


class UnknownError(ValueError):
    """A name that nothing has; the message offers those that are like it."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        every = sorted(known)
        like = difflib.get_close_matches(name, every, n=3, cutoff=0.4) or every
        super().__init__(f"There is no {kind} {name!r}; did you mean {', '.join(like)}?")


def abouts() -> Iterator[tuple[str, str]]:
    """Yield each experiment's name and the first line of its documentation, importing none."""
    for module in pkgutil.iter_modules([str(FOLDER)]):
        if module.name != "__main__" and not module.ispkg:
            tree = ast.parse((FOLDER / f"{module.name}.py").read_text())
            yield module.name, (ast.get_docstring(tree) or "").partition("\n")[0]


def find(name: str) -> Experiment:
    """Return the experiment of a name.

    Raises
    ------
    UnknownError : when there is none
    """
    names = [known for known, _ in abouts()]
    if name not in names:
        raise UnknownError("experiment", name, names)
    found: Experiment = importlib.import_module(f"benchmarks.{name}").EXPERIMENT
    return found
