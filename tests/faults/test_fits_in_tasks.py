"""A fit inside a task leaves its slot while it waits: more fits than slots all end."""

import numpy as np
import pytest
from distributed import Client, wait
from support import checkers, model_bits, small_svc, start_cluster

# A fit here takes a blink: what has not ended by then waits for itself.
ENDS_S = 60


@pytest.fixture(scope="module")
def client():
    with start_cluster(2, 1, "1GiB") as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(autouse=True)
def free_slots(client):
    """Give a test that hangs workers of its own, so that the next one begins with free slots."""
    yield
    if any(client.processing().values()):
        client.restart()


def fit_one(seed):
    """Fit, then answer and score in the same task; return the model's bits too."""
    X, y = checkers(300, seed=seed)
    model = small_svc().fit(X, y)
    return model_bits(model), model.predict(X), model.score(X, y)


@pytest.mark.slow
def test_more_fits_than_slots_end(client):
    futures = client.map(fit_one, range(4), pure=False)
    wait_for(client, futures)
    for seed, (bits, labels, score) in enumerate(client.gather(futures)):
        expected_bits, expected, expected_score = fit_one(seed)
        assert bits == expected_bits
        np.testing.assert_array_equal(labels, expected)
        assert score == expected_score


def wait_for(client, futures):
    with client.as_current():
        done = wait(futures, timeout=ENDS_S)
    assert not done.not_done
