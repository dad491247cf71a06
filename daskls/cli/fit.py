"""`daskls fit DATA MODEL`: train, or resume a fit that was stopped."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskls.cli import cluster
from daskls.cli.inputs import (
    LabelColumn,
    Task,
    Unseen,
    check_store,
    expand,
    find_kind,
    find_label,
    open_data,
    open_input,
)
from daskls.cli.options import FitCommand, build_estimator, is_given
from daskls.cli.tables import format_nbytes, format_number, format_share, print_pairs

__all__ = ["fit"]


if TYPE_CHECKING:
    Fitted = str
else:
    # The choices that the command line shows: as many as there are methods.
    Fitted = Literal[tuple(FitCommand.estimators)]


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
    weight: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column of the rows' weights, of a table."),
    ] = None,
    missing: Annotated[
        Literal["refuse", "median"],
        typer.Option(
            help="Missing values of a table: refused, or a median and a flag.",
        ),
    ] = "refuse",
    unknown: Annotated[
        Unseen,
        typer.Option(help="Categories of a query that no training row had."),
    ] = "error",
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Columns of a table to leave out, joined by commas; repeatable.",
        ),
    ] = None,
    task: Annotated[
        Task,
        typer.Option(
            help="What is learned: classes or numbers. auto: by the label's values, which is said.",
        ),
    ] = "auto",
    method: Annotated[Fitted, typer.Option(help="The method.")] = "voronoi",
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
    source = open_input(data, "data set or table")
    is_table = source.has_columns
    dataset = None if is_table else source.dataset or open_data(data)
    classes = None if dataset is None else dataset.classes
    of_table = {"missing": missing, "unknown": unknown, "drop": drop or []}
    for_tables = (*of_table, "label", "weight")
    if not is_table and any(is_given(ctx, name) for name in for_tables):
        names = ", ".join(f"--{name}" for name in for_tables)
        raise typer.BadParameter(f"{names} are for tables; {data!r} is a data set")
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    # Before a cluster is started for nothing.
    build_estimator(ctx, method, classes, None)
    label = find_label(source, label, weight) if is_table else None
    kind = find_kind(source, label, task, can=len(FitCommand.estimators[method]) > 1)
    estimator = build_estimator(ctx, method, classes, kind)
    estimator.set_params(store=model, verbose=0 if quiet else 1)
    estimator._validate_params()
    check_store(model)
    started = time.perf_counter()
    with cluster.open_client(where, data) as client:
        estimator.set_params(client=client)
        if is_table:
            estimator.fit(data, label, weight, **of_table)
        else:
            estimator.fit(data)
    if quiet:
        # Else it was said before the training.
        _print_columns(estimator)
    _print_summary(estimator, model, time.perf_counter() - started)


def _print_columns(estimator: Any) -> None:
    """Print what became of the columns of a table."""
    if hasattr(estimator, "table_"):
        for line in estimator.table_.describe():
            typer.echo(line)


def _print_summary(estimator: Any, path: str, seconds: float) -> None:
    """Print what a finished fit came to."""
    from daskls.cli.info import format_cells
    from daskls.store.artifacts import open_store

    report = estimator.fit_report_
    pairs = [
        ("rows", format_number(estimator._reader.meta["n_rows"])),
        ("model", format_nbytes(open_store(path).nbytes())),
        ("seconds", f"{seconds:.1f}"),
    ]
    is_numbers = estimator._kind == "numbers"
    if len(report):
        name = "held-out D2" if estimator._solver().levels else "held-out R2"
        told = (name, format_r2(report)) if is_numbers else None
        pairs[1:1] = [
            ("cells", format_cells(report)),
            ("support rows", format_number(report.n_support.sum())),
            told or ("mean validation error", format_error(report)),
        ]
        # What trains on samples has no grid: `daskls info` shows the models that it tried.
        if not hasattr(estimator, "path_"):
            on_edge = format_share((report.edge != "").mean())
            pairs.insert(4, ("choice on a grid edge", f"{on_edge} of the cells"))
    print_pairs(f"{type(estimator).__name__}: {path}", pairs)


def format_r2(report: Any) -> str:
    """Return R2 or D2 of the rows that cells have left out; one of equal numbers counts as 1."""
    import numpy as np

    if not np.isfinite(report.validation_error).any():
        return "not measured: one candidate"
    errors = np.nan_to_num(report.validation_error)
    return f"{1.0 - float(np.average(errors, weights=report.n_rows)):.4f}"


def format_error(report: Any) -> str:
    """Return the validation error over all rows; a cell of one class has none and counts as 0."""
    import numpy as np

    evaluated = np.isfinite(report.validation_error)
    if not evaluated.any():
        return "not measured: one candidate"
    errors = np.nan_to_num(report.validation_error)
    return format_share(float(np.average(errors, weights=report.n_rows)))
