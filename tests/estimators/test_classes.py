"""What holds of each estimator's class: documented and constrained parameters, subclasses."""

import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from small import ENTRIES, small
from support import checkers

import daskls
from daskls.estimators.docs import NAMES
from daskls.records import SolverSpec
from daskls.registry import FILTERS, METHODS, load_object

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


def narrowed(name):
    """Return an estimator, and one of a subclass that takes a single parameter of it."""
    whole = small(name)
    kind, given = type(whole), whole.get_params(deep=False)

    def init(self, verbose=0):
        kind.__init__(self, **{**given, "verbose": verbose})

    own = type(f"Narrow{kind.__name__}", (kind,), {"__init__": init})
    globals()[own.__name__] = own
    return whole, own()


@pytest.mark.parametrize("name", ENTRIES)
def test_what_a_subclass_hands_on_counts(name):
    whole, own = narrowed(name)
    assert list(own.get_params()) == ["verbose"]
    y = Y if hasattr(whole, "class_weight") else X[:, 0] + X[:, 1]
    fitted = whole.fit(X, y)
    np.testing.assert_array_equal(own.fit(X, y).predict(X), fitted.predict(X))
    asked = own._request()
    assert asked.spec == fitted._request().spec != SolverSpec()
    assert asked.method == fitted._request().method
    again = pickle.loads(pickle.dumps(clone(own).set_params(verbose=0).fit(X, y)))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
