"""The stages of a fit on neighborhoods; finished parts of the store are kept."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.methods.neighborhoods.cover import choose_centers
from daskls.methods.neighborhoods.grid import global_errors
from daskls.methods.neighborhoods.plan import MAX_BATCHES, plan_batch
from daskls.methods.neighborhoods.spec import NeighborSpec
from daskls.methods.neighborhoods.train import (
    CenterBundle,
    NeighborJob,
    evaluate_row,
    train_centers,
)
from daskls.neighbors.search import metric_of
from daskls.plan import bundle_cost, group_open
from daskls.records import Float64, SolverSpec
from daskls.run.begin import regroup_all, resolved_spec
from daskls.run.compute import compute_each
from daskls.run.contract import Beginning
from daskls.run.gather import RowsHandle, gather_rows, has_rows, rows_handle
from daskls.run.progress import StageClock
from daskls.seeds import SELECTED_ROWS
from daskls.solvers.sums import totals
from daskls.store.centers import Centers
from daskls.store.layout import Root
from daskls.store.models import done_mask, drop_others, find_tiles, finished_bundles
from daskls.store.reader import write_center_index, write_row_index

__all__ = ["fit_centers_of", "fit_rows"]


@dataclass(frozen=True)
class Selected:
    """Parameters that were selected, or given."""

    n_neighbors: int
    spec: SolverSpec
    percentiles: tuple[float, ...] | None


def fit_rows(begun: Beginning, clock: StageClock, client: Any = None) -> None:
    """Gather the rows by leaf; queries train, or vote, on demand.

    Parameters
    ----------
    begun : Beginning
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    _gather(begun, clock, client)
    gamma = resolved_spec(begun).gamma
    write_row_index(begun.root, gamma[0] if gamma else None)


def fit_centers_of(
    method: NeighborSpec, begun: Beginning, clock: StageClock, client: Any = None
) -> None:
    """Gather the rows by leaf, choose centers and train their neighborhoods.

    Parameters
    ----------
    method : NeighborSpec
    begun : Beginning
    clock : StageClock
    client : distributed client, or None for the current scheduler
    """
    method = method.capped(begun.scan.n_kept)
    _gather(begun, clock, client)
    _fit_centers(begun, method, clock, client)


def _gather(begun: Beginning, clock: StageClock, client: Any) -> None:
    """Write all rows by leaf, unless they are there."""
    if not has_rows(begun):
        _, exchange, leaf_rows = regroup_all(begun, clock, client)
        gather_rows(begun, exchange, leaf_rows, clock, client)


def _fit_centers(begun: Beginning, neighbors: NeighborSpec, clock: StageClock, client: Any) -> None:
    root, handle = begun.root, rows_handle(begun)
    chosen = _select(begun, neighbors, handle, clock, client)
    k = chosen.n_neighbors
    centers = choose_centers(
        begun, handle, neighbors.inner(k), metric_of(chosen.spec), clock, client
    )
    own = replace(neighbors, percentiles=chosen.percentiles)
    batch = _batch(begun, k)
    job = NeighborJob(handle, chosen.spec, own, k, begun.seed, batch)
    bundles = _bundles(begun, centers, batch, k)
    with clock.stage("train", len(centers.positions), _finished(root)):
        train_centers(bundles, job, client)
    tiles = find_tiles(root.path, len(centers.positions))
    drop_others(root.path, tiles)
    reader = handle.open()
    rows = reader.read_positions(centers.positions)
    gamma = chosen.spec.gamma[0] if chosen.spec.gamma and len(chosen.spec.gamma) == 1 else None
    write_center_index(root, tiles, rows.X, rows.numbers, gamma)


def _batch(begun: Beginning, n_neighbors: int) -> int:
    return plan_batch(begun.sizes, n_neighbors, begun.sampling.leaf_rows, begun.resources)


def _bundles(
    begun: Beginning, centers: Centers, batch: int, n_neighbors: int
) -> list[CenterBundle]:
    """Cut the centers that are not trained into runs of near centers."""
    done = done_mask(begun.root.path, len(centers.positions))
    # Training a neighborhood costs the square of its rows.
    cost = float(n_neighbors) ** 2
    share = int(bundle_cost(len(done) * cost) / cost)
    # Models of a bundle are held until they are written.
    size = max(min(share, MAX_BATCHES * batch), 1)
    positions = centers.positions.tolist()
    groups = group_open([1] * len(positions), done, size)
    return [CenterBundle(first, last, tuple(positions[first : last + 1])) for first, last in groups]


def _finished(root: Root) -> Callable[[], int]:
    """Return a function that counts the centers of the bundles on disk."""
    return lambda: sum(last + 1 - first for first, last in finished_bundles(root.path))


def _select(
    begun: Beginning, neighbors: NeighborSpec, handle: RowsHandle, clock: StageClock, client: Any
) -> Selected:
    """Return k, C and the width: as given, or as the rows drawn for it say."""
    resolved = resolved_spec(begun) if neighbors.percentiles is None else begun.request.spec
    if neighbors.selection not in ("local", "grid"):
        return Selected(neighbors.n_neighbors[0], resolved, neighbors.percentiles)
    stored = begun.root.attributes.get("selected")
    if stored is None:
        with clock.stage("select", 1, None):
            if neighbors.selection == "grid":
                errors = global_errors(begun, neighbors, resolved, handle, client)
            else:
                errors = _local_errors(begun, neighbors, resolved, handle, client)
        stored = _best(errors, neighbors, resolved)
        # Before any training, so that a resumed fit does not select again.
        begun.root.update(selected=stored)
    gamma, percentile = stored["gamma"], stored["percentile"]
    chosen = replace(resolved, C=(stored["C"],), gamma=None if gamma is None else (gamma,))
    return Selected(
        int(stored["n_neighbors"]), chosen, None if percentile is None else (percentile,)
    )


def _local_errors(
    begun: Beginning, neighbors: NeighborSpec, spec: SolverSpec, handle: RowsHandle, client: Any
) -> Float64:
    """Return the k'-internal error of every candidate, over all rows drawn by seed."""
    job = NeighborJob(handle, spec, neighbors, max(neighbors.n_neighbors), begun.seed, 1)
    positions = _drawn_positions(begun, neighbors.n_selected, handle)
    evaluated = totals(np.array(compute_each(evaluate_row, [(p, job) for p in positions], client)))
    errors: Float64 = evaluated[..., 0] / evaluated[..., 1]
    return errors


def _drawn_positions(begun: Beginning, n_drawn: int, handle: RowsHandle) -> list[int]:
    """Return the positions of rows drawn by seed from all row numbers."""
    reader = handle.open()
    rng = SELECTED_ROWS.generator(begun.seed, n_rows=reader.n_rows)
    drawn = rng.choice(reader.n_rows, min(n_drawn, reader.n_rows), replace=False)
    # Row numbers are drawn, not positions, which depend on how space was cut.
    numbers = reader.read_numbers()
    positions: list[int] = np.argsort(numbers, kind="stable")[drawn].tolist()
    return positions


def _best(errors: Float64, neighbors: NeighborSpec, spec: SolverSpec) -> dict[str, Any]:
    """Return the candidates of the smallest error, and the errors of all.

    Ties go to the smallest k, then to the largest width, then to the smallest C.
    """
    k, g, i = np.unravel_index(int(errors.argmin()), errors.shape)
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
