"""Errors reach the client as what a worker raised."""

import pytest
from distributed.core import error_message
from distributed.protocol import pickle

from daskls import errors

KINDS = [getattr(errors, name) for name in errors.__all__ if not name.endswith("Warning")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_can_send_it(kind):
    # Where it cannot be unpickled, the scheduler puts a plain Exception in its place.
    sent = error_message(kind("what is wrong"))["exception"].data
    found = pickle.loads(sent)
    assert type(found) is kind
    assert str(found) == "what is wrong"
