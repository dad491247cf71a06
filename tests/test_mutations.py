"""Places of the code, broken one at a time, fail the tests that they name."""

import pytest
from mutations import MUTATIONS, find_place, is_caught


def test_every_mutation_has_one_place():
    assert len(MUTATIONS) <= 40
    assert all(map(find_place, MUTATIONS))


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation["name"])
def test_a_mutation_is_caught(mutation):
    assert is_caught(mutation)
