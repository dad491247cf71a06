"""Commands that judge a model: `daskls score MODEL DATA` and `daskls report MODEL [DATA]`."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_pairs, print_table
from daskls.cli.inputs import (
    LabelColumn,
    UnseenOption,
    check_data,
    check_exists,
    expand,
    open_rows_of,
    set_unknown,
)

if TYPE_CHECKING:
    from daskls.run.confusion import Confusion, LevelScores, NumberScores


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
    """Compare a model's predictions with the labels or numbers of a table or a data set."""
    check_exists(model, "model")
    source = check_data(data)
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    where.check()
    import daskls
    from daskls.estimators.view import progress_bars
    from daskls.run.confusion import score_dataset, score_intervals
    from daskls.store.dataset import open_dataset

    estimator = daskls.load(model)
    set_unknown(estimator, unknown)
    with (
        cluster.open_client(where, data) as client,
        progress_bars(show=not quiet) as listen,
        open_rows_of(estimator, source, label, with_y=True, on_progress=listen) as rows,
    ):
        dataset = open_dataset(rows)
        measures = measure(score_dataset(estimator, dataset, client, listen))
        if estimator._reader.interval is not None:
            covered, width = score_intervals(estimator, dataset, client, listen)
            measures |= {"covered": covered.tolist(), "width": width.tolist()}
    if as_json:
        typer.echo(json.dumps(measures))
    elif "levels" in measures:
        _print_levels(measures, data)
    elif "columns" in measures:
        _print_misses(measures, data)
    else:
        _print_measures(measures, data)


def measure(scores: "Confusion | NumberScores | LevelScores") -> dict[str, Any]:
    from daskls.run.confusion import Confusion, LevelScores

    if isinstance(scores, Confusion):
        return measure_classes(scores)
    return measure_levels(scores) if isinstance(scores, LevelScores) else measure_misses(scores)


def measure_classes(confusion: "Confusion") -> dict[str, Any]:
    """Return the measures of a confusion matrix; for two classes also "tpr_x_tnr" and "f"."""
    counts, labels = confusion.counts, confusion.labels
    correct = counts.diagonal()
    of_class = counts.sum(axis=1)
    recall = {
        label: int(k) / int(n) for label, k, n in zip(labels, correct, of_class, strict=True) if n
    }
    accuracy = int(correct.sum()) / int(counts.sum())
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
        measures["f"] = 2 * int(correct[1]) / max(predicted + int(of_class[1]), 1)
    return measures


def measure_misses(misses: "NumberScores") -> dict[str, Any]:
    names = ("r2", "rmse", "mae")
    values = {name: getattr(misses, name).tolist() for name in names}
    columns = [{name: scores[i] for name, scores in values.items()} for i in range(len(misses.r2))]
    mean = {name: sum(scores) / len(scores) for name, scores in values.items()}
    return {"n_rows": misses.n_rows, **mean, "columns": columns}


def measure_levels(misses: "LevelScores") -> dict[str, Any]:
    names = ("level", "d2", "loss", "covered")
    columns = zip(misses.levels, misses.d2, misses.loss, misses.covered, strict=True)
    levels = [dict(zip(names, map(float, row), strict=True)) for row in columns]
    means = {name: sum(level[name] for level in levels) / len(levels) for name in names[1:3]}
    return {"n_rows": misses.n_rows, **means, "levels": levels}


def _print_levels(measures: dict[str, Any], path: str) -> None:
    pairs = [
        ("rows", format_number(measures["n_rows"])),
        ("D2", f"{measures['d2']:.4f}"),
        ("loss", format_number(measures["loss"])),
    ]
    print_pairs(f"Score on {path}", pairs)
    rows = [
        (
            f"{level['level']:g}",
            f"{level['d2']:.4f}",
            format_number(level["loss"]),
            f"{level['covered']:.4f}",
        )
        for level in measures["levels"]
    ]
    print_table("By level", ("level", "D2", "loss", "share of rows at or below"), rows)


def _print_misses(measures: dict[str, Any], path: str) -> None:
    pairs = [
        ("rows", format_number(measures["n_rows"])),
        ("R2", f"{measures['r2']:.4f}"),
        ("RMSE", format_number(measures["rmse"])),
        ("MAE", format_number(measures["mae"])),
    ]
    if "covered" in measures:
        pairs += [
            ("in their intervals", ", ".join(map(format_share, measures["covered"]))),
            ("mean width", ", ".join(map(format_number, measures["width"]))),
        ]
    print_pairs(f"Score on {path}", pairs)
    if len(measures["columns"]) > 1:
        rows = [
            (str(i), *(format_number(column[n]) for n in column))
            for i, column in enumerate(measures["columns"])
        ]
        print_table("By column", ("column", "R2", "RMSE", "MAE"), rows)


def _print_measures(measures: dict[str, Any], path: str) -> None:
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


def report(
    model: Annotated[str, typer.Argument(callback=expand, help="The model.")],
    data: Annotated[
        str | None,
        typer.Argument(
            callback=expand,
            help="A table or a data set, with labels or numbers, that the fit has not seen.",
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            callback=expand,
            help="Write a page with pictures, which needs no other file; must not exist.",
        ),
    ] = None,
    label: LabelColumn = None,
    unknown: UnseenOption = None,
    scheduler: cluster.Scheduler = None,
    workers: cluster.Workers = None,
    threads_per_worker: cluster.ThreadsPerWorker = 1,
    memory_limit: cluster.MemoryLimit = "auto",
    dashboard: cluster.Dashboard = None,
    quiet: cluster.Quiet = False,
) -> None:
    """Sum up a fit: what it was trained on, errors, importances; with DATA, scores and pictures.

    Of classes these are confusion, ROC curve and calibration; of numbers predictions beside true
    ones, and residuals. Without --html the report is printed in words; pictures need matplotlib.
    """
    check_exists(model, "model")
    if data is None and (label, unknown) != (None, None):
        raise typer.BadParameter("--label and --unknown are for rows: give DATA")
    if data is not None:
        check_data(data)
    where = cluster.Where(scheduler, workers, threads_per_worker, memory_limit, dashboard)
    where.check()
    from daskls.store.errors import exists_already

    if html is not None and os.path.lexists(html):
        raise exists_already(html)
    import daskls

    estimator = daskls.load(model)
    set_unknown(estimator, unknown)
    with _open_test_set(estimator, data, label, where, show=not quiet) as rows:
        from daskls.plotting import ReportDisplay

        display = ReportDisplay.from_estimator(estimator, rows)
    if html is None:
        _print_report(display)
        return
    display.to_html(html)
    typer.echo(f"Report: {html}")


@contextmanager
def _open_test_set(
    estimator: Any, data: str | None, label: str | None, where: Any, *, show: bool
) -> Iterator[str | None]:
    if data is None:
        yield None
        return
    from daskls.estimators.view import progress_bars

    with (
        cluster.open_client(where, data) as client,
        progress_bars(show=show) as listen,
        open_rows_of(estimator, check_data(data), label, with_y=True, on_progress=listen) as rows,
    ):
        estimator.set_params(client=client)
        yield rows


def _print_report(display: Any) -> None:
    print_pairs(display.title, display.facts)
    typer.echo()
    print_pairs("Parameters that are not the default", display.parameters or [("none", "")])
    if display.columns:
        typer.echo()
        print_pairs("Columns", [("-", line) for line in display.columns])
    if display.notes:
        typer.echo()
        print_pairs("Notes", [("-", note) for note in display.notes])
    typer.echo()
    print_pairs("Pictures, with --html FILE", [(p.title, p.note) for p in display.panels])
