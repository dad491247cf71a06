"""Predictions of L3-SVMs: the linear function of the cell that a row lies in."""

import numpy as np

from daskls.kernels.landmarks import decide_linear, project_tiles
from daskls.methods.landmarks.parts import read_linear_model
from daskls.records import Float64, Reals
from daskls.store.reader import ModelReader

__all__ = ["score_linearly"]


def score_linearly(reader: ModelReader, X: Reals) -> Float64:
    """Return the decision values of rows: (m,) for two classes, (m, k) for more."""
    model = read_linear_model(reader)
    cells = model.cells.nearest(X)
    scores = np.empty((len(model.theta), len(X)))
    for rows, seen in project_tiles(X, model.cells.center, model.landmarks, model.gamma):
        for problem, theta in enumerate(model.theta):
            bias = float(model.intercepts[problem])
            decide_linear(seen, cells[rows], theta, bias, scores[problem, rows])
    return scores[0] if len(scores) == 1 else np.ascontiguousarray(scores.T)
