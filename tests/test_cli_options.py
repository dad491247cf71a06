"""Options of `daskls fit` and `denoise`: every parameter of every estimator is one."""

import re
from inspect import signature
from numbers import Integral
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import RegressorMixin
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
ALL = [
    (command, method, load_object(place))
    for command, kind in COMMANDS.items()
    for method, places in kind.estimators.items()
    for place in places
]


def options_of(name):
    """Return the options of a command by the names of parameters."""
    command = get_command(app).commands[name]
    context = command.make_context(name, [], resilient_parsing=True)
    return {option.name: option for option in command.get_params(context)}


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
            # A sentence of a docstring, before what stands in brackets.
            sentence, _, _ = options[name].help.partition("  [")
            assert len(sentence.split()) >= 3 or sentence == 'Of "k_centers".'
            assert sentence.endswith(".")


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


def in_help(command, option):
    """Return what help says of an option, on one line."""
    told = " ".join(run(command, "--help").stdout.replace("-\n", "-").split())
    return re.search(rf" --{option} (.*?)\](?: +--| [A-Z]\w+:)", told + " --")[1]


@pytest.mark.parametrize(
    ("option", "pairs"),
    [
        ("kernel", {"rbf": "|^2)", "exponential": "z|)", "linear": "x . z", "poly": "degree."}),
        ("landmarks", {"random": "by seed", "pca": "principal components"}),
        ("projection", {"linear": "(l - m)", "rbf": "exp(-gamma"}),
        ("assign", {"point": "training row", "center": "nearest center", "k_centers": "n_centers"}),
    ],
)
def test_words_come_in_the_order_of_what_is_said_of_them(option, pairs):
    told = in_help("fit", option)
    words, _, sentence = told.partition("> ")
    assert [word for word in words.strip("<").split("|") if word in pairs] == [*pairs]
    places = [sentence.find(part) for part in pairs.values()]
    assert places[0] >= 0
    assert places == sorted(places)


def test_what_methods_say_in_their_own_words_has_their_names():
    cv = in_help("fit", "cv")
    cells = r"voronoi, (\w+, )*chunks"
    assert re.search(rf"{cells}: Stratified folds in each cell. l3: Folds of the choice of C", cv)
    assert "falk: Folds of a selection." in cv
    tol = in_help("fit", "tol")
    assert re.search(rf"{cells}: A solver stops when its duality gap is at most tol x C x m", tol)
    # A line may end within a name.
    assert "local-sampling, cglq: As scikit-learn's" in tol.replace("- ", "-")
    n_neighbors = in_help("fit", "n-neighbors")
    assert "cglq: Nearest rows of each support row" in n_neighbors
    assert "falk, knnsvm, knn: k, the rows of a neighborhood." in n_neighbors
    assert "repeatable" in n_neighbors
    assert re.search(rf"exponential, (\w+, )*auto: of {cells};", in_help("fit", "kernel"))
    # No name where all say the same.
    assert in_help("fit", "n-landmarks").startswith("INT|none L, the number of landmarks. None:")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("C", "chunks): the paper's 10 values"),
        ("n-cells", "None: (n / 400)^1.5"),
        ("n-assigned", "None: half of k."),
        ("radius-scale", "None: 0.1, 0.2 and so on"),
        ("sample-fraction", "None (local-sampling): 0.02"),
        ("gamma", "None (falk): with a selection"),
    ],
)
def test_help_says_what_none_stands_for(option, words):
    told = in_help("fit", option)
    assert "none" in told.split()[0]
    assert words in told
    assert "see Notes" not in told


def numbers_or_none():
    """Yield the options whose values are numbers or None, and a method that takes each."""
    for command, method, estimator in ALL:
        if issubclass(estimator, RegressorMixin):
            continue
        for name in signature(estimator).parameters:
            own = estimator._parameter_constraints[name]
            if name not in OWN and (None in own or "random_state" in own):
                yield pytest.param(
                    command, estimator, method, name, id=f"{method} {command} {name}"
                )


@pytest.mark.parametrize(("command", "estimator", "method", "name"), [*numbers_or_none()])
def test_whatever_may_be_none_takes_none(command, estimator, method, name, data, monkeypatch):
    seen = {}

    def validated(self):
        seen.update(self.get_params())
        raise daskls.DataError("enough")

    monkeypatch.setattr(estimator, "_validate_params", validated)
    given = (f"--{name.replace('_', '-')}", "none")
    out = data.parent / "out"
    run(command, data, out, "--method", method, *given, "--workers", 0, code=1)
    assert seen[name] is None


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [
        ("voronoi", "--coef0", "-1"),
        ("falk", "--n-neighbors", "-4"),
        ("falk", "--n-neighbors", "5,-4"),
        ("cglq", "--n-neighbors", "-4"),
        ("l3", "--n-cells", "0"),
        ("knn", "--random-state", "-1"),
        ("knn", "--n-neighbors", "5.5"),
    ],
)
def test_a_number_out_of_range_is_refused_by_the_options_name(method, option, value, tmp_path):
    # Before the data are looked for.
    refused = run("fit", tmp_path / "no", tmp_path / "m", "--method", method, option, value, code=2)
    assert f"{option} " in refused.stderr
    assert "parameter of" not in refused.stderr


def test_what_is_grouped_is_an_option():
    known = {*options_of("fit"), *options_of("plan"), *options_of("denoise")}
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
