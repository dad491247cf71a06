"""Commands that judge a model: `daskls score MODEL DATA` and `daskls report MODEL [DATA]`."""

import json
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskls.cli import cluster
from daskls.cli.errors import format_number, format_share, print_table
from daskls.cli.inputs import (
    LabelColumn,
    UnseenOption,
    check_data,
    check_output,
    expand,
    load_model,
    open_query,
)

if TYPE_CHECKING:
    from daskls.run.confusion import Confusion, LevelScores, NumberScores

# How measures of all rows are called, and how those and the parts of a table are printed.
OVERALL = {
    **{"n_rows": "rows", "accuracy": "accuracy", "error": "error", "tpr_x_tnr": "TPR x TNR"},
    **{"f": "F (of {})", "r2": "R2", "d2": "D2", "loss": "loss", "rmse": "RMSE", "mae": "MAE"},
    **{"covered": "in their intervals", "width": "mean width"},
}
FORMS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("n_rows", "loss", "rmse", "mae", "width"), format_number),
    **dict.fromkeys(("accuracy", "error", "recall", "covered"), format_share),
    **dict.fromkeys(("tpr_x_tnr", "f", "r2", "d2"), "{:.4f}".format),
}
TABLES = {
    "classes": ("By class", ("class", "rows", "recall")),
    "levels": ("By level", ("level", "D2", "loss", "share of rows at or below")),
    "columns": ("By column", ("column", "R2", "RMSE", "MAE")),
}


def score(
    model: str,
    data: str,
    *,
    label: LabelColumn = None,
    unknown: UnseenOption = None,
    where: cluster.ClusterOptions,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    quiet: cluster.Quiet = False,
) -> None:
    """Compare a model's predictions with the labels or numbers of a table or a data set.

    Parameters
    ----------
    model : The model.
    data : A table or a data set, with labels or numbers.
    as_json : Print JSON for programs.
    """
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
    """Return scores as JSON has them; those of numbers are means over columns or levels."""
    from daskls.run.confusion import Confusion, LevelScores

    if isinstance(scores, Confusion):
        return _measure_classes(scores)
    averaged = ["d2", "loss"] if isinstance(scores, LevelScores) else ["r2", "rmse", "mae"]
    values: dict[str, Any] = {name: getattr(scores, name) for name in averaged}
    kind = "columns"
    if isinstance(scores, LevelScores):
        kind, values = "levels", {"level": scores.levels, **values, "covered": scores.covered}
    parts = [
        dict(zip(values, map(float, part), strict=True))
        for part in zip(*values.values(), strict=True)
    ]
    means = {name: sum(part[name] for part in parts) / len(parts) for name in averaged}
    return {"n_rows": scores.n_rows, **means, kind: parts}


def _measure_classes(confusion: "Confusion") -> dict[str, Any]:
    """Return the measures of a confusion matrix; for two classes also "tpr_x_tnr" and "f"."""
    counts, correct = confusion.counts, confusion.counts.diagonal().tolist()
    of_class = counts.sum(axis=1).tolist()
    recall: list[Any] = [k / n if n else None for k, n in zip(correct, of_class, strict=True)]
    accuracy = sum(correct) / sum(of_class)
    parts = zip(confusion.labels, of_class, recall, strict=True)
    classes = [{"label": label, "n_rows": n, "recall": share} for label, n, share in parts]
    measures = {"n_rows": sum(of_class), "accuracy": accuracy, "error": 1 - accuracy}
    measures["classes"] = classes
    if len(classes) == 2:
        measures["tpr_x_tnr"] = None if None in recall else math.prod(map(float, recall))
        measures["f"] = 2 * correct[1] / max(int(counts[:, 1].sum()) + of_class[1], 1)
    return measures


def _print_measures(measures: dict[str, Any], path: str) -> None:
    # F is of the second of two classes.
    positive = [own["label"] for own in measures.get("classes", [])[1:]]
    pairs = [
        (title.format(*positive), _told(name, measures[name], "one class only"))
        for name, title in OVERALL.items()
        if name in measures
    ]
    print_table(f"Score on {path}", pairs)
    for kind, (title, heads) in TABLES.items():
        parts = measures.get(kind, [])
        # A single column is the same as all.
        if parts and (kind != "columns" or len(parts) > 1):
            rows = [[_told(name, value, "-") for name, value in part.items()] for part in parts]
            numbered = [[str(i), *row] for i, row in enumerate(rows)]
            print_table(title, numbered if kind == "columns" else rows, heads)


def _told(name: str, value: Any, unknown: str) -> str:
    if value is None:
        return unknown
    if isinstance(value, list):
        return ", ".join(_told(name, own, unknown) for own in value)
    return FORMS.get(name, str)(value)


def report(
    model: str,
    data: str | None = None,
    *,
    html: Annotated[str | None, typer.Option(metavar="FILE", callback=expand)] = None,
    label: LabelColumn = None,
    unknown: UnseenOption = None,
    where: cluster.ClusterOptions,
    quiet: cluster.Quiet = False,
) -> None:
    """Sum up a fit: what it was trained on, errors, importances; with DATA, scores and pictures.

    Of classes these are confusion, ROC curve and calibration; of numbers predictions beside true
    ones, and residuals. Without --html the report is printed in words; pictures need matplotlib.

    Parameters
    ----------
    model : The model.
    data : A table or a data set, with labels or numbers, that the fit has not seen.
    html : Write a page with pictures, which needs no other file; must not exist.
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
    if html is not None:
        display.to_html(html)
        typer.echo(f"Report: {html}")
        return
    print_table(display.title, display.facts)
    parts: dict[str, Any] = {
        "Parameters that are not the default": display.parameters or [("none", "")],
        "ColumnOptions": [("-", line) for line in display.columns],
        "Notes": [("-", note) for note in display.notes],
        "Pictures, with --html FILE": [(p.title, p.note) for p in display.panels],
    }
    for title, pairs in parts.items():
        if pairs:
            typer.echo()
            print_table(title, pairs)
