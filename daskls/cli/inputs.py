"""Arguments of commands: paths, tables and their labels, words that stand for values."""

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from daskls.cli import cluster

if TYPE_CHECKING:
    from daskls.records import TargetKind
    from daskls.sources.formats import Source
    from daskls.store.objects import Scratch


# The task to learn; auto: decided by the labels.
Task = Literal["auto", "classification", "regression"]
# Treatment of categories that no training row had.
Unseen = Literal["zero", "error"]
LabelColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column of the labels of a table.")
]
UnseenOption = Annotated[
    Unseen | None,
    typer.Option(help="Categories that no training row had; if not given, as in the fit."),
]


@dataclass(frozen=True)
class ColumnOptions:
    """How the columns of a table are read.

    Parameters
    ----------
    missing : Missing values of a table: the median and a flag in their place, or an error.
    unknown : Categories of a query that no training row had.
    drop : Columns of a table to leave out, joined by commas; repeatable.
    """

    label: LabelColumn = None
    missing: Literal["auto", "refuse"] = "auto"
    unknown: Unseen = "zero"
    drop: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None

    @property
    def of_table(self) -> dict[str, Any]:
        return {"missing": self.missing, "unknown": self.unknown, "drop": self.drop or []}


@dataclass(frozen=True)
class TrainedColumnOptions(ColumnOptions):
    """How the columns of a table to train on are read.

    Parameters
    ----------
    weight : Column of the rows' weights, of a table.
    """

    weight: Annotated[str | None, typer.Option(metavar="NAME")] = None


def expand(path: str | None) -> str | None:
    """Return a path with its ~ expanded, as shells do so only at the beginning of a word."""
    from daskls.store.objects import expand_path

    return None if path is None else expand_path(path)


def check_exists(path: str, what: str) -> None:
    if "://" not in path and not os.path.lexists(path):
        raise typer.BadParameter(f"there is no {what} at {path!r}: the path does not exist")


def check_output(path: str) -> None:
    from daskls.store.errors import exists_already
    from daskls.store.objects import store_at

    if store_at(path, what="output").exists(""):
        raise exists_already(path)


def open_data(path: str) -> Any:
    """Open a data set; for a file, say that `daskls convert` must convert it first."""
    from daskls.store.dataset import open_dataset

    check_exists(path, "data set")
    if os.path.isfile(path):
        raise typer.BadParameter(
            f"{path!r} is a file, not a daskls data set; "
            f"run `daskls convert {path} {os.path.splitext(path)[0]}.zarr` first"
        )
    return open_dataset(path)


def open_input(path: str, what: str) -> "Source":
    from daskls.sources.formats import open_source

    if not glob.has_magic(path) or os.path.lexists(path):
        check_exists(path, what)
    return open_source(path)


def check_data(path: str) -> "Source":
    """Open rows with labels; refuse what cannot hold labels: anything but a table or a data set."""
    source = open_input(path, "data set or table")
    if not source.has_columns and source.dataset is None:
        # Raises the error of a path that is no data set.
        open_data(path)
    return source


def find_label(source: "Source", label: str | None, weight: str | None) -> str | None:
    """Return the label column of a table, found by names alone; of a file of arrays ``label``."""
    from daskls.estimators.tables import weight_column
    from daskls.sources.labels import pick_label_column
    from daskls.store.objects import temporary_path

    if source.kind == "features":
        return label
    table = source.open(label, temporary_path())
    column = pick_label_column(table, label, required=True)
    weight_column(table, weight, column)
    return column


def find_kind(
    source: "Source", label: str | None, task: str, *, has_regressor: bool
) -> "TargetKind":
    """Return whether to learn classes or numbers; "auto" decides by the labels, and says so."""
    from daskls.sources.labels import kind_of_arrays, kind_of_column, kind_of_data
    from daskls.store.objects import temporary_path

    if task != "auto":
        return "classes" if task == "classification" else "numbers"
    if source.dataset is not None:
        kind, why = kind_of_data(source.dataset)
    elif not has_regressor:
        return "classes"
    elif source.kind == "features":
        kind, why = kind_of_arrays(str(source.files[0]), label)
    else:
        kind, why = kind_of_column(source.open(label, temporary_path()), str(label))
    taken_as, other = "numbers, a regression", "classification"
    if kind == "classes":
        taken_as, other = "classes", "regression"
    if kind == "numbers" or "whole numbers" in why:
        so = f"{label or 'y'}: {why}, so they are taken as {taken_as}"
        typer.echo(f"{so}; override by --task {other}.")
    return kind


@contextmanager
def open_query(
    estimator: Any,
    source: "Source",
    where: cluster.ClusterOptions,
    label: str | None = None,
    scratch: "Scratch | None" = None,
    *,
    with_y: bool,
    quiet: bool,
) -> Iterator[tuple[str, Any]]:
    """Yield the path of rows that a model can take, and a listener; the model gets a client.

    A table is converted into ``scratch``.
    """
    if not source.has_columns and label is not None:
        raise typer.BadParameter(
            f"--label is for tables; {source.where!r} is a Zarr group or array"
        )
    from daskls.estimators.tables import query_rows
    from daskls.estimators.view import progress_bars
    from daskls.store.objects import Scratch

    opened = cluster.open_client(where, source.where), progress_bars(show=not quiet)
    with opened[0] as client, opened[1] as listen:
        estimator.set_params(client=client)
        if not source.has_columns:
            yield source.where, listen
            return
        temp = scratch or Scratch.temporary()
        with query_rows(estimator, source, label, temp, with_y=with_y, on_progress=listen) as rows:
            yield rows, listen


def load_model(path: str, unknown: Unseen | None = None) -> Any:
    check_exists(path, "model")
    import daskls

    estimator = daskls.load(path)
    if unknown is not None:
        if not hasattr(estimator, "table_"):
            raise typer.BadParameter("--unknown is for models that were trained on a table")
        estimator.table_ = replace(estimator.table_, unknown=unknown)
    return estimator


def parse_class_weight(text: str, classes: Sequence[Any] | None) -> Any:
    """Return "balanced", or a dict of LABEL=WEIGHT pairs; a data set's labels are ``classes``."""
    if text == "balanced":
        return text
    labels, weights = {str(label): label for label in classes or ()}, {}
    for part in text.split(","):
        label, _, value = part.rpartition("=")
        own: Any = label
        # The labels of a table are not known yet.
        with suppress(ValueError):
            own = int(label)
        try:
            weights[labels.get(label, label) if classes else own] = float(value)
        except ValueError as error:
            raise typer.BadParameter(
                f"--class-weight {text!r} is neither balanced nor LABEL=WEIGHT,LABEL=WEIGHT"
            ) from error
        if classes is not None and label not in labels:
            raise typer.BadParameter(
                f"--class-weight names {label!r}, but the data's classes are {', '.join(labels)}"
            )
    return weights
