"""Scores of queries from models of cells, of one cell or the mean of several, and their labels.

Decisions have a column for each function: of pairs of classes, of one class against the rest, or
outputs of a regression. Scores have the shape of the whole model's, whichever classes a cell holds.
"""

from collections.abc import Iterator

import numpy as np

from daskls.kernels.decisions import expand_pairs, expand_scores, pairs_of, rest_scores, vote_scores
from daskls.kernels.frame import decide_pairs
from daskls.records import F8, Float64, Ints, Labels, LocalModel, Mask, Reals, Targets
from daskls.solvers.evaluate import cell_scores
from daskls.solvers.registry import find_loss
from daskls.store.reader import ModelReader
from daskls.targets import Target

# The decisions of several models that are averaged at once, with the votes that they give.
TILE_NBYTES = 64 << 20
# Queries of one cell whose kernel values are held at once. Models of many support rows take fewer,
# to stay within these bytes, but no fewer than the rows that a product is padded to. Multiples of
# the tiles of kernels/gram.py.
SLAB_ROWS = 960
SLAB_NBYTES = 64 << 20
LEAST_SLAB_ROWS = 240


def mean_of_partitions(reader: ModelReader, X: Reals, leaves: list[Ints]) -> Float64:
    """Return the scores of each row, by one cell's model, or the mean over several partitions."""
    scores = empty_scores(len(X), reader.target)
    if len(leaves) == 1:
        for model, rows in _slabs(reader, leaves[0]):
            scores[rows] = model_scores(model, X[rows], reader.n_classes)
        return scores
    n_functions = _n_functions(reader)
    for tile in _tiles(reader, leaves[0], n_functions):
        tile_cells = [cells[tile] for cells in leaves]
        mean = _mean_decisions(reader, X[tile], tile_cells, n_functions)
        scores[tile] = _mean_scores(reader, mean)
    return scores


def mean_of_all(reader: ModelReader, X: Reals) -> Float64:
    """Return scores by the mean of all cells' functions, clipped to [-1, 1] for classes."""
    n_classes = reader.n_classes
    scores = empty_scores(len(X), reader.target)
    cells = np.arange(reader.n_cells)
    n_functions = _n_functions(reader)
    for tile in _tiles(reader, np.zeros(len(X), np.int64), n_functions):
        rows = X[tile]
        total = np.zeros((len(rows), n_functions))
        # Always in the order of cells, as the bits of a sum depend on its order.
        for model in reader.read_cells(cells):
            for start in range(0, len(rows), SLAB_ROWS):
                slab = slice(start, start + SLAB_ROWS)
                total[slab] += _clipped_decisions(model, rows[slab], n_classes)
        scores[tile] = _mean_scores(reader, total / len(cells))
    return scores


def _n_functions(reader: ModelReader) -> int:
    """Return the number of functions averaged: one per pair of classes, class, output or level."""
    n_classes, decision = reader.n_classes, find_loss(reader.spec).decision
    if decision == "values":
        return reader.target.n_functions
    if decision == "ovo":
        return len(pairs_of(n_classes))
    return n_classes if n_classes > 2 else 1


def _mean_decisions(reader: ModelReader, X: Reals, leaves: list[Ints], n_functions: int) -> Float64:
    """Return the mean decisions over partitions; clipped for classes."""
    n_classes = reader.n_classes
    total = np.zeros((len(X), n_functions))
    # Always in the order of partitions, as the bits of a sum depend on its order.
    for cells in leaves:
        for model, rows in _slabs(reader, cells):
            total[rows] += _clipped_decisions(model, X[rows], n_classes)
    return total / len(leaves)


def _mean_scores(reader: ModelReader, mean: Float64) -> Float64:
    if mean.shape[1] == 1:
        return mean[:, 0]
    is_voted = find_loss(reader.spec).decision == "ovo"
    return vote_scores(mean, reader.n_classes) if is_voted else mean


def _clipped_decisions(model: LocalModel, X: Reals, n_classes: int) -> Float64:
    """Return a cell's decisions, in the columns of the whole model; clipped for classes."""
    if model.decision == "values":
        return decide_pairs(model, X)
    decisions = decide_pairs(model, X) if len(model.classes) > 1 else None
    if model.decision == "ovo":
        return expand_pairs(decisions, model.classes, n_classes)
    scores = rest_scores(decisions, model.classes, n_classes)
    return np.clip(scores, -1.0, 1.0).reshape(len(scores), -1)


def _slabs(reader: ModelReader, cells: Ints) -> Iterator[tuple[LocalModel, Ints]]:
    """Yield the model of each cell that rows lie in, with indices of at most `SLAB_ROWS` rows."""
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
    return min(SLAB_ROWS, max(SLAB_NBYTES // (8 * max(n_support, 1)), LEAST_SLAB_ROWS))


def _tiles(reader: ModelReader, cells: Ints, n_functions: int) -> Iterator[slice | Ints]:
    """Yield the indices of rows in parts of bounded size, those of neighboring cells together."""
    # Sums and means; votes, confidences and what becomes of them; the rows themselves.
    n_values = 2 * n_functions + 6 * reader.n_classes + reader.width
    n_rows = max(TILE_NBYTES // (F8 * n_values), SLAB_ROWS)
    if len(cells) <= n_rows:
        yield slice(None)
        return
    order = np.argsort(cells, kind="stable")
    for start in range(0, len(cells), n_rows):
        yield order[start : start + n_rows]


def model_scores(model: LocalModel, X: Reals, n_classes: int) -> Float64:
    if model.decision == "values":
        numbers = decide_pairs(model, X)
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers
    present = len(model.classes)
    if model.decision == "ovr":
        decisions = decide_pairs(model, X) if present > 1 else None
        return _rest_scores(model, decisions, len(X), n_classes)
    if n_classes == 2:
        if present == 2:
            return cell_scores(model, X)
        return np.full(len(X), 1.0 if model.classes[0] == 1 else -1.0)
    if present == 1:
        scores = np.ones((len(X), 1))
    elif present == 2:
        scores = vote_scores(cell_scores(model, X)[:, None], 2)
    else:
        scores = cell_scores(model, X)
    return expand_scores(scores, model.classes, n_classes)


def held_out_scores(model: LocalModel, n_rows: int, n_classes: int) -> Float64:
    return _rest_scores(model, model.held_out, n_rows, n_classes)


def _rest_scores(
    model: LocalModel, decisions: Float64 | None, n_rows: int, n_classes: int
) -> Float64:
    """Return one-vs-rest decisions as scores; where there are none, ``n_rows`` constant scores."""
    scores = rest_scores(decisions, model.classes, n_classes)
    return scores if decisions is not None else np.repeat(scores, n_rows, axis=0)


def empty_scores(n_rows: int, target: Target) -> Float64:
    return np.empty((n_rows, *target.score_shape))


def labels_of(scores: Float64, classes: Labels) -> Labels:
    winners = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    labels: Labels = classes[winners]
    return labels


def misses_of(scores: Float64, targets: Targets, target: Target) -> Float64:
    """Return 1 where another class won, else 0; for numbers the mean squared error of the row."""
    if target.kind == "numbers":
        squared: Float64 = ((scores.reshape(targets.shape) - targets) ** 2).mean(axis=1)
        return squared
    is_wrong: Mask = labels_of(scores, np.arange(target.n_classes)) != targets
    return is_wrong.astype(np.float64)
