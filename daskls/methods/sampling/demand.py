"""The expected work of training one SVM on a chosen sample, and the functions that time it.

The sizes of samples, and how many are tried, depend on the data: what is expected here is typical.
The functions named by strings are run by `daskls.run.pace`.
"""

from dataclasses import replace
from typing import cast

import numpy as np

from daskls.methods.sampling.plan import SamplingSpec, sample_nbytes
from daskls.methods.sampling.search import N_SEARCH_TASKS
from daskls.partition.shuffle import plan_draws, sampling_sizes
from daskls.plan import Demand, Outlook, StageDemand, Work, model_nbytes
from daskls.records import SolverSpec
from daskls.run.pace import Setting, seconds_in
from daskls.run.regroup import gather_stage
from daskls.solvers.base import BLANK_REPORT, Neighborhood
from daskls.solvers.hinge.large import fit_large
from daskls.solvers.registry import find_neighborhood_solver

TRAIN, SELECT = "methods.sampling.demand:train_sample", "methods.sampling.demand:select_on"
# Rows of a sample for each row of all subsamples, of balls and of rounds; and the number of samples
# tried. Measured on ijcnn1.
BALL_GROWTH, ROUND_GROWTH, N_TRIED = 6.0, 2.5, 6
TIMED_CACHE_NBYTES = 256 << 20


def demand_of_samples(method: SamplingSpec, outlook: Outlook, *, has_radii: bool) -> Demand:
    """Return the demand of samples chosen around support rows.

    With ``has_radii`` all subsamples are trained first, then samples of growing balls.
    """
    extent = outlook.extent
    sizes, n_rows = extent.sizes, extent.n_rows
    fraction, n_subsamples = sampling_sizes(
        method.sample_fraction, method.n_subsamples, n_rows, sizes.n_classes
    )
    draws = plan_draws(n_rows, fraction, n_subsamples, 0)
    stages = [outlook.grown, gather_stage(outlook)]
    leaf_nbytes = extent.leaf_rows * sizes.row_nbytes
    stages.append(StageDemand("draw", N_SEARCH_TASKS, leaf_nbytes, (outlook.reading,)))
    n_selecting = method.n_selecting(draws)
    if n_selecting:
        nbytes = sample_nbytes(sizes, n_selecting)
        stages.append(StageDemand("select", 1, nbytes, (Work(SELECT, n_selecting, 1),)))
    size = max(draws.subsample_rows, 2)
    if has_radii:
        nbytes = sample_nbytes(sizes, size)
        work = Work(TRAIN, size, n_subsamples)
        n_tasks = min(n_subsamples, N_SEARCH_TASKS)
        stages.append(StageDemand("subsamples", n_tasks, nbytes, (work,)))
    growth = BALL_GROWTH if has_radii else ROUND_GROWTH
    trained = int(min(growth * draws.n_sampled, n_rows - draws.n_validation))
    n_tried = 1 if method.radius_scale is not None else N_TRIED
    nbytes = sample_nbytes(sizes, trained)
    search = Work(TRAIN, max(trained, 2), n_tried)
    # Many tasks draw from balls, or search neighbors; one task trains.
    stages.append(
        StageDemand("search", n_tried * (1 + N_SEARCH_TASKS), nbytes, (search,), n_tried, 1.0)
    )
    return Demand(tuple(stages), 1, model_nbytes(sizes, trained), 0, n_tried)


def train_sample(size: int, setting: Setting) -> float:
    """Time the training of one SVM on ``size`` rows."""
    X, targets = setting.draw(size)
    codes = targets.astype(np.int32)
    spec, weights = _one(setting), np.ones(size)
    return seconds_in(lambda: fit_large(X, codes, weights, spec, BLANK_REPORT, TIMED_CACHE_NBYTES))


def select_on(size: int, setting: Setting) -> float:
    """Time the selection of C and gamma on ``size`` rows."""
    X, codes = setting.draw(size)
    percentiles = cast(SamplingSpec, setting.method).percentiles
    spec = replace(setting.spec, search="full")
    if percentiles is None and spec.gamma is None:
        spec = replace(spec, gamma=_one(setting).gamma)
    near = Neighborhood(X, codes, np.ones(size), size, spec, percentiles, (0,))
    solver = find_neighborhood_solver(spec)
    return seconds_in(lambda: solver.fit_neighborhood(near, BLANK_REPORT))


def _one(setting: Setting) -> SolverSpec:
    """Return a spec with one C and one gamma."""
    spec = setting.spec
    cost = sorted(spec.C or (1.0,))[len(spec.C or (1.0,)) // 2]
    gamma = spec.gamma[0] if spec.gamma else 1.0 / setting.n_features
    return replace(spec, C=(cost,), gamma=(gamma,))
