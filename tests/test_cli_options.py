"""Options of `daskls fit` and `denoise`: every parameter of every estimator is one."""

import re
from inspect import signature

import pytest
from support import run_cli as run
from typer.main import get_command

import daskls
from daskls.cli import app
from daskls.cli.options import OWN, FilterCommand, FitCommand
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


def test_help_lists_every_option_in_its_group():
    groups = dict(re.findall(r"^(\w+):\n((?: .*\n|\n)+)", run("fit", "--help").stdout, re.M))
    for group, names in (("Model", "kernel tol"), ("Search", "cv n-grid"), ("Running", "workers")):
        assert all(f"--{name} " in groups[group] for name in names.split())


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
