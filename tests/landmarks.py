"""Helpers of the tests on L3-SVMs: the joint problem as SVC sees it."""

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from daskls import LandmarkSVC


def small_landmarks(n_cells=6, **params):
    """Return an estimator that trains in a blink."""
    return LandmarkSVC(n_cells, **{"n_landmarks": 4, "C": 1.0, "random_state": 0, **params})


def project(X, model, gamma=None):
    """Return the projections of rows, one by one."""
    landmarks = model.landmarks_
    if gamma is None:
        center = model.center_
        vectors = landmarks if model.landmarks == "pca" else landmarks - center
        return np.array([[float(np.dot(x - center, z)) for z in vectors] for x in X])
    return np.array([[np.exp(-gamma * ((x - z) ** 2).sum()) for z in landmarks] for x in X])


def nearest_clusters(X, model):
    """Return the cluster of each row."""
    centers = model.cluster_centers_
    return np.array([((x - centers) ** 2).sum(axis=1).argmin() for x in X])


def joint_kernel(M, cells, N, others, kernel="linear", **params):
    """Return the kernel of the joint problem: that of projections in a cluster, 0 elsewhere."""
    return pairwise_kernels(M, N, kernel, **params) * (cells[:, None] == others[None])


def joint_objective(theta, intercept, M, cells, signs, costs):
    """Return the primal objective of one problem."""
    margins = signs * ((theta[cells] * M).sum(axis=1) + intercept)
    return (theta**2).sum() / 2 + costs @ np.maximum(0, 1 - margins)


def svc_objective(M, cells, signs, C, weights=None, tol=1e-6):
    """Return the least value of the joint problem, by scikit-learn's SVC, whose bias is free."""
    svc = SVC(C=C, kernel="precomputed", tol=tol).fit(
        joint_kernel(M, cells, M, cells), signs, sample_weight=weights
    )
    beta = np.zeros(len(M))
    beta[svc.support_] = svc.dual_coef_[0]
    theta = np.zeros((cells.max() + 1, M.shape[1]))
    np.add.at(theta, cells, beta[:, None] * M)
    costs = C * (np.ones(len(M)) if weights is None else weights)
    return joint_objective(theta, svc.intercept_[0], M, cells, signs, costs)
