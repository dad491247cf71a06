"""Candidates, each a coding, a kernel and a scale with its best width and ridge; paired errors.

Tasks on workers tune one on a split set of rows, take its errors there, and learn a scale from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from daskls.blas import one_blas_thread
from daskls.records import AnyArray, Coding, Float64
from daskls.scaling.cells import (
    TrialCell,
    TrialErrors,
    TrialRows,
    descend,
    errors_of_mean,
    learn_factors,
)
from daskls.scaling.grid import Steps, Trial, TrialGrid
from daskls.scaling.regions import RegionSplit
from daskls.scaling.splits import Job, SampleJob, SearchPlan, Split, SplitSet, read_cells
from daskls.solvers.squares.target_coding import TargetCoding

# A learned scale, by its name among the scales of candidates.
LEARNED = "learned"
# The fewest groups of rows for a comparison.
LEAST_GROUPS = 10
# A learned scale is also tried without the features whose factors are below these shares of the
# largest, and without the smaller half. Of many uninformative features, chance decides which end at
# a small factor and which at 0; each one that is kept makes cells less dense and models larger.
WEAK_SHARES = (0.3, 0.1, 0.03)
# The share of a scale's logarithms that is kept where it was learned on at most 1000 rows of a cell
# of sampled rows: the more rows, the less unequal are the factors of the best scale. On letter all
# of it leaves 3.3 % of errors, seven tenths 2.8 %.
KEPT_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class RowErrors:
    """A candidate's errors on predicted rows; each group of rows counts as one observation.

    `of_mean` are the squared errors of the mean of the training rows.
    """

    squared: Float64
    wrong: Float64
    weights: Float64
    groups: Float64
    of_mean: Float64

    @property
    def squared_error(self) -> float:
        return _mean(self.squared, self.weights)

    @property
    def error(self) -> float:
        return _mean(self.wrong, self.weights)

    def is_negligible(self, aim: TargetCoding) -> bool:
        """Whether hardly any of the errors of the mean are left; not so before there are any."""
        most = aim.negligible * _mean(self.of_mean, self.weights)
        return len(self.squared) > 0 and self.squared_error < most

    @property
    def z_over_mean(self) -> float:
        return self._z(self.of_mean - self.squared)

    def z_over(self, old: "RowErrors") -> float:
        """Return by how many standard errors these are smaller; 0 for too few groups."""
        return self._z(old.squared - self.squared)

    def passes(self, old: "RowErrors", least_z: float) -> bool:
        """Whether squared errors are smaller by ``least_z`` standard errors, no more wrong."""
        return self.z_over(old) > least_z and self.error <= old.error

    def _z(self, differences: Float64) -> float:
        _, groups = np.unique(self.groups, return_inverse=True)
        gain = np.bincount(groups, self.weights * differences)
        if len(gain) < LEAST_GROUPS:
            return 0.0
        spread = np.sqrt(((gain - gain.mean()) ** 2).sum())
        return float(gain.sum() / spread) if spread > 0 else 0.0


# The errors of a candidate before it is evaluated.
NO_ERRORS = RowErrors(*np.empty((5, 0)))


def _mean(values: Float64, weights: Float64) -> float:
    """Return a weighted mean; 0 of no rows, as few rows may leave none held out."""
    return float(np.average(values, weights=weights)) if len(values) else 0.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """A coding, a scale and a trial, with its errors when it was last evaluated.

    Its factors (d',) multiply rows as stored in the coding.
    """

    base: int
    coding: Coding
    name: str
    factors: Float64
    trial: Trial
    errors: RowErrors = NO_ERRORS
    n_trials: int = 0

    @property
    def squared_error(self) -> float:
        return self.errors.squared_error

    @property
    def model(self) -> tuple[object, ...]:
        """Its identity but for width and ridge."""
        return self.base, self.factors.tobytes(), self.trial.kernel

    def to_json(self) -> dict[str, Any]:
        return {
            "coding": self.coding,
            "scale": self.name,
            "kernel": self.trial.kernel,
            "width": self.trial.width,
            "ridge": self.trial.ridge,
            "squared_error": self.squared_error,
            "error": self.errors.error,
            "n_rows": len(self.errors.squared),
            "n_tried": self.n_trials,
        }


def best_first(seen: Sequence[Candidate]) -> list[Candidate]:
    return sorted(seen, key=lambda c: c.squared_error)


def evaluate(
    steps: Steps, candidates: Sequence[Candidate], split_set: SplitSet, grid: TrialGrid
) -> list[Candidate]:
    """Return candidates with their best trials on a split set, and their errors there."""
    if not candidates:
        return []
    # A single trial needs no word between the cells of several regions.
    is_split = split_set.most_trials == 1 and isinstance(split_set.splits[0], RegionSplit)
    sets = [replace(split_set, splits=(s,)) for s in split_set.splits] if is_split else [split_set]
    calls = [(c.base, c.factors, c.trial, one, grid) for c in candidates for one in sets]

    def join(parts: Sequence[Float64]) -> dict[str, AnyArray]:
        ends = np.cumsum([part.shape[1] for part in parts])[len(sets) - 1 :: len(sets)]
        return {"looks": np.concatenate(parts, axis=1), "ends": ends}

    result = steps.run(evaluate_candidate, calls, join)
    looks = np.split(result["looks"], result["ends"][:-1], axis=1)
    return [_seen(c, look, grid) for c, look in zip(candidates, looks, strict=True)]


def _seen(candidate: Candidate, look: Float64, grid: TrialGrid) -> Candidate:
    """Return a candidate after a look, (8, n): its place, the number of trials, errors of rows."""
    if not look.size:
        return replace(candidate, errors=NO_ERRORS)
    i, j, n_trials = look[:3, 0].astype(np.int64).tolist()
    trial = grid.at((i, j), candidate.trial.kernel)
    assert trial is not None
    errors, n_trials = RowErrors(*look[3:]), candidate.n_trials + n_trials
    return replace(candidate, trial=trial, errors=errors, n_trials=n_trials)


def evaluate_candidate(
    base: int, factors: Float64, start: Trial, split_set: SplitSet, grid: TrialGrid, job: Job
) -> Float64:
    """Return a look, (8, n): the place of the best trial, the number of trials, errors of rows."""
    with one_blas_thread():
        parts = [list(part) for part in read_cells(split_set.splits, base, factors, job)]
        return _tune(parts, factors, start, split_set, grid, job.aim)


def _tune(
    parts: Sequence[Sequence[TrialRows]],
    factors: Float64,
    start: Trial,
    split_set: SplitSet,
    grid: TrialGrid,
    aim: TargetCoding,
) -> Float64:
    cells = [cell for part in parts for cell in part]
    if not cells:
        return np.empty((8, 0))
    queries = [[cell.predicted for cell in part] for part in parts]
    weights = split_set.weights([np.concatenate([o.weights for o in q]) for q in queries if q])
    of_mean = np.concatenate([errors_of_mean(cell, aim) for cell in cells])
    # One by one, as a task has memory for the distances of some cells, but not of all of a region.
    trial_cells = (TrialCell(cell, factors, start.kernel, aim) for cell in cells)
    if split_set.most_trials == 1:
        trial, n_trials = start, 1
        errors = TrialErrors.joined(cell.errors(start) for cell in trial_cells)
    else:
        enough = aim.negligible * _mean(of_mean, weights)
        limits = split_set.ridge_steps, split_set.most_trials
        args = start, grid.of_kernel(start.kernel), weights, *limits
        trial, errors, n_trials = descend(list(trial_cells), *args, enough)
    rows = [
        *(np.full(len(weights), value) for value in (*grid.place(trial), n_trials)),
        errors.squared,
        errors.wrong,
        weights,
        np.concatenate([cell.groups for part in queries for cell in part]),
        of_mean,
    ]
    # In an order that does not depend on the scale in which cells were cut.
    ids = [number * len(weights) + cell.ids for number, part in enumerate(parts) for cell in part]
    return np.stack(rows)[:, np.argsort(np.concatenate(ids), kind="stable")]


def cross_evaluate(steps: Steps, best: Candidate, plan: SearchPlan, grid: TrialGrid) -> Candidate:
    """Return a candidate in a learned scale, evaluated on the rows that it was not learned on."""
    call = best.base, best.factors, best.trial, plan.final, grid
    result = steps.run(cross_evaluate_candidate, [call], lambda parts: parts[0])
    return replace(_seen(best, result["look"], grid), name=LEARNED, factors=result["factors"])


def cross_evaluate_candidate(
    base: int, factors: Float64, start: Trial, split_set: SplitSet, grid: TrialGrid, job: Job
) -> dict[str, Float64]:
    """Predict each row without itself, in the scale learned on the half that it is not in."""
    ((every,),) = read_cells(split_set.splits, base, factors, job)
    rows, n = every.rows, every.n_training
    first, last = np.split(np.arange(n), [n // 2])
    looks, mean, trial = list[Float64](), np.ones(len(factors)), None
    with one_blas_thread():
        for learning, predicted in ((first, last), (last, first)):
            half = TrialRows(rows.take(learning), len(learning), learning)
            learned, found = _learned([half], factors, start, job)
            mean *= np.sqrt(learned)
            cell = TrialRows(rows.take(np.r_[learning, predicted]), n, predicted)
            look = _tune([[cell]], learned, trial or grid.nearest(found), split_set, grid, job.aim)
            # One trial for both halves, which the first chooses.
            trial = grid.at((int(look[0, 0]), int(look[1, 0])), start.kernel)
            split_set = split_set.once
            looks.insert(0, look)
    look = np.concatenate(looks, axis=1)
    look[2] = sum(one[2, 0] for one in looks)
    return {"look": look, "factors": mean}


def learn(
    steps: Steps, candidate: Candidate, splits: Sequence[Split | RegionSplit], grid: TrialGrid
) -> Candidate:
    """Return a candidate in the scale that is learned from its own on some cells."""
    call = candidate.base, candidate.factors, candidate.trial, tuple(splits)
    learned = steps.run(learn_scale, [call], lambda parts: {"factors": parts[0]})["factors"]
    trial = grid.nearest(replace(candidate.trial, width=float(learned[0])))
    return replace(candidate, name=LEARNED, factors=learned[1:], trial=trial)


def learn_scale(
    base: int, factors: Float64, trial: Trial, splits: Sequence[Split | RegionSplit], job: Job
) -> Float64:
    """Return the width and the factors, (1 + d',), that are learned on some cells."""
    with one_blas_thread():
        cells = [cell for part in read_cells(splits, base, factors, job) for cell in part]
        if not cells:
            return np.append(trial.width, factors)
        learned, reached = _learned(cells, factors, trial, job)
    return np.append(reached.width, learned)


def _learned(
    cells: Sequence[TrialRows], factors: Float64, trial: Trial, job: Job
) -> tuple[Float64, Trial]:
    learned, reached = learn_factors(cells, factors, trial, job.aim)
    share = KEPT_SHARE if isinstance(job, SampleJob) else 1.0
    return factors ** (1 - share) * learned**share, reached


def without_weak(factors: Float64) -> list[Float64]:
    """Return the factors with weak ones set to 0, for each limit that drops more; fewest first.

    >>> [f.tolist() for f in without_weak(np.array([1.0, 0.5, 0.4, 0.05, 0.0]))]
    [[1.0, 0.5, 0.0, 0.0, 0.0], [1.0, 0.5, 0.4, 0.0, 0.0]]
    """
    shares = [share * factors.max() for share in WEAK_SHARES]
    limits = sorted([*shares, np.median(factors[factors > 0])], reverse=True)
    weakened = [np.where(factors < limit, 0.0, factors) for limit in limits]
    counts = pairwise(np.count_nonzero(f) for f in (*weakened, factors))
    return [f for f, (n, n_next) in zip(weakened, counts, strict=True) if n < n_next]
