"""What help() shows of each estimator."""

import inspect
import re

import pytest

import daskls
from daskls.estimators.docs import NAMES, complete
from daskls.registry import FILTERS, METHODS, load_object

pytestmark = pytest.mark.always

CLASSES = [load_object(place) for place in (*(e.estimator for e in METHODS), *FILTERS.values())]


def documented(section):
    """Return the names that a section of a docstring describes."""
    lines = [line for line in section.splitlines() if re.match(r"\w[\w, ]*( :|,$)", line)]
    return {name.strip() for line in lines for name in line.split(" : ")[0].split(",")}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_parameter_is_described_and_no_other(cls):
    doc = inspect.getdoc(cls)
    assert not NAMES.search(doc)
    assert getattr(daskls, cls.__name__) is cls
    parameters = doc.split("Parameters\n")[1].split("Attributes\n")[0]
    assert documented(parameters) - {"", "---"} == set(inspect.signature(cls).parameters)


def test_an_entry_that_is_not_there_is_an_error():
    with pytest.raises(KeyError):

        @complete()
        class Plain:
            """Plain.

            {nothing_of_that_name}
            """
