"""Sets of normal distributions: two truncated Gaussians, and a rare class in many features.

The two Gaussians are the toy example of the spatial decomposition paper. In
theta phi(x) = (1 - theta) psi(x) the squares of all coordinates have the same factor. The best rule
is therefore -1 inside a ball around (8/7, 0, .., 0), and the Bayes risk needs only the probability,
under each of the two Gaussians, of that ball cut by the box [-2, 2]^d.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from daskls.datasets._base import (
    Rows,
    SetId,
    check_at_least,
    check_probability,
    generate_rows,
    structure_rng,
)
from daskls.errors import ParameterError
from daskls.records import Float64, Floats, Mask

THETA = 0.6
HALF_SIDE = 2.0
NARROW_VARIANCE = 1 / 8
N_NODES = 96
N_QUADRATURE_RADII = 1537
# Hidden features of `make_rare`.
N_HIDDEN = 8


@dataclass(frozen=True)
class _Axis:
    """A normal distribution truncated to [-2, 2]: one coordinate of a class."""

    mean: float
    sd: float

    @property
    def _ends(self) -> tuple[float, float]:
        """The distribution function of the untruncated normal at -2 and at 2."""
        low, high = ((end - self.mean) / self.sd for end in (-HALF_SIDE, HALF_SIDE))
        return float(ndtr(low)), float(ndtr(high))

    @property
    def mass(self) -> float:
        """Probability of [-2, 2] before the truncation."""
        low, high = self._ends
        return high - low

    def quantile(self, u: Floats) -> Floats:
        """The truncated distribution's quantile at u, in [0, 1)."""
        low, high = self._ends
        drawn: Floats = self.mean + self.sd * ndtri(low + u * (high - low))
        return np.clip(drawn, -HALF_SIDE, HALF_SIDE)

    def density(self, x: Floats) -> Floats:
        """The truncated density at x in [-2, 2]."""
        z = (x - self.mean) / self.sd
        density: Floats = np.exp(-0.5 * z * z) / (np.sqrt(2 * np.pi) * self.sd * self.mass)
        return density


_WIDE = _Axis(0.0, 1.0)
_NARROW = _Axis(0.0, NARROW_VARIANCE**0.5)
_NARROW_FIRST = _Axis(1.0, NARROW_VARIANCE**0.5)


def two_gaussians_rows(first_row: int, n_rows: int, seed: int, *, d: int = 2) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_two_gaussians`."""
    check_at_least("d", d, 1)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        positive = rng.random(m) < THETA
        u = rng.random((m, d))
        X = np.where(positive[:, None], _WIDE.quantile(u), _NARROW.quantile(u))
        X[:, 0] = np.where(positive, X[:, 0], _NARROW_FIRST.quantile(u[:, 0]))
        return X, positive

    return generate_rows(draw, SetId.TWO_GAUSSIANS, first_row, n_rows, seed)


def make_two_gaussians(n_rows: int, *, d: int = 2, random_state: int = 0) -> Rows:
    """Draw two overlapping Gaussians, both restricted to [-2, 2]^d.

    +1, with probability 0.6: around the origin, variance 1. -1: around (1, 0, .., 0), variance
    1/8. Each density is the normal one divided by its probability of the box.

    Parameters
    ----------
    n_rows : int, >= 0
    d : int, >= 1. Number of features; the paper uses 4, 8 and 16.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, d)
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: the 2017 paper on spatial decompositions for large scale SVMs, section 4.

    Examples
    --------
    >>> X, y = make_two_gaussians(1000, d=4)
    >>> X.shape, bool(abs(X).max() <= 2)
    ((1000, 4), True)
    """
    return two_gaussians_rows(0, n_rows, random_state, d=d)


def two_gaussians_bayes_accuracy(*, d: int = 2) -> float:
    """Accuracy of the best classifier: 1 - `two_gaussians_bayes_risk(d)`."""
    return 1 - two_gaussians_bayes_risk(d)


@lru_cache(maxsize=64)
def two_gaussians_bayes_risk(d: int = 2) -> float:
    """Return the smallest possible classification error on `make_two_gaussians`.

    Parameters
    ----------
    d : int, >= 1. Number of features.

    Returns
    -------
    risk : float. Probability of a wrong label.

    Raises
    ------
    ParameterError : d is below 1.

    Notes
    -----
    Deterministic quadrature, error below 1e-6: d - 2 convolutions over the radius of all features
    but the first, then one integral over the first. Cost O(d). Source: as of `make_two_gaussians`.

    Examples
    --------
    >>> round(two_gaussians_bayes_risk(4), 3) > round(two_gaussians_bayes_risk(8), 3)
    True
    """
    check_at_least("d", d, 1)
    center, squared_radius = _ball(d)
    in_wide = _ball_probability(center, squared_radius, d, _WIDE, _WIDE)
    in_narrow = _ball_probability(center, squared_radius, d, _NARROW_FIRST, _NARROW)
    return THETA * in_wide + (1 - THETA) * (1 - in_narrow)


def _ball(d: int) -> tuple[float, float]:
    """Center (on the first axis) and squared radius of the ball where -1 is more likely."""
    s = 1 / NARROW_VARIANCE
    # -1 is more likely where log((1 - theta) psi) - log(theta phi), that is
    # c - s/2 |x - e_1|^2 + |x|^2 / 2, is positive.
    c = np.log((1 - THETA) / THETA) + (d / 2) * np.log(s)
    c += d * np.log(_WIDE.mass) - (d - 1) * np.log(_NARROW.mass) - np.log(_NARROW_FIRST.mass)
    center = s / (s - 1)
    return center, float(center**2 + (2 * c - s) / (s - 1))


def _ball_probability(
    center: float, squared_radius: float, d: int, first: _Axis, other: _Axis
) -> float:
    """Probability of the ball, for independent truncated coordinates."""
    if squared_radius <= 0:
        return 0.0
    radius = squared_radius**0.5
    low, high = max(-HALF_SIDE, center - radius), min(HALF_SIDE, center + radius)
    rest_radius_cdf = _rest_radius_cdf(radius, d - 1, other)
    # x = center - radius cos(angle) takes the square root out of the integrand's ends.
    angles, weights = _gauss_legendre(
        np.arccos((center - low) / radius), np.arccos(np.clip((center - high) / radius, -1, 1))
    )
    x = center - radius * np.cos(angles)
    rest = radius * np.sin(angles)
    return float(weights @ (first.density(x) * rest_radius_cdf(rest) * rest))


def _rest_radius_cdf(radius: float, k: int, axis: _Axis) -> Callable[[Floats], Floats]:
    """P(norm of k independent centered coordinates <= r) as a function of r in [0, radius]."""
    if k == 0:
        return np.ones_like
    radii = np.linspace(0.0, radius, N_QUADRATURE_RADII)
    low = ndtr(-np.minimum(radii, HALF_SIDE) / axis.sd)
    cdf: Floats = (1 - 2 * low) / axis.mass
    for _ in range(k - 1):
        cdf = _add_coordinate(radii, cdf, axis)
    return lambda r: np.interp(r, radii, cdf)


def _add_coordinate(radii: Floats, cdf: Floats, axis: _Axis) -> Floats:
    """Return the same distribution function for one more coordinate."""
    # x = r sin(angle), so sqrt(r^2 - x^2) = r cos(angle): smooth up to x = r.
    last = np.arcsin(np.minimum(1.0, HALF_SIDE / np.maximum(radii, 1e-300)))
    nodes, weights = _gauss_legendre(0.0, 1.0)
    angles = last[:, None] * nodes
    r = radii[:, None]
    cosine = np.cos(angles)
    inner = np.interp(r * cosine, radii, cdf) * axis.density(r * np.sin(angles)) * r * cosine
    summed: Floats = 2 * last * (inner @ weights)
    return summed


def _gauss_legendre(low: float, high: float) -> tuple[Floats, Floats]:
    """Nodes and weights of the Gauss-Legendre rule on [low, high]."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    return low + (high - low) * (nodes + 1) / 2, weights * (high - low) / 2


@lru_cache(maxsize=8)
def _directions(d: int) -> Float64:
    """Return the hidden features' orthonormal directions, shape (d, N_HIDDEN)."""
    drawn = structure_rng(0, SetId.RARE).standard_normal((d, N_HIDDEN))
    directions: Float64 = np.linalg.qr(drawn)[0]
    return directions


def rare_rows(
    first_row: int,
    n_rows: int,
    seed: int,
    *,
    d: int = 631,
    share: float = 0.02,
    shift: float = 1.5,
    noise: float = 0.1,
) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_rare`."""
    _check_rare(d, share, shift, noise)
    directions = _directions(d)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        positive = rng.random(m) < share
        hidden = rng.standard_normal((m, N_HIDDEN))
        hidden[:, 0] += shift * positive * np.sign(hidden[:, 1:4].prod(axis=1))
        X = noise * rng.standard_normal((m, d))
        # Replace the noise along the directions, where X equals the hidden features exactly.
        X += (hidden - X @ directions) @ directions.T
        return X, positive

    return generate_rows(draw, SetId.RARE, first_row, n_rows, seed)


def make_rare(
    n_rows: int,
    *,
    d: int = 631,
    share: float = 0.02,
    shift: float = 1.5,
    noise: float = 0.1,
    random_state: int = 0,
) -> Rows:
    """Draw a rare class that differs from the frequent one along one of eight hidden features.

    Eight hidden features are normal with standard deviation 1. In a positive row the first one is
    shifted by `shift`: upwards where the product of the next three is positive, else downwards. The
    `d` features hold the hidden ones along eight orthonormal directions, and noise in the other
    directions.

    Parameters
    ----------
    n_rows : int, >= 0
    d : int, >= 8. Number of features.
    share : float, between 0 and 1. Share of positive rows.
    shift : float, >= 0. In units of the hidden features' standard deviation.
    noise : float, >= 0. Standard deviation of each feature's noise.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, d)
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Ours; it has the number of features (631) and the share of the rare class (2 %) of ECBDL'14, on
    which section 5.1 of the spatial decomposition paper trains, and a known best TPR x TNR.

    Examples
    --------
    >>> X, y = make_rare(1000)
    >>> X.shape, bool(0.01 < (y == 1).mean() < 0.03)
    ((1000, 631), True)
    """
    return rare_rows(0, n_rows, random_state, d=d, share=share, shift=shift, noise=noise)


def rare_bayes_accuracy(
    *, d: int = 631, share: float = 0.02, shift: float = 1.5, noise: float = 0.1
) -> float:
    """Accuracy of the best rule (exact): a threshold on the shifted feature."""
    _check_rare(d, share, shift, noise)
    if shift == 0:
        return max(share, 1 - share)
    threshold = shift / 2 + np.log((1 - share) / share) / shift
    return float((1 - share) * ndtr(threshold) + share * ndtr(shift - threshold))


def rare_best_product(*, shift: float = 1.5) -> float:
    """Return the best TPR x TNR on `make_rare`: that of the threshold halfway between the classes.

    Parameters
    ----------
    shift : float, >= 0. As for `make_rare`; its other parameters do not matter.

    Returns
    -------
    product : float

    Raises
    ------
    ParameterError : a shift below 0

    Notes
    -----
    Exact: by Neyman and Pearson the best rules are thresholds on the shifted feature; the one
    halfway has the largest product. Ours, as the set.

    Examples
    --------
    >>> round(rare_best_product(), 3)
    0.598
    """
    check_at_least("shift", shift, 0)
    return float(ndtr(shift / 2) ** 2)


def _check_rare(d: int, share: float, shift: float, noise: float) -> None:
    """Refuse parameters out of range, and a share that leaves one class without rows."""
    check_at_least("d", d, N_HIDDEN)
    check_at_least("shift", shift, 0)
    check_at_least("noise", noise, 0)
    check_probability("share", share)
    if share in (0, 1):
        raise ParameterError(f"share must be above 0 and below 1, got {share!r}.")
