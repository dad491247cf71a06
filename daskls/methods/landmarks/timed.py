"""Clusters of an L3-SVM, timed; see `daskls.run.timed`."""

from typing import cast

import numpy as np

from daskls.kernels.gauge import find_gauge
from daskls.kernels.joint import N_STATS, solve_cell
from daskls.kernels.landmarks import mean_square, project_rows
from daskls.kernels.registry import find_kernel
from daskls.methods.landmarks.choice import COST_SHARES
from daskls.methods.landmarks.solve import ROWS_PER_LANDMARK
from daskls.methods.landmarks.spec import LandmarkSpec
from daskls.partition.points import find_points
from daskls.records import Float64, Reals
from daskls.run.pace import Setting
from daskls.run.timed import seconds_in
from daskls.solvers.landmarks import draw_landmarks

__all__ = ["cluster_rows", "solve_all", "solve_one"]


def cluster_rows(size: int, setting: Setting) -> float:
    """Time clustering a sample of so many rows."""
    X, _ = setting.draw(size)
    return seconds_in(lambda: find_points(X, find_gauge(X), setting.n_leaves, 0))


def solve_all(size: int, setting: Setting) -> float:
    """Time one round of all candidates on a cluster of so many rows, begun at zero."""
    spec, cv = setting.spec, setting.spec.cv
    n_costs = len(spec.C or COST_SHARES)
    return _solved(size, setting, [(c, f) for c in range(n_costs) for f in range(cv)])


def solve_one(size: int, setting: Setting) -> float:
    """Time one round of the models of all rows, at one C."""
    middle = len(setting.spec.C or COST_SHARES) // 2
    return _solved(size, setting, [(middle, -1)])


def _solved(size: int, setting: Setting, candidates: list[tuple[int, int]]) -> float:
    X, codes = setting.draw(size)
    method = cast(LandmarkSpec, setting.method)
    center = X.mean(axis=0, dtype=np.float64)
    n_landmarks = min(method.n_landmarks or setting.n_features, size)
    landmarks = draw_landmarks(X, find_gauge(X), n_landmarks, (0,))
    gamma = 1.0 / setting.n_features if find_kernel(method.projection).has_width else None
    costs = _costs(setting, X, center, landmarks, gamma)
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


def _costs(
    setting: Setting, X: Reals, center: Float64, landmarks: Float64, gamma: float | None
) -> list[float]:
    if setting.spec.C is not None:
        return sorted(setting.spec.C)
    norm = mean_square(X, center, landmarks, gamma) or 1.0
    return [share / norm for share in COST_SHARES]
