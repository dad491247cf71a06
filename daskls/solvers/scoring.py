"""What the search of a cell's grid minimizes over held-out rows: wrong rows' weight, or a score.

By default a combination's error is the weight of the rows that it decides wrongly. By
``"tpr_x_tnr"`` it is 1 less the product of the classes' recalls, of two classes the true positive
rate times the true negative rate: where one class is rare, deciding all rows for the other one is
hardly wrong by weight, but scores 0.
"""

from dataclasses import dataclass

import numpy as np

from daskls.records import Float64, Int64, Scoring
from daskls.solvers.sums import total

__all__ = ["ErrorWeight", "Judge", "RecallProduct", "judge_of"]


@dataclass(frozen=True, eq=False)
class ErrorWeight:
    """The weight of the rows that are decided wrongly.

    Attributes
    ----------
    unit : float. What an error is divided by where a person reads it: the weight of all rows.
    """

    unit: float

    def error(self, wrong: Float64) -> float:
        """Return what a search minimizes.

        Parameters
        ----------
        wrong : float64 array, shape (h,). The first h rows' weights where they are decided wrongly,
            else 0.
        """
        return total(wrong)

    def losses(self, wrong: Float64, best: Float64) -> Float64:
        """Return each row's share of the error, near the best one's, for a test between both."""
        return wrong


@dataclass(frozen=True, eq=False)
class RecallProduct:
    """One less the product of the classes' recalls, of weighted rows.

    Attributes
    ----------
    weights : float64 array, shape (h,). Of the rows that are held out once.
    codes : int64 array, shape (h,). Their classes, below ``n_classes``.
    n_classes : int
    """

    weights: Float64
    codes: Int64
    n_classes: int
    unit: float = 1.0

    def recalls(self, wrong: Float64) -> tuple[Float64, Float64]:
        """Return each class's recall among the first rows, and its weight; 1 of one without any."""
        codes, weights = self.codes[: len(wrong)], self.weights[: len(wrong)]
        of_class = [codes == c for c in range(self.n_classes)]
        sizes = np.array([total(weights[own]) for own in of_class])
        missed = np.array([total(wrong[: len(codes)][own]) for own in of_class])
        return 1.0 - missed / np.where(sizes > 0, sizes, 1.0), sizes

    def error(self, wrong: Float64) -> float:
        """As of `ErrorWeight`: 1 less the product of the recalls."""
        found, _ = self.recalls(wrong)
        return 1.0 - float(np.prod(found))

    def losses(self, wrong: Float64, best: Float64) -> Float64:
        """As of `ErrorWeight`: by the product's derivative, where the best combination stands."""
        found, sizes = self.recalls(best)
        rest = np.array([np.prod(np.delete(found, c)) for c in range(self.n_classes)])
        factors = rest / np.where(sizes > 0, sizes, np.inf)
        scaled: Float64 = wrong[: len(self.codes)] * factors[self.codes[: len(wrong)]]
        return scaled


Judge = ErrorWeight | RecallProduct


def judge_of(
    scoring: Scoring | None, weights: Float64, codes: Int64, n_classes: int, n_judged: int
) -> Judge:
    """Return what a search minimizes.

    Parameters
    ----------
    scoring : Scoring or None
    weights, codes : arrays of a cell's rows, ordered by fold
    n_classes : int
    n_judged : int. The first so many rows are held out once.
    """
    if scoring is None:
        return ErrorWeight(total(weights[:n_judged]))
    return RecallProduct(weights[:n_judged], codes[:n_judged], n_classes)
