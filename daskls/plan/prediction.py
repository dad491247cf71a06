"""What predicting many rows reads: block by block, or by bundles, whose queries are gathered."""

from dataclasses import dataclass

# Beside the values of a record in the exchange: a target, a weight and the row's number.
BESIDE_NBYTES = 4 + 8 + 8
# Queries are gathered where that spares at least this many times the bytes that it moves: what
# moves is written, too, and takes tasks of its own.
GATHERING_SPARES = 2


@dataclass(frozen=True)
class PredictionPlan:
    """The bytes that the prediction of many rows reads.

    Attributes
    ----------
    n_rows, n_blocks : int. Queries, and the blocks that they are predicted in.
    row_nbytes, answer_nbytes : int. Of a query, and of its answer.
    model_nbytes : int. Of all bundles.
    n_partitions : int. Whose bundles predict a query; 0 where they do not follow from its place.
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
        36
        """
        nbytes = 2 * self.row_nbytes + self.answer_nbytes + 2 * BESIDE_NBYTES
        return self.n_rows * nbytes + self._once_nbytes + self.n_blocks * self._others_nbytes

    @property
    def _once_nbytes(self) -> int:
        return self.model_nbytes // max(self.n_partitions, 1)

    @property
    def _others_nbytes(self) -> int:
        """Of the other partitions a bundle's queries may meet all cells, too."""
        return self.model_nbytes - self._once_nbytes

    @property
    def pays_to_gather(self) -> bool:
        """Whether gathering spares several times the bytes that it reads and writes.

        >>> [PredictionPlan(n, -(-n // 600_000), 112, 8, 11 << 30, 1).pays_to_gather
        ...  for n in (10**6, 10**7)]
        [False, True]
        """
        moved = self.row_nbytes + 2 * (self.row_nbytes + self.answer_nbytes + 2 * BESIDE_NBYTES)
        spared = self.n_blocks * self._once_nbytes if self.n_partitions else 0
        return spared > GATHERING_SPARES * self.n_rows * moved

    @property
    def nbytes(self) -> int:
        return self.gathered_nbytes if self.pays_to_gather else self.by_block_nbytes
