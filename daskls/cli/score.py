"""`daskls score MODEL DATA`: accuracy, error, recalls, TPR x TNR and F; or R2, RMSE and MAE."""

import json
from typing import TYPE_CHECKING, Annotated, Any

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
from daskls.cli.tables import format_number, format_share, print_pairs, print_table

if TYPE_CHECKING:
    from daskls.run.confusion import Confusion
    from daskls.run.level_misses import LevelMisses
    from daskls.run.misses import Misses

__all__ = ["measure", "measure_levels", "measure_misses", "score"]


def score(
    model: Annotated[str, typer.Argument(callback=expand, help="The model.")],
    data: Annotated[
        str, typer.Argument(callback=expand, help="A table or a data set, with labels or numbers.")
    ],
    label: LabelColumn = None,
    unknown: UnseenOption = None,
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: cluster.MemoryLimit = "auto",
    dashboard: cluster.Dashboard = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quiet: cluster.Quiet = False,
) -> None:
    """Compare a model's answers with those of a table or a data set, block by block."""
    check_exists(model, "model")
    check_data(data)
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    where.check()
    import daskls
    from daskls.estimators.console import progress_bars
    from daskls.store.dataset import open_dataset

    estimator = daskls.load(model)
    let_unknown(estimator, unknown)
    with (
        cluster.open_client(where, data) as client,
        progress_bars(show=not quiet) as listen,
        open_rows_of(estimator, data, label, with_y=True, on_progress=listen) as rows,
    ):
        dataset = open_dataset(rows)
        if estimator._reader.target.quantile is not None:
            from daskls.run.level_misses import count_level_misses

            measures = measure_levels(count_level_misses(estimator, dataset, client, listen))
        elif estimator._kind == "numbers":
            from daskls.run.misses import count_misses

            measures = measure_misses(count_misses(estimator, dataset, client, listen))
        else:
            from daskls.run.confusion import count_confusion

            measures = measure(count_confusion(estimator, dataset, client, listen))
    if as_json:
        typer.echo(json.dumps(measures))
    elif "levels" in measures:
        _print_levels(measures, data)
    elif "columns" in measures:
        _print_misses(measures, data)
    else:
        _print_measures(measures, data)


def measure(confusion: "Confusion") -> dict[str, Any]:
    """Return the measures of a confusion matrix, as JSON values.

    For two classes the second is the positive one: "tpr_x_tnr" is the product of both recalls,
    "f" the harmonic mean of the second's precision and recall.
    """
    counts, labels = confusion.counts, confusion.labels
    right = counts.diagonal()
    of_class = counts.sum(axis=1)
    recall = {
        label: int(r) / int(n) for label, r, n in zip(labels, right, of_class, strict=True) if n
    }
    accuracy = int(right.sum()) / int(counts.sum())
    measures = {
        "n_rows": int(counts.sum()),
        "accuracy": accuracy,
        "error": 1 - accuracy,
        "classes": [
            {"label": label, "n_rows": int(n), "recall": recall.get(label)}
            for label, n in zip(labels, of_class, strict=True)
        ],
    }
    if len(labels) == 2:
        predicted = int(counts[:, 1].sum())
        both = len(recall) == 2
        measures["tpr_x_tnr"] = recall[labels[0]] * recall[labels[1]] if both else None
        measures["f"] = 2 * int(right[1]) / max(predicted + int(of_class[1]), 1)
    return measures


def measure_misses(misses: "Misses") -> dict[str, Any]:
    """Return the measures of a regressor, as JSON values: the mean of columns, and each.

    R2 is absent, null, where y is one number that is missed.
    """
    names = ("r2", "rmse", "mae")
    values = {name: getattr(misses, name).tolist() for name in names}
    columns = [
        {name: None if own[i] != own[i] else own[i] for name, own in values.items()}
        for i in range(len(misses.r2))
    ]
    known = [column["r2"] for column in columns if column["r2"] is not None]
    mean = {"r2": sum(known) / len(known) if known else None}
    mean |= {name: sum(values[name]) / len(columns) for name in names[1:]}
    return {"n_rows": misses.n_rows, **mean, "columns": columns}


def measure_levels(misses: "LevelMisses") -> dict[str, Any]:
    """Return the measures of answers at levels, as JSON values: the means, and each level's."""
    names = ("level", "d2", "loss", "covered")
    columns = zip(misses.levels, misses.d2, misses.loss, misses.covered, strict=True)
    levels = [dict(zip(names, map(float, own), strict=True)) for own in columns]
    means = {name: sum(own[name] for own in levels) / len(levels) for name in names[1:3]}
    return {"n_rows": misses.n_rows, **means, "levels": levels}


def _print_levels(measures: dict[str, Any], path: str) -> None:
    """Print the measures of answers at levels as tables."""
    pairs = [
        ("rows", format_number(measures["n_rows"])),
        ("D2", f"{measures['d2']:.4f}"),
        ("loss", format_number(measures["loss"])),
    ]
    print_pairs(f"Score on {path}", pairs)
    rows = [
        (
            f"{own['level']:g}",
            f"{own['d2']:.4f}",
            format_number(own["loss"]),
            f"{own['covered']:.4f}",
        )
        for own in measures["levels"]
    ]
    print_table("By level", ("level", "D2", "loss", "share of rows at or below"), rows)


def _print_misses(measures: dict[str, Any], path: str) -> None:
    """Print the measures of a regressor as tables."""
    r2 = measures["r2"]
    pairs = [
        ("rows", format_number(measures["n_rows"])),
        ("R2", "none: y is one number" if r2 is None else f"{r2:.4f}"),
        ("RMSE", format_number(measures["rmse"])),
        ("MAE", format_number(measures["mae"])),
    ]
    print_pairs(f"Score on {path}", pairs)
    if len(measures["columns"]) > 1:
        rows = [
            (str(i), *("-" if own[n] is None else format_number(own[n]) for n in own))
            for i, own in enumerate(measures["columns"])
        ]
        print_table("By column", ("column", "R2", "RMSE", "MAE"), rows)


def _print_measures(measures: dict[str, Any], path: str) -> None:
    """Print the measures as tables."""
    pairs = [
        ("rows", format_number(measures["n_rows"])),
        ("accuracy", format_share(measures["accuracy"])),
        ("error", format_share(measures["error"])),
    ]
    if "f" in measures:
        product = measures["tpr_x_tnr"]
        pairs.append(("TPR x TNR", "one class only" if product is None else f"{product:.4f}"))
        pairs.append((f"F (of {measures['classes'][1]['label']})", f"{measures['f']:.4f}"))
    print_pairs(f"Score on {path}", pairs)
    rows = [
        (
            entry["label"],
            format_number(entry["n_rows"]),
            "-" if entry["recall"] is None else format_share(entry["recall"]),
        )
        for entry in measures["classes"]
    ]
    print_table("By class", ("class", "rows", "recall"), rows)
