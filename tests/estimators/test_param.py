"""A parameter is said once: its type holds its constraints, records take it by its name."""

from inspect import signature

import pytest
from sklearn.base import BaseEstimator

from daskls.registry import FILTERS, METHODS, load_object

pytestmark = pytest.mark.always

ESTIMATORS = [load_object(place) for entry in METHODS for place in entry.estimators]
CLASSES = [*ESTIMATORS, *map(load_object, FILTERS.values())]
# Values that every loss and kernel allows.
OTHER = {"C": 3.0, "gamma": 5.0, "degree": 2, "coef0": 0.5, "fit_intercept": True}
TAKEN = {"C": (3.0,), "gamma": (5.0,)}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
class TestEveryEstimator:
    def test_a_type_constrains_each_parameter(self, cls):
        assert list(cls._parameter_constraints) == list(signature(cls).parameters)

    def test_few_classes_lie_between_it_and_scikit_learns(self, cls):
        own = [base for base in cls.__mro__[1:] if base.__module__.startswith("daskls.")]
        assert len(own) <= 3
        assert issubclass(cls, BaseEstimator)


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_what_signature_and_record_name_alike_arrives(cls, name):
    given = {name: OTHER[name]}
    known = signature(cls).parameters
    if name not in known:
        return
    if name == "gamma" and "projection" in known:
        given["projection"] = "rbf"
    if name in ("degree", "coef0") and "kernel_gamma" in known:
        given["kernel"] = "poly"
    spec = cls(**given)._request().spec
    assert getattr(spec, name) == TAKEN.get(name, OTHER[name])
