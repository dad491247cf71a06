"""Searches and models of neighborhoods, timed; see `daskls.run.timed`."""

from dataclasses import replace
from typing import cast

import numpy as np

from daskls.methods.leaves import one_leaf
from daskls.methods.neighborhoods.spec import NeighborSpec
from daskls.neighbors.search import find_nearest, metric_of
from daskls.records import CellReport
from daskls.run.pace import Setting
from daskls.run.timed import seconds_in
from daskls.solvers.base import Neighborhood
from daskls.solvers.registry import find_neighborhood_solver

__all__ = ["choose_and_fit", "compare_candidates", "fit_neighborhood", "search_leaf"]

# Where gamma "scale" is to be taken from the sample.
USUAL_VARIANCE = 1.0


def _spec(setting: Setting) -> NeighborSpec:
    return cast(NeighborSpec, setting.method)


def search_leaf(size: int, setting: Setting) -> float:
    """Time searching the neighbors of so many rows in one leaf."""
    X, _ = setting.draw(max(setting.leaf_rows, 2))
    leaf, regions, _ = one_leaf(X, np.arange(len(X)))
    k = min(max(_spec(setting).n_neighbors), len(X))
    queries, metric = X[:size], metric_of(setting.spec)
    return seconds_in(lambda: find_nearest(queries, k, regions, lambda _: leaf, metric))


def _near(size: int, setting: Setting, *, is_open: bool) -> Neighborhood:
    X, targets = setting.draw(size)
    method, spec = _spec(setting), setting.spec
    percentiles = method.percentiles
    if percentiles is None and spec.gamma is None:
        spec = replace(spec, gamma=(1.0 / (setting.n_features * USUAL_VARIANCE),))
    if not is_open:
        costs = sorted(spec.C or (1.0,))
        spec = replace(spec, C=(costs[len(costs) // 2],), gamma=spec.gamma and spec.gamma[:1])
        percentiles = percentiles and (percentiles[len(percentiles) // 2],)
    inner = min(method.inner(size), size)
    return Neighborhood(X, targets, np.ones(size), inner, spec, percentiles, (0,))


def fit_neighborhood(size: int, setting: Setting) -> float:
    """Time training the model of one neighborhood, all parameters given."""
    return _fitted(_near(size, setting, is_open=False))


def choose_and_fit(size: int, setting: Setting) -> float:
    """Time training the model of one neighborhood that chooses its own parameters."""
    return _fitted(_near(size, setting, is_open=True))


def _fitted(near: Neighborhood) -> float:
    solver = find_neighborhood_solver(near.spec)
    return seconds_in(lambda: solver.fit_neighborhood(near, CellReport(0, 0, 0, 0, 0.0)))


def compare_candidates(size: int, setting: Setting) -> float:
    """Time the errors of all candidates on the inner rows of one neighborhood."""
    near = _near(size, setting, is_open=True)
    return seconds_in(lambda: find_neighborhood_solver(near.spec).grid_errors(near))
