"""`daskls predict MODEL X OUT`: a prediction for every row, in a new table or Zarr array."""

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.errors import InterruptedCommandError
from daskls.cli.inputs import (
    UnseenOption,
    check_exists,
    check_output,
    expand,
    load_model,
    open_input,
    open_query,
)

if TYPE_CHECKING:
    from daskls.store.objects import Scratch

# Suffixes of files that predictions are not written as; a Zarr array of such a name would mislead.
OTHER_ENDINGS = (".xlsx", ".xls", ".json", ".txt", ".npy", ".npz", ".feather", ".arrow", ".pkl")


def predict(
    model: str,
    x: Annotated[str, typer.Argument(callback=expand, metavar="X")],
    out: str,
    *,
    proba: bool = False,
    interval: bool = False,
    unknown: UnseenOption = None,
    where: cluster.ClusterOptions,
    quiet: cluster.Quiet = False,
) -> None:
    """Write the predicted label or number of every row; or its probabilities, or its interval.

    A table's columns are found by name, in any order. Predictions are in the order of the rows.

    Parameters
    ----------
    model : The model.
    x : A table, a data set or a Zarr array of rows.
    out : What to write: .csv, .tsv or .parquet, else a Zarr array; must not exist.
    proba : Write the probability of each class, one column per class.
    interval : Write an interval for each number: lower and upper.
    """
    check_exists(model, "model")
    source = open_input(x, "data set, array or table")
    from daskls.sources.write import prediction_format, write_predictions
    from daskls.store.arrays import open_array

    _check_free(out)
    estimator = load_model(model, unknown)
    _check_answers(estimator, model, proba=proba, interval=interval)
    # Not all estimators take these options: pass those that were given.
    given = {"proba": proba, "interval": interval}
    options = {name: True for name, is_given in given.items() if is_given}
    what = "numbers" if estimator._kind == "numbers" else "labels"
    what = "rows of probabilities" if proba else "intervals" if interval else what
    is_done, scratch = False, _scratch_beside(out, "query")
    query = open_query(estimator, source, where, scratch=scratch, with_y=False, quiet=quiet)
    try:
        with query as (rows, listen):
            with _scratch_beside(out, "answers") as answers:
                target = answers.shared if prediction_format(out) else out
                estimator.predict_to_zarr(rows, target, listen, **options)
                n_rows = open_array(target).shape[0]
                if prediction_format(out):
                    write_predictions(target, Path(out), _column_names(estimator, **options))
                is_done = True
            typer.echo(f"{n_rows:,} {what} in {out}")
    except KeyboardInterrupt as error:
        if not is_done:
            raise
        # Ctrl-C came while the cluster closed: the output is complete.
        raise InterruptedCommandError(f"Interrupted; {out} is complete.") from error


def _check_free(out: str) -> None:
    from daskls.errors import StoreError
    from daskls.sources.write import ENDINGS, prediction_format
    from daskls.store.objects import is_bucket

    if is_bucket(out) and prediction_format(out):
        raise StoreError(
            f"{out} is a file in a bucket, but files of predictions are written to a disk only. "
            "Give a path, or a URL without that suffix, which then holds a Zarr array."
        )
    if out.lower().endswith(OTHER_ENDINGS):
        raise StoreError(
            f"Predictions are not written as {out.rpartition('.')[2]} files: give a path that ends "
            f"in {', '.join(ENDINGS)}, or any other name, as {out.rpartition('.')[0]}.zarr, for a "
            "Zarr array."
        )
    check_output(out)


def _scratch_beside(out: str, what: str) -> "Scratch":
    """Return a place beside the output, as workers can reach it too; made when first used."""
    from daskls.store.objects import Scratch, is_bucket, store_at

    where = store_at(out, what="output").where()
    name = f"{what}-{uuid.uuid4().hex[:12]}"
    if is_bucket(where):
        return Scratch.inside(store_at(f"{where}-{name}"), "")
    folder, file_name = os.path.split(where)
    return Scratch.inside(store_at(folder), f".{file_name}-{name}")


def _column_names(estimator: Any, *, proba: bool = False, interval: bool = False) -> list[str]:
    if proba:
        return [str(label) for label in estimator.classes_]
    table, target = getattr(estimator, "table_", None), estimator._reader.target
    label = table.label if table is not None and table.label else None
    if estimator._kind == "classes":
        return [label or "label"]
    y = label or "y"
    if isinstance(target.quantile, tuple):
        return [f"{y} at {level:g}" for level in target.quantile]
    names = [y] if target.width == 1 else [f"{y} {i}" for i in range(target.width)]
    return [f"{name} {end}" for name in names for end in ("lower", "upper")] if interval else names


def _check_answers(estimator: Any, model: str, *, proba: bool, interval: bool) -> None:
    """Refuse to ask a model for what it has not."""
    from daskls.errors import StoreError

    why, again = "", "into another folder."
    if proba and estimator._kind == "numbers":
        why = "predicts numbers, which have no probabilities."
    elif proba and not hasattr(estimator, "predict_proba"):
        why = "has no probabilities, as it was fitted without maps of its decision values. Fit it "
        why += f"with --probability sigmoid, {again}"
    elif interval and not hasattr(estimator, "predict_interval"):
        why = f"has no intervals. Fit a regressor with --interval 0.9, {again}"
    if why:
        raise StoreError(f"The model at {model} {why}")
