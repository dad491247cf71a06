"""The register of random streams: the purpose of each, and the numbers that seed it.

Every stream is seeded by the fit's seed and by numbers of rows, leaves, cells, never of blocks or
workers. NumPy pads a short seed with zeros up to four numbers, so a stream of two numbers meets one
of three whose third number is 0: a tag in the fourth place keeps streams apart.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Stream:
    """A stream of NumPy's default generator.

    `drawn_from` are the seed's further numbers: names of arguments, and tags. `meets` are streams
    that are equal for some values: harmless where no fit draws both, or where the two draws do not
    affect each other.
    """

    drawn_from: tuple[str | int, ...]
    users: tuple[str, ...]
    meets: tuple[str, ...] = ()

    def __call__(self, seed: int, **numbers: int) -> tuple[int, ...]:
        """Return the seed of one draw, with one number for each name in ``drawn_from``.

        >>> BRANCH(0, leaf=7)
        (0, 7, 0, 2)
        """
        named = {name for name in self.drawn_from if isinstance(name, str)}
        if numbers.keys() != named:
            raise TypeError(f"drawn from {sorted(named)}, not from {sorted(numbers)}")
        parts = (numbers[part] if isinstance(part, str) else part for part in self.drawn_from)
        return seed, *parts

    def generator(self, seed: int, **numbers: int) -> np.random.Generator:
        return np.random.default_rng(self(seed, **numbers))


@dataclass(frozen=True)
class KeyStream:
    """A stream of hashes of row numbers.

    The offset is added to the seed, as row numbers are: two streams stay apart if their offsets
    differ by more than the largest sum of a seed and a row number.
    """

    offset: int
    users: tuple[str, ...]
    meets: tuple[str, ...] = ()
    permutes: bool = False

    def __call__(self, seed: int) -> int:
        return seed + self.offset


@dataclass(frozen=True)
class LegacyStream:
    """A stream of NumPy's legacy generator, which scikit-learn takes; it is seeded with 32 bits."""

    users: tuple[str, ...]
    meets: tuple[str, ...] = ()

    def generator(self, seed: int) -> np.random.RandomState:
        return np.random.RandomState(seed % 2**32)


# ---- every fit ----

# The rows that stage 1 samples: those with the smallest keys.
SAMPLE = KeyStream(1 << 54, users=("run.sample",))

# ---- cells ----

# The cuts of all partitions but the first, which draws nothing: on the sample, and within a leaf.
TRUNK = Stream(("partition", 0, 1), users=("partition.space",))
BRANCH = Stream(("leaf", 0, 2), users=("partition.space",))
# The fold of each row of a cell.
CELL_FOLDS = Stream(("leaf", "cell"), users=("methods.cells.fit",))
# The chunk of each row.
CHUNKS = KeyStream(0, users=("partition.shuffle",), permutes=True)

# ---- neighborhoods ----
# Streams are seeded by the row of a center or a query, as the number of a center depends on all
# other centers. A tag in the third place meets the cell of that number (3 to 8) of the leaf that
# has the row's number, in fits of another method.

# Folds of a neighborhood, and the pairs of rows whose distances give its widths.
NEIGHBORHOOD = Stream(("row", 3), users=("methods.neighborhoods.train",), meets=("CELL_FOLDS",))
# The same for the neighborhoods that local selection evaluates, and their center rows.
EVALUATED = Stream(
    ("row", "n_neighbors", 4), users=("methods.neighborhoods.train", "methods.neighborhoods.select")
)
SELECTED_ROWS = Stream(
    ("n_rows", 5), users=("methods.neighborhoods.select",), meets=("CELL_FOLDS",)
)
# The same for the neighborhood of a query, and of a training row that is left out of it.
QUERY = Stream(("row", 6), users=("methods.neighborhoods.queries",), meets=("CELL_FOLDS",))
LEFT_OUT = Stream(("row", 7), users=("methods.neighborhoods.noise",), meets=("CELL_FOLDS",))
# The graph of a group of leaves, by the first of them.
GRAPH = Stream(("leaf", 0, 13), users=("methods.neighborhoods.groups",))
# The order in which rows are considered as centers.
CENTER_ORDER = KeyStream(0, users=("partition.cover",))

# ---- landmarks ----

# The initial points of k-means.
CLUSTERS = LegacyStream(users=("partition.space",))
# The sampled rows that become landmarks. Equals LEFT_OUT for a row whose number is n_rows.
LANDMARKS = Stream(
    ("n_rows", 7), users=("methods.landmarks.fit",), meets=("CELL_FOLDS", "LEFT_OUT")
)

# ---- several methods ----

# The fold of each row of the data.
ROW_FOLDS = KeyStream(1 << 48, users=("methods.landmarks.solve",))

# ---- probabilities ----

# The rows whose held-out values are kept, for the maps to probabilities.
MAPPED_ROWS = KeyStream(1 << 55, users=("methods.held_out",))

# ---- thresholds ----

# The rows that are reserved for a bound on false alarms or for intervals, and never trained on.
THRESHOLD_ROWS = KeyStream(1 << 58, users=("run.reserve",))

# ---- the scale of features ----

# The regions of space that candidates are compared on, and their cells; region 0 stands for all.
REGIONS = Stream((0, 0, 9), users=("scaling.regions",))
REGION_CELLS = Stream(("region", "draw", 10), users=("scaling.regions",))
# The sampled rows that candidates race on, in order (purpose 0), and the cells (purpose 1).
RACE = Stream(("purpose", 0, 12), users=("scaling.splits",))
# Which of their rows are held out, and which are dropped from a region that has too many.
HELD_ROWS = KeyStream(1 << 56, users=("scaling.regions", "scaling.splits"))

# ---- samples ----

# The rows of each subsample, and those that validate. Equals CHUNKS, in fits of another method.
SUBSAMPLES = KeyStream(0, users=("partition.shuffle",), meets=("CHUNKS",), permutes=True)
# Folds of the rows that C and gamma are selected on, and the pairs that give the widths.
SELECTING = Stream(("n_rows", 0, 11), users=("methods.sampling.search",))
# The rows that are drawn from the ball around a support row.
BALLS = KeyStream(1 << 52, users=("partition.shuffle",))

# ---- tables ----

# The rows that give the medians of columns with missing values.
MEDIAN_ROWS = KeyStream(1 << 57, users=("sources.scan",))
# The fold of each row, without which the statistics of its values are counted.
STATISTIC_FOLDS = KeyStream(1 << 59, users=("sources.statistics",))

# The first vectors from which directions of text are found.
LETTERS = LegacyStream(users=("sources.letters",), meets=("CLUSTERS",))

# ---- reports ----

# The order in which the values of one column are dealt to the rows of a test set.
SHUFFLED = Stream((0, 0, 14), users=("plotting.evaluation",))

# ---- generated data sets ----
# Not part of any fit. A data set and a fit of the same seed meet, which is harmless: the stream
# that made the rows then assigns other rows to folds, or draws other cuts.

# The rows of a data set, one group at a time.
SET_ROWS = Stream(
    ("set_id", "group"),
    users=("datasets._base",),
    meets=(*("CELL_FOLDS", "NEIGHBORHOOD", "SELECTED_ROWS"), *("QUERY", "LEFT_OUT", "LANDMARKS")),
)


def register() -> dict[str, Stream | KeyStream | LegacyStream]:
    kinds = (Stream, KeyStream, LegacyStream)
    return {name: stream for name, stream in globals().items() if isinstance(stream, kinds)}
