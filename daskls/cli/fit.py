"""Commands that train: `daskls fit DATA MODEL`, and `daskls plan DATA`, what a fit takes."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_pairs
from daskls.cli.inputs import (
    Dropped,
    LabelColumn,
    Missing,
    Task,
    Unknown,
    WeightColumn,
    check_for_tables,
    expand,
    find_kind,
    find_label,
    open_data,
    open_input,
)
from daskls.cli.options import FitCommand, build_estimator

if TYPE_CHECKING:
    MethodName = str
else:
    # The command line offers every registered method, which no static type can list.
    MethodName = Literal[tuple(FitCommand.estimators)]


def fit(
    ctx: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            callback=expand,
            help="A table (.csv, .tsv, .parquet, .npz, .libsvm; a folder or pattern), or a data "
            "set on Zarr.",
        ),
    ],
    model: Annotated[
        str, typer.Argument(callback=expand, help="Folder of the model; an unfinished fit resumes.")
    ],
    label: LabelColumn = None,
    weight: WeightColumn = None,
    missing: Missing = "auto",
    unknown: Unknown = "zero",
    drop: Dropped = None,
    task: Annotated[
        Task,
        typer.Option(
            help="What to learn: classes or numbers. auto: by the labels; the choice is printed.",
        ),
    ] = "auto",
    method: Annotated[MethodName, typer.Option(help="The method.")] = "voronoi",
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: cluster.MemoryLimit = "auto",
    dashboard: cluster.Dashboard = None,
    quiet: cluster.Quiet = False,
) -> None:
    """Train on a table or a data set and write the model, cell by cell.

    A fit that was stopped resumes when the same command runs again: only unfinished cells are
    trained.
    """
    from daskls.run.identity import check_free
    from daskls.store.objects import store_at

    source = open_input(data, "data set or table")
    is_table = source.has_columns
    dataset = None if is_table else source.dataset or open_data(data)
    classes = None if dataset is None else dataset.classes
    of_table = {"missing": missing, "unknown": unknown, "drop": drop or []}
    check_for_tables(ctx, source, data)
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    # Refuse bad options before any row is read or a cluster is started.
    build_estimator(ctx, method, classes, None)
    label = find_label(source, label, weight) if is_table else None
    kind = find_kind(source, label, task, has_regressor=_has_regressor(method))
    estimator = build_estimator(ctx, method, classes, kind)
    estimator.set_params(store=model, verbose=0 if quiet else 1)
    check_free(store_at(model, what="model"))
    started = time.perf_counter()
    with cluster.open_client(where, data) as client:
        estimator.set_params(client=client)
        if is_table:
            estimator.fit(data, label, weight, **of_table)
        else:
            estimator.fit(data)
    if quiet and hasattr(estimator, "table_"):
        # If not quiet, the estimator has printed them before training.
        typer.echo("\n".join(estimator.table_.describe()))
    _print_summary(estimator, model, time.perf_counter() - started)


def _has_regressor(method: str) -> bool:
    return len(FitCommand.estimators[method]) > 1


def _print_summary(estimator: Any, path: str, seconds: float) -> None:
    from dask.utils import format_bytes

    from daskls.cli.info import format_cells
    from daskls.live.record import MEASURES, mean_error
    from daskls.solvers.registry import find_loss
    from daskls.store.objects import open_store

    report = estimator.fit_report_
    pairs = [
        ("rows", format_number(estimator._reader.meta["n_rows"])),
        ("model", format_bytes(open_store(path).nbytes())),
        ("seconds", f"{seconds:.1f}"),
    ]
    if len(report):
        measure, error = MEASURES[estimator._reader.target.measured_as], mean_error(report)
        measured = "not measured: one candidate" if error is None else measure.format_mean(error)
        pairs[1:1] = [
            ("cells", format_cells(report)),
            ("support rows", format_number(report.n_support.sum())),
            (measure.mean_name, measured),
        ]
        # Sampling methods have no grid: `daskls info` shows the models that they tried. Nor have
        # cells one where a choice serves all.
        if not hasattr(estimator, "path_") and not find_loss(estimator._reader.spec).is_global:
            on_edge = format_share((report.edge != "").mean())
            pairs.insert(4, ("choice on a grid edge", f"{on_edge} of the cells"))
    print_pairs(f"{type(estimator).__name__}: {path}", pairs)


def plan(
    ctx: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            callback=expand,
            help="A table or a data set, as for `daskls fit`; if not given, --rows and --features "
            "say what to plan for.",
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Plan for this many rows, such as 1e9.")
    ] = None,
    features: Annotated[
        int | None, typer.Option(min=1, help="Features, where there is no DATA.")
    ] = None,
    classes: Annotated[
        int | None, typer.Option(min=2, help="Classes, where DATA names none; if not given, 2.")
    ] = None,
    label: LabelColumn = None,
    weight: WeightColumn = None,
    missing: Missing = "auto",
    unknown: Unknown = "zero",
    drop: Dropped = None,
    task: Annotated[
        Task, typer.Option(help="What to learn: classes or numbers. auto: as fit finds it.")
    ] = "auto",
    method: Annotated[MethodName, typer.Option(help="The method.")] = "voronoi",
    scheduler: cluster.Scheduler = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Processes of a cluster that need not exist; 0: threads. If not given, one per "
            "core.",
        ),
    ] = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: Annotated[
        str,
        typer.Option(
            "--memory-limit",
            "--memory",
            help="Memory of each worker, such as 2GiB; auto: its share of this machine.",
        ),
    ] = "auto",
) -> None:
    """Say what a fit would take: tasks, bytes, memory, and what it would refuse.

    Nothing is trained.
    """
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit)
    where.check()
    n_rows = None if rows is None else _whole(rows)
    X, y, kind = _planned_for(ctx, method, data, n_rows, features, classes, label, weight, task)
    estimator = build_estimator(ctx, method, None, kind)
    dropped = [*(drop or []), *([] if weight is None else [weight])]
    of_table = {"missing": missing, "unknown": unknown, "drop": dropped}
    with _client(where) as (client, offered):
        estimator.set_params(client=client)
        planned = estimator.plan(X, y, **of_table, **offered)
    print_pairs(planned.title, planned.pairs())


def _whole(text: str) -> int:
    """Return the number of rows, which may be written as 1e9."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value.is_integer() and value >= 2):
        raise typer.BadParameter(
            f"--rows {text!r} is not a whole number of at least 2, such as 1e9"
        )
    return int(value)


def _planned_for(
    ctx: Any,
    method: str,
    data: str | None,
    n_rows: int | None,
    n_features: int | None,
    n_classes: int | None,
    label: str | None,
    weight: str | None,
    task: str,
) -> tuple[Any, Any, Any]:
    """Return X and y as an estimator's `plan` takes them, and the kind of targets."""
    import numpy as np

    y = None if n_classes is None else np.arange(n_classes)
    if data is None:
        if n_rows is None or n_features is None:
            raise typer.BadParameter("give DATA, or both --rows and --features", ctx=ctx)
        return (n_rows, n_features), y, "numbers" if task == "regression" else "classes"
    if n_features is not None:
        raise typer.BadParameter("--features is for a plan without DATA, which has its own")
    source = open_input(data, "data set or table")
    # First of all, as it refuses what is neither a table nor a data set.
    dataset = None if source.has_columns else source.dataset or open_data(data)
    check_for_tables(ctx, source, data)
    label = find_label(source, label, weight) if source.has_columns else label
    kind = find_kind(source, label, task, has_regressor=_has_regressor(method))
    if dataset is None:
        if n_rows is not None or n_classes is not None:
            raise typer.BadParameter(
                "--rows and --classes are for a data set, or without DATA; a table is planned as "
                "it is. Convert it first, or give --rows and --features alone.",
                ctx=ctx,
            )
        return data, label, kind
    if n_rows is None:
        return data, y, kind
    known = None if dataset.classes is None else np.asarray(dataset.classes)
    return (n_rows, dataset.n_features), known if y is None else y, kind


@contextmanager
def _client(where: cluster.Where) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield a client, or None without --scheduler; and the arguments of `plan` about workers."""
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
