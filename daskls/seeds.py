"""The register of random streams: the purpose of each, and the numbers that seed it.

A fit has one seed, and every stream is drawn from it and from numbers of the data alone: rows,
leaves, cells, never blocks or workers. Each stream is a record below, which its users call; a test
finds seeds that are put together anywhere else, and streams that meet without being marked.

NumPy pads a short seed with zeros up to four numbers, so a stream of two numbers meets one of three
where the third is 0. A tag in the last of four places keeps streams apart; a tag in the third place
does not keep them from one that has a cell's number there.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Stream:
    """A stream of NumPy's default generator.

    Attributes
    ----------
    drawn_from : tuple of str and int. What follows the seed: names of numbers, and tags.
    users : tuple of str. The modules that draw from it, below ``daskls``.
    meets : tuple of str. Registered streams that are equal to this one for some values. They stay
        so, as other seeds would give other models; it does no harm where no fit draws both, or
        where the two draws do not affect each other.
    """

    drawn_from: tuple[str | int, ...]
    users: tuple[str, ...]
    meets: tuple[str, ...] = ()

    def __call__(self, seed: int, **numbers: int) -> tuple[int, ...]:
        """Return the seed of one draw, to be passed to the function that draws.

        Parameters
        ----------
        seed : int. The fit's.
        **numbers : the numbers that ``drawn_from`` names

        Examples
        --------
        >>> BRANCH(0, leaf=7)
        (0, 7, 0, 2)
        """
        named = {name for name in self.drawn_from if isinstance(name, str)}
        if numbers.keys() != named:
            raise TypeError(f"drawn from {sorted(named)}, not from {sorted(numbers)}")
        own = (numbers[part] if isinstance(part, str) else part for part in self.drawn_from)
        return seed, *own

    def generator(self, seed: int, **numbers: int) -> np.random.Generator:
        """Return the generator of one draw."""
        return np.random.default_rng(self(seed, **numbers))


@dataclass(frozen=True)
class KeyStream:
    """A stream of hashes of row numbers (`daskls.partition.shuffle`).

    Attributes
    ----------
    offset : int. Added to the seed, as row numbers are: streams stay apart while their offsets lie
        farther apart than seeds and row numbers reach together.
    users, meets : as of `Stream`
    permutes : bool. Whether `shuffle_numbers` draws a permutation of n rows from it and n, rather
        than `row_keys` the key of a row from it and the row's number.
    """

    offset: int
    users: tuple[str, ...]
    meets: tuple[str, ...] = ()
    permutes: bool = False

    def __call__(self, seed: int) -> int:
        """Return the seed to hash with."""
        return seed + self.offset


@dataclass(frozen=True)
class LegacyStream:
    """A stream of the generator that scikit-learn takes, seeded with 32 bits."""

    users: tuple[str, ...]
    meets: tuple[str, ...] = ()

    def generator(self, seed: int) -> np.random.RandomState:
        """Return the generator."""
        return np.random.RandomState(seed % 2**32)


# ---- every fit ----

# Which rows stage 1 samples: those of the least keys.
SAMPLE = KeyStream(1 << 54, users=("run.sample",))

# ---- cells ----

# Where the cuts of a further partition run: on the sample, and within a leaf. The first partition
# draws nothing.
TRUNK = Stream(("partition", 0, 1), users=("partition.space",))
BRANCH = Stream(("leaf", 0, 2), users=("partition.space",))
# Which fold each row of a cell belongs to.
CELL_FOLDS = Stream(("leaf", "cell"), users=("methods.cells.fit",))
# The chunk of each row.
CHUNKS = KeyStream(0, users=("partition.shuffle",), permutes=True)

# ---- neighborhoods ----
# The row is a center's or a query's own: the number of a center depends on all others. Tags in the
# third place meet cell 3 to 8 of a leaf of that number, in fits of another method.

# Folds of a neighborhood, and the pairs of its rows whose distances its widths are taken from.
NEIGHBORHOOD = Stream(("row", 3), users=("methods.neighborhoods.train",), meets=("CELL_FOLDS",))
# The same of the neighborhoods that local selection looks at, and which rows these are around.
EVALUATED = Stream(
    ("row", "n_neighbors", 4),
    users=("methods.neighborhoods.train", "methods.neighborhoods.select"),
)
SELECTED_ROWS = Stream(
    ("n_rows", 5), users=("methods.neighborhoods.select",), meets=("CELL_FOLDS",)
)
# The same of the neighborhood of a query, of a training row left out of its own, and of a center
# while candidates are compared.
QUERY = Stream(("row", 6), users=("methods.neighborhoods.lazy",), meets=("CELL_FOLDS",))
LEFT_OUT = Stream(("row", 7), users=("methods.neighborhoods.noise",), meets=("CELL_FOLDS",))
CANDIDATE = Stream(("row", 8), users=("methods.neighborhoods.select",), meets=("CELL_FOLDS",))
# In which order rows may become centers.
CENTER_ORDER = KeyStream(0, users=("partition.cover",))

# ---- landmarks ----

# Which points k-means begins with.
CLUSTERS = LegacyStream(users=("partition.space",))
# Which sampled rows are landmarks. Equal to the stream of a left-out row of the number of rows.
LANDMARKS = Stream(
    ("n_rows", 7), users=("methods.landmarks.fit",), meets=("CELL_FOLDS", "LEFT_OUT")
)

# ---- several methods ----

# Which fold each row of the data belongs to.
ROW_FOLDS = KeyStream(1 << 48, users=("run.regroup",))

# ---- probabilities ----

# Of which rows the values without them are kept, for the maps to probabilities.
MAPPED_ROWS = KeyStream(1 << 55, users=("methods.held_out",))

# ---- thresholds ----

# Which rows are reserved, for a bound on false alarms or for intervals, and trained on by nothing.
THRESHOLD_ROWS = KeyStream(1 << 58, users=("run.reserve",))

# ---- the scale of features ----

# Which parts of space are looked at, and which of their cells; region 0 stands for all of them.
REGIONS = Stream((0, 0, 9), users=("scaling.regions",))
REGION_CELLS = Stream(("region", "draw", 10), users=("scaling.regions",))
# Which rows of the sample candidates race on, and in which order (purpose 0); on which cells (1).
RACE = Stream(("purpose", 0, 12), users=("scaling.heats",))
# Which of their rows are held out; and which are left out of a region that has too many.
HELD_ROWS = KeyStream(1 << 56, users=("scaling.regions", "scaling.heats"))

# ---- samples ----

# Which rows are in which subsample, and which validate: equal to the order in which rows are
# assigned to chunks, by fits of another method.
SUBSAMPLES = KeyStream(0, users=("partition.shuffle",), meets=("CHUNKS",), permutes=True)
# Folds of the rows that C and gamma are selected on, and the pairs that widths are taken from.
SELECTING = Stream(("n_rows", 0, 11), users=("methods.sampling.search",))
# Which rows are drawn from the ball around a support row.
BALLS = KeyStream(1 << 52, users=("partition.shuffle",))

# ---- tables ----

# Which rows the medians of columns with missing values are taken of.
MEDIAN_ROWS = KeyStream(1 << 57, users=("sources.scan",))

# ---- generated data sets ----
# Not part of any fit. A set and a fit of one seed meet: the stream that made the rows then
# assigns other rows to folds, or draws other cuts.

# Rows of a set, a group at a time; and what all rows share: centers, planes.
SET_ROWS = Stream(
    ("set_id", "group"),
    users=("datasets._base",),
    meets=(
        *("CELL_FOLDS", "NEIGHBORHOOD", "SELECTED_ROWS"),
        *("QUERY", "LEFT_OUT", "CANDIDATE", "LANDMARKS"),
    ),
)
SET_STRUCTURE = Stream(("set_id", 0, 1), users=("datasets._base",), meets=("TRUNK",))


def register() -> dict[str, Stream | KeyStream | LegacyStream]:
    """Return every stream by its name."""
    kinds = (Stream, KeyStream, LegacyStream)
    return {name: stream for name, stream in globals().items() if isinstance(stream, kinds)}
