"""Quantiles and expectiles of one cell, against an interior-point method for quadratic programs."""

import clarabel
import numpy as np
import pytest
from cells import SEED, fit_cell
from peaks import peak_of
from scipy import sparse
from support import compiled, few

from daskls.memory import TaskSizes
from daskls.plan.bundles import cell_nbytes
from daskls.records import CellReport, SolverSpec
from daskls.solvers.level_losses import Expectile, Pinball
from daskls.solvers.registry import find_measure

RNG = np.random.default_rng(0)
M = 120
X = RNG.random((M, 3))
Y = np.sin(6 * X[:, 0]) + (0.2 + X[:, 1]) * RNG.standard_normal(M)
WEIGHTS = RNG.uniform(0.5, 2.0, M)
GAMMA = 4.0
LOSSES = ["pinball", "expectile"]
# The gap to the optimum that is allowed, in units of it.
GAP = 1e-4


def kernel(x, z):
    return np.exp(-GAMMA * ((x[:, None] - z) ** 2).sum(axis=2))


def rows_of(model):
    return model.rows.astype(np.float64) + model.center


def objective_of(model, loss, level, C, weights=WEIGHTS, column=0):
    own, coef = rows_of(model), model.coef[column].astype(np.float64)
    values = kernel(X, own) @ coef + model.intercepts[column]
    lost = find_measure(SolverSpec(loss=loss, target="numbers")).losses(Y - values, level)
    return coef @ kernel(own, own) @ coef / 2 + C * (weights @ lost)


def least(loss, level, C, *, offset=True, weights=WEIGHTS):
    """Return the optimum: of coefficients of all rows, and what they miss above and below.

    Minimize beta' K beta / 2 + C sum_i w_i l(u_i, v_i) over K beta + b + u - v = y, u, v >= 0.
    """
    K = kernel(X, X) + 1e-10 * np.eye(M)
    above, below = C * weights * level, C * weights * (1 - level)
    lines = np.r_[above, below]
    squares = np.zeros(2 * M)
    if loss == "expectile":
        lines, squares = np.zeros(2 * M), 2 * lines
    P = sparse.block_diag([K, np.zeros((1, 1)), sparse.diags(squares)], format="csc")
    one = np.full((M, 1), float(offset))
    eye = sparse.identity(M)
    equal = sparse.hstack([sparse.csc_matrix(K), sparse.csc_matrix(one), eye, -eye])
    signs = sparse.hstack([sparse.csc_matrix((2 * M, M + 1)), -sparse.identity(2 * M)])
    cones = [clarabel.ZeroConeT(M), clarabel.NonnegativeConeT(2 * M)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.triu(P, format="csc"), np.r_[np.zeros(M + 1), lines],
        sparse.vstack([equal, signs], format="csc"), np.r_[Y, np.zeros(2 * M)], cones, settings,
    )  # fmt: skip
    found = solver.solve()
    assert str(found.status) == "Solved"
    return found.obj_val


def fitted(loss, level, C, weights=WEIGHTS, rows=slice(None), **spec):
    quantile = level if isinstance(level, tuple) else float(level)
    given = {"loss": loss, "target": "numbers", "gamma": (GAMMA,), "tol": 1e-6, **spec}
    spec = SolverSpec(quantile=quantile, **{"C": C and (C,), "fit_intercept": True, **given})
    return fit_cell(X[rows], Y[rows, None], weights, spec, CellReport(0, 0, 0, 0, 0.0), SEED)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("C", [0.1, pytest.param(3.0, marks=compiled)])
def test_a_cell_reaches_the_optimum_of_a_quadratic_program(loss, offset, level, C):
    model = fitted(loss, level, C, fit_intercept=offset)
    best = least(loss, level, C, offset=offset)
    assert objective_of(model, loss, level, C) == pytest.approx(best, rel=GAP)
    assert model.report.n_at_limit == 0
    assert offset or model.intercepts.tolist() == [0.0]


@pytest.mark.parametrize("measure", [Pinball(), Expectile()], ids=["pinball", "expectile"])
@pytest.mark.parametrize("level", [0.1, 0.5, 0.75])
def test_the_best_constant_loses_least(measure, level):
    best = measure.constant(Y, WEIGHTS, level)
    lost = measure.mean(Y - best, level, WEIGHTS)
    others = np.r_[Y, best + np.linspace(-0.1, 0.1, 41)]
    assert lost <= min(measure.mean(Y - other, level, WEIGHTS) for other in others) + 1e-12
    # Weights are copies.
    copies = np.r_[Y, Y[:30]]
    twice = np.where(np.arange(M) < 30, 2.0, 1.0)
    assert measure.constant(copies, np.ones(M + 30), level) == pytest.approx(
        measure.constant(Y, twice, level), abs=1e-12
    )


@compiled
@pytest.mark.parametrize(("level", "off"), [(0.5, 1e-4), (0.1, 0.03), (0.9, 0.03)])
def test_leaving_rows_out_at_fixed_sides_is_near_leaving_them_out(level, off):
    # Of the level 1/2 sides do not matter.
    told = fitted("expectile", level, 0.5).report.validation_error
    lost = []
    for i in range(M):
        kept = np.arange(M) != i
        model = fitted("expectile", level, 0.5, WEIGHTS[kept], kept, tol=1e-3)
        value = kernel(X[i : i + 1], rows_of(model)) @ model.coef[0] + model.intercepts[0]
        lost.append(Expectile().losses(Y[i] - value[0], level))
    exact = np.average(lost, weights=WEIGHTS)
    # A row that is missing lets others change sides, which brings the others nearer to it.
    assert exact * (1 - 1e-3) <= told <= exact * (1 + off)


@compiled
def test_a_cost_is_chosen_by_the_losses_own_folds():
    for loss in LOSSES:
        report = fitted(loss, 0.9, None, tol=1e-3).report
        assert report.n_tried > 1
        assert 0 < report.validation_error < Pinball().mean(Y, 0.9) * 2
        # One that is given alone has no folds to be told by; expectiles need none.
        alone = fitted(loss, 0.9, 1.0).report
        assert alone.n_tried == 1
        assert np.isnan(alone.validation_error) == (loss == "pinball")


@compiled
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("quantile", few([(0.1, 0.5, 0.9), 0.5]))
def test_memory_is_planned(loss, quantile):
    rng = np.random.default_rng(1)
    m, d = 400, 5
    rows, y = rng.normal(size=(m, d)), rng.normal(size=(m, 1))
    own = {"loss": loss, "target": "numbers", "quantile": quantile, "fit_intercept": True}
    spec = SolverSpec(C=(1.0,), gamma=(1.0,), cv=2, **own)
    projected = cell_nbytes(TaskSizes(d, 4, len(spec.levels), m, spec, target_nbytes=8), m)
    report = CellReport(0, 0, 0, 0, 0.0)
    peak = peak_of(lambda: fit_cell(rows, y, np.ones(m), spec, report, SEED))
    assert peak <= projected <= 4 * peak


@compiled
@pytest.mark.parametrize("loss", LOSSES)
def test_levels_beside_each_other_are_each_what_it_is_alone(loss):
    levels = (0.9, 0.1, 0.5)
    both = fitted(loss, levels, 2.0)
    assert both.coef.shape[0] == len(both.intercepts) == 3
    for column, level in enumerate(levels):
        alone = fitted(loss, level, 2.0)
        shared = np.isin(rows_of(both), rows_of(alone)).all(axis=1)
        np.testing.assert_array_equal(both.coef[column][shared], alone.coef[0])
        assert not both.coef[column][~shared].any()
        assert both.intercepts[column] == alone.intercepts[0]
