"""Options of `daskls fit` and `denoise`: every parameter of every estimator is one."""

from inspect import signature
from numbers import Integral
from typing import ClassVar

import numpy as np
import pytest
from sklearn.utils._param_validation import Interval, StrOptions
from support import checkers
from support import run_cli as run
from typer.main import get_command

import daskls
from daskls.cli import app
from daskls.cli.options import OPTION_GROUPS, OWN, FilterCommand, FitCommand
from daskls.datasets import write
from daskls.registry import load_object

COMMANDS = {"fit": FitCommand, "denoise": FilterCommand}
ALL = [(command, method) for command, kind in COMMANDS.items() for method in kind.estimators]


def options_of(name):
    """Return the options of a command by the names of parameters."""
    command = get_command(app).commands[name]
    context = command.make_context(name, [], resilient_parsing=True)
    return {option.name: option for option in command.get_params(context)}


@pytest.fixture
def data(tmp_path):
    write("checkerboard", tmp_path / "data.zarr", 400)
    return tmp_path / "data.zarr"


@pytest.mark.parametrize(("command", "method"), ALL)
def test_every_parameter_of_an_estimator_is_an_option_with_help(command, method):
    options = options_of(command)
    for name in signature(load_object(COMMANDS[command].estimators[method])).parameters:
        if name not in OWN:
            assert f"--{name.replace('_', '-')}" in options[name].opts
            assert len(options[name].help) > 5


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_every_option_in_its_group(command):
    told = run(command, "--help").stdout
    heads = [group.capitalize() + ":" for group in OPTION_GROUPS]
    places = [told.find(f"\n{head}\n") for head in heads if f"\n{head}\n" in told]
    assert places == sorted(places)
    assert all(option.opts[0] in told for option in options_of(command).values())


def test_what_is_grouped_is_an_option():
    known = {*options_of("fit"), *options_of("denoise")}
    assert {name for names in OPTION_GROUPS.values() for name in names} <= known


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

        def _validate_params(self):
            """Take its own alone."""

        def fit(self, *_):
            seen.append((self.sides, self.shape))
            raise daskls.DataError("enough")

    seen = []
    monkeypatch.setattr("daskls.cli.options.load_object", lambda _: WiderSVC)
    assert "--sides" in (told := run("fit", "--help").stdout)
    assert "Sides of a cell." in told
    assert "<flat|none|round>" in told
    given = ("--sides", 6, "--shape", "none")
    run("fit", data, data.parent / "m", *given, "--workers", 0, code=1)
    assert seen == [(6, None)]
    assert "Invalid value" in run("fit", data, data.parent / "m", "--sides", 0, code=2).stderr


@pytest.mark.parametrize("words", [("--feature-scale", "none"), ()])
def test_none_is_spelled_the_same_in_python_and_on_the_command_line(words, data, tmp_path):
    seed = ("--random-state", 0, "--workers", 0, "-q", "--loss", "hinge", "--C", 1, "--gamma", 5)
    run("fit", data, tmp_path / "m", *seed, "--feature-scale", "learned", *words)
    X, _ = checkers(50)
    by_command = daskls.load(tmp_path / "m").decision_function(X)
    options = {"loss": "hinge", "C": 1.0, "gamma": 5.0, "random_state": 0}
    for scale in ("none", None) if words else ("learned",):
        model = daskls.VoronoiSVC(feature_scale=scale, **options).fit(data)
        assert model.get_params()["feature_scale"] == scale
        np.testing.assert_array_equal(model.decision_function(X), by_command)


def test_none_suits_kernels_of_products_too():
    X, y = checkers(60)
    options = {"kernel": "linear", "C": 1.0, "random_state": 0}
    found = [
        daskls.VoronoiSVC(feature_scale=scale, **options).fit(X, y).decision_function(X)
        for scale in ("none", None)
    ]
    np.testing.assert_array_equal(*found)
