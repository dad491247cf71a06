"""Commands that write data sets: `daskls convert IN OUT` and `daskls denoise DATA OUT`."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_table
from daskls.cli.inputs import ColumnOptions, check_exists, check_output, expand, open_data
from daskls.cli.options import Filtering, build_estimator


@dataclass(frozen=True)
class ConversionOptions(ColumnOptions):
    """Options as `daskls.datasets.convert` takes them.

    Parameters
    ----------
    label : Column of the labels, by name or number; none: the file has no labels. [y, label, target
        or class]
    split : train or test, of an .npz file that holds both.
    dtype : dtype of the stored features, such as float32.
    n_features : Features of a LIBSVM file; if not given, its largest index.
    chunk_rows : Rows of a chunk; if not given, about 4 MiB of them.
    task : What the labels are: classes, or numbers, which are kept unchanged.
    overwrite : Replace a data set.
    """

    label: str | None = None
    split: str | None = None
    dtype: str | None = None
    n_features: Annotated[int | None, typer.Option(min=1)] = None
    chunk_rows: Annotated[int | None, typer.Option(min=1)] = None
    task: Literal["classification", "regression"] = "classification"
    overwrite: bool = False


def convert(
    source: Annotated[str, typer.Argument(callback=expand, metavar="IN")],
    out: Annotated[str, typer.Argument(callback=expand, metavar="OUT")],
    *,
    options: ConversionOptions,
    quiet: cluster.Quiet = False,
) -> None:
    """Convert a file to a data set; labels of any kind become codes of sorted classes.

    Parameters
    ----------
    source : A .csv, .npz, .npy, .libsvm or .parquet file.
    out : The data set to write.
    """
    check_exists(source, "file")
    import numpy as np

    try:
        np.dtype(options.dtype)
    except TypeError as error:
        raise typer.BadParameter(
            f"--dtype {options.dtype!r} is not a numeric dtype; write float32 or float64"
        ) from error
    from daskls.datasets import convert as convert_file
    from daskls.estimators.view import progress_bars, rows_done
    from daskls.sources.encoding import TableEncoding

    with progress_bars(show=not quiet) as listen:
        settings: Any = vars(options) | options.of_table
        dataset = convert_file(source, out, progress=rows_done("convert", listen), **settings)
    if dataset.table is not None and not quiet:
        typer.echo("\n".join(TableEncoding.from_json(dataset.table).describe()))
    classes = f", {len(dataset.classes)} classes" if dataset.classes is not None else ""
    typer.echo(f"{dataset.n_rows:,} rows x {dataset.n_features} features{classes} in {out}")


def denoise(
    ctx: typer.Context,
    data: str,
    out: str,
    *,
    where: cluster.ClusterOptions,
    method: Filtering = "falk",
    quiet: cluster.Quiet = False,
) -> None:
    """Copy a data set without the rows whose labels contradict the local models around them.

    Parameters
    ----------
    data : Data set, as `daskls convert` writes it.
    out : The data set to write; must not exist.
    method : falk: fast; knnsvm: an SVM for each row, trained without that row.
    """
    dataset = open_data(data)
    check_output(out)
    noise = build_estimator(ctx, method)
    noise.set_params(verbose=0 if quiet else 1)
    with cluster.open_client(where, data) as client:
        cleaned = noise.set_params(client=client).fit(data).clean_dataset(data, out)
    removed = dataset.n_rows - cleaned.n_rows
    pairs = {"rows": dataset.n_rows, "removed": removed, "kept": cleaned.n_rows}
    told = {name: format_number(value) for name, value in pairs.items()}
    told["removed"] += f" ({format_share(removed / dataset.n_rows)})"
    print_table(f"{type(noise).__name__}: {out}", told.items())
