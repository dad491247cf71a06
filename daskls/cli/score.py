"""Commands that judge a model: `daskls score MODEL DATA` and `daskls report MODEL [DATA]`."""

import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_pairs, print_table
from daskls.cli.inputs import (
    LabelColumn,
    Model,
    UnseenOption,
    check_data,
    check_output,
    expand,
    load_model,
    open_query,
    path_argument,
)

if TYPE_CHECKING:
    from daskls.run.confusion import Confusion, LevelScores, NumberScores

# How measures are called and printed: of all rows, and in a table with a line for each class, level
# or column.
OVERALL = {
    "n_rows": ("rows", format_number),
    "accuracy": ("accuracy", format_share),
    "error": ("error", format_share),
    "tpr_x_tnr": ("TPR x TNR", "{:.4f}".format),
    "f": ("F (of {})", "{:.4f}".format),
    "r2": ("R2", "{:.4f}".format),
    "d2": ("D2", "{:.4f}".format),
    "loss": ("loss", format_number),
    "rmse": ("RMSE", format_number),
    "mae": ("MAE", format_number),
    "covered": ("in their intervals", lambda shares: ", ".join(map(format_share, shares))),
    "width": ("mean width", lambda widths: ", ".join(map(format_number, widths))),
}
TABLES: dict[str, tuple[str, dict[str, tuple[str, Any]]]] = {
    "classes": (
        "By class",
        {
            "label": ("class", str),
            "n_rows": ("rows", format_number),
            "recall": ("recall", format_share),
        },
    ),
    "levels": (
        "By level",
        {
            "level": ("level", "{:g}".format),
            "d2": OVERALL["d2"],
            "loss": OVERALL["loss"],
            "covered": ("share of rows at or below", "{:.4f}".format),
        },
    ),
    "columns": (
        "By column",
        {"column": ("column", str), **{n: OVERALL[n] for n in ("r2", "rmse", "mae")}},
    ),
}


def score(
    model: Model,
    data: Annotated[str, path_argument("A table or a data set, with labels or numbers.")],
    *,
    label: LabelColumn = None,
    unknown: UnseenOption = None,
    where: cluster.Where,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quiet: cluster.Quiet = False,
) -> None:
    """Compare a model's predictions with the labels or numbers of a table or a data set."""
    estimator, source = load_model(model, unknown), check_data(data)
    from daskls.run.confusion import score_dataset, score_intervals
    from daskls.store.dataset import open_dataset

    with open_query(estimator, source, where, label, with_y=True, quiet=quiet) as (rows, listen):
        given = estimator, open_dataset(rows), estimator.client, listen
        measures = measure(score_dataset(*given))
        if estimator._reader.interval is not None:
            covered, width = score_intervals(*given)
            measures |= {"covered": covered.tolist(), "width": width.tolist()}
    if as_json:
        typer.echo(json.dumps(measures))
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


def _print_measures(measures: dict[str, Any], path: str) -> None:
    classes = measures.get("classes", [])
    print_pairs(
        f"Score on {path}",
        [
            # F is of the second of two classes.
            (
                title.format(*(own["label"] for own in classes[1:])),
                "one class only" if measures[name] is None else form(measures[name]),
            )
            for name, (title, form) in OVERALL.items()
            if name in measures
        ],
    )
    for kind, (title, columns) in TABLES.items():
        lines = [{"column": i, **line} for i, line in enumerate(measures.get(kind, []))]
        if kind == "columns" and len(lines) == 1:
            # It is the same as of all.
            continue
        rows = [
            ["-" if line[name] is None else form(line[name]) for name, (_, form) in columns.items()]
            for line in lines
        ]
        if rows:
            print_table(title, [head for head, _ in columns.values()], rows)


def report(
    model: Model,
    data: Annotated[
        str | None,
        path_argument("A table or a data set, with labels or numbers, that the fit has not seen."),
    ] = None,
    *,
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
    where: cluster.Where,
    quiet: cluster.Quiet = False,
) -> None:
    """Sum up a fit: what it was trained on, errors, importances; with DATA, scores and pictures.

    Of classes these are confusion, ROC curve and calibration; of numbers predictions beside true
    ones, and residuals. Without --html the report is printed in words; pictures need matplotlib.
    """
    if data is None and (label, unknown) != (None, None):
        raise typer.BadParameter("--label and --unknown are for rows: give DATA")
    source = None if data is None else check_data(data)
    if html is not None:
        check_output(html)
    estimator = load_model(model, unknown)
    rows: Any = nullcontext((None, None))
    if source is not None:
        rows = open_query(estimator, source, where, label, with_y=True, quiet=quiet)
    with rows as (test_set, _):
        from daskls.plotting import ReportDisplay

        display = ReportDisplay.from_estimator(estimator, test_set)
    if html is None:
        _print_report(display)
        return
    display.to_html(html)
    typer.echo(f"Report: {html}")


def _print_report(display: Any) -> None:
    print_pairs(display.title, display.facts)
    parts = {
        "Parameters that are not the default": display.parameters or [("none", "")],
        "Columns": [("-", line) for line in display.columns],
        "Notes": [("-", note) for note in display.notes],
        "Pictures, with --html FILE": [(p.title, p.note) for p in display.panels],
    }
    for title, pairs in parts.items():
        if pairs:
            typer.echo()
            print_pairs(title, pairs)
