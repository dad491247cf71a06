"""Scores in the shape of the whole model's, and the labels predicted from them."""

import numpy as np

from daskls.kernels.decision import decide_pairs
from daskls.kernels.votes import class_scores, rest_scores, vote_scores
from daskls.records import Float64, Labels, LocalModel, Mask, Reals, Targets
from daskls.solvers.evaluate import cell_scores
from daskls.targets import Target

__all__ = [
    "empty_scores",
    "held_out_scores",
    "labels_of",
    "misses_of",
    "model_scores",
    "model_values",
]


def model_scores(model: LocalModel, X: Reals, n_classes: int) -> Float64:
    """Return one cell's scores in the shape of the whole model's."""
    if model.decision == "values":
        numbers = model_values(model, X)
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers
    present = len(model.classes)
    if model.decision == "ovr":
        values = decide_pairs(model, X) if present > 1 else None
        return _rest_scores(model, values, len(X), n_classes)
    if n_classes == 2:
        if present == 2:
            return cell_scores(model, X)
        return np.full(len(X), 1.0 if model.classes[0] == 1 else -1.0)
    if present == 1:
        scores = np.ones((len(X), 1))
    elif present == 2:
        scores = vote_scores(cell_scores(model, X)[:, None], 2)
    else:
        scores = cell_scores(model, X)
    return class_scores(scores, model.classes, n_classes)


def model_values(model: LocalModel, X: Reals) -> Float64:
    """Return the numbers of a cell's model, (m, t): of a cell without rows its offsets."""
    if not len(model.rows):
        return np.repeat(model.intercepts[None], len(X), axis=0)
    return decide_pairs(model, X)


def held_out_scores(model: LocalModel, n_rows: int, n_classes: int) -> Float64:
    """Return the scores of the rows whose held-out values a cell's model brought."""
    return _rest_scores(model, model.held_out, n_rows, n_classes)


def _rest_scores(model: LocalModel, values: Float64 | None, n_rows: int, n_classes: int) -> Float64:
    """Return values of one class against the rest, or the constant, as scores of so many rows."""
    scores = rest_scores(values, model.classes, n_classes)
    return scores if values is not None else np.repeat(scores, n_rows, axis=0)


def empty_scores(n_rows: int, target: Target) -> Float64:
    """Return an array for the scores of rows, see `Target.score_shape`."""
    return np.empty((n_rows, *target.score_shape))


def labels_of(scores: Float64, classes: Labels) -> Labels:
    """Return the label of each row's scores."""
    winners = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    labels: Labels = classes[winners]
    return labels


def misses_of(scores: Float64, targets: Targets, target: Target) -> Float64:
    """Return what each row's scores miss its target by, float64 (m,).

    1 where another class won; of numbers the squared error, the mean of a row's.
    """
    if target.kind == "numbers":
        squared: Float64 = ((scores.reshape(targets.shape) - targets) ** 2).mean(axis=1)
        return squared
    is_wrong: Mask = labels_of(scores, np.arange(target.n_classes)) != targets
    return is_wrong.astype(np.float64)
