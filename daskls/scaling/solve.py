"""Least squares of one cell under a trial: leave-one-out errors, derivatives, held-out values."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from daskls.kernels.registry import find_kernel
from daskls.records import Float32, Float64, KernelSpec, Targets
from daskls.scaling.grid import Trial
from daskls.scaling.plan import MAX_PRODUCTS
from daskls.solvers.squares.aims import Aim
from daskls.solvers.squares.cell import MergedRows, gamma_in_cell, merge_equal_rows
from daskls.solvers.squares.system import Solution, System

__all__ = ["TrialCell"]


class TrialCell:
    """A cell of a region, solved again and again.

    Parameters
    ----------
    A : float32 array, shape (m, d). Around the cell's mean, in some scale.
    targets : array. Class codes (m,), or numbers (m, t).
    weights : float64 array, shape (m,)
    aim : Aim
    """

    def __init__(self, A: Float32, targets: Targets, weights: Float64, aim: Aim) -> None:
        self._own, self._aim = aim.of_cell(targets, weights), aim
        self.Y, self.weights = self._own.Y, weights
        self._A = A

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to solve: of one class or number, or of equal rows."""
        return self.Y is None or bool((self._A[0] == self._A).all())

    def _merged(self) -> MergedRows:
        assert self.Y is not None
        return merge_equal_rows(self._A, self.Y, self.weights)

    def _kernel(self, trial: Trial, rows: Float32) -> KernelSpec:
        if trial.is_gamma:
            return KernelSpec(trial.kernel, trial.width)
        return KernelSpec(trial.kernel, gamma_in_cell(trial.kernel, trial.width, rows))

    def errors(self, trials: Sequence[Trial]) -> Float64:
        """Return leave-one-out errors: squared, wrong rows, and weights; float64 (n_trials, 3)."""
        sums = np.zeros((len(trials), 3))
        if self.is_constant:
            return sums
        merged, at = self._merged(), 0
        for _, own in groupby(trials, lambda trial: (trial.kernel, trial.width)):
            group = list(own)
            system = System(merged.A, self._kernel(group[0], merged.A))
            for trial in group:
                ridges = trial.ridge / merged.weights
                found = system.solve(merged.Y, ridges, offset=trial.offset, held_out=True)
                sums[at] = self._error_of(self._left_out(merged, found, ridges))
                at += 1
        return sums

    def _left_out(self, merged: MergedRows, found: Solution, ridges: Float64) -> Float64:
        assert self.Y is not None
        return self._aim.left_out(merged, found, ridges, self.Y, self.weights)

    def _error_of(self, held_out: Float64) -> tuple[float, float, float]:
        assert self.Y is not None
        squared, wrong = self._aim.losses(held_out, self.Y)
        w = self.weights
        return float((w * squared).sum()), float((w * wrong).sum()), float(w.sum())

    def gradients(self, trial: Trial) -> Float64:
        """Return sums of squared derivatives along each feature, of all rows and functions."""
        if self.is_constant:
            return np.zeros(self._A.shape[1])
        merged = self._merged()
        kernel = self._kernel(trial, merged.A)
        system = System(merged.A, kernel)
        found = system.solve(merged.Y, trial.ridge / merged.weights, offset=trial.offset)
        alpha = found.alpha.astype(np.float32)
        m, d = merged.A.shape
        step = max(int(2.0 * m * m * d * alpha.shape[1] / MAX_PRODUCTS), 1)
        K = system.matrix32()[::step]
        of_kernel, at = find_kernel(kernel.name), slice(None, None, step)
        sums = of_kernel.squared_gradients(merged.A, alpha, K, kernel, at)
        return sums * (len(self._A) / len(K))

    def values(self, queries: Float32, trial: Trial) -> Float64:
        """Return values of queries around the cell's mean, float64 (q, R)."""
        if self.is_constant:
            return np.repeat(self._own.answer[None], len(queries), axis=0)
        merged = self._merged()
        kernel = self._kernel(trial, merged.A)
        ridges = trial.ridge / merged.weights
        found = System(merged.A, kernel).solve(merged.Y, ridges, offset=trial.offset)
        own = find_kernel(kernel.name)
        base = own.block(queries.astype(np.float64), merged.A.astype(np.float64))
        values = own.apply(base, kernel, base) @ found.alpha.astype(np.float64) + found.offsets
        return self._aim.spread(values, self._own)
