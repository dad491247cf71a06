"""The registry of losses, by the kind of their targets and their name; it imports no solver."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from daskls.errors import ParameterError
from daskls.registry import load_object

if TYPE_CHECKING:
    from daskls.records import Decision, SolverSpec, TargetKind
    from daskls.solvers.base import LocalSolver, NeighborhoodSolver


@dataclass(frozen=True)
class Loss:
    """The facts of a loss that are known before its solver is loaded.

    Attributes
    ----------
    solver : str. Its `LocalSolver`, as ``module:class`` below the package.
    decision : "ovo", "ovr" or "values". What its functions are: of pairs of classes, which are
        counted as votes; of one class against the rest; or numbers.
    is_global : bool. Whether kernel, width and C are chosen once for all cells, by leave-one-out
        values, instead of by each cell from its grid.
    costs_by_cell : bool. Whether each cell still chooses its own C.
    takes_columns : bool. Whether a row may have several numbers.
    measure : str. The `daskls.solvers.level_losses.LevelLoss` of a loss at levels, as
        ``module:class`` below the package.
    knows_held_out : bool. Whether its solver knows held-out values of one-vs-rest functions, so
        that maps to probabilities need no fits of their own.
    caches_rows : bool. Whether ``cache_size`` lets its solver compute rows of a cell's kernel
        matrix when they are needed.
    is_robust : bool. Whether single outliers of y move it little; then the unit of y and the
        choices for all cells are robust, too.
    unused : tuple of str. Parameters of estimators that it ignores.
    neighborhoods : str. Its `NeighborhoodSolver`, likewise; empty if it has none.
    """

    solver: str
    decision: "Decision" = "ovo"
    is_global: bool = False
    costs_by_cell: bool = False
    takes_columns: bool = True
    measure: str = ""
    knows_held_out: bool = False
    caches_rows: bool = False
    is_robust: bool = False
    unused: tuple[str, ...] = ()
    neighborhoods: str = ""

    @property
    def of_levels(self) -> bool:
        return bool(self.measure)


def _of_levels(name: str, unused: tuple[str, ...] = (), *, is_robust: bool = False) -> Loss:
    return Loss(
        f"solvers.quantiles:{name}Solver",
        decision="values",
        is_global=True,
        costs_by_cell=True,
        takes_columns=False,
        measure=f"solvers.level_losses:{name}",
        is_robust=is_robust,
        unused=unused,
    )


LOSSES: "dict[tuple[TargetKind, str], Loss]" = {
    ("classes", "hinge"): Loss(
        "solvers.hinge.solver:HingeSolver",
        caches_rows=True,
        neighborhoods="solvers.hinge.neighborhood:HingeNeighborhoods",
    ),
    ("classes", "squared_error"): Loss(
        "solvers.squares.solver:SquaresSolver",
        decision="ovr",
        is_global=True,
        knows_held_out=True,
        unused=("n_grid", "cv", "scoring", "search", "tol", "cache_size"),
    ),
    ("numbers", "squared_error"): Loss(
        "solvers.squares.solver:NumbersSolver",
        decision="values",
        is_global=True,
        unused=("epsilon", "cv", "search", "tol"),
        neighborhoods="solvers.squares.neighborhood:NumberNeighborhoods",
    ),
    ("numbers", "epsilon_insensitive"): Loss(
        "solvers.tube:TubeSolver",
        decision="values",
        is_global=True,
        costs_by_cell=True,
        takes_columns=False,
        is_robust=True,
    ),
    ("numbers", "pinball"): _of_levels("Pinball", is_robust=True),
    ("numbers", "expectile"): _of_levels("Expectile", ("cv", "tol")),
}
# The losses of one SVM on any number of rows, and whether its dual has no upper bounds, but a ridge
# in the kernel matrix, which is then held whole.
LARGE_LOSSES = {"hinge": False, "squared_hinge": True}


def losses_of(target: "TargetKind", *, of_levels: bool = False) -> list[str]:
    """Return the names of the losses for such targets: with one prediction, or one per level.

    >>> losses_of("classes"), losses_of("numbers", of_levels=True)
    (['hinge', 'squared_error'], ['pinball', 'expectile'])
    """
    return [n for (k, n), loss in LOSSES.items() if (k, loss.of_levels) == (target, of_levels)]


def find_loss(spec: "SolverSpec") -> Loss:
    """Return the entry of a spec's loss.

    >>> from daskls.records import SolverSpec
    >>> find_loss(SolverSpec(loss="squared_error")).decision
    'ovr'
    """
    if (spec.target, spec.loss) not in LOSSES:
        known = ", ".join(map(repr, losses_of(spec.target)))
        raise ParameterError(
            f"This version of daskls has no solver for loss={spec.loss!r}; it has {known}. "
            "Give one of these, or upgrade daskls."
        )
    return LOSSES[spec.target, spec.loss]


def check_columns(spec: "SolverSpec", n_columns: int) -> None:
    """Raise ParameterError where y has several columns and the loss takes one."""
    loss = find_loss(spec)
    if n_columns == 1 or loss.takes_columns:
        return
    names = losses_of(spec.target, of_levels=loss.of_levels)
    able = [name for name in names if LOSSES[spec.target, name].takes_columns]
    other = f', or loss="{able[0]}", which takes several' if able else " for each fit"
    raise ParameterError(
        f"y has {n_columns} columns, and loss={spec.loss!r} takes one. Pass one column{other}."
    )


def find_measure(spec: "SolverSpec") -> Any:
    """Return the `LevelLoss` of a loss at levels; its module is imported at the first call.

    >>> from daskls.records import SolverSpec
    >>> find_measure(SolverSpec(loss="pinball", target="numbers")).losses([2.0], 0.25)
    array([0.5])
    """
    return _load(find_loss(spec).measure)


def find_solver(spec: "SolverSpec") -> "LocalSolver":
    solver: LocalSolver = _load(find_loss(spec).solver)
    return solver


def find_neighborhood_solver(spec: "SolverSpec") -> "NeighborhoodSolver":
    place = find_loss(spec).neighborhoods
    if not place:
        names = [name for name in losses_of(spec.target) if LOSSES[spec.target, name].neighborhoods]
        raise ParameterError(
            f"loss={spec.loss!r} for {spec.target} cannot train neighborhoods. Give one of "
            f"{', '.join(map(repr, names))}."
        )
    solver: NeighborhoodSolver = _load(place)
    return solver


@cache
def _load(place: str) -> Any:
    return load_object(place)()
