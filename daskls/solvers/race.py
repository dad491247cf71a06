"""Which combinations of C and gamma stay in the search.

Every combination is judged on the same held-out rows, so two of them are compared row by row: with
d the weighted difference of their errors on a row, ``sum(d)`` has about the variance ``sum(d^2)``
if they are equally good (McNemar's test). One is beaten beyond doubt when its excess is more than
`DOUBT` standard deviations.

Source: Maron, Moore, Hoeffding races, NIPS 1993 (the idea); McNemar 1947 (the test).
"""

import numpy as np

from daskls.records import FloatArray, IntArray
from daskls.solvers.sums import total

__all__ = ["Race", "is_beaten"]

# 3 standard deviations: one wrong verdict in 740 between equals.
DOUBT = 3.0


def is_beaten(wrong: FloatArray, best: FloatArray, doubt: float = DOUBT) -> bool:
    """Return whether errors stand above the best one's by more than ``doubt`` deviations.

    Parameters
    ----------
    wrong, best : float arrays, shape (m,). A row's weight where it is decided wrongly, else 0.

    Examples
    --------
    >>> is_beaten(np.array([1.0] * 10), np.zeros(10)), is_beaten(np.array([1.0] * 9), np.zeros(9))
    (True, False)
    """
    excess = wrong - best
    return float(excess.sum()) > doubt * float(np.sqrt((excess**2).sum()))


class Race:
    """The errors of every combination so far, and who is still in.

    Parameters
    ----------
    weights : float array, shape (m,). Of the cell's rows, ordered by fold.
    fold_ptr : int array, shape (n_folds + 1,)
    n_gammas, n_costs : int
    on : bool. Off, nobody is ever beaten.
    """

    def __init__(
        self, weights: FloatArray, fold_ptr: IntArray, n_gammas: int, n_costs: int, *, on: bool
    ) -> None:
        self._weights = weights.astype(np.float64)
        self._fold_ptr = fold_ptr
        self._on = on
        self._wrong: dict[tuple[int, int], FloatArray] = {}
        self._alive = np.ones((n_gammas, n_costs), bool)
        # In the last round everyone runs to the end: who is left was not beaten.
        self.is_open = len(self.rounds) > 1

    @property
    def rounds(self) -> list[tuple[int, ...]]:
        """The folds of each round: two first, the others for those still in."""
        folds = tuple(f for f in range(len(self._fold_ptr) - 1) if self._holds_rows(f))
        return [folds[:2], folds[2:]] if self._on and len(folds) > 2 else [folds]

    def _holds_rows(self, fold: int) -> bool:
        return bool(self._fold_ptr[fold + 1] > self._fold_ptr[fold])

    def costs_of(self, gamma: int) -> list[int]:
        """Return the positions of the C values still in at one gamma."""
        return np.flatnonzero(self._alive[gamma]).tolist()

    def add(self, gamma: int, cost: int, folds: tuple[int, ...], wrong: FloatArray) -> None:
        """Note which rows of some folds a combination decides wrongly (bool, shape (m,))."""
        own = self._wrong.setdefault((gamma, cost), np.zeros_like(self._weights))
        for fold in folds:
            rows = slice(self._fold_ptr[fold], self._fold_ptr[fold + 1])
            own[rows] = self._weights[rows] * wrong[rows]

    def end_line(self, gamma: int, places: list[int]) -> None:
        """Put out the C values from where one gamma's line ended."""
        self._alive[gamma, places] = False

    def drop_beaten(self) -> None:
        """Put out whoever is beaten by the best of those still in, all on the same rows."""
        alive = {place: self._wrong[place] for place in zip(*self._alive.nonzero(), strict=True)}
        best = min(alive.values(), key=total)
        for place, own in alive.items():
            self._alive[place] = not is_beaten(own, best)
        self.is_open = False

    def wrong_weight(self, gamma: int, cost: int) -> float:
        """Return the weight of the held-out rows that a combination decides wrongly."""
        return total(self._wrong[gamma, cost])

    @property
    def held_out_weight(self) -> float:
        """The weight of all rows that are held out once."""
        return total(self._weights[self._fold_ptr[0] : self._fold_ptr[-1]])
