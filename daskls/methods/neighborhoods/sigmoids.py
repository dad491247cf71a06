"""Probabilities of queries by sigmoids of their own neighbors' cross-validated decision values.

Source: Segata, FaLKM-lib v1.0, 2009, section 2.3; Platt 1999; Lin, Lin, Weng 2007. Ours: each of
more than two classes is against the others, and their probabilities are normalized.
"""

import numpy as np

from daskls.methods.neighborhoods.plan import NeighborSpec
from daskls.methods.neighborhoods.queries import neighborhood_of, neighborhoods_of
from daskls.methods.probability import normalized
from daskls.records import Float64, Reals
from daskls.solvers.base import Neighborhood
from daskls.solvers.hinge.neighborhood import LabelModel, fit_label, label_probability
from daskls.store.errors import malformed_is_damage
from daskls.store.reader import ModelReader


def label_shares(method: NeighborSpec, reader: ModelReader, X: Reals) -> Float64:
    """Return the probability of each class, (m, k)."""
    with malformed_is_damage(reader.index.where()):
        class_weight = np.array(reader.index.attrs["class_weight"], np.float64)
    probabilities = np.zeros((len(X), reader.n_classes))
    for queries, rows in neighborhoods_of(method, reader, X):
        # Queries with the same neighbors share their sigmoids.
        fitted: dict[bytes, dict[int, LabelModel | float]] = {}
        for i, query in enumerate(queries.tolist()):
            key = rows.numbers[i].tobytes()
            if key not in fitted:
                fitted[key] = _fit(neighborhood_of(method, reader, rows, i), class_weight)
            for code, model in fitted[key].items():
                probabilities[query, code] = label_probability(model, X[query])
    return normalized(probabilities)


def _fit(near: Neighborhood, class_weight: Float64) -> dict[int, LabelModel | float]:
    """Return a model of the probability of each class that neighbors have."""
    # Class weights move the decision boundary; they do not change how probable a class is.
    counted = near.weights / class_weight[near.targets]
    present = np.unique(near.targets).tolist()
    if len(present) != 2:
        return {code: fit_label(near, code, counted) for code in present}
    model = fit_label(near, present[1], counted)
    return {
        present[0]: 1.0 - model if isinstance(model, float) else model.opposite(),
        present[1]: model,
    }
