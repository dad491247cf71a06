"""`daskls convert IN OUT`: a file of another format to a data set on Zarr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import typer

from daskls.cli import cluster
from daskls.cli.inputs import check_exists, expand

__all__ = ["convert", "rows_progress"]


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", callback=expand, help="A .csv, .npz, .npy, .libsvm or .parquet file."
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="OUT", callback=expand, help="The data set to write.")
    ],
    label: Annotated[
        str | None,
        typer.Option(
            help="Column of the labels, by name or number; none: there is none. "
            "[y, label, target or class]"
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="train or test, of an .npz file that holds both.")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="Of the stored features, as float32.")] = None,
    n_features: Annotated[
        int | None, typer.Option(min=1, help="Of a LIBSVM file; else its largest index.")
    ] = None,
    chunk_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of a chunk; else about 4 MiB of them.")
    ] = None,
    task: Annotated[
        Literal["classification", "regression"],
        typer.Option(help="What the labels are: classes, or numbers, kept as they are."),
    ] = "classification",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a data set.")] = False,
    quiet: cluster.Quiet = False,
) -> None:
    """Convert a file to a data set; labels of any kind become codes of sorted classes."""
    check_exists(source, "file")
    _check_dtype(dtype)
    from daskls.datasets import convert as convert_file

    with rows_progress("convert", show=not quiet) as progress:
        dataset = convert_file(
            source,
            target,
            label=int(label) if label is not None and label.isdigit() else label,
            split=split,
            dtype=dtype,
            n_features=n_features,
            chunk_rows=chunk_rows,
            overwrite=overwrite,
            progress=progress,
            task=task,
        )
    classes = f", {len(dataset.classes)} classes" if dataset.classes is not None else ""
    typer.echo(f"{dataset.n_rows:,} rows x {dataset.n_features} features{classes} in {target}")


def _check_dtype(dtype: str | None) -> None:
    """Refuse a name that is no dtype."""
    import numpy as np

    try:
        np.dtype(dtype)
    except TypeError as error:
        raise typer.BadParameter(
            f"--dtype {dtype!r} is not a numeric dtype; write float32 or float64"
        ) from error


@contextmanager
def rows_progress(stage: str, *, show: bool) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yield a function of (rows done, all rows) that draws a bar; None if not shown."""
    from daskls.estimators.console import progress_bars
    from daskls.run.progress import Progress

    with progress_bars(show=show) as listen:
        if listen is None:
            yield None
            return

        def report(done: int, total: int | None) -> None:
            listen(Progress(stage, done if total else None, total or done))

        yield report
