"""daskls among the peers: its solver on one cell fits and answers."""

import numpy as np

from benchmarks.peers import FitCell


def test_a_cell_is_fitted_without_an_estimator():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = np.where(X[:, 0] + X[:, 1] > 1, 7, 3)
    peer = FitCell()
    peer.fit(X, y)
    assert np.mean(peer.predict(X) == y) > 0.95
    assert peer.facts()["steps"] > 0
