"""The heats of a race: which rows train, which are answered, and how many trials a candidate has.

Arithmetic of numbers of rows: seconds, memory and workers decide nothing of what is looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from daskls.records import SMALLEST, Float64, Int64
from daskls.scaling.thin import Drawn, ThinRows

__all__ = [
    "CELL_ROWS",
    "DENSE_FROM",
    "N_CELLS",
    "Heat",
    "Part",
    "RacePlan",
    "plan_race",
    "race_rows",
]

# Rows that train in the heats, and rows that are answered beside them.
HEAT_ROWS, ASKED_ROWS = (250, 500, 1000), 1500
# Of fewer rows each is left out, of so many at the most; of still fewer there are no heats before.
LEFT_OUT_BELOW, LEFT_OUT_ROWS, LEAST_HEAT_ROWS = 3000, 1500, 400
# Rows that train in the final, and random ones that decide it; and that a scale is learned on.
FINAL_ROWS, RESERVED_ROWS, LEARNING_ROWS = 2000, 1500, 1000
# Cells of all their rows, where the sample is all of the data and has so many: and the rows of one.
DENSE_FROM, N_CELLS, CELL_ROWS = 6000, 8, 1000
# Trials of one candidate in the last heat.
LAST_LOOKS, UNBOUNDED = 6, 1 << 30
COLUMNS = ("X", "targets", "weights")


@dataclass(frozen=True)
class Part:
    """Rows that train a model, and rows that it answers.

    Attributes
    ----------
    train, asked : (int, int). First, and one past the last. None are asked: each that trains is
        answered without itself.
    """

    train: tuple[int, int]
    asked: tuple[int, int] = (0, 0)

    @property
    def n_training(self) -> int:
        """The number of rows that train."""
        return self.train[1] - self.train[0]

    @property
    def n_asked(self) -> int:
        """The number of rows that are answered after a model of others."""
        return self.asked[1] - self.asked[0]

    def of(self, rows: ThinRows) -> ThinRows:
        """Return the rows that train, and after them those that are asked."""
        own = [rows.take(slice(*which)) for which in (self.train, self.asked)]
        return ThinRows(*(np.concatenate([getattr(o, n) for o in own]) for n in COLUMNS))


@dataclass(frozen=True)
class Heat:
    """One comparison of all that are left.

    Attributes
    ----------
    thin : Part. Of random rows.
    cells : tuple of Part. Of all rows of some cells; as a whole they count as much as ``thin``.
    reaches : tuple of int. See `look.climb`.
    most_looks : int. Of one candidate.
    """

    thin: Part
    cells: tuple[Part, ...] = ()
    reaches: tuple[int, ...] = (2, 1)
    most_looks: int = UNBOUNDED

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts."""
        return self.thin, *self.cells

    def weights(self, rows: ThinRows) -> Float64:
        """Return the weights of the rows that are answered, part by part."""
        own = [rows.weights[slice(*(p.asked if p.n_asked else p.train))] for p in self.parts]
        thin, cells = own[0], np.concatenate([np.empty(0), *own[1:]])
        return np.concatenate([thin / thin.sum(), cells / max(cells.sum(), SMALLEST)])


@dataclass(frozen=True, eq=False)
class RacePlan:
    """What is done with the rows of a race.

    Attributes
    ----------
    heats : tuple of Heat
    last : Heat. Of held-out rows, or of each row without itself.
    runs : int64 array, shape (q,). Of the rows that the last heat answers, where they are held out:
        see `Drawn.runs`.
    learning : tuple of tuples of (int, int). What scales are learned on, each on several ranges of
        rows together: random rows, and those of cells.
    """

    heats: tuple[Heat, ...]
    last: Heat
    runs: Int64
    learning: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def has_final(self) -> bool:
        """Whether rows that nothing has seen decide."""
        return self.last.thin.n_asked > 0


def race_rows(n_rows: int) -> tuple[int, int]:
    """Return how many random rows of a sample take part in heats, and how many in the final.

    >>> race_rows(1000), race_rows(100_000)
    ((1000, 0), (2500, 1500))
    """
    if n_rows < LEFT_OUT_BELOW:
        return min(n_rows, LEFT_OUT_ROWS), 0
    return HEAT_ROWS[-1] + ASKED_ROWS, RESERVED_ROWS


def plan_race(drawn: Drawn, cell_rows: int) -> RacePlan:
    """Plan a race.

    Parameters
    ----------
    drawn : Drawn
    cell_rows : int. Of a cell: no model is larger.
    """
    pool, reserved = len(drawn.pool), len(drawn.reserved)
    if not reserved:
        sizes = (pool // 4, pool // 2) if pool >= LEAST_HEAT_ROWS else ()
        heats = _heats(pool, sizes)
        last = Heat(Part((0, pool)), most_looks=LAST_LOOKS if heats else UNBOUNDED)
        return RacePlan(heats, last, drawn.runs, (((0, min(pool, LEARNING_ROWS)),),))
    most = max(cell_rows, 2)
    final = Part((0, min(pool, FINAL_ROWS, most)), (pool, pool + reserved))
    cells = _cell_parts(drawn)
    heats = _heats(pool, [min(own, most) for own in HEAT_ROWS])
    thin = ((0, min(LEARNING_ROWS, most)),)
    learning = (thin, tuple(own.train for own in cells)) if cells else (thin,)
    return RacePlan(heats, Heat(final, cells, (1,), LAST_LOOKS), drawn.runs, learning)


def _cell_parts(drawn: Drawn) -> tuple[Part, ...]:
    """Return the part of each cell that was drawn."""
    at, found = len(drawn.pool) + len(drawn.reserved), []
    for train, asked in drawn.cells:
        middle = at + len(train)
        found.append(Part((at, middle), (middle, middle + len(asked))))
        at = middle + len(asked)
    return tuple(found)


def _heats(pool: int, sizes: Sequence[int]) -> tuple[Heat, ...]:
    """Return a heat a size: by octaves and decades at first."""
    found = []
    for number, (size, most) in enumerate(zip(sizes, HEAT_ROWS, strict=False)):
        own = min(size, most)
        asked = own, min(pool, own + ASKED_ROWS)
        found.append(Heat(Part((0, own), asked), reaches=(2,) if number == 0 else (2, 1)))
    return tuple(found)
