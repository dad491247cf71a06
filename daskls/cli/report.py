"""`daskls report MODEL [DATA]`: a whole fit on one page."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.inputs import (
    LabelColumn,
    UnseenOption,
    check_data,
    check_exists,
    expand,
    let_unknown,
    open_rows_of,
)
from daskls.cli.tables import print_pairs

__all__ = ["report"]


def report(
    model: Annotated[str, typer.Argument(callback=expand, help="The model.")],
    data: Annotated[
        str | None,
        typer.Argument(
            callback=lambda path: path and expand(path),
            help="A table or a data set with labels, or numbers, that the fit has not seen.",
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=lambda path: path and expand(path),
            help="Write one page with pictures, which needs no other file; must not exist.",
        ),
    ] = None,
    label: LabelColumn = None,
    unknown: UnseenOption = None,
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: cluster.MemoryLimit = "auto",
    dashboard: cluster.Dashboard = None,
    quiet: cluster.Quiet = False,
) -> None:
    """Sum a fit up: cells, errors, grid, times; on rows with labels confusion and calibration.

    On rows with numbers, of a regressor: predictions beside true numbers, and residuals. Without
    --html it prints what was found; pictures need matplotlib.
    """
    check_exists(model, "model")
    if data is None and (label, unknown) != (None, None):
        raise typer.BadParameter("--label and --unknown are for rows: give DATA")
    if data is not None:
        check_data(data)
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    where.check()
    from daskls.errors import StoreError

    if html is not None and os.path.lexists(html):
        raise StoreError(f"{html} exists already; give another path or remove it first.")
    import daskls

    estimator = daskls.load(model)
    let_unknown(estimator, unknown)
    with _evaluated(estimator, data, label, where, show=not quiet) as rows:
        from daskls.plotting import ReportDisplay

        display = ReportDisplay.from_estimator(estimator, rows)
    if html is None:
        _print_report(display)
        return
    display.to_html(html)
    typer.echo(f"Report: {html}")


@contextmanager
def _evaluated(
    estimator: Any, data: str | None, label: str | None, where: Any, *, show: bool
) -> Iterator[str | None]:
    """Yield the path of the test set as a model takes it, and a cluster that answers it."""
    if data is None:
        yield None
        return
    from daskls.estimators.console import progress_bars

    with (
        cluster.open_client(where, data) as client,
        progress_bars(show=show) as listen,
        open_rows_of(estimator, data, label, with_y=True, on_progress=listen) as rows,
    ):
        estimator.set_params(client=client)
        yield rows


def _print_report(display: Any) -> None:
    """Print what a report says in words."""
    print_pairs(display.title, display.facts)
    typer.echo()
    print_pairs("Parameters that are not the default", display.parameters or [("none", "")])
    if display.notes:
        typer.echo()
        print_pairs("Notes", [("-", note) for note in display.notes])
    typer.echo()
    print_pairs("Pictures, with --html FILE", [(p.title, p.note) for p in display.panels])
