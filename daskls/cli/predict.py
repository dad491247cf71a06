"""`daskls predict MODEL X OUT`: the label of every row, into a new Zarr array."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from daskls.cli import cluster
from daskls.cli.errors import InterruptedCommandError
from daskls.cli.inputs import check_exists, expand

__all__ = ["predict"]


def predict(
    model: Annotated[str, typer.Argument(callback=expand, help="The model.")],
    x: Annotated[
        str, typer.Argument(metavar="X", callback=expand, help="Data set or Zarr array of rows.")
    ],
    out: Annotated[
        str, typer.Argument(callback=expand, help="Zarr array to write; must not exist.")
    ],
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: cluster.MemoryLimit = "auto",
    dashboard: cluster.Dashboard = None,
    quiet: cluster.Quiet = False,
) -> None:
    """Write the label of every row into a Zarr array, block by block."""
    check_exists(model, "model")
    check_exists(x, "data set or array")
    from daskls.errors import StoreError
    from daskls.estimators.console import progress_bars

    if os.path.lexists(out):
        raise StoreError(f"{out} exists already; give another path or remove it first.")
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    where.check()
    import daskls

    estimator = daskls.load(model)
    is_done = False
    try:
        with cluster.open_client(where) as client:
            estimator.set_params(client=client)
            with progress_bars(show=not quiet) as on_progress:
                estimator.predict_to_zarr(x, out, on_progress)
                is_done = True
            typer.echo(f"{_n_rows(Path(out)):,} labels in {out}")
    except KeyboardInterrupt as error:
        if not is_done:
            raise
        # It came while the cluster closed: the labels are all there.
        raise InterruptedCommandError(f"Interrupted; {out} is complete.") from error


def _n_rows(array: Path) -> int:
    """Return the length of a Zarr array."""
    return int(json.loads((array / "zarr.json").read_text())["shape"][0])
