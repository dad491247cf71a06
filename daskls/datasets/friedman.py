"""Friedman's three regression functions, with normal noise of known standard deviation.

Source: Friedman, Multivariate adaptive regression splines, Annals of Statistics 19, 1991; with the
noise of Breiman, Bagging predictors, Machine Learning 24, 1996. The best R2 that any regressor can
reach is that of the function itself: its variance over that of y. scikit-learn's generators of the
same names draw all rows at once; these draw any range of them.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from daskls.datasets._base import NumberRows, SetId, check_at_least, generate_numbers
from daskls.records import Float64

UNIT_INTERVAL = ((0.0, 1.0),)
# Features of the second and third: resistance, frequency, inductance, capacitance of a circuit.
CIRCUIT = ((0.0, 100.0), (40 * np.pi, 560 * np.pi), (0.0, 1.0), (1.0, 11.0))
# Nodes of the quadrature rule along each feature.
NODES_PER_FEATURE = 40

Function = Callable[[Float64], Float64]


def make_friedman1(
    n_rows: int, *, d: int = 10, noise: float = 1.0, random_state: int = 0
) -> NumberRows:
    """Draw rows of Friedman's first function: five of ten uniform features matter.

    ``y = 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4 + noise * N(0, 1)``.

    Parameters
    ----------
    n_rows : int, >= 0
    d : int, >= 5. Number of features.
    noise : float, >= 0. Standard deviation of the noise, in the units of y.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array (n_rows, d), in [0, 1]
    y : float64 array (n_rows,)

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: Friedman, Multivariate adaptive regression splines, Annals of Statistics 19, 1991.

    Examples
    --------
    >>> X, y = make_friedman1(1000)
    >>> X.shape, y.dtype
    ((1000, 10), dtype('float64'))
    """
    return friedman1_rows(0, n_rows, random_state, d=d, noise=noise)


def make_friedman2(n_rows: int, *, noise: float = 125.0, random_state: int = 0) -> NumberRows:
    """Draw rows of Friedman's second function, the impedance of a circuit.

    ``y = sqrt(x0^2 + (x1 x2 - 1 / (x1 x3))^2) + noise * N(0, 1)``.

    Parameters
    ----------
    n_rows : int, >= 0
    noise : float, >= 0. Standard deviation of the noise, in the units of y.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array (n_rows, 4): x0 in [0, 100], x1 in [40 pi, 560 pi], x2 in [0, 1], x3 in
        [1, 11]
    y : float64 array (n_rows,)

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: Friedman, Multivariate adaptive regression splines, Annals of Statistics 19, 1991;
    noise of Breiman, Bagging predictors, Machine Learning 24, 1996.

    Examples
    --------
    >>> X, y = make_friedman2(1000)
    >>> X.shape, y.shape
    ((1000, 4), (1000,))
    """
    return friedman2_rows(0, n_rows, random_state, noise=noise)


def make_friedman3(n_rows: int, *, noise: float = 0.1, random_state: int = 0) -> NumberRows:
    """Draw rows of Friedman's third function, the phase angle of a circuit.

    ``y = atan((x1 x2 - 1 / (x1 x3)) / x0) + noise * N(0, 1)``.

    Parameters
    ----------
    n_rows : int, >= 0
    noise : float, >= 0. Standard deviation of the noise, in the units of y.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array (n_rows, 4), as in `make_friedman2`
    y : float64 array (n_rows,), in radians

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: Friedman, Multivariate adaptive regression splines, Annals of Statistics 19, 1991;
    noise of Breiman, Bagging predictors, Machine Learning 24, 1996.

    Examples
    --------
    >>> X, y = make_friedman3(1000)
    >>> X.shape, y.shape
    ((1000, 4), (1000,))
    """
    return friedman3_rows(0, n_rows, random_state, noise=noise)


def friedman1_rows(
    first_row: int, n_rows: int, seed: int, *, d: int = 10, noise: float = 1.0
) -> NumberRows:
    """Rows first_row .. first_row + n_rows - 1 of `make_friedman1`."""
    check_at_least("d", d, 5)
    return _rows(_first, SetId.FRIEDMAN1, UNIT_INTERVAL * d, noise, first_row, n_rows, seed)


def friedman2_rows(first_row: int, n_rows: int, seed: int, *, noise: float = 125.0) -> NumberRows:
    """Rows first_row .. first_row + n_rows - 1 of `make_friedman2`."""
    return _rows(_second, SetId.FRIEDMAN2, CIRCUIT, noise, first_row, n_rows, seed)


def friedman3_rows(first_row: int, n_rows: int, seed: int, *, noise: float = 0.1) -> NumberRows:
    """Rows first_row .. first_row + n_rows - 1 of `make_friedman3`."""
    return _rows(_third, SetId.FRIEDMAN3, CIRCUIT, noise, first_row, n_rows, seed)


def _rows(
    function: Function,
    set_id: SetId,
    ranges: Sequence[tuple[float, float]],
    noise: float,
    first_row: int,
    n_rows: int,
    seed: int,
) -> NumberRows:
    """Draw rows uniformly from ranges; y with normal noise of standard deviation `noise`."""
    check_at_least("noise", noise, 0)
    low, high = np.array(ranges).T

    def draw(rng: np.random.Generator, m: int) -> tuple[Float64, Float64]:
        # Round to float32 first: y is a function of the features that are stored.
        X = (low + rng.random((m, len(low))) * (high - low)).astype(np.float32)
        return X, function(X.astype(np.float64)) + noise * rng.normal(size=m)

    return generate_numbers(draw, set_id, first_row, n_rows, seed)


def friedman1_best_r2(*, d: int = 10, noise: float = 1.0) -> float:
    """Return the best possible R2 on `make_friedman1`; features beyond the fifth do not matter.

    >>> round(friedman1_best_r2(), 2)
    0.96
    """
    check_at_least("d", d, 5)
    product = _variance(_product, UNIT_INTERVAL * 2)
    # The variances of the terms add up, as they have different features: those of
    # 20 (x2 - 0.5)^2, 10 x3 and 5 x4.
    others = 400 * (1 / 80 - 1 / 144) + 100 / 12 + 25 / 12
    return _best(product + others, noise)


def friedman2_best_r2(*, noise: float = 125.0) -> float:
    """Return the best possible R2 on `make_friedman2`.

    >>> round(friedman2_best_r2(), 2)
    0.9
    """
    return _best(_variance(_second, CIRCUIT), noise)


def friedman3_best_r2(*, noise: float = 0.1) -> float:
    """Return the best possible R2 on `make_friedman3`.

    >>> round(friedman3_best_r2(), 2)
    0.91
    """
    return _best(_variance(_third, CIRCUIT), noise)


def _best(variance: float, noise: float) -> float:
    """Return the best R2 for a function of this variance."""
    check_at_least("noise", noise, 0)
    return variance / (variance + noise**2)


@lru_cache
def _variance(function: Function, ranges: tuple[tuple[float, float], ...]) -> float:
    """Return the variance of a function of uniform features, by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES_PER_FEATURE)
    axes = [low + (nodes + 1) / 2 * (high - low) for low, high in ranges]
    X = np.stack([own.ravel() for own in np.meshgrid(*axes, indexing="ij")], axis=1)
    of_all = np.prod(np.stack(np.meshgrid(*[weights / 2] * len(axes), indexing="ij")), axis=0)
    values, own = function(X), of_all.ravel()
    mean = (own * values).sum()
    return float((own * (values - mean) ** 2).sum())


# The functions, and the terms that they are made of.


def _product(X: Float64) -> Float64:
    value: Float64 = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return value


def _first(X: Float64) -> Float64:
    return _product(X) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def _reactance(X: Float64) -> Float64:
    value: Float64 = X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])
    return value


def _second(X: Float64) -> Float64:
    return np.hypot(X[:, 0], _reactance(X))


def _third(X: Float64) -> Float64:
    return np.arctan2(_reactance(X), X[:, 0])
