"""`daskls predict MODEL X OUT`: the label of every row, into a new Zarr array."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

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
    proba: Annotated[
        bool,
        typer.Option("--proba", help="Write the probability of each class, a column a class."),
    ] = False,
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: cluster.MemoryLimit = "auto",
    dashboard: cluster.Dashboard = None,
    quiet: cluster.Quiet = False,
) -> None:
    """Write the label of every row into a Zarr array, block by block; or its probabilities."""
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
    if proba:
        _check_probabilities(estimator, model)
    is_done = False
    try:
        with cluster.open_client(where) as client:
            estimator.set_params(client=client)
            with progress_bars(show=not quiet) as on_progress:
                estimator.predict_to_zarr(x, out, on_progress, proba=proba)
                is_done = True
            what = "rows of probabilities" if proba else "labels"
            typer.echo(f"{_n_rows(Path(out)):,} {what} in {out}")
    except KeyboardInterrupt as error:
        if not is_done:
            raise
        # It came while the cluster closed: the labels are all there.
        raise InterruptedCommandError(f"Interrupted; {out} is complete.") from error


def _check_probabilities(estimator: Any, model: str) -> None:
    """Refuse a model without maps to probabilities."""
    from daskls.errors import StoreError

    if not hasattr(estimator, "predict_proba"):
        raise StoreError(
            f"The model at {model} has no probabilities, as it was fitted without maps of its "
            "decision values. Fit it with --probability sigmoid, into another folder."
        )


def _n_rows(array: Path) -> int:
    """Return the length of a Zarr array."""
    return int(json.loads((array / "zarr.json").read_text())["shape"][0])
