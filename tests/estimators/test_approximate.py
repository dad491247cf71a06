"""Estimators with approximate neighbors: what they ask, refuse and keep."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from support import checkers, python_env

from daskls import KNNSVC, FalkSVC, FalkSVR, KernelKNNClassifier, KernelKNNRegressor
from daskls.errors import MemoryPlanError
from daskls.memory import TaskSizes
from daskls.methods.neighborhoods.method import KNN
from daskls.plan.bundles import Resources
from daskls.records import SolverSpec

APPROXIMATE = {"neighbors": "approximate", "random_state": 0}
X, Y = checkers(2000)
SVM = {"C": 10.0, "gamma": 20.0}
GIVEN = {
    **{KernelKNNClassifier: {}, KernelKNNRegressor: {}, KNNSVC: SVM},
    **{kind: {**SVM, "selection": None} for kind in (FalkSVC, FalkSVR)},
}


def test_exact_neighbors_load_no_pynndescent():
    code = "import sys, daskls; daskls.KernelKNNClassifier(1).fit([[0.0], [1.0]], [0, 1])"
    code = f"{code}.predict([[0.0]]); assert 'pynndescent' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], env=python_env(), check=True)


# Rows, and k.
ODD = {"k above a quarter of a group": (X, 1900), "equal rows": (np.ones((2000, 2)), 5)}


@pytest.mark.slow
class TestFitted:
    """Graphs are built: pynndescent compiles."""

    @pytest.mark.parametrize("kind", GIVEN)
    def test_answers_are_nearly_the_exact_ones(self, kind):
        exact = kind(20, random_state=0, **GIVEN[kind]).fit(X, Y)
        near = kind(20, **APPROXIMATE, **GIVEN[kind]).fit(X, Y)
        assert np.mean(np.abs(exact.predict(X) - near.predict(X)) < 0.05) > 0.98
        assert len(near._reader.root.store.names("graphs")) == 1
        assert not exact._reader.root.store.names("graphs")

    @pytest.mark.parametrize("kind", [KernelKNNClassifier, FalkSVC])
    @pytest.mark.parametrize("name", ODD)
    def test_odd_rows_are_answered_as_by_exact_neighbors(self, name, kind):
        rows, k = ODD[name]
        y = Y[: len(rows)].copy()
        y[:2] = 0, 1
        exact = kind(k, random_state=0, **GIVEN[kind]).fit(rows, y)
        near = kind(k, **APPROXIMATE, **GIVEN[kind]).fit(rows, y)
        np.testing.assert_array_equal(
            near.decision_function(rows[:200]), exact.decision_function(rows[:200])
        )


def test_a_graph_that_does_not_fit_is_refused_before_it_is_built():
    sizes, resources = TaskSizes(1000, 4, 2, 1000, SolverSpec()), Resources(1, 100 << 20)
    sizes = replace(sizes, n_rows=10**6, leaf_rows=1000, block_rows=100)
    KNN((5,)).check(sizes, resources)
    with pytest.raises(MemoryPlanError, match=r'The graph of 8388 rows .*pass neighbors="exact"'):
        KNN((5,), n_groups=3).check(sizes, resources)
