"""The two-dimensional sets: checkerboard, XOR, two spirals, and a Swiss roll in a uniform cloud.

Each has three functions: `<name>_rows` (any range of rows), `make_<name>` (the first rows), and
`<name>_bayes_accuracy` (the accuracy of the best possible classifier).
"""

from functools import lru_cache

import numpy as np

from daskls.datasets._base import (
    Rows,
    SetId,
    check_at_least,
    check_probability,
    flip_labels,
    generate_rows,
)
from daskls.records import Floats, Mask


def checkerboard_rows(
    first_row: int, n_rows: int, seed: int, *, n_cells_side: int = 4, flip: float = 0.055
) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_checkerboard`."""
    check_at_least("n_cells_side", n_cells_side, 1)
    check_probability("flip", flip)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        X = rng.random((m, 2), dtype=np.float32)
        column, row = np.floor(X * n_cells_side).astype(np.int64).T
        return X, flip_labels(rng, (column + row) % 2 == 0, flip)

    return generate_rows(draw, SetId.CHECKERBOARD, first_row, n_rows, seed)


def make_checkerboard(
    n_rows: int, *, n_cells_side: int = 4, flip: float = 0.055, random_state: int = 0
) -> Rows:
    """Draw a checkerboard: X uniform on [0, 1]^2, labeled by the color of its square.

    Parameters
    ----------
    n_rows : int, >= 0
    n_cells_side : int, >= 1. Squares along a side; the one at the origin is +1.
    flip : float. Probability that a label is swapped.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, 2)
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: the noisy set `checker-b` of Segata and Blanzieri, 2009 (FaLK-SVM), section 5.2, whose
    best test accuracy is 94.21 %. They do not print the noise: `flip` is our estimate of it.

    Examples
    --------
    >>> X, y = make_checkerboard(1000, flip=0.0)
    >>> X.shape, set(y.tolist()) == {-1, 1}
    ((1000, 2), True)
    """
    return checkerboard_rows(0, n_rows, random_state, n_cells_side=n_cells_side, flip=flip)


def checkerboard_bayes_accuracy(*, n_cells_side: int = 4, flip: float = 0.055) -> float:
    """Accuracy of the true squares (exact)."""
    check_at_least("n_cells_side", n_cells_side, 1)
    return _flip_accuracy(flip)


def xor_rows(first_row: int, n_rows: int, seed: int, *, flip: float = 0.0) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_xor`."""
    check_probability("flip", flip)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        X = 2 * rng.random((m, 2), dtype=np.float32) - 1
        return X, flip_labels(rng, (X[:, 0] >= 0) == (X[:, 1] >= 0), flip)

    return generate_rows(draw, SetId.XOR, first_row, n_rows, seed)


def make_xor(n_rows: int, *, flip: float = 0.0, random_state: int = 0) -> Rows:
    """Draw X uniform on [-1, 1]^2; +1 where both coordinates have the same sign.

    Parameters
    ----------
    n_rows : int, >= 0
    flip : float. Probability that a label is swapped.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, 2)
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: Zantedeschi, Emonet and Sebban (L3-SVMs), section 4.1 and figure 1.

    Examples
    --------
    >>> X, y = make_xor(1000)
    >>> bool(((X[:, 0] >= 0) == (X[:, 1] >= 0))[y == 1].all())
    True
    """
    return xor_rows(0, n_rows, random_state, flip=flip)


def xor_bayes_accuracy(*, flip: float = 0.0) -> float:
    """Accuracy of the true quadrants (exact)."""
    return _flip_accuracy(flip)


def _flip_accuracy(flip: float) -> float:
    """Accuracy of the true labels when each is swapped with probability `flip`."""
    check_probability("flip", flip)
    return max(flip, 1 - flip)


def two_spirals_rows(
    first_row: int, n_rows: int, seed: int, *, n_turns: float = 3.0, noise: float = 0.0555
) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_two_spirals`."""
    _check_curve(n_turns, noise)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        positive = rng.random(m) < 0.5
        curve = _arm(rng.random(m), n_turns)
        X = np.where(positive, 1, -1)[:, None] * curve + noise * rng.standard_normal((m, 2))
        return X, positive

    return generate_rows(draw, SetId.TWO_SPIRALS, first_row, n_rows, seed)


def make_two_spirals(
    n_rows: int, *, n_turns: float = 3.0, noise: float = 0.0555, random_state: int = 0
) -> Rows:
    """Draw two interleaved spiral arms, one per class, blurred by Gaussian noise.

    A row is a point of the arm at angle t = 2 pi n_turns sqrt(u), u uniform, and radius
    t / (2 pi n_turns), in [0, 1], plus noise of standard deviation `noise` in both coordinates.
    The other class is the same arm turned by 180 degrees; both are equally likely.

    Parameters
    ----------
    n_rows : int, >= 0
    n_turns : float, > 0. Turns of each arm; neighboring arms are 1 / (2 n_turns) apart.
    noise : float, >= 0.01. Standard deviation, in units of the spiral's radius.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, 2), about within [-1.2, 1.2]
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: the set `2-spirals` of Segata and Blanzieri, 2009 (FaLK-SVM), section 5.2, whose best
    test accuracy is 88.47 %. They do not print turns or noise; ours give a similar Bayes accuracy.

    Examples
    --------
    >>> X, y = make_two_spirals(1000, n_turns=2.0)
    >>> bool(abs(X).max() < 1.5)
    True
    """
    return two_spirals_rows(0, n_rows, random_state, n_turns=n_turns, noise=noise)


@lru_cache(maxsize=32)
def two_spirals_bayes_accuracy(*, n_turns: float = 3.0, noise: float = 0.0555) -> float:
    """Accuracy of the best classifier, by numerical integration of both densities.

    Notes
    -----
    The integral of the larger density on a grid of steps of about noise / 8; the error is below
    1e-4.
    """
    _check_curve(n_turns, noise)
    side = 1 + 7 * noise
    centers, step = _grid(side, noise / 8)
    density = _blurred_curve(_arm(_midpoints(8_000), n_turns), centers, noise)
    # The other arm is this one turned by 180 degrees.
    return float(np.maximum(density, density[::-1, ::-1]).sum() * step**2 / 2)


def swiss_roll_rows(
    first_row: int, n_rows: int, seed: int, *, n_turns: float = 1.5, noise: float = 0.02
) -> Rows:
    """Rows first_row .. first_row + n_rows - 1 of `make_swiss_roll`."""
    _check_curve(n_turns, noise)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        positive = rng.random(m) < 0.5
        roll = _roll(rng.random(m), n_turns) + noise * rng.standard_normal((m, 2))
        return np.where(positive[:, None], roll, 2 * rng.random((m, 2)) - 1), positive

    return generate_rows(draw, SetId.SWISS_ROLL, first_row, n_rows, seed)


def make_swiss_roll(
    n_rows: int, *, n_turns: float = 1.5, noise: float = 0.02, random_state: int = 0
) -> Rows:
    """Draw a planar Swiss roll (+1) in a uniform cloud on [-1, 1]^2 (-1), equally likely.

    A row of the roll is at angle t = pi (3/2 + 2 n_turns u), u uniform, and at a radius
    proportional to t, of at most 0.9, plus noise of standard deviation `noise`.

    Parameters
    ----------
    n_rows : int, >= 0
    n_turns : float, > 0. Turns of the roll.
    noise : float, >= 0.01. Standard deviation in both coordinates.
    random_state : int. Draws the rows; n rows are the first of 2n rows.

    Returns
    -------
    X : float32 array, shape (n_rows, 2)
    y : int32 array, shape (n_rows,), of -1 and +1

    Raises
    ------
    ParameterError : a parameter is out of its range.

    Notes
    -----
    Source: Zantedeschi, Emonet and Sebban (L3-SVMs), section 4.1 and figure 2. Turns and noise are
    ours: the paper prints neither.

    Examples
    --------
    >>> X, y = make_swiss_roll(1000)
    >>> bool(abs(X[y == -1]).max() <= 1)
    True
    """
    return swiss_roll_rows(0, n_rows, random_state, n_turns=n_turns, noise=noise)


@lru_cache(maxsize=32)
def swiss_roll_bayes_accuracy(*, n_turns: float = 1.5, noise: float = 0.02) -> float:
    """Accuracy of the best classifier, by numerical integration of both densities.

    Notes
    -----
    As `two_spirals_bayes_accuracy`; rows of the roll outside the square are always predicted right.
    """
    _check_curve(n_turns, noise)
    # The grid ends at the cloud's edge, where its density jumps; all beyond belongs to the roll.
    centers, step = _grid(1.0, noise / 8)
    density = _blurred_curve(_roll(_midpoints(8_000), n_turns), centers, noise)
    inside = np.maximum(density, 0.25).sum() * step**2
    outside = 1 - density.sum() * step**2
    return float((inside + outside) / 2)


def _check_curve(n_turns: float, noise: float) -> None:
    """Refuse a curve without length or noise."""
    check_at_least("n_turns", n_turns, 0, strict=True)
    # Far below 0.01 the grid that resolves the density would be too large.
    check_at_least("noise", noise, 0.01)


def _arm(u: Floats, n_turns: float) -> Floats:
    """Points of a spiral arm from the origin to radius 1, nearly uniform along its length."""
    radius = np.sqrt(u)
    angle = 2 * np.pi * n_turns * radius
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _roll(u: Floats, n_turns: float) -> Floats:
    """Points of a Swiss roll that ends at radius 0.9."""
    angle = np.pi * (1.5 + 2 * n_turns * u)
    radius = 0.9 * angle / (np.pi * (1.5 + 2 * n_turns))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _midpoints(n: int) -> Floats:
    """The midpoints of n equal parts of [0, 1]."""
    return (np.arange(n) + 0.5) / n


def _grid(side: float, step: float) -> tuple[Floats, float]:
    """Midpoints of equal parts of [-side, side], at most `step` wide, and their width."""
    n = int(np.ceil(2 * side / step))
    return side * (2 * _midpoints(n) - 1), 2 * side / n


def _blurred_curve(curve: Floats, centers: Floats, noise: float) -> Floats:
    """Density, on the square grid, of a uniform point of `curve` plus Gaussian noise."""
    # The Gaussian factorizes over the two coordinates, so the sum over the curve is one product.
    first, second = (
        np.exp(-0.5 * ((centers[:, None] - curve[:, axis]) / noise) ** 2) for axis in (0, 1)
    )
    density: Floats = first @ second.T / (len(curve) * 2 * np.pi * noise**2)
    return density
