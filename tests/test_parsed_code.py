"""What is read of classes in their sources is what they are once imported."""

from inspect import cleandoc, signature

import pytest

from daskls.estimators.docs import KERNEL_TRAITS, written_docs
from daskls.kernels.kernel import KERNELS, find_kernel
from daskls.parsed_code import defaults_of
from daskls.registry import FILTERS, METHODS, load_object

PLACES = [*(place for entry in METHODS for place in entry.estimators), *FILTERS.values()]


@pytest.mark.parametrize("place", PLACES)
def test_parameters_and_docstrings_are_those_of_the_class(place):
    own = load_object(place)
    wanted = {name: given.default for name, given in signature(own).parameters.items()}
    found = defaults_of(place)
    assert [*found] == [*wanted]
    names = {name: value for name, value in found.items() if value != wanted[name]}
    # A default that is a constant has its name.
    assert all(isinstance(value, str) and value.isupper() for value in names.values())
    assert written_docs(place) == cleandoc(own.__doc__)


def test_kernels_are_described_as_they_are():
    assert [*KERNEL_TRAITS] == [*KERNELS]
    for name, traits in KERNEL_TRAITS.items():
        for told in ("formula", "width_power", "is_everywhere", "is_raced", "least_ridge"):
            assert traits[told] == getattr(find_kernel(name), told)
