"""NDCC, normal clusters on nested cubes, and a noisy nonlinear boundary in 28 features."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from daskls.datasets._base import (
    Rows,
    SetId,
    check_at_least,
    check_probability,
    flip_labels,
    generate_rows,
    structure_rng,
)
from daskls.errors import ParameterError
from daskls.records import Floats, Mask

MAX_CENTERS = 2**16
N_MONTE_CARLO = 2**17
MONTE_CARLO_SEED = 2**32 - 1


class _Clusters(NamedTuple):
    """The mixture behind `make_ndcc`: k clusters, all equally likely."""

    centers: Floats  # (k, d)
    factors: Floats  # (k, d, d): a row is center + factor @ standard normal
    positive: Mask  # (k,)


def ndcc_rows(
    first_row: int,
    n_rows: int,
    seed: int,
    *,
    d: int = 5,
    n_cubes: int = 3,
    spread: float = 0.95,
    structure_seed: int = 0,
) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_ndcc`."""
    clusters = _ndcc_clusters(d, n_cubes, spread, structure_seed)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        return _draw_clusters(clusters, rng, m)

    return generate_rows(draw, SetId.NDCC, first_row, n_rows, seed)


def make_ndcc(
    n_rows: int,
    *,
    d: int = 5,
    n_cubes: int = 3,
    spread: float = 0.95,
    structure_seed: int = 0,
    random_state: int = 0,
) -> Rows:
    """Draw normally distributed clusters, centered on the vertices of nested cubes.

    The cubes are centered at the origin, with half sides 1, 2, .., n_cubes. Every vertex of every
    cube is the center of one cluster, all equally likely. Each cluster has its own covariance: axes
    turned at random, standard deviations uniform in [spread / 2, 3 spread / 2]. Each cube has its
    own random plane, and a cluster is +1 if its center is above its cube's plane. The planes miss
    the origin, so about 60 % of the rows are of one class, as in the paper. They differ, so
    no single plane separates the classes.

    Parameters
    ----------
    n_rows : int, >= 0
    d : int, >= 1. Number of features; n_cubes 2^d may not exceed 65,536.
    n_cubes : int, >= 1
    spread : float, > 0. Mean standard deviation of the clusters.
    structure_seed : int. Draws the clusters' classes and covariances: a problem for each seed.
    random_state : int. Draws the rows of that problem; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, d)
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: the idea of NDCC (Thompson, 2006), used by Segata and Blanzieri, 2009 (FaLK-SVM),
    section 5.2, with d = 5, a class balance of 61/39 and a best test accuracy of 86.29 %.
    Differences: only the idea of the original program is followed, not its cubes, covariances and
    class noise; the only noise here is the overlap of the clusters.

    Examples
    --------
    >>> X, y = make_ndcc(1000, d=3)
    >>> X.shape
    (1000, 3)
    """
    params = {"d": d, "n_cubes": n_cubes, "structure_seed": structure_seed}
    return ndcc_rows(0, n_rows, random_state, spread=spread, **params)


@lru_cache(maxsize=8)
def _ndcc_clusters(d: int, n_cubes: int, spread: float, structure_seed: int) -> _Clusters:
    """Draw centers, covariances and classes."""
    check_at_least("d", d, 1)
    check_at_least("n_cubes", n_cubes, 1)
    if n_cubes * 2.0**d > MAX_CENTERS:
        raise ParameterError(
            f"n_cubes 2^d must be at most {MAX_CENTERS}, got {n_cubes} x 2^{d}; lower d."
        )
    check_at_least("spread", spread, 0, strict=True)
    rng = structure_rng(structure_seed, SetId.NDCC)
    vertices = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    centers = np.concatenate([side * vertices for side in range(1, n_cubes + 1)])
    axes = np.linalg.qr(rng.standard_normal((len(centers), d, d))).Q
    sds = spread * rng.uniform(0.5, 1.5, (len(centers), 1, d))
    normals = rng.standard_normal((n_cubes, d))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    # A vertex's projection on a unit vector has variance 1, so about 39 % lie above 0.28.
    positive = np.concatenate([vertices @ normal > 0.28 for normal in normals])
    return _Clusters(centers, axes * sds, positive)


def _draw_clusters(clusters: _Clusters, rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
    """Draw m rows of the mixture."""
    chosen = rng.integers(len(clusters.centers), size=m)
    normal = rng.standard_normal((m, clusters.centers.shape[1], 1))
    # Faster than einsum, which buffers, for many small products.
    X = clusters.centers[chosen] + (clusters.factors[chosen] @ normal)[:, :, 0]
    return X, clusters.positive[chosen]


def ndcc_posterior(
    X: Floats, *, d: int = 5, n_cubes: int = 3, spread: float = 0.95, structure_seed: int = 0
) -> Floats:
    """Return the probability of the label +1 at each row.

    Parameters
    ----------
    X : array, shape (m, d)
    d, n_cubes, spread, structure_seed : as in `make_ndcc`

    Returns
    -------
    probability : float64 array, shape (m,)

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Bayes' rule with the densities of the clusters. Source: as of `make_ndcc`.

    Examples
    --------
    >>> X, y = make_ndcc(1000)
    >>> bool(((ndcc_posterior(X) > 0.5) == (y == 1)).mean() > 0.8)
    True
    """
    clusters = _ndcc_clusters(d, n_cubes, spread, structure_seed)
    logs = np.empty((len(clusters.centers), len(X)))
    for k, (center, factor) in enumerate(zip(clusters.centers, clusters.factors, strict=True)):
        z = np.linalg.solve(factor, (X - center).T)
        logs[k] = -0.5 * np.square(z).sum(0) - np.linalg.slogdet(factor)[1]
    weights = np.exp(logs - logs.max(0))
    probability: Floats = weights[clusters.positive].sum(0) / weights.sum(0)
    return probability


@lru_cache(maxsize=8)
def ndcc_bayes_accuracy(
    *, d: int = 5, n_cubes: int = 3, spread: float = 0.95, structure_seed: int = 0
) -> float:
    """Estimate the accuracy of the best classifier: the mean of the larger posterior.

    Notes
    -----
    Seeded Monte Carlo over 131,072 rows; the standard error is below 0.0005.
    """
    clusters = _ndcc_clusters(d, n_cubes, spread, structure_seed)
    rng = np.random.default_rng(MONTE_CARLO_SEED)
    totals = 0.0
    for _ in range(N_MONTE_CARLO // 8192):
        X, _labels = _draw_clusters(clusters, rng, 8192)
        p = ndcc_posterior(X, d=d, n_cubes=n_cubes, spread=spread, structure_seed=structure_seed)
        totals += float(np.maximum(p, 1 - p).sum())
    return totals / (N_MONTE_CARLO // 8192 * 8192)


def noisy28_rows(
    first_row: int, n_rows: int, seed: int, *, flip: float = 0.1, noise: float = 0.3
) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_noisy28`."""
    check_probability("flip", flip)
    check_at_least("noise", noise, 0)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        X = rng.standard_normal((m, 28), dtype=np.float32)
        X[:, 3:] *= np.float32(noise)
        a, b, c = X[:, :3].T.astype(np.float64)
        return X, flip_labels(rng, a * b + np.sin(2 * c) > 0, flip)

    return generate_rows(draw, SetId.NOISY28, first_row, n_rows, seed)


def make_noisy28(
    n_rows: int, *, flip: float = 0.1, noise: float = 0.3, random_state: int = 0
) -> Rows:
    """Draw 28 normal features, three of which decide, with swapped labels: a set for scale tests.

    The label is +1 where x_0 x_1 + sin(2 x_2) > 0, then swapped with probability `flip`. The first
    three features have standard deviation 1, the other 25 (pure noise) `noise`.

    Parameters
    ----------
    n_rows : int, >= 0
    flip : float. Probability that a label is swapped.
    noise : float, >= 0. Standard deviation of the 25 noise features.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, 28)
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Ours; it has as many features as HIGGS (28) and a known best accuracy.

    Examples
    --------
    >>> X, y = make_noisy28(1000, flip=0.0)
    >>> bool(((X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) > 0) == (y == 1)).all())
    True
    """
    return noisy28_rows(0, n_rows, random_state, flip=flip, noise=noise)


def noisy28_bayes_accuracy(*, flip: float = 0.1, noise: float = 0.3) -> float:
    """Accuracy of the true boundary (exact)."""
    check_probability("flip", flip)
    check_at_least("noise", noise, 0)
    return max(flip, 1 - flip)
