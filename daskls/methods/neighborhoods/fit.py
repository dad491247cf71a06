"""The stages of a fit on neighborhoods, on whatever is in the store already."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from daskls.methods.cells.fit import FitResult
from daskls.methods.neighborhoods.cover import choose_centers
from daskls.methods.neighborhoods.grid import global_errors
from daskls.methods.neighborhoods.train import (
    CenterBundle,
    NeighborJob,
    judge_row,
    train_centers,
)
from daskls.neighbors.search import metric_of
from daskls.plan import bundle_cost, check_neighborhoods, group_open, plan_chunk
from daskls.records import FloatArray, NeighborSpec, SolverSpec
from daskls.run.begin import Beginning, begin_fit, regroup_all, resolved_spec
from daskls.run.compute import compute_each
from daskls.run.gather import RowsHandle, gather_rows, has_rows, rows_handle
from daskls.run.identity import FitRequest
from daskls.run.progress import Progress, StageClock
from daskls.run.rows import BlockRows
from daskls.seeds import SELECTED_ROWS
from daskls.solvers.sums import totals
from daskls.store.centers import Centers
from daskls.store.layout import Root
from daskls.store.models import done_mask, drop_others, find_tiles, finished_bundles
from daskls.store.reader import write_center_index, write_row_index

__all__ = ["run_neighbor_fit"]

# Chunks of neighborhoods in a bundle, at the most: as `memory.neighborhood_nbytes` has it.
MAX_CHUNKS = 4


@dataclass(frozen=True)
class Selected:
    """What selection chose, or what was given."""

    n_neighbors: int
    spec: SolverSpec
    percentiles: tuple[float, ...] | None


def run_neighbor_fit(
    neighbors: NeighborSpec,
    request: FitRequest,
    rows: BlockRows,
    store: Path,
    client: Any = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> FitResult:
    """Gather the rows by leaf; for FaLK-SVM choose centers and train their neighborhoods.

    Parameters
    ----------
    neighbors : NeighborSpec
    request : FitRequest
    rows : BlockRows
    store : Path. The model's folder; made if it does not exist.
    client : distributed client, or None for the current scheduler
    on_progress : called from a thread as work advances

    Returns
    -------
    result : FitResult
    """
    clock = StageClock(on_progress)
    largest_k = min(max(neighbors.n_neighbors), rows.n_rows)
    check = partial(check_neighborhoods, n_neighbors=largest_k)
    begun = begin_fit(request, rows, store, check, clock, client)
    root = begun.root
    if root.is_complete:
        _clean_up(root, neighbors)
        return FitResult(begun.fingerprint, clock.seconds)
    neighbors = _capped(neighbors, begun.scan.n_kept)
    if not has_rows(begun):
        _, exchange, leaf_rows = regroup_all(begun, check, clock, client, n_copies=1)
        gather_rows(begun, exchange, leaf_rows, clock, client)
    if neighbors.name == "falk":
        _fit_centers(begun, neighbors, clock, client)
    else:
        gamma = resolved_spec(begun).gamma
        write_row_index(root, gamma[0] if gamma else None)
    _clean_up(root, neighbors)
    return FitResult(begun.fingerprint, clock.seconds)


def _clean_up(root: Root, neighbors: NeighborSpec) -> None:
    """Remove what a finished model has no use for: where centers answer, the rows too."""
    root.remove_leftovers()
    if neighbors.name == "falk" and neighbors.assign != "point":
        shutil.rmtree(root.path / "rows", ignore_errors=True)


def _capped(neighbors: NeighborSpec, n_rows: int) -> NeighborSpec:
    """Return the spec with at most all rows as neighbors."""
    candidates = tuple(sorted({min(k, n_rows) for k in neighbors.n_neighbors}))
    n_assigned = neighbors.n_assigned and min(neighbors.n_assigned, n_rows)
    return replace(neighbors, n_neighbors=candidates, n_assigned=n_assigned)


def _fit_centers(begun: Beginning, neighbors: NeighborSpec, clock: StageClock, client: Any) -> None:
    root, handle = begun.root, rows_handle(begun)
    chosen = _select(begun, neighbors, handle, clock, client)
    k = chosen.n_neighbors
    centers = choose_centers(
        begun, handle, neighbors.inner(k), metric_of(chosen.spec), clock, client
    )
    own = replace(neighbors, percentiles=chosen.percentiles)
    chunk = _chunk(begun, k)
    job = NeighborJob(handle, chosen.spec, own, k, begun.seed, chunk)
    bundles = _bundles(begun, centers, chunk, k)
    with clock.stage("train", len(centers.places), _finished(root)):
        train_centers(bundles, job, client)
    tiles = find_tiles(root.path, len(centers.places))
    drop_others(root.path, tiles)
    reader = handle.open()
    rows = reader.read_places(centers.places)
    gamma = chosen.spec.gamma[0] if chosen.spec.gamma and len(chosen.spec.gamma) == 1 else None
    write_center_index(root, tiles, rows.X, rows.numbers, gamma)


def _chunk(begun: Beginning, n_neighbors: int) -> int:
    return plan_chunk(begun.sizes, n_neighbors, begun.sampling.leaf_rows, begun.resources)


def _bundles(
    begun: Beginning, centers: Centers, chunk: int, n_neighbors: int
) -> list[CenterBundle]:
    """Cut the centers that are not trained into runs of near centers."""
    done = done_mask(begun.root.path, len(centers.places))
    # Training a neighborhood costs the square of its rows.
    cost = float(n_neighbors) ** 2
    share = int(bundle_cost(len(done) * cost) / cost)
    # Models of a bundle are held until they are written.
    size = max(min(share, MAX_CHUNKS * chunk), 1)
    places = centers.places.tolist()
    groups = group_open([1] * len(places), done, size)
    return [CenterBundle(first, last, tuple(places[first : last + 1])) for first, last in groups]


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
        begun.root.update(selected=stored)
    gamma, percentile = stored["gamma"], stored["percentile"]
    chosen = replace(resolved, C=(stored["C"],), gamma=None if gamma is None else (gamma,))
    return Selected(
        int(stored["n_neighbors"]), chosen, None if percentile is None else (percentile,)
    )


def _local_errors(
    begun: Beginning, neighbors: NeighborSpec, spec: SolverSpec, handle: RowsHandle, client: Any
) -> FloatArray:
    """Return the k'-internal error of every candidate, over all rows drawn by seed."""
    job = NeighborJob(handle, spec, neighbors, max(neighbors.n_neighbors), begun.seed, 1)
    places = _drawn_places(begun, neighbors.n_selected, handle)
    judged = totals(np.array(compute_each(judge_row, [(p, job) for p in places], client)))
    errors: FloatArray = judged[..., 0] / judged[..., 1]
    return errors


def _drawn_places(begun: Beginning, n_drawn: int, handle: RowsHandle) -> list[int]:
    """Return the places of rows drawn by seed from all row numbers."""
    reader = handle.open()
    rng = SELECTED_ROWS.generator(begun.seed, n_rows=reader.n_rows)
    drawn = rng.choice(reader.n_rows, min(n_drawn, reader.n_rows), replace=False)
    numbers = reader.read_numbers()
    places: list[int] = np.argsort(numbers, kind="stable")[drawn].tolist()
    return places


def _best(errors: FloatArray, neighbors: NeighborSpec, spec: SolverSpec) -> dict[str, Any]:
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
