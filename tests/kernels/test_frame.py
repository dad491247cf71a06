"""The frame of a model: the same for the rows it trains on and the queries it answers."""

from dataclasses import replace

import numpy as np
import pytest
from cells import SEED, binary_cell, class_cell, queries

from daskls.kernels.frame import decide_pairs
from daskls.records import CellReport, Frame, SolverSpec
from daskls.solvers.grid import assign_folds, resolve_grid
from daskls.solvers.hinge.solver import HINGE
from daskls.solvers.rows import LocalRows

SCALE = np.array([4.0, 0.125])


def model_of(X, codes, scale=None, **spec):
    spec = SolverSpec(**{"cv": 3, "C": (1.0,), "gamma": (0.5,), **spec})
    own = LocalRows.of(X, codes, np.ones(len(X)), spec, scale=scale)
    order, cell = own.data(assign_folds(own.present, spec.cv, SEED))
    grid = own.in_units(resolve_grid(spec, own.radius, *X.shape))
    choice = HINGE.search(cell, spec, grid).choose(finish=True)
    return own.model(choice, order, cell, own.described(CellReport(0, 0, 0, 0, 0.0)))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("cell", [binary_cell, class_cell])
def test_a_scale_is_as_if_rows_and_queries_had_been_divided_by_it(cell, kernel):
    X, codes = cell() if cell is binary_cell else cell(3)
    # Powers of two: they round nothing, so that even the bits are those.
    scaled, plain = (
        model_of(X * SCALE, codes, SCALE, kernel=kernel),
        model_of(X, codes, kernel=kernel),
    )
    for name in ("rows", "coef", "intercepts"):
        np.testing.assert_array_equal(getattr(scaled, name), getattr(plain, name))
    expected = decide_pairs(plain, queries(X))
    np.testing.assert_array_equal(decide_pairs(scaled, queries(X) * SCALE), expected)
    unscaled = replace(scaled, frame=Frame(scaled.center))
    assert np.abs(decide_pairs(unscaled, queries(X) * SCALE) - expected).max() > 0.01
