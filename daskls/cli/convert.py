"""Commands that write data sets: `daskls convert IN OUT` and `daskls denoise DATA OUT`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_pairs
from daskls.cli.inputs import ColumnOptions, check_exists, check_output, open_data, path_argument
from daskls.cli.options import Filtering, build_estimator


@dataclass(frozen=True)
class ConversionOptions(ColumnOptions):
    """Options as `daskls.datasets.convert` takes them."""

    label: Annotated[
        str | None,
        typer.Option(
            help="Column of the labels, by name or number; none: the file has no labels. "
            "[y, label, target or class]"
        ),
    ] = None
    split: Annotated[
        str | None, typer.Option(help="train or test, of an .npz file that holds both.")
    ] = None
    dtype: Annotated[
        str | None, typer.Option(help="dtype of the stored features, such as float32.")
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option(min=1, help="Features of a LIBSVM file; if not given, its largest index."),
    ] = None
    chunk_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of a chunk; if not given, about 4 MiB of them.")
    ] = None
    task: Annotated[
        Literal["classification", "regression"],
        typer.Option(help="What the labels are: classes, or numbers, which are kept unchanged."),
    ] = "classification"
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a data set.")] = False


def convert(
    source: Annotated[
        str, path_argument("A .csv, .npz, .npy, .libsvm or .parquet file.", metavar="IN")
    ],
    target: Annotated[str, path_argument("The data set to write.", metavar="OUT")],
    options: ConversionOptions,
    quiet: cluster.Quiet = False,
) -> None:
    """Convert a file to a data set; labels of any kind become codes of sorted classes."""
    check_exists(source, "file")
    _check_dtype(options.dtype)
    from daskls.datasets import convert as convert_file
    from daskls.estimators.view import progress_bars, rows_done
    from daskls.sources.encoding import TableEncoding

    with progress_bars(show=not quiet) as listen:
        progress = rows_done("convert", listen)
        dataset = convert_file(
            source, target, progress=progress, **vars(options) | options.of_table
        )
    if dataset.table is not None and not quiet:
        typer.echo("\n".join(TableEncoding.from_json(dataset.table).describe()))
    classes = f", {len(dataset.classes)} classes" if dataset.classes is not None else ""
    typer.echo(f"{dataset.n_rows:,} rows x {dataset.n_features} features{classes} in {target}")


def _check_dtype(dtype: str | None) -> None:
    import numpy as np

    try:
        np.dtype(dtype)
    except TypeError as error:
        raise typer.BadParameter(
            f"--dtype {dtype!r} is not a numeric dtype; write float32 or float64"
        ) from error


def denoise(
    ctx: typer.Context,
    data: Annotated[str, path_argument("Data set, as `daskls convert` writes it.")],
    out: Annotated[str, path_argument("The data set to write; must not exist.")],
    where: cluster.ClusterOptions,
    method: Annotated[
        Filtering,
        typer.Option(help="falk: fast; knnsvm: an SVM for each row, trained without that row."),
    ] = "falk",
    quiet: cluster.Quiet = False,
) -> None:
    """Copy a data set without the rows whose labels contradict the local models around them."""
    dataset = open_data(data)
    check_output(out)
    noise = build_estimator(ctx, method)
    noise.set_params(verbose=0 if quiet else 1)
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
