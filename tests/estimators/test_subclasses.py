"""Subclasses of public estimators with an ``__init__`` of their own: what it hands on counts."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from small import ENTRIES, small
from support import checkers

from daskls.records import SolverSpec

X, Y = checkers(300)


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
def test_what_a_subclass_hands_on_counts(name, monkeypatch):
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


def test_a_subclass_in_a_cross_validation():
    whole, own = narrowed("VoronoiSVC")
    np.testing.assert_array_equal(cross_val_score(own, X, Y), cross_val_score(whole, X, Y))
