"""`daskls fit DATA MODEL`: train, or resume a fit that was stopped."""

import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.inputs import (
    Absent,
    LabelColumn,
    Unseen,
    check_store,
    expand,
    find_label,
    leads_to_table,
    open_data,
    parse_class_weight,
    parse_counts,
    parse_scale,
    parse_values,
)
from daskls.cli.methods import ESTIMATORS, MethodName, build_estimator
from daskls.cli.tables import format_nbytes, format_number, format_share, print_pairs

__all__ = ["fit"]


class KernelName(StrEnum):
    """Kernels."""

    RBF = "rbf"
    LINEAR = "linear"
    POLY = "poly"


class CellKernel(StrEnum):
    """Kernels of cells, and the choice between those of distances."""

    RBF = "rbf"
    EXPONENTIAL = "exponential"
    LINEAR = "linear"
    POLY = "poly"
    AUTO = "auto"


class LossName(StrEnum):
    """Losses of the models of cells."""

    HINGE = "hinge"
    SQUARED_ERROR = "squared_error"


class SearchMode(StrEnum):
    """Combinations of C and gamma to train."""

    REFINE = "refine"
    FULL = "full"


class Assign(StrEnum):
    """The center whose model predicts."""

    POINT = "point"
    CENTER = "center"
    K_CENTERS = "k_centers"


class Selection(StrEnum):
    """The neighborhoods on which parameters are chosen."""

    LOCAL = "local"
    GRID = "grid"
    EACH = "each"


class Landmarks(StrEnum):
    """Sources of landmarks."""

    RANDOM = "random"
    PCA = "pca"


class Projection(StrEnum):
    """Projections of rows on landmarks."""

    LINEAR = "linear"
    RBF = "rbf"


NNeighbors = Annotated[
    list[str] | None,
    typer.Option(metavar="INT", help="Rows of a neighborhood; repeatable, or 500,1000 to choose."),
]


ScaleOption = Annotated[
    str | None,
    typer.Option(
        metavar="SCALE",
        help="spread, learned, none, or a factor a feature, joined by commas. "
        "[voronoi: learned; others: none]",
    ),
]


class Maps(StrEnum):
    """Maps of decision values to probabilities."""

    SIGMOID = "sigmoid"
    ISOTONIC = "isotonic"


class Refit(StrEnum):
    """The model that predicts after the selection."""

    FOLDS = "folds"
    CELL = "cell"


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
        str | None, typer.Option(metavar="NAME", help="Column of the rows' weights, of a table.")
    ] = None,
    missing: Annotated[
        Absent, typer.Option(help="Missing values of a table: refused, or a median and a flag.")
    ] = Absent.REFUSE,
    unknown: Annotated[
        Unseen, typer.Option(help="Categories of a query that no training row had.")
    ] = Unseen.ERROR,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column of a table to leave out; repeatable."),
    ] = None,
    method: MethodName = "voronoi",
    cell_size: Annotated[int, typer.Option(min=2, help="Rows of a cell at the most.")] = 2000,
    chunk_size: Annotated[int, typer.Option(min=2, help="Rows of a random chunk.")] = 2000,
    loss: Annotated[
        LossName | None,
        typer.Option(help="SVMs, or least squares. [voronoi: squared_error; chunks: hinge]"),
    ] = None,
    kernel: Annotated[
        CellKernel | None,
        typer.Option(help="exponential and auto are for cells. [voronoi: auto; others: rbf]"),
    ] = None,
    C: Annotated[
        list[str] | None,
        typer.Option(
            "--C", metavar="FLOAT", help="Repeatable, or 1,10,100; else the method's own grid."
        ),
    ] = None,
    gamma: Annotated[
        list[str] | None,
        typer.Option(metavar="FLOAT", help="Repeatable, or 1,10,100; else the method's own grid."),
    ] = None,
    degree: Annotated[int, typer.Option(min=1, help="Of the poly kernel.")] = 3,
    coef0: Annotated[float, typer.Option(min=0, help="Of the poly kernel.")] = 0.0,
    cv: Annotated[int, typer.Option(min=2, help="Folds in each cell.")] = 5,
    tol: Annotated[float, typer.Option(help="When a solver stops; see the estimator.")] = 1e-3,
    fit_intercept: Annotated[
        bool, typer.Option("--fit-intercept", help="Give every local SVM an offset.")
    ] = False,
    search: Annotated[
        SearchMode, typer.Option(help="From coarse to fine, or all combinations on all folds.")
    ] = SearchMode.REFINE,
    refit: Annotated[
        Refit, typer.Option(help="Answer with the mean of the fold models, or one of the cell.")
    ] = Refit.FOLDS,
    n_partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of space whose answers are averaged.")
    ] = 1,
    n_neighbors: NNeighbors = None,
    n_assigned: Annotated[
        int | None, typer.Option(min=1, help="Inner rows that a center covers; else half of them.")
    ] = None,
    assign: Annotated[
        Assign, typer.Option(help="Which center's SVM answers a query, of --method falk.")
    ] = Assign.POINT,
    selection: Annotated[
        Selection | None,
        typer.Option(
            help="Choose k, C and width on a few neighborhoods, on all, or C and width on each."
        ),
    ] = None,
    n_cells: Annotated[
        int | None, typer.Option(min=1, help="Clusters, of --method l3; else by the rows.")
    ] = None,
    n_landmarks: Annotated[
        int | None, typer.Option(min=1, help="Landmarks; else as many as features.")
    ] = None,
    landmarks: Annotated[
        Landmarks, typer.Option(help="Rows drawn at random, or principal components.")
    ] = Landmarks.RANDOM,
    projection: Annotated[
        Projection, typer.Option(help="How landmarks see a row.")
    ] = Projection.LINEAR,
    sample_fraction: Annotated[
        float | None,
        typer.Option(help="Share of the rows in the first samples; 0.02, or more of few rows."),
    ] = None,
    n_subsamples: Annotated[
        int | None,
        typer.Option(
            min=1, help="First samples, of --method local-sampling; 20, or less if small."
        ),
    ] = None,
    radius_scale: Annotated[
        float | None,
        typer.Option(help="Radius of the balls; searched from 0.1 upward if left out."),
    ] = None,
    feature_scale: ScaleOption = None,
    class_weight: Annotated[
        str | None, typer.Option(metavar="WEIGHTS", help="balanced, or LABEL=WEIGHT,LABEL=WEIGHT.")
    ] = None,
    probability: Annotated[
        Maps | None,
        typer.Option(help="Fit maps to probabilities, for `daskls predict --proba`."),
    ] = None,
    random_state: Annotated[
        int | None, typer.Option(min=0, help="Seed: the same one gives the same model.")
    ] = None,
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
    is_table = leads_to_table(data, "data set or table")
    classes = None if is_table else open_data(data).classes
    of_table = {"missing": missing.value, "unknown": unknown.value, "drop": drop or []}
    for_tables = (*of_table, "label", "weight")
    if not is_table and any(_is_given(ctx, name) for name in for_tables):
        names = ", ".join(f"--{name}" for name in for_tables)
        raise typer.BadParameter(f"{names} are for tables; {data!r} is a data set")
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    options = {
        "cell_size": cell_size,
        "chunk_size": chunk_size,
        "loss": loss and loss.value,
        "kernel": kernel and kernel.value,
        "C": parse_values("C", C),
        "gamma": parse_values("gamma", gamma),
        "degree": degree,
        "coef0": coef0,
        "cv": cv,
        "tol": tol,
        "fit_intercept": fit_intercept,
        "search": search.value,
        "refit": refit.value,
        "n_partitions": n_partitions,
        "n_neighbors": parse_counts("n-neighbors", n_neighbors),
        "n_assigned": n_assigned,
        "assign": assign.value,
        "selection": selection.value if selection else None,
        "n_cells": n_cells,
        "n_landmarks": n_landmarks,
        "landmarks": landmarks.value,
        "projection": projection.value,
        "sample_fraction": sample_fraction,
        "n_subsamples": n_subsamples,
        "radius_scale": radius_scale,
        "feature_scale": parse_scale(feature_scale),
        "class_weight": parse_class_weight(class_weight, classes),
        "probability": probability.value if probability else False,
        "random_state": random_state,
    }
    estimator = build_estimator(ESTIMATORS[method], method, options, ctx)
    estimator.set_params(store=model, verbose=0 if quiet else 1)
    # Before a cluster is started for nothing.
    label = find_label(data, label, weight) if is_table else None
    estimator._validate_params()
    check_store(model)
    started = time.perf_counter()
    with cluster.open_client(where) as client:
        estimator.set_params(client=client)
        if is_table:
            estimator.fit(data, label, weight, **of_table)
        else:
            estimator.fit(data)
    if quiet:
        # Else it was said before the training.
        _print_columns(estimator)
    _print_summary(estimator, model, time.perf_counter() - started)


def _is_given(ctx: typer.Context, option: str) -> bool:
    """Whether an option stands on the command line."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _print_columns(estimator: Any) -> None:
    """Print what became of the columns of a table."""
    if hasattr(estimator, "table_"):
        for line in estimator.table_.describe():
            typer.echo(line)


def _print_summary(estimator: Any, path: str, seconds: float) -> None:
    """Print what a finished fit came to."""
    from daskls.cli.info import count_nbytes, format_cells

    report = estimator.fit_report_
    pairs = [
        ("rows", format_number(estimator._reader.meta["n_rows"])),
        ("model", format_nbytes(count_nbytes(path))),
        ("seconds", f"{seconds:.1f}"),
    ]
    if len(report):
        pairs[1:1] = [
            ("cells", format_cells(report)),
            ("support rows", format_number(report.n_support.sum())),
            ("mean validation error", format_error(report)),
        ]
        # What trains on samples has no grid: `daskls info` shows the models that it tried.
        if not hasattr(estimator, "path_"):
            on_edge = format_share((report.edge != "").mean())
            pairs.insert(4, ("choice on a grid edge", f"{on_edge} of the cells"))
    print_pairs(f"{type(estimator).__name__}: {path}", pairs)


def format_error(report: Any) -> str:
    """Return the validation error over all rows; a cell of one class has none and counts as 0."""
    import numpy as np

    evaluated = np.isfinite(report.validation_error)
    if not evaluated.any():
        return "not measured: one candidate"
    errors = np.nan_to_num(report.validation_error)
    return format_share(float(np.average(errors, weights=report.n_rows)))
