"""`daskls denoise DATA OUT`: a data set without the rows whose labels look wrong."""

import os
from typing import Annotated

import typer

from daskls.cli import cluster
from daskls.cli.fit import KernelName, NNeighbors, ScaleOption, Selection
from daskls.cli.inputs import expand, open_data, parse_counts, parse_scale, parse_values
from daskls.cli.methods import FILTERS, FilterName, build_estimator
from daskls.cli.tables import format_number, format_share, print_pairs

__all__ = ["denoise"]


def denoise(
    ctx: typer.Context,
    data: Annotated[
        str, typer.Argument(callback=expand, help="Data set, as `daskls convert` writes it.")
    ],
    out: Annotated[
        str, typer.Argument(callback=expand, help="The data set to write; must not exist.")
    ],
    method: FilterName = "falk",
    n_neighbors: NNeighbors = None,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Of the label's probability, of --method knnsvm.")
    ] = 0.5,
    selection: Annotated[
        Selection | None, typer.Option(help="How --method falk chooses its parameters.")
    ] = None,
    kernel: Annotated[KernelName, typer.Option(help="The kernel.")] = KernelName.RBF,
    C: Annotated[list[str] | None, typer.Option("--C", metavar="FLOAT", help="Default 1.")] = None,
    gamma: Annotated[
        list[str] | None, typer.Option(metavar="FLOAT", help="Default: by the rows' variance.")
    ] = None,
    feature_scale: ScaleOption = None,
    random_state: Annotated[
        int | None, typer.Option(min=0, help="Seed: the same one removes the same rows.")
    ] = None,
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

    if os.path.lexists(out):
        raise StoreError(f"{out} exists already; give another path or remove it first.")
    options = {
        "n_neighbors": parse_counts("n-neighbors", n_neighbors),
        "threshold": threshold,
        "selection": selection.value if selection else None,
        "kernel": kernel.value,
        "C": parse_values("C", C),
        "gamma": parse_values("gamma", gamma),
        "feature_scale": parse_scale(feature_scale),
        "random_state": random_state,
    }
    noise = build_estimator(FILTERS[method], method, options, ctx)
    noise.set_params(verbose=0 if quiet else 1)
    noise._validate_params()
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    with cluster.open_client(where) as client:
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
