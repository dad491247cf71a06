"""What the answer of a row is: codes of classes, or numbers, on their way to a solver."""

from dataclasses import dataclass

import dask.array as da
import numpy as np
import pytest

from daskls import DataError
from daskls.memory import TaskSizes
from daskls.methods.cells.method import CellMethod
from daskls.pipeline import begin, regroup
from daskls.records import SolverSpec
from daskls.run.contract import FitRequest
from daskls.run.progress import StageClock
from daskls.run.rows import open_rows
from daskls.run.scan import scan_targets
from daskls.solvers import registry
from daskls.solvers.base import LocalSolver
from daskls.store.layout import Root
from daskls.store.objects import Scratch

N = 700
X = np.random.default_rng(0).random((N, 2), dtype="f4")
Y = np.random.default_rng(1).normal(size=N)


@pytest.fixture
def scanned(tmp_path):
    """Return a function that opens rows with a y and scans it."""

    def scan(y, kind, weights=None):
        with open_rows(X, y, weights, Scratch.at(tmp_path / "scratch"), kind) as rows:
            return scan_targets(rows, None, kind)

    return scan


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (np.where(np.arange(N) == 9, np.nan, Y), "numbers", "NaN or infinity, first in row 9"),
        (da.from_array(np.where(Y > 0, "a", "b")), "numbers", "a regressor needs numbers"),
        (da.from_array(Y > 0), "numbers", "a regressor needs numbers"),
        (da.from_array(Y), "classes", "continuous"),
    ],
)
def test_what_is_neither_is_refused(scanned, y, kind, message):
    with pytest.raises(DataError, match=message):
        scanned(y, kind)


SPEC = SolverSpec(loss="absolute", target="numbers")


@dataclass
class NumberSolver(LocalSolver):
    """Stands for a loss of numbers; what it trains on is looked at before it is asked."""

    def fit(self, cells, spec):
        raise NotImplementedError

    def nbytes(self, sizes, n_rows):
        return 8 * n_rows


@pytest.fixture
def number_loss(monkeypatch):
    """Register a loss of numbers while a test runs."""
    entry = registry.Loss("tests:NumberSolver")
    monkeypatch.setitem(registry.LOSSES, ("numbers", "absolute"), entry)
    monkeypatch.setattr(registry, "load_object", {entry.solver: NumberSolver}.get)


def regrouped(y, spec, store, kind):
    """Begin a fit and regroup its rows; return the target and all rows of the exchange."""
    request = FitRequest(
        estimator="VoronoiSVC", method=CellMethod(), params={}, spec=spec, cell_size=100,
        seed=0, class_weight=None, n_folds=3,
    )  # fmt: skip
    clock = StageClock(None)
    with open_rows(X, y, None, Scratch.at(store / "input-0"), kind) as rows:
        state = begin(request, rows, store, clock)
        found = regroup(state)
    leaves = [found.exchange.read_leaf(leaf) for leaf in range(len(found.leaf_rows))]
    return state, leaves


def test_numbers_reach_the_cells_unrounded(number_loss, tmp_path):
    state, leaves = regrouped(Y, SPEC, tmp_path / "store", "numbers")
    numbers = np.concatenate([rows.numbers for rows in leaves])
    targets = np.concatenate([rows.targets for rows in leaves])
    assert len(leaves) > 1
    assert (targets.dtype, targets.shape) == (np.float64, (N, 1))
    entered = (Y - Y.mean()) / Y.std()
    np.testing.assert_allclose(targets[np.argsort(numbers), 0], entered, rtol=1e-12)
    np.testing.assert_allclose(state.scan.target.inverse_transform(entered), Y, rtol=1e-12)
    assert state.sizes.row_nbytes == TaskSizes(2, 4, 2, 100, SolverSpec()).row_nbytes + 4
    # The store says so, and opens.
    target = Root.open(tmp_path / "store").target
    assert (target.kind, target.n_classes, target.width) == ("numbers", 0, 1)
    assert target.center.tolist() == state.scan.target.center.tolist()
