"""Lines of solves of the hinge loss: the kernel matrix, its products, a compiled call a fold."""

import numpy as np

from daskls.kernels.line import line_solver
from daskls.kernels.products import gather_pairs, multiply_rows
from daskls.kernels.registry import find_kernel
from daskls.kernels.steps import CLIPPED, UNCLIPPED
from daskls.records import F4, Float32, Float64, KernelSpec, SolverSpec
from daskls.solvers.base import Sizes
from daskls.solvers.data import Counts, kernel_of, max_steps
from daskls.solvers.hinge.finish import finish_folds
from daskls.solvers.hinge.problem import Problem
from daskls.solvers.pairs import BLOCKS_SHARE, ClassPairs
from daskls.solvers.width import Line, Seeds, Width

__all__ = ["HingeWidth"]


class HingeWidth(Width):
    """Solves all pairs of a cell at one width after the other; see `Width`.

    Solves of the search end at the clipped gap, those of `finish` at the plain one.
    """

    def __init__(self, pairs: ClassPairs, spec: SolverSpec, folds: list[int]) -> None:
        super().__init__(pairs, spec, folds)
        self._solve = line_solver(
            unit=find_kernel(spec.kernel).unit_diagonal, with_offset=spec.fit_intercept
        )
        self._cap = CLIPPED if spec.clipped_gap else UNCLIPPED
        self._max_steps = np.array([max_steps(m) for m in pairs.sizes], np.int64)
        self._groups = pairs.groups()
        self._block_ptr = self._block_starts()
        self._blocks = self._new_blocks()
        # The bounds but each fold's, then each fold's seed; K times all of them.
        self._sources = np.zeros((2 * len(folds), len(pairs.rows)), np.float32)
        self._products = np.empty_like(self._sources)
        for at, fold in enumerate(folds):
            self._sources[at] = pairs.bounds_without(fold)
        self._gathered = -1
        self._gamma = -1.0
        self._seed_cost = 0.0

    @classmethod
    def nbytes(cls, sizes: Sizes, n_rows: int) -> int:
        """Return the bytes that an instance holds: matrices of the cell and of pairs, sources."""
        m, k = n_rows, sizes.n_classes
        # What starts are made of, and its products with the kernel matrices.
        sources = 2 * 2 * sizes.spec.cv * (k - 1) * m * F4
        blocks = min(BLOCKS_SHARE, k - 1) * m * m * F4 if k > 2 else 0
        return super().nbytes(sizes, m) + sources + blocks

    def _block_starts(self) -> np.ndarray:
        """Return where the matrix of each pair begins among those of its group."""
        squares = self.pairs.sizes**2
        starts = np.zeros(len(self.pairs), np.int64)
        for first, last in self._groups:
            starts[first + 1 : last] = np.cumsum(squares[first : last - 1])
        return starts

    def _new_blocks(self) -> Float32:
        """Return room for the matrices of a group; the only pair's is the cell's own."""
        if len(self.pairs) == 1:
            return self.K.reshape(-1)
        squares = self.pairs.sizes**2
        return np.empty(max(squares[a:b].sum() for a, b in self._groups), np.float32)

    def move(self, gamma: float, seeds: Seeds) -> None:
        """Go to a width: write its kernel matrix and what starts need of it.

        Parameters
        ----------
        gamma : float
        seeds : Seeds. Where later solves may start.
        """
        kernel = kernel_of(self.spec, gamma)
        is_new, self._gamma, self._seed_cost = gamma != self._gamma, gamma, seeds.cost
        self._sources[len(self.folds) :] = seeds.betas
        self._gathered = -1
        # Pairs among several have matrices of their own, and products with those.
        is_alone = len(self.pairs) == 1
        if is_new:
            sources = (self._used, self._products) if is_alone else ()
            find_kernel(kernel.name).write(self.pairs.cell.base, kernel, self.K, *sources)
        elif is_alone:
            multiply_rows(self.K, self._used, self._products)

    @property
    def _used(self) -> Float32:
        """The sources that there are: without a seed the bounds alone."""
        return self._sources if self._seed_cost else self._sources[: len(self.folds)]

    def _gather(self, at: int) -> None:
        """Gather the matrices of one group of pairs, unless they are there."""
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
        """Return the kernel matrix of one pair: valid until another pair's is requested."""
        if len(self.pairs) == 1:
            return self.K
        self._gather(next(at for at, (_, last) in enumerate(self._groups) if p < last))
        m, first = self.pairs.sizes[p], self._block_ptr[p]
        return self._blocks[first : first + m * m].reshape(m, m)

    def solve(self, at: int, costs: Float64, tol: float) -> Line:
        """Train every pair without one fold at each C; count.

        Parameters
        ----------
        at : int. Index of the fold among ``folds``.
        costs : float64 array, shape (n,), increasing
        tol : float
        """
        pairs, fold, seed = self.pairs, self.folds[at], len(self.folds) + at
        line = Line(
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
        self.counts.add(Counts(*counts.tolist()))
        return line

    def finish(self, kernel: KernelSpec, cost: float, betas: Float32, offsets: Float64) -> None:
        """Bring the fold models at the width to the plain gap, in place; see `Width.finish`."""
        pairs, cell = self.pairs, self.pairs.cell
        for p, (_, _, rows, signs) in enumerate(cell.pairs()):
            fold_ptr, K = pairs.fold_ptr[p], self.matrix_of(p)
            problem = Problem(K, signs, cell.weights[rows], fold_ptr, self.spec)
            own = pairs.slice_of(p)
            betas[:, own], offsets[:, p] = finish_folds(
                problem, cell.rows[rows], kernel, cost, self.folds, betas[:, own], offsets[:, p]
            )
            self.counts.add(problem.counts)
