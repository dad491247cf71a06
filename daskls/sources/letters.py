"""Letters: text as its position along a few directions, by the pieces that values share.

A value is counted by its hashed pieces of 2 to 4 letters, which are weighted by how rare they are
and projected to the leading directions of a sample: values that share pieces are near each other,
new ones too.

Sources: Deerwester et al. 1990, latent semantic analysis; Cerda and Varoquaux 2022, text columns.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from daskls.blas import one_blas_thread
from daskls.records import AnyArray, Float64
from daskls.seeds import LETTERS
from daskls.store.caches import cached

N_DIRECTIONS = 15
# Pieces are told apart by a hash of so many values.
N_PIECES = 2048
LENGTHS = (2, 4)
# Letters of a value's beginning that its pieces are of.
MOST_LETTERS = 200
# Values of a column whose positions a process keeps.
KEPT_VALUES = 100_000


@dataclass(frozen=True, eq=False)
class LetterFeatures:
    """The weights of pieces, and the directions, (1 + N_DIRECTIONS, N_PIECES) of float32."""

    table: AnyArray
    _known: dict[str | None, Float64] = field(default_factory=dict)

    @classmethod
    def fit(cls, values: Sequence[str], seed: int) -> Self:
        """Find the directions of distinct values."""
        from sklearn.decomposition import TruncatedSVD

        counts = _count_pieces(values)
        n_with = np.bincount(counts.indices, minlength=N_PIECES)
        weights = np.log((1 + len(values)) / (1 + n_with)) + 1
        svd = TruncatedSVD(N_DIRECTIONS, random_state=LETTERS.generator(seed))
        with one_blas_thread():
            svd.fit(_weighted(counts, weights))
        return cls(np.vstack([weights, svd.components_]).astype(np.float32))

    def to_text(self) -> str:
        return base64.b64encode(self.table.astype("<f4").tobytes()).decode()

    def positions(self, values: Sequence[str | None]) -> Float64:
        """Return the positions, (m, N_DIRECTIONS), of values; zeros where there is none."""
        new = list({value for value in values if value is not None and value not in self._known})
        known: dict[str | None, Float64] = dict(zip(new, self._project(new), strict=True))
        known[None] = np.zeros(N_DIRECTIONS)
        positions = [known[value] if value in known else self._known[value] for value in values]
        if len(self._known) < KEPT_VALUES:
            del known[None]
            self._known.update(known)
        return np.reshape(positions, (-1, N_DIRECTIONS))

    def _project(self, values: list[str]) -> Float64:
        if not values:
            return np.empty((0, N_DIRECTIONS))
        weights, directions = self.table[0], self.table[1:].astype(np.float64)
        positions: Float64 = _weighted(_count_pieces(values), weights) @ directions.T
        # Rounded, as sums in another order differ in the last digit.
        return positions.round(9)


@cached(16)
def letters_of(text: str) -> LetterFeatures:
    return LetterFeatures(np.frombuffer(base64.b64decode(text), "<f4").reshape(-1, N_PIECES))


def _count_pieces(values: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    pieces = HashingVectorizer(
        analyzer="char_wb", ngram_range=LENGTHS, n_features=N_PIECES, norm=None
    )
    return pieces.transform(values)


def _weighted(counts: Any, weights: AnyArray) -> Any:
    """Return rows of length 1 of weighted pieces."""
    from sklearn.preprocessing import normalize

    return normalize(counts.multiply(weights.astype(np.float64)[None, :]).tocsr())
