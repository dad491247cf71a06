"""The command line: measures what is missing, then writes tables and figures.

What was measured is kept in ``benchmarks/results/NAME.jsonl``, a line a measurement; a run that
was stopped goes on where it was. Table and figures are made of these lines alone: ``--report``
makes them again, byte for byte, and measures nothing. Real sets are read from the folder that the
environment variable DASKLS_DATA names.

    python -m benchmarks --list
    python -m benchmarks covtype --only set=ijcnn1 method=daskls method=liquidSVM --again
    python -m benchmarks ten_million --with rows=[20000] --results /tmp/few    # a quick look
    python -m benchmarks untuned --quick --only estimator=XGBoost
    python -m benchmarks --report                                           # of all experiments
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path

from benchmarks.suite import figures
from benchmarks.suite.experiment import FOLDER, Experiment, Run, UnknownError, abouts, find
from benchmarks.suite.journal import Journal, Record
from benchmarks.suite.measure import machine
from benchmarks.suite.places import warm_up

RESULTS = FOLDER / "results"


def main(arguments: list[str] | None = None) -> None:
    parser = options()
    args = parser.parse_args(arguments)
    every = dict(abouts())
    if args.list or not (args.names or args.report):
        width = max(map(len, every))
        print("\n".join(f"{name:{width}}  {about}" for name, about in every.items()))
        return
    try:
        for name in args.names or every:
            work(name, args)
    except UnknownError as error:
        parser.error(str(error))


def options() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("benchmarks", description=__doc__, formatter_class=raw)
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments; see --list")
    parser.add_argument("--list", action="store_true", help="name the experiments")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the results")
    parser.add_argument("--again", action="store_true", help="measure what was measured, too")
    pairs = {"nargs": "+", "action": "extend", "type": assignment, "default": []}
    text = "keys with these values, or with values that begin like them"
    parser.add_argument("--only", **pairs, metavar="FIELD=VALUE", help=text)
    text = "settings of the experiment, in JSON"
    parser.add_argument("--with", **pairs, metavar="SETTING=VALUE", dest="given", help=text)
    quick = {"action": "append_const", "const": ("quick", "true"), "dest": "given"}
    parser.add_argument("--quick", **quick, help="the same as --with quick=true: a first look")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER")
    return parser


def assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def work(name: str, args: argparse.Namespace) -> None:
    """Measure what an experiment has not measured, and report."""
    experiment, journal = find(name), Journal(args.results / f"{name}.jsonl")
    if not args.report:
        settings = set_up(experiment, args.given)
        with tempfile.TemporaryDirectory() as folder:
            run = Run(journal, Path(folder), settings)
            measure_missing(experiment, run, args.only, args.again)
        for file, draw in experiment.sketches.items():
            figures.save(draw(), args.results / f"{file}.png", experiment.dpi)
    if journal.records:
        write(name, experiment, journal, args.results)
    else:
        print(f"{name}: no journal; results that are there are kept")


def set_up(experiment: Experiment, given: list[tuple[str, str]]) -> Record:
    """Return the settings, with those that were given in place of their defaults."""
    settings = dict(experiment.settings)
    for name, value in given:
        if name not in settings:
            raise UnknownError("setting", name, settings)
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


def measure_missing(
    experiment: Experiment, run: Run, only: list[tuple[str, str]], again: bool
) -> None:
    """Measure the keys that were chosen and that the journal does not have."""
    keys = experiment.keys(run) if callable(experiment.keys) else experiment.keys
    keys = chosen(list(keys), only)
    todo = [key for key in keys if again or not run.journal.is_done(**key)]
    if not todo:
        return
    run.journal.on(machine())
    with experiment.place(), warnings.catch_warnings():
        # Of parameters at the edge of a grid, and of solvers that end early: told by the numbers.
        warnings.simplefilter("ignore")
        if experiment.warm:
            warm_up(*experiment.warm())
        for key in todo:
            found = run.journal.add({**key, **experiment.measure(run, **key)})
            print(json.dumps(found), flush=True)


def chosen(keys: list[Record], only: list[tuple[str, str]]) -> list[Record]:
    """Return the keys that each field of ``only`` names, by a value or the beginning of some.

    Raises
    ------
    UnknownError : when no key has such a field, or such a value
    """
    for field in dict.fromkeys(name for name, _ in only):
        known = list(dict.fromkeys(str(key[field]) for key in keys if field in key))
        if not known:
            raise UnknownError("field", field, {name for key in keys for name in key})
        values = {v for name, given in only if name == field for v in named(field, given, known)}
        keys = [key for key in keys if str(key.get(field)) in values]
    return keys


def named(field: str, given: str, known: list[str]) -> list[str]:
    """Return the values that a text names: itself, or else all that begin like it."""
    found = [given] if given in known else [value for value in known if value.startswith(given)]
    if not found:
        raise UnknownError(field, given, known)
    return found


def write(name: str, experiment: Experiment, journal: Journal, results: Path) -> None:
    """Write the table and the figures of a journal."""
    (results / f"{name}.md").write_text(experiment.report(journal))
    drawn = {name: experiment.draw} if experiment.draw else {}
    for file, draw in {**drawn, **experiment.figures}.items():
        figures.save(draw(journal), results / f"{file}.png", experiment.dpi)
