"""`daskls plan DATA`: what a fit would cost, before it begins."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskls.cli import cluster
from daskls.cli.inputs import LabelColumn, Task, expand, find_kind, open_data, open_input
from daskls.cli.options import FitCommand, build_estimator
from daskls.cli.tables import print_pairs, print_table

__all__ = ["plan"]

if TYPE_CHECKING:
    Planned = str
else:
    # As many as there are methods.
    Planned = Literal[tuple(FitCommand.estimators)]


def plan(
    ctx: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            callback=lambda path: path and expand(path),
            help="A data set on Zarr, or a Parquet file; none: --rows and --features say what is "
            "planned for.",
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Plan for so many rows, as 1e9.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Features, where there is no DATA.")
    ] = None,
    classes: Annotated[
        int | None, typer.Option(min=2, help="Classes, where DATA names none; else 2.")
    ] = None,
    label: LabelColumn = None,
    task: Annotated[
        Task, typer.Option(help="What is learned: classes or numbers. auto: as fit finds it.")
    ] = "auto",
    method: Annotated[Planned, typer.Option(help="The method.")] = "voronoi",
    scheduler: cluster.Scheduler = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0, help="Processes of a cluster that need not exist; 0: threads. Else one a core."
        ),
    ] = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: Annotated[
        str,
        typer.Option(
            "--memory-limit",
            "--memory",
            help="Memory of each worker, as 2GiB; auto: its share of this machine.",
        ),
    ] = "auto",
    timed: Annotated[
        bool, typer.Option("--timed/--no-timed", help="Time pieces of the work.")
    ] = True,
) -> None:
    """Say what a fit would cost: tasks, bytes, seconds, and what it would refuse.

    Nothing is trained. Pieces of the work are timed here, or on a worker of --scheduler: some
    seconds.
    """
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit)
    where.check()
    n_rows = None if rows is None else _whole(rows)
    X, y, kind = _planned_for(ctx, method, data, n_rows, features, classes, label, task)
    estimator = build_estimator(ctx, method, None, kind)
    with _client(where) as (client, offered):
        estimator.set_params(client=client)
        bill = estimator.plan(X, y, timed=timed, **offered)
    _print_bill(bill)


def _whole(text: str) -> int:
    """Return a whole number, which may be written as 1e9.

    Raises
    ------
    typer.BadParameter
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if value != int(value) or value < 2:
        raise typer.BadParameter(f"--rows {text!r} is not a whole number of 2 or more, as 1e9")
    return int(value)


def _planned_for(
    ctx: Any,
    method: str,
    data: str | None,
    n_rows: int | None,
    n_features: int | None,
    n_classes: int | None,
    label: str | None,
    task: str,
) -> tuple[Any, Any, Any]:
    """Return X and y as `plan` of an estimator takes them, and what y holds.

    Raises
    ------
    typer.BadParameter : neither data nor a whole shape
    """
    import numpy as np

    able = len(FitCommand.estimators[method]) > 1
    y = None if n_classes is None else np.arange(n_classes)
    if data is None:
        if n_rows is None or n_features is None:
            raise typer.BadParameter("give DATA, or both --rows and --features", ctx=ctx)
        return (n_rows, n_features), y, "numbers" if task == "regression" else "classes"
    if n_features is not None:
        raise typer.BadParameter("--features is for a plan without DATA, which has its own")
    source = open_input(data, "data set or table")
    if source.has_columns:
        kind = "numbers" if task == "regression" else "classes"
        return data, label, kind
    dataset = source.dataset or open_data(data)
    kind = find_kind(source, label, task, can=able)
    if n_rows is None:
        return data, y, kind
    named = None if dataset.classes is None else np.asarray(dataset.classes)
    return (n_rows, dataset.n_features), named if y is None else y, kind


@contextmanager
def _client(where: cluster.Where) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield a client of a running scheduler, or None; and what `plan` is told of workers."""
    import dask

    if where.scheduler is not None:
        with cluster.open_client(where) as client:
            yield client, {}
        return
    from dask.system import CPU_COUNT

    with dask.config.set(scheduler="threads"):
        if where.workers == 0:
            yield None, {}
            return
        offered = {
            "workers": CPU_COUNT if where.workers is None else where.workers,
            "threads_per_worker": where.threads_per_worker,
            "memory_limit": where.limit_nbytes,
        }
        yield None, offered


def _print_bill(bill: Any) -> None:
    """Print a bill: its stages, what they come to, what would be refused."""
    print_table(bill.title, ("stage", "tasks", "largest task", "CPU"), bill.rows())
    typer.echo()
    print_pairs("In all", bill.pairs())
    remarks = list(bill.remarks())
    if remarks:
        typer.echo()
        print_pairs("Refused, or assumed" if bill.refusals else "Assumed", remarks)
