"""The scores of one local model in the shape of the whole model's."""

import numpy as np

from daskls.kernels.votes import class_scores, vote_scores
from daskls.records import FloatArray, LocalModel
from daskls.solvers.evaluate import cell_scores

__all__ = ["model_scores"]


def model_scores(model: LocalModel, X: FloatArray, n_classes: int) -> FloatArray:
    """Return one cell's scores in the shape of the whole model's."""
    present = len(model.classes)
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
