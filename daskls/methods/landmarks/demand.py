"""The expected work of an L3-SVM, before rows are read, and the functions that time it.

The functions named by strings are run by `daskls.run.pace`.
"""

from dataclasses import replace
from typing import cast

import numpy as np

from daskls.kernels.joint import N_STATS, solve_cell
from daskls.kernels.kernel import find_kernel
from daskls.kernels.landmarks import find_normalization, mean_square, project_rows
from daskls.methods.landmarks.plan import (
    COST_SHARES,
    ROWS_PER_LANDMARK,
    LandmarkSpec,
    default_costs,
    group_cells,
    landmark_nbytes,
    n_candidates,
)
from daskls.partition.space import cluster_cells
from daskls.plan import Demand, Outlook, StageDemand, Work
from daskls.records import F8
from daskls.run.pace import Setting, seconds_in
from daskls.solvers.landmarks import draw_landmarks

CLUSTER = "methods.landmarks.demand:cluster_rows"
SOLVE_ALL, SOLVE_ONE = "methods.landmarks.demand:solve_all", "methods.landmarks.demand:solve_one"
# Rounds of one search of biases, and their cost in units of the first: later rounds start from the
# one before, and solve fewer problems.
BIAS_ROUNDS, FIRST_ROUNDS = 12, 1.5


def demand_of_landmarks(method: LandmarkSpec, outlook: Outlook) -> Demand:
    """Return the demand of clustering, of the choice of C, and of the joint problem."""
    extent, sizes, n_cells = outlook.extent, outlook.extent.sizes, outlook.n_leaves
    rows = max(extent.n_rows // n_cells, 1)
    n_landmarks = method.n_landmarks or sizes.n_features
    n_outputs = sizes.n_outputs
    n_problems = n_candidates(sizes.spec) * n_outputs
    n_groups = len(group_cells([rows] * n_cells, sizes.n_features, n_landmarks, n_problems))
    clustering = StageDemand("cut", 0, 0, (Work(CLUSTER, outlook.n_sample, 1),))
    stages = [clustering]
    if n_candidates(sizes.spec) > 1:
        stages.append(_searching("select", SOLVE_ALL, outlook, n_groups, n_problems, n_landmarks))
    stages.append(_searching("train", SOLVE_ONE, outlook, n_groups, n_outputs, n_landmarks))
    model = (n_cells * (n_landmarks + sizes.n_features) * n_outputs + n_landmarks**2) * F8
    return Demand(tuple(stages), n_cells, model, 0, n_groups)


def _searching(
    name: str, what: str, outlook: Outlook, n_groups: int, n_problems: int, n_landmarks: int
) -> StageDemand:
    """Return the demand of a stage that searches the biases of some problems."""
    extent, n_cells = outlook.extent, outlook.n_leaves
    rows = max(extent.n_rows // n_cells, 1)
    nbytes = landmark_nbytes(extent.sizes, rows, n_landmarks, n_problems)
    reading = replace(outlook.reading, count=BIAS_ROUNDS * outlook.reading.count)
    works = reading, Work(what, rows, FIRST_ROUNDS * n_cells)
    return StageDemand(name, BIAS_ROUNDS * n_groups, nbytes, works, BIAS_ROUNDS)


def cluster_rows(size: int, setting: Setting) -> float:
    """Time the clustering of a sample of ``size`` rows."""
    X, _ = setting.draw(size)
    return seconds_in(lambda: cluster_cells(X, setting.n_leaves, 0))


def solve_all(size: int, setting: Setting) -> float:
    """Time the first round of all candidates of C on a cluster of ``size`` rows."""
    spec, cv = setting.spec, setting.spec.cv
    n_costs = len(spec.C or COST_SHARES)
    return _solved(size, setting, [(c, f) for c in range(n_costs) for f in range(cv)])


def solve_one(size: int, setting: Setting) -> float:
    """Time the first round of the final models, at one C, on a cluster of ``size`` rows."""
    middle = len(setting.spec.C or COST_SHARES) // 2
    return _solved(size, setting, [(middle, -1)])


def _solved(size: int, setting: Setting, candidates: list[tuple[int, int]]) -> float:
    """Time a first round of candidates, each an index of C and the fold left out, or -1."""
    X, codes = setting.draw(size)
    method = cast(LandmarkSpec, setting.method)
    center = X.mean(axis=0, dtype=np.float64)
    n_landmarks = min(method.n_landmarks or setting.n_features, size)
    landmarks = draw_landmarks(X, find_normalization(X), n_landmarks, (0,))
    gamma = 1.0 / setting.n_features if find_kernel(method.projection).has_width else None
    costs = sorted(setting.spec.C or default_costs(mean_square(X, center, landmarks, gamma)))
    positive = [1] if setting.n_classes == 2 else range(setting.n_classes)
    problems = np.array(
        [(code, costs[c], fold, 0.0) for c, fold in candidates for code in positive], np.float64
    )
    folds = np.arange(size) % setting.spec.cv
    theta, deltas = np.zeros((len(problems), n_landmarks)), np.ones(len(problems))
    stats = np.empty((len(problems), N_STATS))

    def work() -> None:
        M = project_rows(X, center, landmarks, gamma)
        few = size <= ROWS_PER_LANDMARK * n_landmarks
        G = M @ M.T if few else np.empty((0, 0))
        weights, tol = np.ones(size), setting.spec.tol / 2
        solve_cell(M, G, codes, weights, folds, problems, theta, deltas, tol, stats)

    return seconds_in(work)
