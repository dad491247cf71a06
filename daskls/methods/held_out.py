"""Held-out values that solvers give for some training rows, and their uses: calibration and ROC.

Rows are drawn once by their global numbers, the same in every partition, so the mean of partitions
has held-out values too. Each bundle keeps those of its rows beside its models. A model whose bound
on false alarms reserved rows uses its own scores of these for the ROC curve.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from daskls.errors import StoreError
from daskls.methods.base import method_of
from daskls.methods.probability import CALIBRATION, fit_maps, write_maps
from daskls.methods.scores import held_out_scores
from daskls.partition.shuffle import row_keys
from daskls.records import (
    AnyArray,
    Codes,
    Float64,
    Floats,
    Int32,
    Int64,
    LocalModel,
    RowNumbers,
    SolverSpec,
)
from daskls.run.contract import Fit, FitRequest, FitState, Method
from daskls.seeds import MAPPED_ROWS
from daskls.solvers.registry import find_loss
from daskls.store.artifact import Artifact
from daskls.store.caches import cached
from daskls.store.choices import read_reserved
from daskls.store.exchange import Rows
from daskls.store.models import BundleModels
from daskls.store.reader import ModelReader

# With at most this many rows all are drawn: beside the choice of a scale that costs little.
ALL_ROWS = 2000
# With more rows: how many are drawn for each cell and for each class, and the bounds of the total.
CELL_DRAWN, CLASS_DRAWN = 64, 40
LEAST_DRAWN, MOST_DRAWN = 2000, 20_000
# Most bytes of the drawn rows' values, which the client holds.
MOST_NBYTES = 64 << 20
# Rows that a class needs for a sigmoid of its own: with fewer, one that classes share is better.
LEAST_OWN_ROWS = 500
# Codes, decision values and weights of rows of two classes.
RocPoints = tuple[Codes, Float64, Float64]


@dataclass(frozen=True)
class RowSampler:
    """A draw of rows by hashed row number: those whose keys are below the share of their class."""

    shares: tuple[float, ...]
    seed: int

    def positions(self, rows: Rows) -> Int64:
        # The upper 53 bits, which float64 holds exactly, so a share of 1 takes every row.
        keys = row_keys(rows.numbers, MAPPED_ROWS(self.seed)) >> np.uint64(11)
        return np.flatnonzero(keys * 2.0**-53 < self.chances(rows))

    def chances(self, rows: Rows) -> Float64:
        shares = np.array(self.shares)[rows.codes]
        return shares if rows.counts is None else np.minimum(shares * rows.counts, 1.0)

    def weights(self, rows: Rows) -> Float64:
        shares = np.array(self.shares)[rows.codes]
        weights: Float64 = rows.weights * (shares / self.chances(rows))
        return weights


def most_drawn(n_classes: int) -> int:
    return max(min(MOST_DRAWN, MOST_NBYTES // (8 * n_classes)), n_classes)


def rows_drawn(n_rows: int, n_classes: int, cell_size: int) -> int:
    most = most_drawn(n_classes)
    if n_rows <= min(ALL_ROWS, most):
        return n_rows
    return min(max(LEAST_DRAWN, CELL_DRAWN * n_rows // cell_size), most)


def knows_held_out(method: Method, spec: SolverSpec) -> bool:
    return method.knows_held_out and find_loss(spec).knows_held_out


def maps_held_out(fit: Fit | FitRequest) -> bool:
    return fit.probability is not None and knows_held_out(fit.method, fit.spec)


def sampler_of(fit: Fit) -> RowSampler | None:
    """Return the draw of a fit; None if its solver knows no held-out values.

    Rows are drawn whether or not the fit keeps them, as the order in which a cell is solved, and so
    the rounding of its model, depends on them.
    """
    if not find_loss(fit.spec).knows_held_out:
        return None
    n_rows, n_classes = fit.n_rows, len(fit.counts)
    wanted = rows_drawn(n_rows, n_classes, fit.cell_size)
    if wanted == n_rows:
        return RowSampler((1.0,) * n_classes, fit.seed)
    most = most_drawn(n_classes)
    # Rare classes are drawn more often than others; `map_held_out` weighs the rows accordingly.
    of_class = min(CLASS_DRAWN, most // n_classes)
    shares = np.clip(np.maximum(wanted / n_rows, of_class / fit.counts), 0.0, 1.0)
    return RowSampler(tuple(shares.tolist()), fit.seed)


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Drawn rows with the scores, (q,) or (q, k), that models without them give."""

    numbers: RowNumbers
    codes: Codes
    weights: Float64
    scores: Floats

    @classmethod
    def of_leaf(
        cls, rows: Rows, cells: Int32, models: Sequence[LocalModel], sampler: RowSampler
    ) -> "HeldOutRows":
        which = sampler.positions(rows)
        which = which[np.argsort(cells[which], kind="stable")]
        counts = np.bincount(cells[which], minlength=len(models)).tolist()
        of_cell, n_classes = zip(models, counts, strict=True), len(sampler.shares)
        scores = [held_out_scores(model, n, n_classes) for model, n in of_cell]
        columns = rows.numbers[which], rows.codes[which], sampler.weights(rows)[which]
        return cls(*columns, np.concatenate(scores).astype(np.float32))

    @classmethod
    def joined(cls, parts: "Iterable[HeldOutRows]") -> "HeldOutRows":
        arrays = [part.arrays().values() for part in parts]
        return cls(*map(np.concatenate, zip(*arrays, strict=True)))

    def merged(self) -> "HeldOutRows":
        """Return each row once, in the order of numbers, with its mean score over partitions."""
        # A stable sort keeps the values of a row in the order of partitions.
        order = np.argsort(self.numbers, kind="stable")
        counts = np.unique(self.numbers, return_counts=True)[1]
        n_partitions = int(counts.max(initial=1))
        if (counts != n_partitions).any():
            raise StoreError(
                "The partitions of this model hold out different rows: another version of daskls "
                "began the fit. Give another store, or remove this one."
            )
        first = order[::n_partitions]
        scores = _mean(self.scores[order].astype(np.float64), n_partitions)
        return HeldOutRows(self.numbers[first], self.codes[first], self.weights[first], scores)

    @classmethod
    def read(cls, part: Artifact) -> "HeldOutRows":
        return cls(*(part.read(f"held_{field.name}") for field in fields(cls)))

    def arrays(self) -> dict[str, AnyArray]:
        return {f"held_{field.name}": getattr(self, field.name) for field in fields(self)}


def map_held_out(state: FitState, bundles: Iterable[BundleModels]) -> None:
    """Fit the maps from scores to probabilities by all bundles, in the order of leaves."""
    sampler, root, kind = sampler_of(state.fit), state.root, state.request.probability
    is_wanted = maps_held_out(state.request) and root.find(CALIBRATION) is None
    if sampler is None or kind is None or not is_wanted:
        return
    held = HeldOutRows.joined(HeldOutRows.read(bundle.part) for bundle in bundles).merged()
    codes, shares = held.codes, np.array(sampler.shares)
    # Class weights move the decision boundary; they do not change how probable a class is.
    weights = held.weights / state.class_weight[codes]
    weights *= (shares.min() / shares)[codes]
    args = kind, held.scores.astype(np.float64), codes, weights, len(shares)
    if kind == "sigmoid":
        maps = fit_maps(*args, of_odds=None, least_own=LEAST_OWN_ROWS)
    else:
        maps = fit_maps(*args)
    write_maps(root, maps, {"n_rows": len(codes)})


def _mean(scores: Float64, n_partitions: int) -> Float64:
    """Return the mean over partitions of clipped scores, as of queries; one partition's as is."""
    if n_partitions == 1:
        return scores
    clipped = np.clip(scores, -1.0, 1.0).reshape(-1, n_partitions, *scores.shape[1:])
    mean: Float64 = clipped.mean(axis=1)
    return mean


@cached(maxsize=8)
def roc_of(reader: ModelReader) -> RocPoints | None:
    """Return codes, decision values and weights of held-out rows, each (m,), if there are any."""
    if reader.n_classes != 2:
        return None
    reserved = read_reserved(reader.root)
    if reserved is not None:
        assert reader.false_alarm is not None
        scores, codes = reserved
        decisions = scores - reader.false_alarm.threshold
        return of_both(codes, decisions, np.ones(len(codes)))
    is_known = knows_held_out(method_of(reader.method), reader.spec)
    if not is_known or "probability" not in reader.meta:
        return None
    held = HeldOutRows.joined(HeldOutRows.read(b.part) for b in reader.each_bundle()).merged()
    return of_both(held.codes, held.scores.astype(np.float64), held.weights)


def of_both(codes: Codes, decisions: Float64, weights: Float64) -> RocPoints | None:
    """Return the arguments, or None if either class has no rows."""
    return None if np.bincount(codes, minlength=2).min() == 0 else (codes, decisions, weights)
