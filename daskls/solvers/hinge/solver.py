"""SVMs of the hinge loss, one a cell."""

from dataclasses import replace

import numpy as np

from daskls.records import Float32, SolverSpec
from daskls.solvers.cell import CellSolver
from daskls.solvers.data import Counts
from daskls.solvers.hinge.problem import Problem
from daskls.solvers.hinge.width import HingeWidth

__all__ = ["HINGE", "HingeSolver"]


class HingeSolver(CellSolver):
    """Local SVMs of the hinge loss.

    Notes
    -----
    Peak memory: 2 float32 matrices of m x m, for more than two classes as many again.
    """

    width = HingeWidth

    def solve_all(
        self,
        K: Float32,
        signs: Float32,
        weights: Float32,
        start: Float32,
        cost: float,
        spec: SolverSpec,
    ) -> tuple[Float32, float, Counts]:
        """Train one pair on all of its rows; see `CellSolver.solve_all`.

        Solved to the plain duality gap, as this solution is kept, not only ranked by its error.
        """
        none_held_out = np.array([0, len(signs)])
        spec = replace(spec, clipped_gap=False)
        problem = Problem(K, signs, weights, none_held_out, spec)
        beta, offset = problem.solve_all(start, cost)
        return beta, offset, problem.counts


# It has no state: what trains neighborhoods uses the same one.
HINGE = HingeSolver()
