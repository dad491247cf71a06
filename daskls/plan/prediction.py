"""The bytes read to predict many rows: block by block, or by bundles of gathered queries."""

from dataclasses import dataclass

from daskls.store.artifact import SUMMED_NBYTES

# Beside the values of a record in the exchange: a target, a weight and the row's number.
BESIDE_NBYTES = 4 + 8 + 8
# Read in vain where some leaves are read from a file: half a summed range at each end of their
# records, and about one with their offsets.
PIECE_NBYTES = 2 * SUMMED_NBYTES
# Queries are gathered where that spares more than this many times the bytes that it moves.
GATHERING_SPARES = 2


@dataclass(frozen=True)
class PredictionPlan:
    """The bytes that the prediction of many rows reads.

    Attributes
    ----------
    n_rows, n_blocks : int. Queries, and the blocks that they are predicted in.
    row_nbytes, answer_nbytes : int. Of a query, and of its answer.
    model_nbytes : int. Of all bundles, and of the rows that a model keeps.
    n_partitions : int. 0 where a query's bundles do not follow from its place.
    """

    n_rows: int
    n_blocks: int
    row_nbytes: int
    answer_nbytes: int
    model_nbytes: int
    n_partitions: int

    @property
    def by_block_nbytes(self) -> int:
        """Each block reads nearly the whole model.

        >>> PredictionPlan(10**8, 167, 112, 8, 11 << 30, 1).by_block_nbytes >> 30
        1847
        """
        return self.n_rows * self.row_nbytes + self.n_blocks * self.model_nbytes

    @property
    def gathered_nbytes(self) -> int:
        """Queries and answers are read once more, and the bundles of the first partition once.

        >>> PredictionPlan(10**8, 167, 112, 8, 11 << 30, 1).gathered_nbytes >> 30
        39
        """
        return self.by_block_nbytes - self._spared_nbytes + self._moved_nbytes

    @property
    def _spared_nbytes(self) -> int:
        # Queries that are gathered by one partition may still meet all cells of the others.
        return (self.n_blocks - 1) * self.model_nbytes // max(self.n_partitions, 1)

    @property
    def _moved_nbytes(self) -> int:
        """Bytes of queries and answers as they are written, and read by about n_blocks tasks."""
        nbytes = self.row_nbytes + self.answer_nbytes + 2 * BESIDE_NBYTES
        return self.n_rows * nbytes + 2 * self.n_blocks**2 * PIECE_NBYTES

    @property
    def pays_to_gather(self) -> bool:
        """Whether gathering spares several times the bytes that it writes and reads.

        >>> [PredictionPlan(n, -(-n // 600_000), 112, 8, 11 << 30, 1).pays_to_gather
        ...  for n in (10**5, 10**7)]
        [False, True]
        """
        moved = self.n_rows * self.row_nbytes + 2 * self._moved_nbytes
        return self.n_partitions > 0 and self._spared_nbytes > GATHERING_SPARES * moved

    @property
    def nbytes(self) -> int:
        return self.gathered_nbytes if self.pays_to_gather else self.by_block_nbytes
