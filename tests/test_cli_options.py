"""Options of `daskls fit` and `denoise`: every parameter of every estimator is one."""

from inspect import cleandoc, signature
from numbers import Integral
from typing import ClassVar

import pytest
from sklearn.utils._param_validation import Interval, StrOptions
from support import run_cli as run
from typer.main import get_command

import daskls
from daskls.cli import app
from daskls.cli.options import OWN, FilterCommand, FitCommand, _entries
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
