"""The register of losses: who is found, what is refused, and how a store names a fit."""

import numpy as np
import pytest
from cells import binary_cell
from support import checkers

from daskls import ParameterError, RandomChunkSVC, VoronoiSVC
from daskls.records import CellReport, SolverSpec
from daskls.solvers.base import CellRows, LocalSolver
from daskls.solvers.registry import LOSSES, find_neighborhood_solver, find_solver, losses_of

ONE = {"C": (1.0,), "gamma": (1.0,), "cv": 2}


@pytest.mark.parametrize(("target", "loss"), LOSSES)
def test_every_loss_has_a_solver(target, loss):
    levels = {"quantile": 0.3} if LOSSES[target, loss].of_levels else {}
    spec = SolverSpec(loss=loss, target=target, **ONE, **levels)
    solver = find_solver(spec)
    assert isinstance(solver, LocalSolver)
    X, codes = binary_cell()
    y = codes if target == "classes" else codes[:, None] + 0.5
    cells = [CellRows(X + i, y, np.ones(60), CellReport(i, 0, 0, 0, 0.0), (i,)) for i in (0, 1)]
    models = list(solver.fit(cells, spec))
    assert [model.report.cell for model in models] == [0, 1]
    assert all(0 < len(model.rows) <= 60 for model in models)


def test_losses_that_are_not_there_are_refused():
    with pytest.raises(ParameterError, match=r"cannot train neighborhoods\. Give one of 'hinge'\."):
        find_neighborhood_solver(SolverSpec(loss="squared_error"))
    with pytest.raises(ParameterError, match=r"no solver for loss='absolute'; it has 'hinge'"):
        find_solver(SolverSpec(loss="absolute"))


@pytest.mark.parametrize("kind", [VoronoiSVC, RandomChunkSVC])
def test_estimators_take_the_losses_that_there_are(kind):
    X, y = checkers(60)
    # A set: its order is another one in every process.
    with pytest.raises(ValueError, match=r"'loss' parameter of .* must be a str among") as caught:
        kind(loss="absolute").fit(X, y)
    assert all(repr(loss) in str(caught.value) for loss in losses_of("classes"))


def test_cells_are_read_one_at_a_time():
    X, codes = binary_cell()
    cells = iter([CellRows(X, codes, np.ones(60), CellReport(0, 0, 0, 0, 0.0), (0,))] * 2)
    models = find_solver(SolverSpec()).fit(cells, SolverSpec(**ONE))
    assert cells.__length_hint__() == 2
    next(models)
    assert cells.__length_hint__() == 1
