"""What a report is of, and one picture of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daskls.live.measure import MEASURES, Measure
from daskls.plotting.evaluation import HeldOutNumbers, HeldOutResult
from daskls.records import Reals
from daskls.run.contract import Method
from daskls.store.reader import ModelReader

__all__ = ["BLUE", "CODING_WORDS", "GRAY", "ORANGE", "SCALES", "Panel", "Subject"]

BLUE, ORANGE, GRAY = "#17518f", "#d96a00", "#8a8f96"
# Of features, as the decision about them names them.
SCALES = {"given": "as they are", "spread": "by spread"}
CODING_WORDS = {"none": "", "ranks": "ranks, ", "indicators": "indicators, ", "both": "both, "}


@dataclass(frozen=True)
class Subject:
    """A model that is reported on.

    Attributes
    ----------
    estimator : fitted estimator
    reader : ModelReader. Its model.
    method : Method. Its method.
    evaluation : HeldOutResult, of a regressor HeldOutNumbers; None without rows of a test set
    """

    estimator: Any
    reader: ModelReader
    method: Method
    evaluation: HeldOutResult | HeldOutNumbers | None

    @property
    def is_of_numbers(self) -> bool:
        """Whether the model is a regressor."""
        return self.reader.target.kind == "numbers"

    @property
    def measure(self) -> Measure:
        """How its errors are told."""
        return MEASURES[self.reader.target.measured_as]

    @property
    def rows(self) -> Reals | None:
        """Some rows of the test set, if it is an array."""
        return self.evaluation.rows if self.evaluation else None


@dataclass(frozen=True)
class Panel:
    """One picture of a report.

    Attributes
    ----------
    name : str
    title : str
    note : str. How to read it; where nothing is drawn, why.
    draw : draws into given axes; None where there is nothing to draw
    """

    name: str
    title: str
    note: str
    draw: Callable[[Any], None] | None = None
