"""`daskls score MODEL DATA`: accuracy, error, recalls, TPR x TNR and F."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.inputs import (
    LabelColumn,
    UnseenOption,
    check_exists,
    expand,
    leads_to_table,
    let_unknown,
    open_data,
    open_rows_of,
)
from daskls.cli.tables import format_number, format_share, print_pairs, print_table

if TYPE_CHECKING:
    from daskls.run.confusion import Confusion

__all__ = ["measure", "score"]


def score(
    model: Annotated[str, typer.Argument(callback=expand, help="The model.")],
    data: Annotated[
        str, typer.Argument(callback=expand, help="A table or a data set, with labels.")
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
    """Compare a model's labels with those of a table or a data set, block by block."""
    check_exists(model, "model")
    if not leads_to_table(data, "data set or table"):
        open_data(data)
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    where.check()
    import daskls
    from daskls.estimators.console import progress_bars
    from daskls.run.confusion import count_confusion
    from daskls.store.dataset import open_dataset
    from daskls.store.temporary import temporary_path

    estimator = daskls.load(model)
    let_unknown(estimator, unknown)
    with (
        cluster.open_client(where, data) as client,
        progress_bars(show=not quiet) as listen,
        open_rows_of(
            estimator, data, label, temporary_path(), with_y=True, on_progress=listen
        ) as rows,
    ):
        confusion = count_confusion(estimator, open_dataset(rows), client, listen)
    measures = measure(confusion)
    if as_json:
        typer.echo(json.dumps(measures))
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
