"""The frame of a model: the same for the rows it trains on and the queries it answers."""

from dataclasses import replace

import numpy as np
import pytest
from cells import SEED, binary_cell, class_cell, queries

from daskls.kernels.frame import decide_pairs, frame_rows
from daskls.records import CellReport, Frame, SolverSpec
from daskls.solvers.grid import assign_folds, resolve_grid
from daskls.solvers.hinge.solver import HINGE
from daskls.solvers.rows import LocalRows
from daskls.store.models import BundleModels, write_bundle

SCALE = np.array([4.0, 0.125])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, np.float64])
def test_rows_are_centered_in_float64(dtype):
    X = np.array([[0, 100], [127, 3]], dtype)
    A = frame_rows(np.asfortranarray(X), Frame(np.array([120.25, -100.5])))
    np.testing.assert_array_equal(A, [[-120.25, 200.5], [6.75, 103.5]])
    assert A.flags.c_contiguous


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
    scaled = model_of(X * SCALE, codes, SCALE, kernel=kernel)
    plain = model_of(X, codes, kernel=kernel)
    for name in ("rows", "coef", "intercepts"):
        np.testing.assert_array_equal(getattr(scaled, name), getattr(plain, name))
    expected = decide_pairs(plain, queries(X))
    np.testing.assert_array_equal(decide_pairs(scaled, queries(X) * SCALE), expected)
    unscaled = replace(scaled, frame=Frame(scaled.center))
    assert np.abs(decide_pairs(unscaled, queries(X) * SCALE) - expected).max() > 0.01


@pytest.mark.parametrize("scales", [(None, None), (SCALE, SCALE), (None, SCALE)])
def test_a_model_is_stored_with_its_frame(tmp_path, scales):
    X, codes = binary_cell()
    models = [model_of(X, codes, scale) for scale in scales]
    write_bundle(tmp_path, 0, 1, models, {})
    found = list(BundleModels(tmp_path, 0, 1, SolverSpec()).read_cells(np.arange(2)))
    for model, expected in zip(found, models, strict=True):
        np.testing.assert_array_equal(model.frame.center, expected.frame.center)
        decided = (decide_pairs(own, queries(X)) for own in (model, expected))
        np.testing.assert_array_equal(*decided)
    # A model without a scale has none in its store, and pays for none.
    assert (found[0].frame.scale is None) == (scales[1] is None)
