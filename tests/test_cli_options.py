"""Options of `daskls fit` and `denoise`: every parameter of every estimator is one."""

import re
from inspect import cleandoc, signature
from numbers import Integral
from typing import ClassVar

import pytest
from sklearn.utils._param_validation import Interval, StrOptions
from support import run_cli as run
from typer.main import get_command

import daskls
from daskls.cli import app
from daskls.cli.options import OPTION_GROUPS, OWN, FilterCommand, FitCommand, _entries
from daskls.datasets import write
from daskls.registry import load_object

COMMANDS = {"fit": FitCommand, "denoise": FilterCommand}
ALL = [
    (command, method, load_object(place))
    for command, kind in COMMANDS.items()
    for method, places in kind.estimators.items()
    for place in places
]


def options_of(name):
    """Return the options of a command by the names of parameters."""
    command = get_command(app).commands[name]
    return {option.name: option for option in command.get_params(command.context_class(command))}


@pytest.fixture
def data(tmp_path):
    write("checkerboard", tmp_path / "data.zarr", 400)
    return tmp_path / "data.zarr"


@pytest.mark.parametrize(("command", "_", "estimator"), ALL)
def test_every_parameter_of_an_estimator_is_an_option_with_help(command, _, estimator):
    options = options_of(command)
    for name in signature(estimator).parameters:
        if name not in OWN:
            assert f"--{name.replace('_', '-')}" in options[name].opts
            # Types, and a sentence of a docstring.
            assert len(options[name].help.split()) >= 5
            assert ". " in options[name].help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_every_option_in_its_group(command):
    told = run(command, "--help").stdout
    groups = {}
    for group, text in re.findall(r"^(\w+):\n((?:  .*\n|\n)+)", told, re.MULTILINE):
        groups[group.lower()] = set(re.findall(r"^  (?:-\w, )?(?:--)?([\w-]+)", text, re.MULTILINE))
    assert [*groups] == [group for group in OPTION_GROUPS if group in groups]
    assert {*groups} >= {"arguments", "model", "search", "running", "output"}
    for name in options_of(command):
        own = next((group for group, names in OPTION_GROUPS.items() if name in names), "model")
        for group, names in groups.items():
            assert (name.replace("_", "-") in names) == (group == own), (name, group)


def in_help(option, *more):
    """Return what help of `fit` says of an option, on one line."""
    told = " ".join(run("fit", "--help", *more).stdout.replace("-\n", "-").split())
    return re.search(rf" --{option} VALUE (.*?)(?: --| (?:Search|Running):)", told)[1]


def test_help_of_a_method_is_in_its_own_words():
    assert in_help("cv").startswith("int, >= 2, default 5. Stratified folds in each cell;")
    assert {"voronoi", "chunks", "l3", "falk"} <= set(re.findall(r"\w+", in_help("cv")))
    assert in_help("cv", "--method", "l3").startswith("int, >= 2, default 5. Folds of the choice")
    assert "[" not in in_help("cv", "--method", "l3")
    assert "--cell-size" not in run("fit", "--help", "--method=falk").stdout


@pytest.mark.parametrize(
    ("method", "option", "words"),
    [
        ("chunks", "C", "None: the paper's 10 values"),
        ("l3", "n-cells", "None: (n / 400)^1.5"),
        ("falk", "n-assigned", "None: half of k."),
        ("local-sampling", "radius-scale", "None: 0.1, 0.2 and so on"),
        ("local-sampling", "sample-fraction", "None: 0.02"),
        ("falk", "gamma", "None: with a selection"),
    ],
)
def test_help_says_what_none_stands_for(method, option, words):
    assert words in in_help(option, "--method", method)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("--n-cells", "None"), {"n_cells": None}),
        (("--C", "1,10", "--C", "0.5"), {"C": (1, 10, 0.5)}),
        (("--probability", "True", "--tol", "1e-2"), {"probability": True, "tol": 0.01}),
        (("--class-weight", "balanced"), {"class_weight": "balanced"}),
        (("--class-weight", "None", "--landmarks", "pca"), {"landmarks": "pca"}),
    ],
)
def test_values_are_spelled_as_in_python(given, expected, data, monkeypatch):
    seen = {}

    def fit(self, *_):
        seen.update(self.get_params())
        raise daskls.DataError("enough")

    monkeypatch.setattr(daskls.LandmarkSVC, "fit", fit)
    run("fit", data, data.parent / "m", "--method", "l3", *given, "--workers", 0, code=1)
    assert {name: seen[name] for name in expected} == expected


def test_a_new_parameter_is_an_option_with_nothing_else_written(monkeypatch, data):
    class WiderSVC(daskls.VoronoiSVC):
        """Cells.

        Parameters
        ----------
        sides : int, >= 1, default 4
            Sides of a cell. As many as it has.
        shape : "round" or "flat", or None
            How a cell looks; for pictures.
        """

        _parameter_constraints: ClassVar[dict] = {
            **daskls.VoronoiSVC._parameter_constraints,
            "sides": [Interval(Integral, 1, None, closed="left")],
            "shape": [StrOptions({"round", "flat"}), None],
        }

        def __init__(self, sides=4, shape="round", store=None, client=None, verbose=0):
            super().__init__(store=store, client=client, verbose=verbose)
            self.sides, self.shape = sides, shape

        def _request(self):
            """Check its own alone."""
            self._validate_params()

        def fit(self, *_):
            seen.append((self.sides, self.shape))
            raise daskls.DataError("enough")

    seen = []
    monkeypatch.setattr("daskls.cli.options.load_object", lambda _: WiderSVC)
    # As its source would say.
    monkeypatch.setattr("daskls.parsed_code.defaults_of", lambda _: signature(WiderSVC).parameters)
    docs = cleandoc(WiderSVC.__doc__)
    monkeypatch.setattr("daskls.estimators.docs.written_docs", lambda _: docs)
    monkeypatch.setattr("daskls.cli.options._entries", _entries.__wrapped__)
    assert "--sides" in (told := run("fit", "--help").stdout)
    assert "int, >= 1, default 4. Sides of a cell." in told
    given = ("--sides", 6, "--shape", "None")
    run("fit", data, data.parent / "m", *given, "--workers", 0, code=1)
    assert seen == [(6, None)]
    assert "'sides'" in run("fit", data, data.parent / "m", "--sides", 0, code=2).stderr
