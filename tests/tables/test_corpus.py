"""What becomes of odd tables, by either door, is what it was when it was recorded."""

import json

import numpy as np
import pytest
from tables import corpus

EXPECTED = json.loads(corpus.RECORDED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found():
    return corpus.find_all()


@pytest.mark.slow
def test_every_table_is_recorded(found):
    assert found.keys() == EXPECTED.keys()


@pytest.mark.parametrize("door", corpus.DOORS)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_table_becomes_what_it_did(name, door, found):
    assert found[name][door] == EXPECTED[name][door]


@pytest.mark.parametrize("name", EXPECTED)
def test_both_doors_read_the_same_numbers(name, found):
    """One reader: where both take a table of numbers without gaps, its rows are the same."""
    X, fitted = (found[name][door] for door in corpus.DOORS)
    if "X" not in X or X["names"] != fitted.get("names") or isinstance(X["X"], dict):
        pytest.skip("one of the doors refuses it, or codes it")
    as_stored = np.array(fitted["X"], float).astype(X["dtype"])
    np.testing.assert_array_equal(np.array(X["X"], float).astype(X["dtype"]), as_stored)
