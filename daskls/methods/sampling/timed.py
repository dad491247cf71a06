"""SVMs of samples, timed; see `daskls.run.timed`."""

from dataclasses import replace
from typing import cast

import numpy as np

from daskls.methods.sampling.spec import SamplingSpec
from daskls.records import CellReport, SolverSpec
from daskls.run.pace import Setting
from daskls.run.timed import seconds_in
from daskls.solvers.base import Neighborhood
from daskls.solvers.hinge.large import fit_large
from daskls.solvers.registry import find_neighborhood_solver

__all__ = ["select_on", "train_sample"]

TIMED_CACHE_NBYTES = 256 << 20
NOBODY_YET = CellReport(0, 0, 0, 0, 0.0)


def _one(setting: Setting) -> SolverSpec:
    """Return a spec of one C and one gamma."""
    spec = setting.spec
    cost = sorted(spec.C or (1.0,))[len(spec.C or (1.0,)) // 2]
    gamma = spec.gamma[0] if spec.gamma else 1.0 / setting.n_features
    return replace(spec, C=(cost,), gamma=(gamma,))


def train_sample(size: int, setting: Setting) -> float:
    """Time training one SVM on so many rows."""
    X, targets = setting.draw(size)
    codes = targets.astype(np.int32)
    spec, weights = _one(setting), np.ones(size)
    return seconds_in(lambda: fit_large(X, codes, weights, spec, NOBODY_YET, TIMED_CACHE_NBYTES))


def select_on(size: int, setting: Setting) -> float:
    """Time selecting C and gamma on so many rows."""
    X, codes = setting.draw(size)
    percentiles = cast(SamplingSpec, setting.method).percentiles
    spec = replace(setting.spec, search="full")
    if percentiles is None and spec.gamma is None:
        spec = replace(spec, gamma=_one(setting).gamma)
    near = Neighborhood(X, codes, np.ones(size), size, spec, percentiles, (0,))
    solver = find_neighborhood_solver(spec)
    return seconds_in(lambda: solver.fit_neighborhood(near, NOBODY_YET))
