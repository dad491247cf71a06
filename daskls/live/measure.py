"""The errors of cells in words: shares of wrong rows, or of what a constant would miss."""

from dataclasses import dataclass

from daskls.records import MeasuredAs

__all__ = ["MEASURES", "Measure"]


@dataclass(frozen=True)
class Measure:
    """How the validation errors of a kind of target are told.

    Attributes
    ----------
    label : str. Of an axis or a bar of colors, with the unit.
    name : str. Of the error of one cell.
    mean_name : str. Of what is told of all rows.
    is_share : bool. Whether an error is a share of rows, told in percent.
    """

    label: str
    name: str
    mean_name: str
    is_share: bool

    @property
    def axis_label(self) -> str:
        """The label of errors as they are."""
        return self.name if self.is_share else self.label

    @property
    def factor(self) -> float:
        """What an error is multiplied by, to be a number on that axis."""
        return 100.0 if self.is_share else 1.0

    def tell(self, error: float) -> str:
        """Return the error of one cell, or of a few.

        >>> MEASURES["classes"].tell(0.123), MEASURES["numbers"].tell(0.00123456)
        ('12.30 %', '0.001235')
        """
        return f"{100 * error:.2f} %" if self.is_share else f"{error:.4g}"

    def tell_mean(self, error: float) -> str:
        """Return what is told of all rows, given their mean error.

        >>> MEASURES["classes"].tell_mean(0.123), MEASURES["numbers"].tell_mean(0.123)
        ('12.30 %', '0.8770')
        """
        return self.tell(error) if self.is_share else f"{1 - error:.4f}"


MEASURES: dict[MeasuredAs, Measure] = {
    "classes": Measure("validation error, %", "validation error", "mean validation error", True),
    # 1 minus a mean square in units of the variance is what scikit-learn calls R2.
    "numbers": Measure(
        "squared error / variance of y", "squared error / variance", "R2 of held-out rows", False
    ),
    # 1 minus a mean loss in units of the best constant's is what scikit-learn calls D2.
    "levels": Measure(
        "loss / that of a constant", "loss / that of a constant", "D2 of held-out rows", False
    ),
}
