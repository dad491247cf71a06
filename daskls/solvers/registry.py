"""The registry of losses and their solvers: one line a loss.

It names modules and imports none: estimators take the names from here, and a process that only
predicts loads no solver.
"""

from functools import cache

from daskls.errors import ParameterError
from daskls.records import Decision
from daskls.registry import load_object
from daskls.solvers.base import LocalSolver

__all__ = ["ONE_VS_REST", "SOLVERS", "decision_of", "find_solver"]

# `SolverSpec.loss`, and the `LocalSolver` of it as ``module:class`` below the package.
SOLVERS = {
    "hinge": "solvers.hinge.solver:HingeSolver",
    "squared_error": "solvers.squares.solver:SquaresSolver",
}
# Losses whose functions are of one class against all others; of the others, of pairs of classes.
ONE_VS_REST = ("squared_error",)


def decision_of(loss: str) -> Decision:
    """Return the kind of a loss's decision functions: "ovo" or "ovr"."""
    return "ovr" if loss in ONE_VS_REST else "ovo"


@cache
def find_solver(loss: str) -> LocalSolver:
    """Return the solver of a loss; its module is imported at the first call.

    Raises
    ------
    ParameterError : no loss of that name

    Examples
    --------
    >>> find_solver("hinge").loss
    'hinge'
    """
    if loss not in SOLVERS:
        known = ", ".join(repr(name) for name in SOLVERS)
        raise ParameterError(
            f"loss={loss!r} is a loss that this daskls has no solver for; it has {known}. Give one "
            "of these, or upgrade daskls."
        )
    solver: LocalSolver = load_object(SOLVERS[loss])()
    return solver
