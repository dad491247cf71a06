"""The intervals of a finished model: their half width, what scales it, and what it was taken of."""

from dataclasses import asdict, dataclass

import numpy as np

from daskls.records import Float64, IntervalSpec
from daskls.store.groups import Group
from daskls.store.guard import damaged, malformed_is_damage
from daskls.store.layout import Root
from daskls.store.reserved import reserved_group

__all__ = ["INTERVAL", "CoveringInterval", "read_interval", "read_sizes", "write_interval"]

# Of a store; and in what a model says of itself, where it has intervals.
INTERVAL = IntervalSpec.name


@dataclass(frozen=True)
class CoveringInterval:
    """The interval around each answer of a regressor, and what it was taken from.

    Attributes
    ----------
    coverage : float. What ``interval`` was: the probability that y of one more row lies within.
    n_rows : int. Rows that were held out of everything.
    rank : int. Which of their residuals the half width is; 1 is the smallest.
    half_widths : tuple of float, in the units of y, one a column. Of a cell whose residuals are of
        the size of all; other cells' are in proportion.
    """

    coverage: float
    n_rows: int
    rank: int
    half_widths: tuple[float, ...]

    def told(self) -> list[tuple[str, str]]:
        """Return the interval and how it came to be, as names and values for people.

        >>> CoveringInterval(0.9, 1000, 901, (0.25,)).told()
        [('intervals', 'of 90 % of y, +- 0.25 in the usual cell, rank 901 of 1,000 rows held out')]
        """
        widths = ", ".join(f"{width:.4g}" for width in self.half_widths)
        own = f"of {100 * self.coverage:.3g} % of y, +- {widths} in the usual cell, "
        return [("intervals", f"{own}rank {self.rank:,} of {self.n_rows:,} rows held out")]


def write_interval(
    root: Root, interval: CoveringInterval, sizes: Float64, residuals: Float64
) -> None:
    """Write an interval, the size of each cell and scaled residuals; the group appears whole."""
    root.write_group(INTERVAL, {"sizes": sizes, "residuals": residuals}, asdict(interval))


def _group(root: Root) -> Group | None:
    """Return what a finished model keeps of its intervals; None of a model without such."""
    return reserved_group(root, INTERVAL, "intervals yet, which interval")


def read_interval(root: Root) -> CoveringInterval | None:
    """Return the interval of a finished model; None of a model without one.

    Raises
    ------
    StoreError : the fit was stopped before its intervals
    DamageError
    """
    group = _group(root)
    if group is None:
        return None
    with malformed_is_damage(group.where()):
        kept = group.attrs
        found = CoveringInterval(
            coverage=float(kept["coverage"]),
            n_rows=int(kept["n_rows"]),
            rank=int(kept["rank"]),
            half_widths=tuple(map(float, kept["half_widths"])),
        )
    widths = np.array(found.half_widths)
    is_sound = 1 <= found.rank <= found.n_rows and widths.shape == (root.target.width,)
    if not is_sound or not (np.isfinite(widths) & (widths >= 0)).all():
        raise damaged(group.where(), "its rank or its half widths cannot be")
    return found


def read_sizes(root: Root, n_cells: int) -> Float64:
    """Return the size of residuals in each cell, in units of that of all, float64 (n_cells,).

    Of a model with intervals.

    Raises
    ------
    StoreError, DamageError : as `read_interval`
    """
    group = _group(root)
    assert group is not None
    sizes: Float64 = group.read("sizes", shape=(n_cells,), kind="f")
    if not (sizes > 0).all():
        raise damaged(group.where("sizes"), "a size is not positive")
    return sizes
