"""The register of losses: who is found, what is refused, and how a store names a fit."""

import numpy as np
import pytest
from cells import binary_cell

from daskls import ParameterError
from daskls.records import CellReport, SolverSpec
from daskls.solvers.base import CellRows, LocalSolver
from daskls.solvers.registry import (
    LOSSES,
    find_neighborhood_solver,
    find_solver,
)

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


def test_losses_without_neighborhoods_say_who_has_them():
    with pytest.raises(ParameterError, match=r"cannot train neighborhoods\. Give one of 'hinge'\."):
        find_neighborhood_solver(SolverSpec(loss="squared_error"))
