"""What a report tells: of a model, of its predictions for a test set, and in panels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np

from daskls.cluster import compute
from daskls.errors import DataError, listed
from daskls.live.record import MEASURES, Measure, mean_error
from daskls.methods.predict import OF_NUMBERS, predict_array
from daskls.records import AnyArray, Float64, Int64, Reals
from daskls.run.confusion import MOST_ROWS, Confusion, LevelScores, NumberScores, score_blocks
from daskls.run.contract import Method
from daskls.run.progress import STAGE_LABELS
from daskls.run.rows import find_labels, open_column, open_whole
from daskls.seeds import SHUFFLED
from daskls.solvers.registry import find_loss
from daskls.sources.formats import open_source
from daskls.store.reader import ModelReader
from daskls.targets import MOST_COLUMNS

Scores = Confusion | NumberScores | LevelScores
# Names and values.
Entries = list[tuple[str, str]]
# Parameters that do not change the model.
NOT_OF_MODEL = ("client", "store", "verbose")
# Bytes of a block when these rows are read.
ROWS_NBYTES = 16 << 20
BLUE, ORANGE, GRAY = "#17518f", "#d96a00", "#8a8f96"
# Words for decisions about the scale of features.
SCALES = {"given": "as they are", "spread": "by spread"}
# Fewer rows whose columns are shuffled show chance alone.
LEAST_SHUFFLED = 100


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """A model's results on a test set: scores of all rows, and some rows for pictures.

    `true` and `predicted` are labels or numbers, `probable` (m, k) if the model has probabilities,
    `decisions` (m,) if it has two classes.
    """

    scores: Scores
    rows: Reals
    true: AnyArray
    predicted: AnyArray
    probable: Float64 | None = None
    decisions: Float64 | None = None


@dataclass(frozen=True)
class FittedModel:
    """The model that a report is about, and its evaluation if there is a test set."""

    estimator: Any
    reader: ModelReader
    method: Method
    evaluation: HeldOutScores | None

    @property
    def is_regressor(self) -> bool:
        return bool(self.estimator._kind == "numbers")

    @property
    def measure(self) -> Measure:
        return MEASURES[self.reader.target.measured_as]

    @property
    def rows(self) -> Reals | None:
        return self.evaluation.rows if self.evaluation else None

    @property
    def has_errors(self) -> bool:
        return bool(np.isfinite(self.reader.report.validation_error).any())


@dataclass(frozen=True)
class Panel:
    """One picture of a report, with a note how to read it."""

    name: str
    title: str
    note: str
    draw: Callable[[Any], Any]


def evaluate(estimator: Any, X: Any, y: Any) -> HeldOutScores:
    """Score predictions for a test set block by block; `MOST_ROWS` rows at most are kept."""
    y, names = find_labels(open_source(X), y)
    is_classes, client = estimator._kind == "classes", estimator.client
    y = replace(y, value=_in_one(y.value), kind="dask") if y.in_memory else y
    y = open_column(y, "y", 1 if is_classes else None)
    lazy = {"predicted": _in_one(estimator.predict(X))}
    if hasattr(estimator, "predict_proba"):
        lazy["probable"] = _in_one(estimator.predict_proba(X))
    if is_classes and len(estimator.classes_) == 2:
        lazy["decisions"] = _in_one(estimator.decision_function(X))
    n_rows, what = len(lazy["predicted"]), "label" if is_classes else "number"
    if not n_rows or n_rows != len(y):
        raise DataError(
            f"X has {n_rows} rows and y {len(y)} {what}s; a report on a test set needs rows, and "
            f"one {what} for each."
        )
    known = None if names is None else names.tolist()
    tasks, combine = score_blocks(estimator, lazy["predicted"], y, known, client)
    in_memory = isinstance(X, (np.ndarray, list))
    rows = np.asarray(X) if in_memory else open_whole(open_source(X), ROWS_NBYTES)
    step = -(-n_rows // MOST_ROWS)
    # One pass over X for all of them.
    results = compute([*tasks, *(array[::step] for array in (rows, y, *lazy.values()))], client)
    scores, (rows, true, *answers) = combine(results[: len(tasks)]), results[len(tasks) :]
    true = true if names is None else names[true]
    return HeldOutScores(scores, np.asarray(rows), true, **dict(zip(lazy, answers, strict=True)))


def _in_one(values: Any) -> da.Array:
    """Return values in memory as one chunk; Dask cuts none of objects, as labels of pandas are."""
    return values if isinstance(values, da.Array) else da.from_array(np.asarray(values), chunks=-1)


def importances_by_shuffling(
    estimator: Any, scores: HeldOutScores, owner: Int64
) -> tuple[Float64, int] | None:
    """Return by how much the score falls if each column is shuffled, and of how many rows.

    `owner` is the number of the column that each feature is of. None for too few rows, of which as
    many are taken as `MOST_ROWS` predictions allow.
    """
    n_columns = int(owner.max()) + 1
    step = -(-len(scores.rows) * n_columns // MOST_ROWS)
    rows, true = scores.rows[::step], scores.true[::step]
    if len(rows) < LEAST_SHUFFLED:
        return None
    others = rows[SHUFFLED.generator(0).permutation(len(rows))]
    wanted = estimator.classes_ if estimator._kind == "classes" else OF_NUMBERS

    def lost(column: int) -> float:
        shuffled = np.where(owner == column, others, rows)
        answers = predict_array(shuffled, estimator._handle, wanted)
        return whole - float(estimator._score_rows(answers, true, None, None))

    whole = float(estimator._score_rows(scores.predicted[::step], true, None, None))
    return np.array([lost(column) for column in range(n_columns)]), len(rows)


def find_title(estimator: Any) -> str:
    """Return the name of the estimator, of the rows that it was trained on, and of their label."""
    meta, table = estimator._reader.meta, getattr(estimator, "table_", None)
    origin = meta.get("origin", {})
    where, label = origin.get("where"), origin.get("label") or (table and table.label)
    title = f"{meta['estimator']}: {meta['n_rows']:,} rows{f' of {where}' if where else ''}"
    return f"{title}, label {label}" if label else title


def find_columns(estimator: Any) -> list[str]:
    """Return in words what became of a table's columns; nothing of an array."""
    table = getattr(estimator, "table_", None)
    lines = [] if table is None else table.describe()
    out = estimator._reader.meta.get("origin", {}).get("left_out", {})
    for reason in dict.fromkeys(out.values()):
        names = listed([name for name, why in out.items() if why == reason])
        lines.append(f"left out, {reason}: {names}")
    return lines


def find_facts(fitted: FittedModel) -> Entries:
    reader, report = fitted.reader, fitted.reader.report
    table = getattr(fitted.estimator, "table_", None)
    columns = "" if table is None else f" from {len(table.columns)} columns"
    rows = f"{reader.meta['n_rows']:,} rows, {reader.n_columns} features{columns}"
    entries = [("rows trained on", rows), reader.target.describe(), *_errors(fitted)]
    if len(report):
        kept = f"{int(report.n_support.sum()):,} rows kept"
        n_partitions = int(report.partition.max()) + 1
        many = f" in {n_partitions} partitions, each of all rows," if n_partitions > 1 else ""
        entries.append(("cells", f"{len(report):,}{many} with {kept}"))
    if reader.resolved.summary:
        decision = str(reader.resolved.summary["decision"])
        entries.append(("scale of features", SCALES.get(decision, decision)))
    entries += _choice(fitted)
    if reader.interval is not None:
        entries += reader.interval.describe()
    elif reader.false_alarm is not None:
        entries += reader.false_alarm.describe(reader.meta["classes"]["values"])
    if seconds := reader.stage_s:
        longest = max(seconds, key=lambda name: seconds[name])
        name = STAGE_LABELS.get(longest, longest)
        told = f"{sum(seconds.values()):,.1f}, of which {seconds[longest]:,.1f} {name}"
        entries.append(("seconds of the fit", told))
    return entries


def _errors(fitted: FittedModel) -> Entries:
    """Return scores of the test set, or the error of held-out rows; and what a constant scores."""
    measure, error = fitted.measure, mean_error(fitted.reader.report)
    if fitted.evaluation is not None:
        first, *more = _scores(fitted.evaluation.scores)
        return [first, ("baseline", _baseline(fitted, fitted.evaluation.scores)), *more]
    told = [] if error is None else [(measure.mean_name, measure.format_mean(error))]
    return [*told, ("baseline", _baseline(fitted, None))] if told else []


def _baseline(fitted: FittedModel, scores: Scores | None) -> str:
    """Return what is right or wrong, as the error is measured, if every answer is the same."""
    reader, measure = fitted.reader, fitted.measure
    if not measure.is_share:
        constant = "mean" if reader.target.measured_as == "numbers" else "best constant"
        return f"always the {constant}: {measure.score_name} 0"
    labels, counts = reader.target.labels.tolist(), reader.meta.get("origin", {}).get("counts")
    if isinstance(scores, Confusion):
        labels, counts = scores.labels, scores.counts.sum(axis=1).tolist()
    if not counts:
        return "not known of a model of an earlier version"
    share, always = max(counts) / sum(counts), labels[np.argmax(counts)]
    how = f"{100 * (1 - share):.2f} % wrong" if scores is None else f"{100 * share:.2f} % right"
    return f"always {always}, the most frequent class: {how}"


def _scores(scores: Scores) -> Entries:
    if isinstance(scores, Confusion):
        n_rows, n_right = int(scores.counts.sum()), int(scores.counts.trace())
        return [("accuracy", f"{100 * (n_right / n_rows):.2f} % of {n_rows:,} other rows")]
    of = f"of {scores.n_rows:,} other rows"
    if isinstance(scores, LevelScores):
        levels = ", ".join(f"{level:g}" for level in scores.levels[:MOST_COLUMNS])
        parts = {"D2 at": scores.d2, "share at or below": scores.covered}
        told = [(f"{name} {levels}", _columns(values, ".4f")) for name, values in parts.items()]
        return [("D2", f"{scores.d2.mean():.4f} {of}"), *told]
    mean = f"{scores.r2.mean():.4f} {of}"
    if len(scores.r2) > 1:
        mean += f", the mean of {_columns(scores.r2, '.4f')}"
    parts = {"RMSE": scores.rmse, "mean absolute error": scores.mae}
    return [("R2", mean), *((name, _columns(own, ".4g")) for name, own in parts.items())]


def _columns(values: Float64, form: str) -> str:
    """Return the values of columns; of many columns, the first ones."""
    return listed([f"{value:{form}}" for value in values], MOST_COLUMNS)


def _choice(fitted: FittedModel) -> Entries:
    reader = fitted.reader
    if not find_loss(reader.spec).is_global:
        selected = getattr(fitted.estimator, "selected_", None) or {}
        values = [(name, selected.get(name)) for name in ("C", "gamma")]
        return [(f"chosen {name}", f"{value:.3g}") for name, value in values if value is not None]
    # Without its error, which one of all rows follows.
    chosen = reader.resolved.describe_choice(reader.target.kind)[:2]
    coding = reader.resolved.summary.get("coding", "none")
    return chosen if coding == "none" else [("coding of features", coding), *chosen]


def find_parameters(estimator: Any) -> Entries:
    params, default = estimator.get_params(deep=False), type(estimator)().get_params(deep=False)
    return [
        (name, _short(value))
        for name, value in params.items()
        if name not in NOT_OF_MODEL and repr(value) != repr(default[name])
    ]


def _short(value: Any) -> str:
    """Return a value with four digits and six elements at most."""
    if isinstance(value, (list, tuple, np.ndarray)):
        shown = [_short(item) for item in list(value)[:6]]
        return f"[{', '.join(shown)}{', ...' if len(value) > 6 else ''}]"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def find_notes(fitted: FittedModel) -> list[str]:
    """Return what the reader should check, each note with what to do."""
    report, scores = fitted.reader.report, fitted.evaluation and fitted.evaluation.scores
    n_open = int(fitted.method.count_open(report)) if len(report) else 0
    remedy = "solves ended before tol was reached: scale the features, or raise tol."
    notes = [f"{n_open:,} {remedy}"] if n_open else []
    # The warnings of the fit that can be derived from the model.
    notes += [message for _, message in fitted.estimator._advice()]
    if scores is None:
        notes.append(
            f"No test set was given: the {fitted.measure.mean_name} is that of rows used to "
            "select the model, and so slightly optimistic. With one, there are pictures of its "
            "predictions, too."
        )
    # The model's classes come first.
    elif isinstance(scores, Confusion) and len(scores.labels) > fitted.reader.n_classes:
        n_unseen = len(scores.labels) - fitted.reader.n_classes
        notes.append(f"Classes of the test set that the model has not seen: {n_unseen}.")
    return notes
