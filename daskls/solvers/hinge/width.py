"""Solves of the hinge loss at one width: on the whole kernel matrix, or on some of its rows."""

from typing import cast

import numpy as np

from daskls.kernels.decisions import vote_scores
from daskls.kernels.exponential import gather_pairs, multiply_rows
from daskls.kernels.kernel import find_kernel
from daskls.kernels.path import path_solver
from daskls.kernels.steps import CLIPPED, UNCLIPPED
from daskls.records import F4, F8, MIB, Float32, Float64, Int64, KernelSpec, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.hinge.decomposed import (
    DualAscent,
    KernelRowCache,
    kernel_row_cache_nbytes,
    start_at,
)
from daskls.solvers.hinge.problem import Problem, Refinement
from daskls.solvers.rows import SolverCounts, kernel_of, max_steps
from daskls.solvers.width import BLOCKS_SHARE, ClassPairs, PairSolver, PathSolutions, WarmStart


class HingePairSolver(PairSolver):
    """Solves on the whole kernel matrix, a compiled call per fold.

    Solves of the search end at the clipped gap, those of `finish` at the plain one.
    """

    def __init__(self, pairs: ClassPairs, spec: SolverSpec, folds: list[int]) -> None:
        super().__init__(pairs, spec, folds)
        self._solve = path_solver(
            unit=find_kernel(spec.kernel).unit_diagonal, with_offset=spec.fit_intercept
        )
        self._cap = CLIPPED if spec.clipped_gap else UNCLIPPED
        self._max_steps = np.array([max_steps(m) for m in pairs.sizes], np.int64)
        self._groups = pairs.groups()
        self._block_ptr = self._block_starts()
        self._blocks = self._new_blocks()
        # For each fold, the bounds without it, then its seed; K times all of them.
        self._sources = np.zeros((2 * len(folds), len(pairs.rows)), np.float32)
        self._products = np.empty_like(self._sources)
        for at, fold in enumerate(folds):
            self._sources[at] = pairs.bounds_without(fold)
        self._gathered = -1
        self._gamma = -1.0
        self._seed_cost = 0.0

    @classmethod
    def nbytes(cls, sizes: Sizes, n_rows: int) -> int:
        m, k = n_rows, sizes.n_classes
        # The starts of solves, and their products with the kernel matrices.
        sources = 2 * 2 * sizes.spec.cv * (k - 1) * m * F4
        blocks = min(BLOCKS_SHARE, k - 1) * m * m * F4 if k > 2 else 0
        return super().nbytes(sizes, m) + sources + blocks

    def _block_starts(self) -> np.ndarray:
        squares = self.pairs.sizes**2
        starts = np.zeros(len(self.pairs), np.int64)
        for first, last in self._groups:
            starts[first + 1 : last] = np.cumsum(squares[first : last - 1])
        return starts

    def _new_blocks(self) -> Float32:
        if len(self.pairs) == 1:
            return self.K.reshape(-1)
        squares = self.pairs.sizes**2
        return np.empty(max(squares[a:b].sum() for a, b in self._groups), np.float32)

    def move(self, gamma: float, seeds: WarmStart) -> None:
        kernel = kernel_of(self.spec, gamma)
        is_new, self._gamma, self._seed_cost = gamma != self._gamma, gamma, seeds.cost
        self._sources[len(self.folds) :] = seeds.betas
        self._gathered = -1
        # With several pairs, each has its own matrix, and products with that.
        is_alone = len(self.pairs) == 1
        if is_new:
            sources = (self._used, self._products) if is_alone else ()
            find_kernel(kernel.name).write(self.pairs.cell.base, kernel, self.K, *sources)
        elif is_alone:
            multiply_rows(self.K, self._used, self._products)

    @property
    def _used(self) -> Float32:
        """The sources in use: the bounds alone until there is a seed."""
        return self._sources if self._seed_cost else self._sources[: len(self.folds)]

    def _gather(self, at: int) -> None:
        if len(self.pairs) == 1 or self._gathered == at:
            return
        pairs = self.pairs
        gather_pairs(
            self.K,
            pairs.rows,
            pairs.ptr,
            *self._groups[at],
            self._used,
            self._blocks,
            self._block_ptr,
            self._products,
        )
        self._gathered = at

    def matrix_of(self, p: int) -> Float32:
        """Return the kernel matrix of one pair, valid until that of another is requested."""
        if len(self.pairs) == 1:
            return self.K
        self._gather(next(at for at, (_, last) in enumerate(self._groups) if p < last))
        m, first = self.pairs.sizes[p], self._block_ptr[p]
        return self._blocks[first : first + m * m].reshape(m, m)

    def solve(self, at: int, costs: Float64, tol: float) -> PathSolutions:
        pairs, fold, seed = self.pairs, self.folds[at], len(self.folds) + at
        line = PathSolutions(
            np.empty((len(costs), len(pairs.rows)), np.float32),
            np.empty((len(costs), len(pairs)), np.float32),
        )
        counts = np.zeros(3, np.int64)
        starts = np.ascontiguousarray(pairs.fold_ptr[:, fold])
        stops = np.ascontiguousarray(pairs.fold_ptr[:, fold + 1])
        for group, (first, last) in enumerate(self._groups):
            self._gather(group)
            self._solve(
                self._blocks,
                self._block_ptr,
                pairs.ptr,
                first,
                last,
                pairs.signs,
                pairs.bounds,
                self._products[at],
                self._sources[seed],
                self._products[seed],
                self._seed_cost,
                costs,
                starts,
                stops,
                self._cap,
                tol,
                self._max_steps,
                line.betas,
                line.offsets,
                counts,
            )
        self.counts.add(SolverCounts(*counts.tolist()))
        return line

    def finish(self, kernel: KernelSpec, cost: float, betas: Float32, offsets: Float64) -> None:
        pairs, cell = self.pairs, self.pairs.cell
        for p, (_, _, rows, signs) in enumerate(cell.pairs()):
            fold_ptr, K = pairs.fold_ptr[p], self.matrix_of(p)
            problem = Problem(K, signs, cell.weights[rows], fold_ptr, self.spec)
            place = pairs.slice_of(p)
            models = Refinement(
                problem, cell.rows[rows], kernel, cost, self.folds, betas[:, place], offsets[:, p]
            )
            models.run()
            betas[:, place], offsets[:, p] = models.betas, models.offsets
            self.counts.add(problem.counts)


class CachedPairSolver(PairSolver):
    """Solves on some rows of the kernel matrix; see `PairSolver`.

    Every pair is a problem of all rows of the cell, in which rows of other classes have bound 0, so
    that one row of K serves all pairs. ``K`` is empty.
    """

    def __init__(self, pairs: ClassPairs, spec: SolverSpec, folds: list[int]) -> None:
        super().__init__(pairs, spec, folds)
        cell = pairs.cell
        cache = int((spec.cache_size or 0.0) * MIB)
        self.rows = KernelRowCache(cell.rows, spec.kernel, cache)
        self._cap = CLIPPED if spec.clipped_gap else UNCLIPPED
        m, k, n = len(cell.codes), len(pairs), len(folds)
        self.signs, self.bounds = np.zeros((k, m), np.float32), np.zeros((k, m), np.float32)
        for p in range(k):
            place = pairs.slice_of(p)
            self.signs[p, pairs.rows[place]] = pairs.signs[place]
            self.bounds[p, pairs.rows[place]] = pairs.bounds[place]
        self.diag = np.ones(m, np.float32)
        # For each pair and fold, the bounds without it, then its seed; K times all of them.
        self._sources = np.zeros((k, 2 * n, m), np.float32)
        self._products = np.zeros_like(self._sources)
        for p in range(k):
            for at, fold in enumerate(folds):
                self._sources[p, at] = self.bounds[p] * (cell.folds != fold)
        self._gamma, self._seed_cost = -1.0, 0.0
        self.values = np.empty(0, np.float32)

    @classmethod
    def nbytes(cls, sizes: Sizes, n_rows: int) -> int:
        m, k, spec = n_rows, sizes.n_classes, sizes.spec
        n_pairs = k * (k - 1) // 2
        sources = 2 * 2 * spec.cv * n_pairs * m * F4
        values = spec.n_costs * n_pairs * m * F4
        # The vectors of an ascent; those of `finish` in float64, with the rows of one pair.
        vectors = 8 * m * F4 + 2 * n_pairs * m * F4 + 6 * spec.cv * m * F8
        return kernel_row_cache_nbytes(sizes, m) + sources + values + vectors

    def move(self, gamma: float, seeds: WarmStart) -> None:
        kernel = kernel_of(self.spec, gamma)
        n = len(self.folds)
        is_new, self._gamma, self._seed_cost = gamma != self._gamma, gamma, seeds.cost
        self.rows.move(kernel)
        self._sources[:, n:] = 0.0
        for p in range(len(self.pairs)):
            place = self.pairs.slice_of(p)
            self._sources[p, n:, self.pairs.rows[place]] = seeds.betas[:, place].T
        used = slice(0 if is_new else n, 2 * n if seeds.cost else n)
        if used.start < used.stop:
            self._multiply(used)

    def _multiply(self, used: slice) -> None:
        sources = self._sources[:, used]
        flat = np.ascontiguousarray(sources.reshape(-1, sources.shape[-1]))
        products = np.empty_like(flat)
        for rows, K in self.rows.tiles():
            part = np.empty((len(flat), len(K)), np.float32)
            multiply_rows(K, flat, part)
            products[:, rows] = part
            self.diag[rows] = K[np.arange(len(K)), np.arange(rows.start, rows.stop)]
        self._products[:, used] = products.reshape(sources.shape)

    def ascent_of(self, p: int, bound: Float32) -> DualAscent:
        signs = self.signs[p]
        return DualAscent(self.rows, self.diag, signs, bound, np.zeros_like(signs), signs.copy())

    def solve(self, at: int, costs: Float64, tol: float) -> PathSolutions:
        pairs, n, cell = self.pairs, len(self.folds), self.pairs.cell
        out = np.flatnonzero(cell.folds == self.folds[at])
        line = PathSolutions(
            np.empty((len(costs), len(pairs.rows)), np.float32),
            np.zeros((len(costs), len(pairs)), np.float32),
        )
        self.values = np.empty((len(costs), len(pairs), len(out)), np.float32)
        for p in range(len(pairs)):
            bounds = self._sources[p, at]
            products = self._products[p, at], self._sources[p, n + at], self._products[p, n + at]
            total = float(np.abs(bounds).sum(dtype=np.float64))
            ascent = self.ascent_of(p, np.empty_like(bounds))
            before = bounds
            for i, cost in enumerate(costs.tolist()):
                before = before if i == 0 else ascent.beta.copy()
                start_at(i, costs, bounds, products, self._seed_cost, before, ascent)
                limit = tol * total * cost
                n_steps, gap = ascent.run(self._cap, limit)
                self.counts.add(SolverCounts(n_steps, 1, int(gap > limit)))
                place = pairs.slice_of(p)
                line.betas[i, place] = ascent.beta[pairs.rows[place]]
                self.values[i, p] = (ascent.signs - ascent.grad)[out]
        return line

    def decide(self, line: PathSolutions, held_out: slice) -> Int64:
        values = self.values
        if len(self.pairs) == 1:
            return (values[:, 0] > 0).astype(np.int64)
        k = self.pairs.cell.n_classes
        decisions = values.astype(np.float64).transpose(0, 2, 1)
        winners = [vote_scores(decisions[i], k).argmax(axis=1) for i in range(len(decisions))]
        return np.stack(winners)

    def finish(self, kernel: KernelSpec, cost: float, betas: Float32, offsets: Float64) -> None:
        for p in range(len(self.pairs)):
            place = self.pairs.slice_of(p)
            rows = self.pairs.rows[place]
            wide = np.zeros((len(betas), len(self.diag)), np.float32)
            wide[:, rows] = betas[:, place]
            problem = RowsProblem(self, p)
            models = _RowsRefinement(
                problem, self.pairs.cell.rows, kernel, cost, self.folds, wide, offsets[:, p]
            )
            models.run()
            betas[:, place] = models.betas[:, rows]
            self.counts.add(problem.counts)


class RowsProblem(Problem):
    def __init__(self, width: CachedPairSolver, p: int) -> None:
        self.width, self.p = width, p
        self.signs, self.spec, self.counts = width.signs[p], width.spec, SolverCounts()

    def bound_of(self, fold: int, cost: float) -> Float32:
        trains = self.width.pairs.cell.folds != fold
        bound: Float32 = self.width.bounds[self.p] * trains * np.float32(cost)
        return bound

    def ascend(
        self, fold: int, beta: Float32, product: Float32, cost: float, tol: float
    ) -> tuple[Float32, float, int]:
        ascent = self.width.ascent_of(self.p, self.bound_of(fold, cost))
        ascent.beta[:] = beta
        ascent.grad[:] = self.signs - product
        limit = tol * float(np.abs(ascent.bound).sum(dtype=np.float64))
        n_steps, _ = ascent.run(UNCLIPPED, limit)
        return ascent.beta, 0.0, n_steps


class _RowsRefinement(Refinement):
    """A `Refinement` whose products use kernel values in float64 from the start."""

    def first_products(self) -> None:
        self.exact = True
        self.products = self._multiply(self.betas.astype(np.float64))

    def exact_rows(self) -> Float64:
        return cast(RowsProblem, self.problem).width.rows.A
