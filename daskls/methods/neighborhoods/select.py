"""Selection of k, C and the width by cross-validation, once for all neighborhoods."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.methods.neighborhoods.grid import global_errors
from daskls.methods.neighborhoods.left_out import left_out_errors
from daskls.methods.neighborhoods.spec import NeighborSpec
from daskls.methods.neighborhoods.train import NeighborJob, evaluate_row
from daskls.plan import n_selecting
from daskls.records import Float64, Int64, Mask, SolverSpec
from daskls.run.begin import resolved_spec
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.gather import RowsHandle
from daskls.run.progress import StageClock
from daskls.seeds import SELECTED_ROWS
from daskls.solvers.sums import totals

__all__ = ["Selected", "select"]


@dataclass(frozen=True)
class Selected:
    """Parameters that were selected, or given."""

    n_neighbors: int
    spec: SolverSpec
    percentiles: tuple[float, ...] | None


def select(
    begun: Beginning, neighbors: NeighborSpec, handle: RowsHandle, clock: StageClock, client: Any
) -> Selected:
    """Return k, C and the width: as given, or as the rows drawn for it say."""
    resolved = resolved_spec(begun) if neighbors.percentiles is None else begun.request.spec
    if neighbors.selection not in ("local", "grid", "left_out"):
        return Selected(neighbors.n_neighbors[0], resolved, neighbors.percentiles)
    stored = begun.root.attributes.get("selected")
    if stored is None:
        with clock.stage("select", 1, None):
            stored = _best(
                *_evaluate(begun, neighbors, resolved, handle, client), neighbors, resolved
            )
        # Before any training, so that a resumed fit does not select again.
        begun.root.update(selected=stored)
    gamma, percentile = stored["gamma"], stored["percentile"]
    chosen = replace(resolved, C=(stored["C"],), gamma=None if gamma is None else (gamma,))
    return Selected(
        int(stored["n_neighbors"]), chosen, None if percentile is None else (percentile,)
    )


def _evaluate(
    begun: Beginning, neighbors: NeighborSpec, spec: SolverSpec, handle: RowsHandle, client: Any
) -> tuple[Float64, Mask]:
    """Return the errors of candidates, (n_k, n_gammas, n_costs), and which may be chosen."""
    if neighbors.selection == "left_out":
        drawn = _drawn_positions(begun, n_selecting(begun.scan.n_kept), handle)
        return left_out_errors(begun, neighbors, spec, handle, drawn, client)
    if neighbors.selection == "grid":
        errors = global_errors(begun, neighbors, spec, handle, client)
    else:
        errors = _local_errors(begun, neighbors, spec, handle, client)
    return errors, np.ones(errors.shape, np.bool_)


def _local_errors(
    begun: Beginning, neighbors: NeighborSpec, spec: SolverSpec, handle: RowsHandle, client: Any
) -> Float64:
    """Return the k'-internal error of every candidate, over all rows drawn by seed."""
    job = NeighborJob(handle, spec, neighbors, max(neighbors.n_neighbors), begun.seed, 1)
    positions = _drawn_positions(begun, neighbors.n_selected, handle)
    tasks = [(position, job) for position in positions.tolist()]
    evaluated = totals(np.array(compute_each(evaluate_row, tasks, client)))
    errors: Float64 = evaluated[..., 0] / evaluated[..., 1]
    return errors


def _drawn_positions(begun: Beginning, n_drawn: int, handle: RowsHandle) -> Int64:
    """Return the positions of rows drawn by seed from all row numbers."""
    reader = handle.open()
    rng = SELECTED_ROWS.generator(begun.seed, n_rows=reader.n_rows)
    drawn = rng.choice(reader.n_rows, min(n_drawn, reader.n_rows), replace=False)
    # Row numbers are drawn, not positions, which depend on how space was cut.
    numbers = reader.read_numbers()
    positions: Int64 = np.argsort(numbers, kind="stable")[drawn]
    return positions


def _best(
    errors: Float64, eligible: Mask, neighbors: NeighborSpec, spec: SolverSpec
) -> dict[str, Any]:
    """Return the eligible candidates of the smallest error, and the errors of all.

    Ties go to the smallest k, then to the largest width, then to the smallest C.
    """
    k, g, i = np.unravel_index(int(np.where(eligible, errors, np.inf).argmin()), errors.shape)
    costs = sorted(spec.C or ())
    gammas = sorted(spec.gamma) if spec.gamma is not None else [None]
    percentiles = neighbors.percentiles
    return {
        "n_neighbors": neighbors.n_neighbors[k],
        "C": costs[i],
        "gamma": gammas[g] if percentiles is None else None,
        "percentile": None if percentiles is None else percentiles[g],
        "errors": errors.tolist(),
    }
