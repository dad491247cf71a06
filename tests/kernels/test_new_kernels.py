"""Kernels that somebody may add: traits that none of those here have are heard, or refused."""

import sys
import types

import numpy as np
import pytest
from sklearn.utils._param_validation import StrOptions
from support import checkers

import daskls
from daskls.errors import ParameterError
from daskls.kernels.kernel import KERNELS, Kernel
from daskls.kernels.standard import Gaussian, Linear


class WithoutGradient(Gaussian):
    """Of distances, with no derivative."""

    is_raced = False
    pair_slopes = Kernel.pair_slopes


class Wavy(Linear):
    """Rows are near each other in another way, which is no power of the inner product."""

    is_euclidean = False

    def apply(self, base, spec, out):
        return np.cosh(np.clip(base, -20, 20), out=out)


MADE = [WithoutGradient, Wavy]


@pytest.fixture(autouse=True)
def made(monkeypatch):
    module = types.ModuleType("daskls.kernels.made")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for own in MADE:
        setattr(module, own.__name__, own)
        monkeypatch.setitem(KERNELS, own.__name__, f"kernels.made:{own.__name__}")
    for name in ("VoronoiSVC", "FalkSVC", "KNNSVC", "KernelKNNClassifier"):
        constraints = dict(getattr(daskls, name)._parameter_constraints)
        constraints["kernel"] = [StrOptions({*KERNELS})]
        monkeypatch.setattr(getattr(daskls, name), "_parameter_constraints", constraints)


def test_a_scale_is_not_learned_without_a_derivative():
    X, y = checkers(300)
    with pytest.raises(ParameterError, match=r"gradient; kernel is 'WithoutGradient'.*spread"):
        daskls.VoronoiSVC(kernel="WithoutGradient", random_state=0).fit(X, y)
    options = {"C": [1.0, 10.0], "gamma": [10.0], "random_state": 0}
    # Of the last, cells that choose for themselves learn it with another kernel.
    for own in ({"feature_scale": "spread"}, {"feature_scale": None}, {"loss": "hinge"}):
        model = daskls.VoronoiSVC(kernel="WithoutGradient", **own, **options)
        assert model.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize("name", ["FalkSVC", "KNNSVC", "KernelKNNClassifier"])
@pytest.mark.parametrize("gamma", [None, 1.0])
def test_neighbors_are_not_searched_by_a_kernel_that_has_no_search(name, gamma):
    X, y = checkers(100)
    model = getattr(daskls, name)(5, kernel="Wavy", gamma=gamma, random_state=0)
    with pytest.raises(ParameterError, match=r"kernel='Wavy'.*searched.*rbf, linear, poly"):
        model.fit(X, y)
