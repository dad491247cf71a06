"""Train the SVM of one neighborhood, and evaluate candidates on its inner rows.

Folds are drawn from the k' inner rows, the outer ones always train.

Source: Segata and Blanzieri 2009, definitions 3 to 5 and the paragraph on the width that follows.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from daskls.records import (
    CellReport,
    Codes,
    Float32,
    Float64,
    Int64,
    LocalModel,
    Reals,
    SolverSpec,
)
from daskls.solvers.base import Neighborhood, NeighborhoodSolver
from daskls.solvers.evaluate import cell_scores, fit_sigmoid, sigmoid, total
from daskls.solvers.grid import Grid, assign_folds, count_gammas
from daskls.solvers.hinge.solver import HINGE
from daskls.solvers.percentiles import neighborhood_grid
from daskls.solvers.rows import CellData, Choice, Counts, LocalRows, kernel_of


def _inner_folds(own: LocalRows, n_inner: int, seed: tuple[int, ...]) -> Int64:
    """Assign the inner rows to folds; the outer ones get a number past the last fold."""
    folds = np.full(len(own.rows), own.spec.cv)
    folds[:n_inner] = assign_folds(own.present[:n_inner], own.spec.cv, seed)
    return folds


def _is_trivial(own: LocalRows) -> bool:
    """Whether no candidate can do anything: one class, or all rows equal."""
    return len(own.classes) == 1 or bool((own.rows == own.rows[0]).all())


class HingeNeighborhoods(NeighborhoodSolver):
    """SVMs with offset, one-vs-one, on neighborhoods; candidates by k'-internal cross-validation.

    Notes
    -----
    Trained to the plain duality gap. Peak memory of one: 2 float32 matrices of k x k, one more a
    pair of classes beyond two.
    """

    def grid_errors(self, near: Neighborhood) -> Float64:
        """As of `NeighborhoodSolver`: the weight of inner rows that are decided wrongly.

        0 where all rows have one class.
        """
        own, spec = _rows_of(near), near.spec
        n_inner, weights = near.n_inner, near.weights
        if _is_trivial(own):
            wrong = own.present != np.bincount(own.present, weights).argmax()
            error = total(weights[:n_inner] * wrong[:n_inner]), total(weights[:n_inner])
            return np.full((count_gammas(spec, near.percentiles), spec.n_costs, 2), error)
        order, cell = own.data(_inner_folds(own, n_inner, near.seed))
        return _errors(
            cell,
            spec,
            neighborhood_grid(own, cell.base, near.percentiles, near.seed, np.argsort(order)),
        )

    def fit_neighborhood(self, near: Neighborhood, report: CellReport) -> LocalModel:
        """As of `NeighborhoodSolver`: a constant of one class, or where all rows are equal."""
        own, spec = _rows_of(near), near.spec
        report = own.described(report)
        if _is_trivial(own):
            return own.constant(report)
        has_choice = count_gammas(spec, near.percentiles) * spec.n_costs > 1
        m = len(near.X)
        folds = _inner_folds(own, near.n_inner, near.seed) if has_choice else np.zeros(m, np.int64)
        order, cell = own.data(folds)
        grid = neighborhood_grid(own, cell.base, near.percentiles, near.seed, np.argsort(order))
        search = HINGE.search(cell, spec, grid) if has_choice else None
        choice = search.choose(finish=False) if search else _from_zero(cell, spec, grid)
        return own.model(HINGE.refit(cell, choice, spec, grid), order, cell, report)

    def candidate_models(self, near: Neighborhood) -> Iterator[LocalModel]:
        """As of `NeighborhoodSolver`."""
        own, spec = _rows_of(near), near.spec
        report = own.described(CellReport(0, 0, 0, 0, 0.0))
        if _is_trivial(own):
            n_candidates = count_gammas(spec, near.percentiles) * spec.n_costs
            yield from [own.constant(report)] * n_candidates
            return
        order, cell = own.data(np.zeros(len(near.X), np.int64))
        grid = neighborhood_grid(own, cell.base, near.percentiles, near.seed, np.argsort(order))
        for gamma in grid.gammas:
            choice = _from_zero(cell, spec, replace(grid, gammas=(gamma,)))
            for cost in grid.costs:
                # Each solve starts from the one at the C before.
                choice = HINGE.refit(cell, replace(choice, C=cost), spec, grid)
                yield own.model(choice, order, cell, report)


def _rows_of(near: Neighborhood) -> LocalRows:
    """Return the rows of a neighborhood in their frame."""
    return LocalRows.of_neighbors(near.X, cast(Codes, near.targets), near.weights, near.spec)


def _errors(cell: CellData, spec: SolverSpec, grid: Grid) -> Float64:
    # Every candidate's error is asked for.
    search = HINGE.search(cell, replace(spec, search="full"), grid)
    search.run()
    held_out = search.held_out_weight
    return np.array(
        [
            [(search.errors[g, i], held_out) for i in range(len(grid.costs))]
            for g in range(len(grid.gammas))
        ]
    )


def _from_zero(cell: CellData, spec: SolverSpec, grid: Grid) -> Choice:
    """Return the one combination there is, untrained."""
    k = cell.n_classes
    return Choice(
        kernel=kernel_of(spec, grid.gammas[0]),
        C=grid.costs[0],
        error=float("nan"),
        coef=np.zeros((k - 1, len(cell.codes)), np.float32),
        intercepts=np.zeros(k * (k - 1) // 2),
        counts=Counts(),
    )


def label_probability(
    X: Reals,
    codes: Codes,
    query: Reals,
    code: int,
    spec: SolverSpec,
    seed: tuple[int, ...],
) -> float:
    """Return the probability that a row has its label, by the SVM of its neighborhood.

    Parameters
    ----------
    X : real array, shape (k, d). The row's neighbors, without itself.
    codes : int array, shape (k,)
    query : real array, shape (d,)
    code : int. The row's label; against it, all other classes are one.
    spec : SolverSpec of one candidate
    seed : tuple of int. Names the row.

    Returns
    -------
    probability : float. 1 or 0 where the neighbors are unanimous about the label.

    Notes
    -----
    Source: Segata 2009, section 2.3; the sigmoid is fitted to decision values of 5-fold held-out
    neighbors (Platt 1999, Lin et al. 2007).
    """
    mine = (codes == code).astype(np.int64)
    if mine.all() or not mine.any():
        return float(mine[0])
    own = LocalRows.of_neighbors(X, mine, np.ones(len(X)), spec)
    if _is_trivial(own):
        return float(mine.mean())
    order, cell = own.data(assign_folds(own.present, spec.cv, seed))
    grid = neighborhood_grid(own, cell.base, None, seed)
    values = _held_out_values(cell, spec, grid)
    held_out = np.isfinite(values)
    a, b = fit_sigmoid(values[held_out], cell.codes[held_out] == 1)
    choice = HINGE.refit(cell, _from_zero(cell, spec, grid), spec, grid)
    model = own.model(choice, order, cell, own.described(CellReport(0, 0, 0, 0, 0.0)))
    if len(model.classes) == 1:
        # Nothing was learned: the offset is all there is.
        value = float(choice.intercepts[0])
    else:
        value = float(cell_scores(model, query[None])[0])
    return float(sigmoid(np.array([value]), a, b)[0])


def _held_out_values(cell: CellData, spec: SolverSpec, grid: Grid) -> Float32:
    """Return each row's decision value by the model trained without its fold; NaN: no such fold."""
    search = HINGE.search(cell, replace(spec, clipped_gap=False), grid)
    values = np.full(len(cell.codes), np.nan, np.float32)
    for fold, line in search.lines(0):
        held_out = slice(search.fold_ptr[fold], search.fold_ptr[fold + 1])
        own = search.pairs.values(search.width.K, line.betas, line.offsets, held_out)
        values[held_out] = own[0]
    return values
