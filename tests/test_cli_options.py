"""Options of `daskls fit` and `denoise`: every parameter of every estimator is one."""

import re
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
from daskls.cli.options import GROUP_OF, OPTION_GROUPS, OWN, FilterCommand, FitCommand
from daskls.cli.parameters import Parameter
from daskls.datasets import write
from daskls.kernels.registry import KERNELS
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
            assert not options[name].help.startswith(" ["), "no docstring says what it is"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_every_option_in_its_group(command):
    told = run(command, "--help").stdout
    titles = [group.capitalize() for group in OPTION_GROUPS]
    # Words in pieces: titles, and what stands below each until the next.
    pieces = re.split(rf"\n({'|'.join(titles)}):\n", told)
    below = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    options = options_of(command)
    groups = {name: GROUP_OF.get(name, "model").capitalize() for name in options}
    assert list(below) == [title for title in titles if title in groups.values()]
    for name, option in options.items():
        start = re.compile(rf"^  (-q, )?{option.opts[0] if name != 'quiet' else '--quiet'}\b", re.M)
        starts = [title for title, text in below.items() if start.search(text)]
        assert starts == [groups[name]] or option.param_type_name == "argument", name


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
    assert "<round|flat|none>" in told
    given = ("--sides", 6, "--shape", "none")
    run("fit", data, data.parent / "m", *given, "--workers", 0, code=1)
    assert seen == [(6, None)]
    refused = run("fit", data, data.parent / "m", "--sides", 0, code=2).stderr
    assert "--sides" in refused
    assert "0 is less than 1" in refused


def parameter_of(name, *methods):
    """Return a parameter as the help of these methods knows it."""
    own = Parameter(name, methods)
    for method in methods:
        own.add(method, load_object(FitCommand.estimators[method]))
    return own


def optional():
    """Yield the method and name of every option of a fit that may be None."""
    for method, path in FitCommand.estimators.items():
        estimator = load_object(path)
        for name in signature(estimator).parameters:
            constraints = {*map(str, estimator._parameter_constraints[name])}
            if name not in OWN and constraints & {"None", "random_state"}:
                yield method, name


@pytest.mark.parametrize(("method", "name"), [*optional()])
def test_what_may_be_none_takes_none(method, name):
    own = parameter_of(name, method)
    assert own.option == f"--{name.replace('_', '-')}"
    context = (
        get_command(app)
        .commands["fit"]
        .make_context("fit", ["data", "model", "--method", method, own.option, "none"])
    )
    read = own.parse(context.params[name], None)
    # Where the estimator has a word "none" of its own it means the same.
    assert read is None or (read == "none" and name == "feature_scale")


def test_none_that_is_a_word_stays_one():
    class Coding:
        """One.

        Parameters
        ----------
        coding : "auto" or "none"
        """

        _parameter_constraints: ClassVar[dict] = {"coding": [StrOptions({"auto", "none"})]}

        def __init__(self, coding="none"):
            """Take it."""

    own = Parameter("coding", ("voronoi",))
    own.add("voronoi", Coding)
    assert own.parse("none", None) == "none"
    assert own.names == ["auto", "none"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--coef0", "-1"), ("--coef0", "-1 is less than 0")),
        (("--method", "knn", "--n-neighbors", "-4"), ("--n-neighbors", "-4 is less than 1")),
        (("--method", "knn", "--n-neighbors", "none"), ("--n-neighbors", "not a whole number")),
        (("--random-state", "-1"), ("--random-state", "-1 is less than 0")),
        (("--random-state", "two"), ("--random-state", "'two' is not a whole number, nor none")),
        (("--method", "knn", "--refit", "cell"), ("--method knn has no option --refit",)),
        (("--refitt", "cell"), ("--refitt",)),
        (("--method", "knnn"), ("knnn",)),
    ],
)
def test_numbers_and_names_are_refused_by_the_options_name(options, words, data):
    refused = run("fit", data, data.parent / "m", *options, code=2).stderr
    assert all(word in refused for word in words)


def test_words_stand_in_the_order_of_the_sentence():
    assert parameter_of("refit", "voronoi").names == ["folds", "cell"]
    assert parameter_of("landmarks", "l3").names == ["random", "pca"]
    assert parameter_of("assign", "falk").names == ["point", "center", "k_centers"]
    words = parameter_of("kernel", "voronoi", "falk").names
    assert words == [*KERNELS, "auto"]


def help_of(name):
    takers = [method for method, path in FitCommand.estimators.items() if takes(path, name)]
    own = parameter_of(name, *takers)
    own.methods = tuple(FitCommand.estimators)
    return own._help


def takes(path, name):
    return name in signature(load_object(path)).parameters


def test_help_names_the_methods_where_they_differ():
    assert "voronoi, chunks: Stratified folds in each cell." in help_of("cv")
    assert "falk: Folds of a selection." in help_of("cv")
    assert "cglq: Nearest rows of each support row" in help_of("n_neighbors")
    assert "falk, knnsvm: A solver stops at a duality gap of tol x C x k." in help_of("tol")
    assert "exponential, auto: of voronoi, chunks" in help_of("kernel")
    assert help_of("degree").startswith('Power of "poly".  [not of l3;')


@pytest.mark.parametrize("name", ["C", "gamma", "n_cells", "n_assigned", "radius_scale"])
def test_help_says_what_none_stands_for(name):
    assert "None: " in help_of(name) or "None (voronoi, chunks): " in help_of(name)


def test_help_says_what_comes_again_and_leads_nowhere():
    told = {name: getattr(own, "help", None) or "" for name, own in options_of("fit").items()}
    again = {name for name, text in told.items() if "repeatable" in text}
    assert {"C", "gamma", "n_neighbors", "drop"} <= again
    assert not [name for name, text in told.items() if "(see" in text]


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
