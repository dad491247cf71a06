"""The SVM of one neighborhood, and the errors of candidates on its inner rows.

Folds are drawn from the k' inner rows; the outer rows are always trained on. Copies are one row of
their summed weight.

Source: Segata and Blanzieri 2009, definitions 3 to 5 and the paragraph on the width that follows.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from daskls.kernels.copies import find_copies
from daskls.kernels.kernel import find_kernel
from daskls.records import CellReport, Codes, Float32, Float64, Int64, LocalModel, Reals, SolverSpec
from daskls.solvers.base import BLANK_REPORT, Neighborhood, NeighborhoodSolver
from daskls.solvers.copies import find_units
from daskls.solvers.evaluate import cell_scores, fit_sigmoid, sigmoid, total
from daskls.solvers.grid import Grid, assign_folds, count_gammas
from daskls.solvers.hinge.problem import Problem
from daskls.solvers.hinge.solver import HINGE
from daskls.solvers.percentiles import neighborhood_grid
from daskls.solvers.rows import CellData, Choice, LocalRows, SolverCounts, kernel_of
from daskls.solvers.width import ClassPairs


class HingeNeighborhoods(NeighborhoodSolver):
    """SVMs with offset, one-vs-one, trained to the plain gap; candidates by k'-internal folds.

    Peak memory of one: 2 float32 matrices of k x k, and one more per pair of classes beyond two.
    """

    def grid_errors(self, near: Neighborhood) -> Float64:
        local, spec = _rows_of(near), near.spec
        if _is_trivial(local):
            n_inner, weights = near.n_inner, near.weights
            wrong = local.present != np.bincount(local.present, weights).argmax()
            error = total(weights[:n_inner] * wrong[:n_inner]), total(weights[:n_inner])
            return np.full((count_gammas(spec, near.percentiles), spec.n_costs, 2), error)
        units = find_units(near)
        local = units.of(local)
        _, cell, grid = _prepared(local, near, _inner_folds(local, units.n_inner, near.seed))
        return _errors(cell, spec, grid)

    def fit_neighborhood(self, near: Neighborhood, report: CellReport) -> LocalModel:
        """A constant for one class, or where all rows are equal."""
        local, spec = _rows_of(near), near.spec
        report = local.described(report)
        if _is_trivial(local):
            return local.constant(report)
        units = find_units(near)
        local = units.of(local)
        order, cell, choice = _chosen(local, near, units.n_inner)
        return local.model(_trained(cell, choice, spec), order, cell, report)

    def candidate_models(self, near: Neighborhood) -> Iterator[LocalModel]:
        local, spec = _rows_of(near), near.spec
        report = local.described(BLANK_REPORT)
        if _is_trivial(local):
            n_candidates = count_gammas(spec, near.percentiles) * spec.n_costs
            yield from [local.constant(report)] * n_candidates
            return
        local = find_units(near).of(local)
        order, cell, grid = _prepared(local, near, _inner_folds(local, 0, near.seed))
        for gamma in grid.gammas:
            choice = _from_zero(cell, spec, replace(grid, gammas=(gamma,)))
            for cost in grid.costs:
                # Each solve starts from the solution at the previous C.
                choice = _trained(cell, replace(choice, C=cost), spec)
                yield local.model(choice, order, cell, report)


def _inner_folds(local: LocalRows, n_inner: int, seed: tuple[int, ...]) -> Int64:
    """Assign inner rows to folds, equal ones to one; outer rows get one past the last."""
    folds = np.full(len(local.rows), local.spec.cv)
    folds[:n_inner] = assign_folds(local.present[:n_inner], local.spec.cv, seed)
    if n_inner and (alike := find_copies(local.rows)) is not None:
        first, group = alike
        folds = folds[first[group]]
    return folds


def _is_trivial(local: LocalRows) -> bool:
    """Whether there is nothing to learn: one class, or all rows equal."""
    return len(local.classes) == 1 or local.are_equal


def _rows_of(near: Neighborhood) -> LocalRows:
    return LocalRows.of(near.X, cast(Codes, near.targets), near.weights, near.spec)


def _prepared(local: LocalRows, near: Neighborhood, folds: Int64) -> tuple[Int64, CellData, Grid]:
    order, cell = local.data(folds)
    grid = neighborhood_grid(local, cell.base, near.percentiles, near.seed, np.argsort(order))
    return order, cell, grid


def _has_choice(near: Neighborhood) -> bool:
    return count_gammas(near.spec, near.percentiles) * near.spec.n_costs > 1


def _chosen(local: LocalRows, near: Neighborhood, n_inner: int) -> tuple[Int64, CellData, Choice]:
    """Return an order of the rows, the rows in it, and the candidate that inner rows choose."""
    n_judged, spec = n_inner if _has_choice(near) else 0, near.spec
    order, cell, grid = _prepared(local, near, _inner_folds(local, n_judged, near.seed))
    if not n_judged:
        return order, cell, _from_zero(cell, spec, grid)
    # The search, with its matrices, ends here: what is chosen is trained beside none of them.
    return order, cell, HINGE.search(cell, spec, grid).choose(finish=False)


def _errors(cell: CellData, spec: SolverSpec, grid: Grid) -> Float64:
    # The full search: pruned candidates would have no error.
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
    k = cell.n_classes
    return Choice(
        kernel=kernel_of(spec, grid.gammas[0]),
        C=grid.costs[0],
        error=float("nan"),
        coef=np.zeros((k - 1, len(cell.codes)), np.float32),
        intercepts=np.zeros(k * (k - 1) // 2),
        counts=SolverCounts(),
    )


def _trained(cell: CellData, choice: Choice, spec: SolverSpec) -> Choice:
    """Return a choice whose model is of all rows, solved from the choice's own coefficients."""
    K = np.empty_like(cell.base)
    find_kernel(spec.kernel).write(cell.base, choice.kernel, K)
    pairs = ClassPairs.of(cell, 0)
    starts = pairs.betas_of(choice.coef)
    betas, offsets, counts = np.empty_like(starts), np.empty(len(pairs)), SolverCounts()
    counts.add(choice.counts)
    for p, (_, _, rows, signs) in enumerate(cell.pairs()):
        K_pair, at = K if len(pairs) == 1 else K[np.ix_(rows, rows)], pairs.slice_of(p)
        none_held_out = np.array([0, len(signs)])
        problem = Problem(K_pair, signs, cell.weights[rows], none_held_out, spec)
        betas[at], offsets[p] = problem.solve_all(starts[at], choice.C)
        counts.add(problem.counts)
    coef = pairs.coefficients(betas[None])[0]
    return replace(choice, coef=coef, intercepts=offsets, counts=counts)


class LabelModel(NamedTuple):
    """The SVM of a label against all others, and the sigmoid of its decision values."""

    model: LocalModel
    a: float
    b: float

    def opposite(self) -> "LabelModel":
        """Return the same of the other labels together."""
        return self._replace(a=-self.a, b=-self.b)


def fit_label(near: Neighborhood, code: int, counted: Float64 | None = None) -> LabelModel | float:
    """Return a model of the probability of a label, or that probability if all queries have one.

    Other classes are merged into one. Inner rows choose among candidates; the sigmoid is fitted to
    held-out values of all rows, `counted` (m,) if not by the weights of training. Where all rows
    are equal, it is their share with the label. Source: Segata 2009, section 2.3; Platt 1999, Lin
    et al. 2007.
    """
    mine, spec = (near.targets == code).astype(np.int64), near.spec
    if mine.all() or not mine.any():
        return float(mine[0])
    near = replace(near, targets=mine)
    units = find_units(near)
    local = units.of(_rows_of(near))
    if _is_trivial(local):
        return float(np.average(mine, weights=near.weights if counted is None else counted))
    chosen = _chosen(local, near, units.n_inner)[2] if _has_choice(near) else None
    order, cell, grid = _prepared(local, near, _inner_folds(local, len(local.rows), near.seed))
    if chosen is not None:
        grid = Grid((chosen.kernel.gamma,), (chosen.C,))
    weights = cell.weights.astype(np.float64)
    if counted is not None:
        weights = find_units(replace(near, weights=counted)).weights[order]
    values = _held_out_values(cell, spec, grid)
    held_out = np.isfinite(values)
    a, b = fit_sigmoid(values[held_out], cell.codes[held_out] == 1, weights[held_out])
    choice = _trained(cell, _from_zero(cell, spec, grid), spec)
    model = local.model(choice, order, cell, local.described(BLANK_REPORT))
    if len(model.classes) == 1:
        # Nothing was learned but the offset.
        return float(sigmoid(choice.intercepts[:1], a, b)[0])
    return LabelModel(model, a, b)


def label_probability(fitted: LabelModel | float, query: Reals) -> float:
    """Return the probability that a row (d,) has the label of a model."""
    if isinstance(fitted, float):
        return fitted
    return float(sigmoid(cell_scores(fitted.model, query[None]), fitted.a, fitted.b)[0])


def _held_out_values(cell: CellData, spec: SolverSpec, grid: Grid) -> Float32:
    """Return each row's decision value by the model without its fold; NaN if there is none."""
    search = HINGE.search(cell, replace(spec, clipped_gap=False), grid)
    values = np.full(len(cell.codes), np.nan, np.float32)
    for fold, line in search.lines(0):
        held_out = slice(search.fold_ptr[fold], search.fold_ptr[fold + 1])
        decisions = search.pairs.values(search.width.K, line.betas, line.offsets, held_out)
        values[held_out] = decisions[0]
    return values
