"""Commands that train: `daskls fit DATA MODEL`, and `daskls plan DATA`, what a fit takes."""

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_table
from daskls.cli.inputs import Task, TrainedColumnOptions, check_data, find_kind, find_label
from daskls.cli.options import FitCommand, MethodName, build_estimator

if TYPE_CHECKING:
    from daskls.store.dataset import Dataset


def fit(
    ctx: typer.Context,
    data: str,
    model: str,
    *,
    table: TrainedColumnOptions,
    where: cluster.ClusterOptions,
    task: Task = "auto",
    method: MethodName = "voronoi",
    quiet: cluster.Quiet = False,
) -> None:
    """Train on a table or a data set and write the model, cell by cell.

    A fit that was stopped resumes when the same command runs again: only unfinished cells are
    trained.

    Parameters
    ----------
    data : A table (.csv, .tsv, .parquet, .npz, .libsvm; a folder or pattern), or a data set on
        Zarr.
    model : Folder of the model; an unfinished fit resumes.
    task : What to learn: classes or numbers. auto: by the labels; the choice is printed.
    method : The method.
    """
    from daskls.run.identity import check_free
    from daskls.store.objects import store_at

    dataset, label, estimator = _open_training(ctx, data, table, task, method)
    estimator.set_params(store=model, verbose=0 if quiet else 1)
    check_free(store_at(model, what="model"))
    started = time.perf_counter()
    with cluster.open_client(where, data) as client:
        estimator.set_params(client=client)
        if dataset is None:
            estimator.fit(data, label, table.weight, **table.of_table)
        else:
            estimator.fit(data)
    if quiet and hasattr(estimator, "table_"):
        # If not quiet, the estimator has printed them before training.
        typer.echo("\n".join(estimator.table_.describe()))
    _print_summary(estimator, model, time.perf_counter() - started)


def _open_training(
    ctx: typer.Context, data: str, table: TrainedColumnOptions, task: str, method: str
) -> "tuple[Dataset | None, str | None, Any]":
    """Return a data set, or None and the label column of a table; and the estimator to train."""
    source = check_data(data)
    if not source.has_columns and replace(table, missing="auto") != TrainedColumnOptions():
        raise typer.BadParameter(
            f"--unknown, --drop, --label, --weight are for tables; {data!r} is a data set"
        )
    dataset = None if source.has_columns else source.dataset
    classes = None if dataset is None else dataset.classes
    # Refuse bad options before any row is read or a cluster is started.
    build_estimator(ctx, method, classes, None)
    label = None if dataset is not None else find_label(source, table.label, table.weight)
    has_regressor = len(FitCommand.estimators[method]) > 1
    kind = find_kind(source, label, task, has_regressor=has_regressor)
    return dataset, label, build_estimator(ctx, method, classes, kind)


def _print_summary(estimator: Any, path: str, seconds: float) -> None:
    from dask.utils import format_bytes

    from daskls.cli.info import format_cells
    from daskls.live.record import MEASURES, mean_error
    from daskls.solvers.registry import find_loss
    from daskls.store.objects import open_store

    report, reader = estimator.fit_report_, estimator._reader
    pairs = [("rows", format_number(reader.meta["n_rows"]))]
    if len(report):
        measure, error = MEASURES[reader.target.measured_as], mean_error(report)
        measured = "not measured: one candidate" if error is None else measure.format_mean(error)
        pairs += [
            ("cells", format_cells(report)),
            ("support rows", format_number(report.n_support.sum())),
            (measure.mean_name, measured),
        ]
        # Sampling methods have no grid: `daskls info` shows the models that they tried. Cells whose
        # C and kernel are chosen for all have one for some losses.
        on_edge, is_global = report.edge != "", find_loss(reader.spec).is_global
        if not hasattr(estimator, "path_") and (not is_global or on_edge.any()):
            share = format_share(on_edge.mean())
            pairs.append(("choice on a grid edge", f"{share} of the cells"))
    pairs += [("model", format_bytes(open_store(path).nbytes())), ("seconds", f"{seconds:.1f}")]
    print_table(f"{type(estimator).__name__}: {path}", pairs)


def _whole(text: str) -> int:
    """Return the number of rows, which may be written as 1e9."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if value.is_integer() and value >= 2:
        return int(value)
    raise typer.BadParameter(f"--rows {text!r} is not a whole number of at least 2, such as 1e9")


@dataclass(frozen=True)
class FitSize:
    """The size of a fit to plan, where it is not that of the data.

    Parameters
    ----------
    rows : Plan for this many rows, such as 1e9.
    features : Features, where there is no DATA.
    classes : Classes, where DATA names none; if not given, 2.
    """

    rows: Annotated[int | None, typer.Option(metavar="NUMBER", parser=_whole)] = None
    features: Annotated[int | None, typer.Option(min=1)] = None
    classes: Annotated[int | None, typer.Option(min=2)] = None


@dataclass(frozen=True)
class PlannedCluster(cluster.ClusterOptions):
    """The workers to plan for.

    Parameters
    ----------
    workers : Processes of a cluster that need not exist; 0: threads. If not given, one per core.
    memory_limit : Memory of each worker, such as 2GiB; auto: its share of this machine.
    """

    memory_limit: Annotated[str, typer.Option("--memory-limit", "--memory")] = "auto"
    # No option, as nothing is served.
    dashboard: None = None

    @property
    def offered(self) -> dict[str, Any]:
        """The arguments of `plan` about workers, where there is no scheduler to ask."""
        if self.scheduler is not None or self.workers == 0:
            return {}
        from dask.system import CPU_COUNT

        return {
            "workers": CPU_COUNT if self.workers is None else self.workers,
            "threads_per_worker": self.threads_per_worker,
            "memory_limit": self.limit_nbytes,
        }


def plan(
    ctx: typer.Context,
    data: str | None = None,
    *,
    table: TrainedColumnOptions,
    size: FitSize,
    where: PlannedCluster,
    task: Task = "auto",
    method: MethodName = "voronoi",
) -> None:
    """Say what a fit would take: tasks, bytes, memory, and what it would refuse.

    Nothing is trained.

    Parameters
    ----------
    data : A table or a data set, as for `daskls fit`; if not given, --rows and --features say what
        to plan for.
    task : What to learn: classes or numbers. auto: as fit finds it.
    method : The method.
    """
    y: Any = None
    if data is None:
        if size.rows is None or size.features is None:
            raise typer.BadParameter("give DATA, or both --rows and --features", ctx=ctx)
        kind: Any = "numbers" if task == "regression" else "classes"
        X: Any = (size.rows, size.features)
        estimator = build_estimator(ctx, method, None, kind)
    else:
        dataset, y, estimator = _open_training(ctx, data, table, task, method)
        X = _planned_rows(size, data, dataset, ctx)
        if dataset is not None and isinstance(X, tuple):
            y = dataset.classes
    if size.classes is not None:
        y = [*range(size.classes)]
    weight = [] if table.weight is None else [table.weight]
    of_table = {**table.of_table, "drop": [*(table.drop or []), *weight]}
    # Without a scheduler, no cluster is started.
    there = where if where.scheduler is not None else replace(where, workers=0)
    with cluster.open_client(there) as client:
        estimator.set_params(client=client)
        planned = estimator.plan(X, y, **of_table, **where.offered)
    print_table(planned.title, planned.pairs())


def _planned_rows(size: FitSize, data: str, dataset: "Dataset | None", ctx: typer.Context) -> Any:
    """Return the data, or a data set's shape with another number of rows."""
    if size.features is not None:
        raise typer.BadParameter("--features is for a plan without DATA, which has its own")
    if dataset is None and (size.rows, size.classes) != (None, None):
        raise typer.BadParameter(
            "--rows and --classes are for a data set, or without DATA; a table is planned as it "
            "is. Convert it first, or give --rows and --features alone.",
            ctx=ctx,
        )
    return data if dataset is None or size.rows is None else (size.rows, dataset.n_features)
