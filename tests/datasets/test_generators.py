from dataclasses import fields
from inspect import signature

import numpy as np
import pytest

from daskls import datasets
from daskls.datasets import bayes_accuracy, write
from daskls.datasets._base import GROUP_ROWS
from daskls.datasets.registry import GENERATORS
from daskls.errors import ParameterError

NAMES = ("checkerboard", "friedman1", "noisy28", "swiss_roll", "two_spirals")
# Those with a function of their own.
MADE = [name for name in NAMES if name != "friedman1"]


def make(name, n_rows, random_state=0, **params):
    return GENERATORS[name](**params).rows(0, n_rows, random_state)


@pytest.mark.parametrize("name", MADE)
def test_the_function_makes_the_first_rows_with_the_same_defaults(name):
    function = getattr(datasets, f"make_{name}")
    for made, expected in zip(function(50, random_state=3), make(name, 50, 3), strict=True):
        np.testing.assert_array_equal(made, expected)
    defaults = {own.name: own.default for own in signature(function).parameters.values()}
    for field in fields(GENERATORS[name]):
        assert defaults[field.name] == field.default


@pytest.mark.parametrize("name", NAMES)
def test_any_range_is_the_slice_of_the_whole(name):
    X, y = make(name, 2 * GROUP_ROWS + 2)
    for first in (0, 1, GROUP_ROWS - 1, GROUP_ROWS, GROUP_ROWS + 1):
        for n_rows in (0, 1, 2, GROUP_ROWS + 1):
            X_part, y_part = GENERATORS[name]().rows(first, n_rows, 0)
            np.testing.assert_array_equal(X_part, X[first : first + n_rows])
            np.testing.assert_array_equal(y_part, y[first : first + n_rows])


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_chooses_the_rows_and_groups_do_not_repeat(name):
    X, y = make(name, 3 * GROUP_ROWS, random_state=1)
    other, _ = make(name, 50, random_state=2)
    assert not np.isin(X[:50, 0], other[:, 0]).any()
    assert len(np.unique(X, axis=0)) > 0.999 * len(X)
    assert X.flags.c_contiguous
    assert (X.dtype, y.dtype) == (np.float32, np.float64 if name == "friedman1" else np.int32)
    assert name == "friedman1" or set(y.tolist()) <= {-1, 1}


# Each oracle is the best rule, written down from the set's definition alone: true where +1.


def checkerboard_oracle(X, n_cells_side=4, flip=0.055):
    edges = np.linspace(0, 1, n_cells_side + 1)[1:-1]
    squares = np.searchsorted(edges, X[:, 0]) + np.searchsorted(edges, X[:, 1])
    return (squares % 2 == 0) == (flip < 0.5)


def curve_density(X, curve, noise):
    total = sum(np.exp(-((X - point) ** 2).sum(1) / (2 * noise**2)) for point in curve)
    return total / (len(curve) * 2 * np.pi * noise**2)


def two_spirals_oracle(X, n_turns=3.0, noise=0.0555):
    radius = np.sqrt((np.arange(700) + 0.5) / 700)
    curve = radius * np.exp(2j * np.pi * n_turns * radius)
    arm = np.column_stack([curve.real, curve.imag])
    X = X.astype(float)
    return curve_density(X, arm, noise) > curve_density(X, -arm, noise)


def swiss_roll_oracle(X, n_turns=1.5, noise=0.02):
    angle = np.linspace(1.5 * np.pi, (1.5 + 2 * n_turns) * np.pi, 700)
    curve = 0.9 * angle / angle[-1] * np.exp(1j * angle)
    roll = np.column_stack([curve.real, curve.imag])
    cloud = np.where(np.abs(X).max(1) <= 1, 0.25, 0.0)
    return curve_density(X.astype(float), roll, noise) > cloud


def noisy28_oracle(X, flip=0.1, noise=0.3):
    X = X.astype(float)
    return X[:, 0] * X[:, 1] > -np.sin(2 * X[:, 2])


CASES = [
    *[("checkerboard", own) for own in ({}, {"n_cells_side": 3, "flip": 0.2}, {"flip": 0.9})],
    *[("noisy28", own) for own in ({}, {"flip": 0.25, "noise": 1.0})],
    *[("swiss_roll", own) for own in ({}, {"n_turns": 1.0, "noise": 0.05})],
    *[("two_spirals", own) for own in ({}, {"n_turns": 2.0, "noise": 0.1})],
]


@pytest.mark.parametrize(("name", "params"), CASES)
def test_the_bayes_accuracy_is_that_of_the_best_rule(name, params):
    n_rows = 20_000
    X, y = make(name, n_rows, random_state=11, **params)
    measured = (globals()[f"{name}_oracle"](X, **params) == (y > 0)).mean()
    expected = bayes_accuracy(name, **params)
    error = (expected * (1 - expected) / n_rows) ** 0.5
    assert abs(measured - expected) <= 3.5 * error + 1e-9


def test_the_best_r2_is_that_of_the_function():
    for params in ({}, {"d": 7, "noise": 3.0}, {"noise": 0.0}):
        X, y = make("friedman1", 100_000, random_state=11, **params)
        x = X.astype(float).T
        function = 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]
        noise = y - function
        assert noise.std() == pytest.approx(params.get("noise", 1.0), rel=0.01, abs=1e-5)
        expected = bayes_accuracy("friedman1", **params)
        assert expected == pytest.approx(1 - noise.var() / y.var(), abs=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_write_gives_the_made_rows_whatever_the_chunks(tmp_path, name):
    X, y = make(name, 700, random_state=5)
    for chunk_rows in (64, 700, None):
        seen, given = [], {"random_state": 5, "chunk_rows": chunk_rows, "overwrite": True}
        data = write(
            name, tmp_path / "d", 700, **given, progress=lambda *rows, to=seen: to.append(rows)
        )
        ends = [*range(chunk_rows or 700, 700, chunk_rows or 700), 700]
        assert seen == [(end, 700) for end in ends]
        np.testing.assert_array_equal(data.X[:], X)
        stored = data.y[:] if name == "friedman1" else np.array(data.classes)[data.y[:]]
        np.testing.assert_array_equal(stored, y)


def test_parameters_that_cannot_be_are_refused(tmp_path):
    for name, params, message in (
        ("checkerboard", {"flip": 1.5}, "flip must be a probability from 0 to 1, got 1.5"),
        ("swiss_roll", {"n_turns": 0}, "n_turns must be above 0"),
        ("friedman1", {"d": 4}, "d must be at least 5"),
    ):
        with pytest.raises(ParameterError, match=message):
            make(name, 10, **params)
        with pytest.raises(ParameterError, match=message):
            bayes_accuracy(name, **params)
    for seed in (-1, 2**32, 1.5, None, True):
        with pytest.raises(ParameterError, match="random_state must be an integer from 0"):
            make("checkerboard", 10, random_state=seed)
    for name, n_rows, params, message in (
        ("checkerboard", -1, {}, "n_rows must be at least 0"),
        ("moons", 10, {}, "No data set 'moons'; choose one of checkerboard"),
        ("checkerboard", 10, {"d": 3}, "has no parameter 'd'; it takes flip, n_cells_side"),
    ):
        with pytest.raises(ParameterError, match=message):
            write(name, tmp_path / "d", n_rows, **params)
        assert not (tmp_path / "d").exists()
