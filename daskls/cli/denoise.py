"""`daskls denoise DATA OUT`: a data set without the rows whose labels look wrong."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from daskls.cli import cluster
from daskls.cli.inputs import expand, open_data
from daskls.cli.options import FilterCommand, build_estimator
from daskls.cli.tables import format_number, format_share, print_pairs

__all__ = ["denoise"]

if TYPE_CHECKING:
    Filtering = str
else:
    # As many as there are filters.
    Filtering = Literal[tuple(FilterCommand.estimators)]


def denoise(
    ctx: typer.Context,
    data: Annotated[
        str, typer.Argument(callback=expand, help="Data set, as `daskls convert` writes it.")
    ],
    out: Annotated[
        str, typer.Argument(callback=expand, help="The data set to write; must not exist.")
    ],
    method: Annotated[
        Filtering, typer.Option(help="falk: fast; knnsvm: an SVM a row, the row itself left out.")
    ] = "falk",
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: cluster.MemoryLimit = "auto",
    dashboard: cluster.Dashboard = None,
    quiet: cluster.Quiet = False,
) -> None:
    """Write the rows of a data set whose labels agree with the models around them."""
    dataset = open_data(data)
    from daskls.errors import StoreError
    from daskls.store.artifacts import store_at

    if store_at(out, what="output").exists(""):
        raise StoreError(f"{out} exists already; give another path or remove it first.")
    noise = build_estimator(ctx, method)
    noise.set_params(verbose=0 if quiet else 1)
    noise._validate_params()
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    with cluster.open_client(where, data) as client:
        cleaned = noise.set_params(client=client).fit(data).clean_dataset(data, out)
    removed = dataset.n_rows - cleaned.n_rows
    print_pairs(
        f"{type(noise).__name__}: {out}",
        [
            ("rows", format_number(dataset.n_rows)),
            ("removed", f"{removed:,} ({format_share(removed / dataset.n_rows)})"),
            ("kept", format_number(cleaned.n_rows)),
        ],
    )
