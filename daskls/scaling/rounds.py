"""A scale learned in rounds: each feature is weighted by the derivatives of the decision functions.

Source: Radhakrishnan, Beaglehole, Pandit, Belkin, Mechanism for feature learning in neural networks
and backpropagation-free machine learning models, Science 2024: the average gradient outer product.
Differences: its diagonal alone, of least-squares cells of full density, cut anew in each round.
"""

from collections.abc import Sequence

import numpy as np

from daskls.records import Float32, Float64, Targets
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.scaling.grid import Trial
from daskls.scaling.plan import LOOK_ROWS
from daskls.scaling.regions import RegionJob
from daskls.scaling.solve import TrialCell
from daskls.scaling.steps import Steps, sum_in_order
from daskls.scaling.trial import cells_of, draw_cells, own_center
from daskls.solvers.squares.aims import Aim

__all__ = ["learn_factors", "learn_on", "next_factors", "region_gradients"]

# One round gains nothing on Covertype, six almost all that eight do.
N_LEARNING_ROUNDS = 6
N_GRADIENT_CELLS = 12
# While rounds run no factor falls below this share of the largest: what is 0 cannot come back.
LEAST_SHARE = 1e-3
GRADIENT_DRAW = 100


@undisturbed
def region_gradients(
    region: int, n_cells: int, factors: Float64, trial: Trial, draw: int, job: RegionJob
) -> Float64:
    """Return sums of squared derivatives along each feature, and the rows that they are of.

    Returns
    -------
    sums : float64 array, shape (2, d). Of the cells in which a feature varies.
    """
    sums = np.zeros((2, len(factors)))
    with one_blas_thread():
        for A, rows in cells_of(region, factors, job, n_cells, LOOK_ROWS, draw):
            sums += _gradients(A, rows.targets, rows.weights, trial, job.aim)
    return sums


def _gradients(A: Float32, targets: Targets, weights: Float64, trial: Trial, aim: Aim) -> Float64:
    """Return what `region_gradients` sums up, of one cell."""
    varies = (A[0] != A).any(axis=0)
    own = TrialCell(A, targets, weights, aim).gradients(trial)
    return np.stack([varies * own, varies * float(len(A))])


def learn_on(
    cells: Sequence[tuple[Float32, Targets, Float64]],
    start: Float64,
    trial: Trial,
    n_rounds: int,
    aim: Aim,
) -> Float64:
    """Return factors learned in rounds on some cells, see `learn_factors`.

    Parameters
    ----------
    cells : sequence of (X, targets, weights): float32 (m, d), codes (m,) or numbers (m, t), float64
        (m,)
    start : float64 array, shape (d,). The scale to begin with.
    trial : Trial
    n_rounds : int
    aim : Aim
    """
    factors = np.ones(len(start))
    for _ in range(n_rounds):
        sums = np.zeros((2, len(start)))
        for X, targets, weights in cells:
            Z = X * (start * factors).astype(np.float32)
            sums += _gradients(Z - own_center(Z), targets, weights, trial, aim)
        factors = next_factors(sums, factors)
    return _without_the_least(start, factors)


def next_factors(sums: Float64, factors: Float64) -> Float64:
    """Return the factors of the next round: the root of each feature's share of the derivatives.

    Parameters
    ----------
    sums : float64 array, shape (2, d). Squared derivatives in the scaled space, and rows.
    factors : float64 array, shape (d,). The scale they were taken in.

    Returns
    -------
    factors : float64 array, shape (d,). The largest is 1; a feature that varied nowhere keeps its
        own.

    Examples
    --------
    >>> next_factors(np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0]]), np.ones(3))
    array([1. , 0.5, 1. ])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = factors * np.sqrt(sums[0] / sums[1])
    varied = sums[1] > 0
    largest = found[varied].max(initial=0.0)
    if not largest:
        return factors
    found = np.where(varied, found / largest, factors)
    following: Float64 = np.maximum(found / found.max(), LEAST_SHARE)
    return following


def learn_factors(steps: Steps, start: Float64, trial: Trial) -> Float64:
    """Return factors learned in rounds; those that end below `LEAST_SHARE` are 0.

    Parameters
    ----------
    steps : Steps
    start : float64 array, shape (d,)
    trial : Trial. What cells are solved with in all rounds.
    """
    job, factors = steps.job, np.ones(len(start))
    for _ in range(N_LEARNING_ROUNDS):
        # The same draw in all rounds: the cells differ by the scale alone.
        calls = [
            (region, n, start * factors, trial, GRADIENT_DRAW)
            for region, n in draw_cells(job, N_GRADIENT_CELLS, GRADIENT_DRAW).items()
        ]
        sums = steps.run(region_gradients, calls, _total)["sums"]
        factors = next_factors(sums, factors)
    return _without_the_least(start, factors)


def _without_the_least(start: Float64, factors: Float64) -> Float64:
    learned: Float64 = np.where(factors > LEAST_SHARE, start * factors, 0.0)
    return learned


def _total(parts: Sequence[Float64]) -> dict[str, Float64]:
    """Return the sum over regions, in their order: its bits depend on it."""
    return {"sums": sum_in_order(parts)}
