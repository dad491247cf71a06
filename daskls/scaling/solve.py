"""Least squares of one cell under a trial: leave-one-out errors, derivatives, held-out values."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from daskls.kernels.registry import find_kernel
from daskls.kernels.votes import rest_scores
from daskls.records import Codes, Float32, Float64, KernelSpec
from daskls.scaling.grid import Trial
from daskls.scaling.plan import MAX_PRODUCTS
from daskls.solvers.squares.cell import (
    MergedRows,
    gamma_in_cell,
    merge_equal_rows,
    signs_of,
)
from daskls.solvers.squares.system import System

__all__ = ["TrialCell"]


class TrialCell:
    """A cell of a region, solved again and again.

    Parameters
    ----------
    A : float32 array, shape (m, d). Around the cell's mean, in some scale.
    codes : int array, shape (m,)
    weights : float64 array, shape (m,)
    """

    def __init__(self, A: Float32, codes: Codes, weights: Float64) -> None:
        self.classes, present = np.unique(codes, return_inverse=True)
        self.Y = signs_of(present, len(self.classes)) if len(self.classes) > 1 else None
        self.weights = weights
        self._A = A

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to solve: of one class, or of equal rows."""
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
                assert found.held_out is not None
                sums[at] = self._error_of(found.held_out[merged.of_row].astype(np.float64))
                at += 1
        return sums

    def _error_of(self, held_out: Float64) -> tuple[float, float, float]:
        assert self.Y is not None
        squared = ((self.Y - held_out) ** 2).mean(axis=1)
        if held_out.shape[1] == 1:
            wrong = (held_out[:, 0] > 0) != (self.Y[:, 0] > 0)
        else:
            wrong = held_out.argmax(axis=1) != self.Y.argmax(axis=1)
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

    def values(self, queries: Float32, trial: Trial, n_classes: int) -> Float64:
        """Return values of queries around the cell's mean, float64 (q, 1) or (q, n_classes)."""
        if self.is_constant:
            code = self.classes[np.bincount(self._positions(), self.weights).argmax()]
            scores = rest_scores(None, np.array([code]), n_classes)
            return np.repeat(scores.reshape(1, -1), len(queries), axis=0)
        merged = self._merged()
        kernel = self._kernel(trial, merged.A)
        ridges = trial.ridge / merged.weights
        found = System(merged.A, kernel).solve(merged.Y, ridges, offset=trial.offset)
        own = find_kernel(kernel.name)
        base = own.block(queries.astype(np.float64), merged.A.astype(np.float64))
        values = own.apply(base, kernel, base) @ found.alpha.astype(np.float64) + found.offsets
        return rest_scores(values, self.classes, n_classes).reshape(len(queries), -1)

    def _positions(self) -> Codes:
        """Return the position of each row's class among those of the cell."""
        if self.Y is None:
            return np.zeros(len(self._A), np.int32)
        if self.Y.shape[1] == 1:
            return (self.Y[:, 0] > 0).astype(np.int32)
        positions: Codes = self.Y.argmax(axis=1).astype(np.int32)
        return positions
