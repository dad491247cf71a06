"""The search for what all cells share: coding, scale of features, kernel, width and ridge.

Candidates go through rungs of more and more random rows, as in successive halving; after each,
those that are significantly worse are dropped. Of those left, cells of full density settle width
and ridge, where there are any. A scale is learned from the best, and models are compared on rows
that no scale, width or ridge has seen. With few rows each is left out in turn, and a learned scale
is evaluated on the half of the rows that it was not learned on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from daskls.kernels.kernel import find_kernel
from daskls.scaling.candidates import (
    LEARNED,
    Candidate,
    best_first,
    cross_evaluate,
    evaluate,
    learn,
    without_weak,
)
from daskls.scaling.grid import RIDGES, Steps, TrialGrid
from daskls.scaling.splits import SearchPlan

# Most candidates left after each rung, and the standard errors of a paired difference beyond which
# one is dropped. Few rows judge poorly, and learning curves cross: the first rungs keep more, and
# none is dropped whose squared error is within the factor `NEAR_BEST` of the best.
N_SURVIVORS, DROPPED_Z, NEAR_BEST = (9, 4, 3), (3.0, 2.0, 2.0), 1.03
# The best candidate of each kernel also stays if its squared error is at most this many times the
# least. More rows can reverse the order of kernels, and so can a learned scale: on Friedman's first
# function, .058 of the Laplacian and .059 of the Gaussian kernel become .050 and .043.
NEAR_ENOUGH = 2.0
# Candidates without a learned scale that go to the decision.
N_PLAIN = 2
# Standard errors by which a learned scale has to be better where each row is left out; on held-out
# rows it is `TargetCoding.least_z`, but not more than the last number where these are few: hardly a
# gain is larger.
LEFT_OUT_Z, FEW_DECIDING, LEAST_Z_OF_FEW = 1.0, 1500, 2.5
# A descent finds no way off a plateau: of sin(16 pi x) kernels twice as wide as the waves learn
# nothing, and no step is better than another. So where the best is hardly better than the mean,
# widths are tried from the narrow end of the grid, in steps of a factor of four, at one ridge.
NARROW_STEP, NARROW_RIDGE = 4, 0.1
# The bar for a scale without the weakest features. Cells have more rows than the models that
# are compared on a sample, and so make use of more features: there it must be better by so many
# standard errors. Rows of regions are as dense as those of cells: there it may have this many times
# the squared error, and this many times the wrong rows, as each feature makes models larger:
# without 25 of 28 those of 10 million rows take 176 MiB instead of 1258, and err less often.
FEWER_Z, AS_GOOD, AS_FEW_WRONG = 2.0, 1.002, 1.01


@dataclass(frozen=True, eq=False)
class Decision:
    """The chosen candidate, and all that were compared, the best first."""

    taken: Candidate
    candidates: tuple[Candidate, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "decision": self.taken.name,
            "coding": self.taken.coding,
            "chosen": self.taken.to_json(),
            "candidates": [c.to_json() for c in self.candidates],
        }


def race(
    steps: Steps, candidates: Sequence[Candidate], plan: SearchPlan, grid: TrialGrid
) -> list[Candidate]:
    """Return the candidates that are left after all rungs, the best first."""
    left, everyone = list(candidates), list[Candidate]()
    for number, rung in enumerate(plan.rungs):
        seen = best_first(evaluate(steps, left, rung, grid))
        left, everyone = _survivors(seen, number), everyone or seen
        if not plan.leave_out:
            left += _near_of_other_kernels(seen, left)
        if left[0].errors.is_negligible(steps.job.aim):
            # Chance ranks scales where no error is left, and usual ridges cost less.
            plain = [left[0], *(c for c in [*seen, *everyone] if c.coding == "none")]
            finalists = _best_by(plain, lambda c: c.name)
            # Errors are paired: those of a rung before are of other rows.
            again = evaluate(steps, [c for c in finalists if c not in seen], rung, grid)
            return [
                replace(c, trial=grid.of_kernel(c.trial.kernel).with_usual_ridge(c.trial))
                for c in best_first([*(c for c in finalists if c in seen), *again])
            ]
    return _with_narrow(steps, left, plan, grid) if plan.rungs else left


def decide(
    steps: Steps,
    left: Sequence[Candidate],
    plan: SearchPlan,
    grid: TrialGrid,
    *,
    learns: bool,
    kernels: Sequence[str] = (),
) -> Decision:
    """Compare what a race left, and a learned scale, on rows that none of them has seen."""
    aim = steps.job.aim
    learns = learns and not left[0].errors.is_negligible(aim)
    if plan.leave_out:
        return _leave_out(steps, left, plan, grid, learns=learns)
    if plan.tuning is not None and (learns or len(left) > 1):
        tuned = best_first(evaluate(steps, left, plan.tuning, grid))
        # Cells without errors, as those of one class alone, would take any width and scale.
        left = left if tuned[0].errors.is_negligible(aim) else tuned
    compared = list(left[:N_PLAIN])
    if learns:
        compared += _learned(steps, left, plan, grid, kernels)
    seen = best_first(evaluate(steps, compared, plan.deciding, grid))
    best = _unlearned_unless_clear(steps, seen)
    best = _without_weak_features(steps, best, plan, grid)
    (final,) = evaluate(steps, [best], plan.final, grid)
    taken = replace(best, trial=final.trial, n_trials=final.n_trials)
    every = _best_by([taken, *seen], lambda c: c.model)
    return Decision(taken, tuple(best_first(every)))


def _leave_out(
    steps: Steps, left: Sequence[Candidate], plan: SearchPlan, grid: TrialGrid, *, learns: bool
) -> Decision:
    finalists = left[:N_PLAIN] if plan.rungs else left
    seen = best_first(evaluate(steps, finalists, plan.final, grid))
    if learns:
        crossed = cross_evaluate(steps, seen[0], plan, grid)
        if crossed.errors.passes(seen[0].errors, LEFT_OUT_Z):
            seen = [crossed, *seen]
    return Decision(seen[0], tuple(seen))


def uncoded_if_near(left: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of one coding: the best, or none where that is nearly as good.

    Regions compare no codings, and sampled rows are too thin to tell what a scale can learn from
    dense ones: on all of covtype it leaves 1.8 % of errors, and 2.1 % if numbers became ranks.
    """
    plain = [c for c in left if c.coding == "none"]
    is_near = plain and left[0].errors.z_over(plain[0].errors) <= DROPPED_Z[-1]
    base = plain[0].base if is_near else left[0].base
    return [c for c in left if c.base == base]


def _learned(
    steps: Steps,
    left: Sequence[Candidate],
    plan: SearchPlan,
    grid: TrialGrid,
    kernels: Sequence[str],
) -> list[Candidate]:
    """Return the scale that the best candidate learns, with each kernel that is left.

    Dense rows learn it with the first of `kernels`, and try it with all: on 464,000 rows of
    Covertype the scale of the Laplacian leaves 2.6 % of errors, that of the Gaussian kernel 2.3 %.
    """
    if plan.tuning is None or not plan.is_dense:
        learned = learn(steps, left[0], plan.learning, grid)
        return _best_by([learned, *(replace(learned, trial=o.trial) for o in left)], _kernel_of)
    starts = [replace(left[0], trial=grid.of_kernel(kernel).start(kernel)) for kernel in kernels]
    every = {c.trial.kernel: c for c in _best_by([*left, *starts], _kernel_of)}
    teacher = every[kernels[0]] if kernels else left[0]
    if teacher not in left:
        (teacher,) = evaluate(steps, [teacher], plan.tuning, grid)
    learned = learn(steps, teacher, plan.learning, grid)
    candidates = [learned, *(replace(learned, trial=c.trial) for c in every.values())]
    return evaluate(steps, _best_by(candidates, _kernel_of), plan.tuning, grid)


def _unlearned_unless_clear(steps: Steps, seen: Sequence[Candidate]) -> Candidate:
    """Return the best without a learned scale, unless a learned one is clearly better."""
    least_z: float = steps.job.aim.least_z
    if len(seen[0].errors.squared) < FEW_DECIDING:
        least_z = min(least_z, LEAST_Z_OF_FEW)
    plain = next((c for c in seen if c.name != LEARNED), seen[0])
    return next((c for c in seen if c.errors.passes(plain.errors, least_z)), plain)


def _without_weak_features(
    steps: Steps, candidate: Candidate, plan: SearchPlan, grid: TrialGrid
) -> Candidate:
    """Return a candidate without its weakest features, if these are not needed."""
    if candidate.name != LEARNED or candidate.errors.is_negligible(steps.job.aim):
        return candidate

    def is_good(new: Candidate) -> bool:
        if not plan.is_dense:
            return new.errors.passes(candidate.errors, FEWER_Z)
        is_near = new.squared_error <= AS_GOOD * candidate.squared_error
        return is_near and new.errors.error <= AS_FEW_WRONG * candidate.errors.error

    fewer = [replace(candidate, factors=factors) for factors in without_weak(candidate.factors)]
    seen = evaluate(steps, fewer, plan.deciding, grid)
    good = [new for new in (seen if plan.is_dense else best_first(seen)) if is_good(new)]
    return good[0] if good else candidate


def _with_narrow(
    steps: Steps, left: list[Candidate], plan: SearchPlan, grid: TrialGrid
) -> list[Candidate]:
    """Return candidates of a narrow width first, where all others learn nothing beside them."""
    best = [c for c in _best_by(left, _kernel_of) if find_kernel(c.trial.kernel).has_width]
    if not (best and grid.is_open) or grid.are_gammas or plan.thick is None:
        return left
    if left[0].errors.z_over_mean > DROPPED_Z[-1]:
        return left
    ridge = grid.ridges[RIDGES.index(NARROW_RIDGE)]
    narrow = [replace(best[0].trial, width=w, ridge=ridge) for w in grid.widths[::NARROW_STEP]]
    tried = [best[0], *(replace(best[0], trial=trial) for trial in narrow)]
    first, *seen = evaluate(steps, tried, plan.thick.once, grid)
    chosen = best_first(seen)[0]
    if not chosen.errors.passes(first.errors, DROPPED_Z[-1]):
        return left
    # Steps double or halve, so that the widths between are reached from one of them.
    between = grid.widths[grid.widths.index(chosen.trial.width) + 1]
    both = [chosen, replace(chosen, trial=replace(chosen.trial, width=between))]
    chosen = best_first(evaluate(steps, both, plan.thick, grid))[0]
    trials = [replace(chosen.trial, kernel=c.trial.kernel) for c in best[1:]]
    least = [max(t.ridge, grid.of_kernel(t.kernel).ridges[0]) for t in trials]
    trials = [replace(t, ridge=ridge) for t, ridge in zip(trials, least, strict=True)]
    others = [replace(c, trial=t) for c, t in zip(best[1:], trials, strict=True)]
    # On the same rows, as errors are paired.
    return [chosen, *evaluate(steps, others, plan.thick.once, grid)]


def _survivors(seen: Sequence[Candidate], rung: int) -> list[Candidate]:
    best, max_z = seen[0].errors, DROPPED_Z[rung]
    near = NEAR_BEST * best.squared_error
    left = [c for c in seen if c.squared_error <= near or best.z_over(c.errors) <= max_z]
    return left[: N_SURVIVORS[rung]]


def _kernel_of(candidate: Candidate) -> str:
    return candidate.trial.kernel


def _best_by(seen: Sequence[Candidate], kind: Callable[[Candidate], object]) -> list[Candidate]:
    """Return the first candidate of each kind, in their order."""
    firsts: dict[object, Candidate] = {}
    for candidate in seen:
        firsts.setdefault(kind(candidate), candidate)
    return list(firsts.values())


def _near_of_other_kernels(seen: Sequence[Candidate], left: Sequence[Candidate]) -> list[Candidate]:
    """Return the best of each kernel that has no candidate left, if its error is near enough."""
    most, kernels = NEAR_ENOUGH * left[0].squared_error, {c.trial.kernel for c in left}
    best = _best_by(seen, _kernel_of)
    return [o for o in best if o.trial.kernel not in kernels and o.squared_error <= most]
