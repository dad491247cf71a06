"""Calibration: cross-validated scores, and the maps to probabilities fitted to them.

Where a fit knows no held-out values of its own rows, the whole method is fitted again on some of
them, leaving out one fold at a time. Scores depend on the density of rows: a local method uses all
rows of a few parts of space, any other method rows drawn at random.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from daskls.cluster import compute_each
from daskls.errors import DataError
from daskls.kernels.copies import find_copies
from daskls.kernels.decisions import expand_scores
from daskls.kernels.kernel import find_kernel
from daskls.methods.predict import SCORES, predict_block
from daskls.methods.probability import CALIBRATION, fit_maps, write_maps
from daskls.records import Codes, FeatureScale, Float64, Int64, Reals
from daskls.run.blocks import BlockRows
from daskls.run.contract import FitRequest, FitState
from daskls.run.rows import open_rows
from daskls.scaling.coding import spreads
from daskls.scaling.fit import MAX_CELL_ROWS
from daskls.scaling.regions import (
    HELD_SHARE,
    RegionJob,
    RegionRows,
    collect_regions,
    plan_groups,
    plan_regions,
    read_region,
)
from daskls.store.objects import BaseStore, ModelHandle, Scratch, open_store

# Approximate number of rows that are scored; also the rows drawn for methods that are not local.
SCORED_ROWS = 10_000
# Most bytes of the features of all rows, which the client holds.
MAX_TAKEN_NBYTES = 64 << 20
# Rows that one task scores: few, as a lazy method trains a model for each.
TASK_ROWS = 500
# Keys of the folds' models, inside the model's store.
FOLDS = "held-out-{:03d}"

NestedFit = Callable[[FitRequest, BlockRows, BaseStore], str]


def calibrate(raw: FitState, state: FitState, fit: NestedFit) -> None:
    """Fit the maps from scores to probabilities, unless the store holds them."""
    request, root = state.request, state.root
    assert request.probability is not None
    if root.find(CALIBRATION) is not None:
        return
    job = _plan(raw, state)
    collect_regions(raw, job)
    rows = _read(job, state)
    folds = range(count_folds(len(rows.X)))
    with state.clock.stage("calibrate", len(folds), None):
        scored = [_score_fold(rows, fold, state, fit) for fold in folds]
    scores, which = (np.concatenate(parts) for parts in zip(*scored, strict=True))
    if not len(which):
        raise DataError(
            f"Probabilities are fitted to held-out rows, but none of the {len(rows.X)} rows can "
            "be held out and leave two classes to train on. Fit on more rows, or without "
            "probability."
        )
    codes, n_classes = rows.codes[which], state.scan.target.n_classes
    # Class weights move the decision boundary; they do not change how probable a class is.
    weights = rows.weights[which] / state.class_weight[codes]
    maps = fit_maps(request.probability, scores, codes, weights, n_classes)
    write_maps(root, maps, {"n_rows": len(which), "n_folds": len(folds)})
    # Only now: a fit that was stopped between folds reuses the models of finished folds.
    root.store.drop("held-out-*")


def _plan(raw: FitState, state: FitState) -> RegionJob:
    """Return the job that collects the rows, unless an earlier search has collected them."""
    base = _base(raw)
    job = plan_regions(raw, base, state.sizes.n_features)
    # A model without a scale only subtracts the center.
    scale = state.scale or FeatureScale(base.center, np.ones_like(base.center))
    job = job.gathered_in(scale, "model")
    request = state.request
    if request.method.is_local:
        return job
    searched = request.scaling is not None and request.scaling.by_chance
    size = min(request.cell_size, MAX_CELL_ROWS) if searched else SCORED_ROWS
    return plan_groups(job, state.scan.n_kept, size)


def _base(raw: FitState) -> FeatureScale:
    X = raw.sample.X
    center = X.mean(axis=0, dtype=np.float64)
    if raw.request.scaling is not None:
        return FeatureScale(center, 1 / spreads(X))
    # Kernels of inner products depend on the origin, so it stays where the data has it.
    has_width = find_kernel(raw.request.spec.kernel).has_width
    return FeatureScale(center if has_width else np.zeros_like(center), np.ones_like(center))


def _read(job: RegionJob, state: FitState) -> RegionRows:
    row_nbytes = 4 * state.sizes.n_features
    most = max(MAX_TAKEN_NBYTES // (job.max_rows * row_nbytes), 1)
    regions = np.linspace(0, job.n_regions - 1, min(job.n_regions, most)).astype(np.int64)
    parts = [read_region(region, job) for region in np.unique(regions).tolist()]
    rows = RegionRows(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(RegionRows))
    )
    return replace(rows, fold=_with_copies(rows.fold, rows.X))


def _with_copies(folds: Int64, X: Reals) -> Int64:
    """Return the folds with equal rows together, unless more than half a fold is equal."""
    copies = find_copies(X)
    if copies is None:
        return folds
    first, group = copies
    is_few = np.bincount(group)[group] <= len(X) // (2 * HELD_SHARE)
    return np.where(is_few, folds[first[group]], folds)


def count_folds(n_rows: int) -> int:
    return min(max(-(-SCORED_ROWS * HELD_SHARE // n_rows), 1), HELD_SHARE)


def _score_fold(
    rows: RegionRows, fold: int, state: FitState, fit: NestedFit
) -> tuple[Float64, Int64]:
    held, others = np.flatnonzero(rows.fold == fold), np.flatnonzero(rows.fold != fold)
    n_classes = state.scan.target.n_classes
    present = np.unique(rows.codes[others])
    if len(present) < 2 or not len(held):
        # One class cannot be learned from, so no row of this fold is scored.
        return np.empty(0 if n_classes == 2 else (0, n_classes)), held[:0]
    store = open_store(state.root.where(FOLDS.format(fold)))
    scratch = Scratch.inside(state.root.store, f"input-{FOLDS.format(fold)}")
    with _blocks(rows, others, scratch, state.client) as blocks:
        request = _nested(state, len(others))
        handle = ModelHandle(store.where(), fit(request, blocks, store))
    parts = [held[a : a + TASK_ROWS] for a in range(0, len(held), TASK_ROWS)]
    calls = [(rows.X[part], handle) for part in parts]
    scores = np.concatenate(compute_each(score_held_out, calls, state.client))
    return _spread(scores, present, n_classes), held


def score_held_out(X: Reals, handle: ModelHandle) -> Float64:
    scores: Float64 = predict_block(X, handle, SCORES)
    return scores


@contextmanager
def _blocks(rows: RegionRows, which: Int64, scratch: Scratch, client: Any) -> Iterator[BlockRows]:
    """Yield rows as blocks; workers read them beside the fold's store."""
    weights = rows.weights[which]
    w = None if (weights == 1).all() else weights
    with open_rows(rows.X[which], rows.codes[which], w, scratch, client=client) as blocks:
        yield blocks


def _nested(state: FitState, n_rows: int) -> FitRequest:
    request = state.request
    return replace(
        request,
        method=request.method.for_rows(n_rows),
        seed=state.seed,
        class_weight=None,
        feature_names=None,
        scaling=None,
        checks_units=False,
        measures_shrinkage=False,
        is_nested=True,
        n_folds=None,
        probability=None,
        # The rows that the fit reserved are already excluded from all that it learns from.
        reserved_for=None,
    )


def _spread(scores: Float64, present: Codes, n_classes: int) -> Float64:
    if len(present) == n_classes:
        return scores
    if scores.ndim == 1:
        scores = np.stack([-scores, scores], axis=1)
    return expand_scores(scores, present, n_classes)
