"""Sampling methods with the squared hinge loss, beside SVMs without upper bounds."""

import os

import numpy as np
import pytest
from samplings import keep_parts, small_local, small_near
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from small import task_memory
from support import MIB, checkers, load_real, path_of

from daskls import MemoryPlanError
from daskls.methods.sampling import train
from daskls.methods.sampling.parts import read_part

real_sets = pytest.mark.skipif(
    not os.environ.get("DASKLS_DATA"), reason="DASKLS_DATA names no folder of real data sets"
)
MAKES = {
    "local": (small_local, {"radius_scale": 1.0, "n_subsamples": 2}),
    "near": (small_near, {}),
}


@real_sets
@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("name", ["heart", "ionosphere", "diabetes"])
def test_the_model_is_the_svm_of_its_sample(name, make, monkeypatch):
    keep_parts(monkeypatch)
    data = load_real(name)
    X, y = (data.X - data.X.mean(axis=0)) / (data.X.std(axis=0) + 1e-9), data.y
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    small, params = MAKES[make]
    model = small(0.3, C=2.0, gamma=0.05, tol=1e-6, loss="squared_hinge", **params)
    model.fit(X, y, sample_weight=weights)
    best = int(model.path_.validation_error.argmin())
    rows = read_part(path_of(model), train.SAMPLES, best, best, ("numbers",))["numbers"]
    K = rbf_kernel(X[rows], gamma=0.05) + np.diag(0.5 / (2.0 * weights[rows]))
    svc = SVC(C=1e10, kernel="precomputed", tol=1e-6).fit(K, y[rows])
    expected = svc.decision_function(rbf_kernel(X, X[rows], gamma=0.05))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)
    assert abs(model.path_.n_support[best] - len(svc.support_)) <= 2
    # It is another model than that of the hinge loss.
    hinge = small(0.3, C=2.0, gamma=0.05, **params).fit(X, y, sample_weight=weights)
    assert np.abs(hinge.decision_function(X) - expected).max() > 0.05


def test_several_classes_and_a_selection():
    X, y = checkers(1500, n_classes=3)
    for small, params in MAKES.values():
        model = small(C=None, gamma=None, loss="squared_hinge", **params).fit(X, y)
        assert model.score(X, y) > 0.8


def test_a_loss_that_there_is_none_of_is_refused():
    X, y = checkers(100)
    with pytest.raises(ValueError, match="The 'loss' parameter of LocalSamplingSVC"):
        small_local(loss="squared_error").fit(X, y)


def test_a_matrix_that_fits_no_worker_is_refused():
    X, y = checkers(6000)
    with task_memory(110 * MIB):
        small_near(0.4).fit(X, y)
        with pytest.raises(MemoryPlanError, match=r"lower sample_fraction .*, or give loss=.hinge"):
            small_near(0.4, loss="squared_hinge").fit(X, y)
