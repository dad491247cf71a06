"""Answers of models of cells: that of a query's one cell, or the mean of several."""

from collections.abc import Iterator

import numpy as np

from daskls.kernels.decision import decide_pairs
from daskls.kernels.votes import pairs_of, spread_pairs, vote_scores
from daskls.methods.scores import empty_scores, model_scores
from daskls.records import Float64, Ints, LocalModel, Reals
from daskls.store.reader import ModelReader

__all__ = [
    "LEAST_SLAB_ROWS",
    "SLAB_ROWS",
    "SUPER_NBYTES",
    "mean_of_all",
    "mean_of_views",
    "slab_rows",
]

# A block of queries is evaluated against every cell it touches: the larger it is, the fewer times
# the models are read. Chunks are merged up to about this size.
SUPER_NBYTES = 64 << 20
# Queries of one cell whose kernel values are held at once: fewer of a model of many support rows,
# whose values would be more than this; but no fewer than what a product is padded to. Whole tiles
# of kernels/gram.py.
SLAB_ROWS = 960
SLAB_NBYTES = 64 << 20
LEAST_SLAB_ROWS = 240


def mean_of_views(reader: ModelReader, X: Reals, views: list[Ints]) -> Float64:
    """Return the scores of the models that each row asks: of one, or the mean of several.

    Parameters
    ----------
    reader : ModelReader. Of a model with cells.
    X : real array, shape (m, d)
    views : list of int arrays (m,). The cells that answer.
    """
    n_classes = reader.n_classes
    scores = empty_scores(len(X), n_classes)
    if len(views) == 1:
        for model, rows in _slabs(reader, views[0]):
            scores[rows] = model_scores(model, X[rows], n_classes)
        return scores
    for tile in _tiles(views[0], n_classes):
        own = [cells[tile] for cells in views]
        mean = _mean_decisions(reader, X[tile], own, n_classes)
        scores[tile] = _mean_scores(mean, n_classes)
    return scores


def mean_of_all(reader: ModelReader, X: Reals) -> Float64:
    """Return the scores of the mean of all cells' clipped decision functions."""
    n_classes = reader.n_classes
    scores = empty_scores(len(X), n_classes)
    cells = np.arange(reader.n_cells)
    for tile in _tiles(np.zeros(len(X), np.int64), n_classes):
        rows = X[tile]
        total = np.zeros((len(rows), len(pairs_of(n_classes))))
        # In the order of cells: a sum's bits depend on its order.
        for model in reader.read_cells(cells):
            for start in range(0, len(rows), SLAB_ROWS):
                slab = slice(start, start + SLAB_ROWS)
                decisions = decide_pairs(model, rows[slab]) if len(model.classes) > 1 else None
                total[slab] += spread_pairs(decisions, model.classes, n_classes)
        scores[tile] = _mean_scores(total / len(cells), n_classes)
    return scores


def _mean_scores(mean: Float64, n_classes: int) -> Float64:
    """Return the scores of mean decision values, one column a pair of classes."""
    scores: Float64 = mean[:, 0] if n_classes == 2 else vote_scores(mean, n_classes)
    return scores


def _slabs(reader: ModelReader, cells: Ints) -> Iterator[tuple[LocalModel, Ints]]:
    """Yield each cell that rows lie in, with at most `SLAB_ROWS` of them."""
    if not len(cells):
        return
    order = np.argsort(cells, kind="stable")
    touched, starts = np.unique(cells[order], return_index=True)
    groups = np.split(order, starts[1:])
    for model, rows in zip(reader.read_cells(touched), groups, strict=True):
        size = slab_rows(len(model.rows))
        for start in range(0, len(rows), size):
            yield model, rows[start : start + size]


def slab_rows(n_support: int) -> int:
    """Return how many queries are evaluated together by a model of so many support rows."""
    return min(SLAB_ROWS, max(SLAB_NBYTES // (8 * max(n_support, 1)), LEAST_SLAB_ROWS))


def _tiles(cells: Ints, n_classes: int) -> Iterator[slice | Ints]:
    """Yield rows in parts whose decisions of all pairs of classes fit `SUPER_NBYTES`.

    Rows of neighboring cells stay together, so that few cells are read more than once.
    """
    n_rows = max(SUPER_NBYTES // (8 * len(pairs_of(n_classes))), SLAB_ROWS)
    if len(cells) <= n_rows:
        yield slice(None)
        return
    order = np.argsort(cells, kind="stable")
    for start in range(0, len(cells), n_rows):
        yield order[start : start + n_rows]


def _mean_decisions(reader: ModelReader, X: Reals, views: list[Ints], n_classes: int) -> Float64:
    """Return the views' mean of clipped decision values, one column a pair of classes."""
    total = np.zeros((len(X), len(pairs_of(n_classes))))
    # In the order of views: a sum's bits depend on its order.
    for cells in views:
        for model, rows in _slabs(reader, cells):
            decisions = decide_pairs(model, X[rows]) if len(model.classes) > 1 else None
            total[rows] += spread_pairs(decisions, model.classes, n_classes)
    return total / len(views)
