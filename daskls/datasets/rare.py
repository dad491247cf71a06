"""A rare class in many features that are linear functions of a few hidden ones."""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from daskls.datasets._base import (
    Rows,
    check_at_least,
    check_probability,
    generate_rows,
    structure_rng,
)
from daskls.errors import ParameterError
from daskls.records import Float64, Floats, Mask

RARE_ID = 11
N_HIDDEN = 8


@lru_cache(maxsize=8)
def _directions(d: int) -> Float64:
    """Return the hidden features' orthonormal directions, shape (d, N_HIDDEN)."""
    drawn = structure_rng(0, RARE_ID).standard_normal((d, N_HIDDEN))
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
    _check(d, share, shift, noise)
    directions = _directions(d)

    def draw(rng: np.random.Generator, m: int) -> tuple[Floats, Mask]:
        positive = rng.random(m) < share
        hidden = rng.standard_normal((m, N_HIDDEN))
        hidden[:, 0] += shift * positive * np.sign(hidden[:, 1:4].prod(axis=1))
        X = noise * rng.standard_normal((m, d))
        # Replace the noise along the directions, where X equals the hidden features exactly.
        X += (hidden - X @ directions) @ directions.T
        return X, positive

    return generate_rows(draw, RARE_ID, first_row, n_rows, seed)


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
    _check(d, share, shift, noise)
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


def _check(d: int, share: float, shift: float, noise: float) -> None:
    """Refuse parameters out of range, and a share that leaves one class without rows."""
    check_at_least("d", d, N_HIDDEN)
    check_at_least("shift", shift, 0)
    check_at_least("noise", noise, 0)
    check_probability("share", share)
    if share in (0, 1):
        raise ParameterError(f"share must be above 0 and below 1, got {share!r}.")
