"""What holds of each class: scikit-learn's checks, documented parameters, subclasses."""

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from small import ENTRIES, small
from support import PAPERS, checkers

import daskls
from daskls import VoronoiSVC
from daskls.estimators.docs import NAMES
from daskls.records import SolverSpec
from daskls.registry import FILTERS, METHODS, load_object

# Of more rows others are drawn to be held out or to be a sample, repeated ones fill two places of a
# neighborhood, and a float sum is another; `cv` is no list of splits.
EXPECTED = dict.fromkeys(
    (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")),
    "more rows are another draw",
)


# Sizes of which the checks' few rows make several cells, and no choice but among widths of cells.
SIZES = {
    **{"cell_size": 50, "chunk_size": 50, "n_neighbors": 15, "n_cells": 2, "C": 10.0, "gamma": 0.1},
    **{"sample_fraction": 0.8, "n_subsamples": 2, "radius_scale": 1.0, "random_state": 0},
}
OWN = {
    "VoronoiSVC": {"gamma": [1e-3, 1.0], "cv": 2, **PAPERS},
    "RandomChunkSVC": {"C": 1.0, "gamma": [1e-3, 1.0], "cv": 2},
    "LandmarkSVC": {"C": [0.01, 1.0], "gamma": None, "cv": 2},
}


def sized(name):
    kind = type(small(name))
    chosen = {key: own for key, own in SIZES.items() if key in inspect.signature(kind).parameters}
    return kind(**chosen | OWN.get(name, {}))


ALL = {name: sized(name) for name in ENTRIES if "NoiseFilter" not in name}
# In every run one that cuts space and one that looks at neighbors; the others in the long one.
QUICK = ("VoronoiSVC", "FalkSVC")
# Least squares, by default.
DEFAULTS = [VoronoiSVC(cell_size=50, random_state=0)]


@pytest.mark.always
@parametrize_with_checks([ALL[name] for name in QUICK], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [*DEFAULTS, *(ALL[name] for name in ALL if name not in QUICK)],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_checks_of_the_others(estimator, check):
    check(estimator)


CLASSES = [load_object(place) for entry in METHODS for place in entry.estimators]
CLASSES += map(load_object, FILTERS.values())
X, Y = checkers(300)


def documented(section):
    """Return the names that a section of a docstring describes."""
    lines = [line for line in section.splitlines() if re.match(r"\w[\w, ]*( :|,$)", line)]
    return {name.strip() for line in lines for name in line.split(" : ")[0].split(",")}


@pytest.mark.always
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_parameter_is_described_and_constrained_and_no_other(cls):
    doc = inspect.getdoc(cls)
    assert not NAMES.search(doc)
    assert getattr(daskls, cls.__name__) is cls
    parameters = doc.split("Parameters\n")[1].split("Attributes\n")[0]
    assert documented(parameters) - {"", "---"} == set(inspect.signature(cls).parameters)
    assert list(cls._parameter_constraints) == list(inspect.signature(cls).parameters)


class Narrow(VoronoiSVC):
    """A subclass that takes a single parameter of it."""

    def __init__(self, verbose=0):
        super().__init__(**{**small("VoronoiSVC").get_params(deep=False), "verbose": verbose})


def test_what_a_subclass_hands_on_counts():
    whole, own = small("VoronoiSVC").fit(X, Y), Narrow()
    assert list(own.get_params()) == ["verbose"]
    np.testing.assert_array_equal(own.fit(X, Y).predict(X), whole.predict(X))
    assert own._request().spec == whole._request().spec != SolverSpec()
    again = pickle.loads(pickle.dumps(clone(own).set_params(verbose=0).fit(X, Y)))
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
