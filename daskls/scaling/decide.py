"""The decision on regions: the winner of the race, a learned scale, other kernels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from daskls.scaling.grid import TRIAL_ROWS, Steps, TrialGrid
from daskls.scaling.paired import LEARNED, without_weak
from daskls.scaling.race import Candidate
from daskls.scaling.rounds import Chosen, choose, choose_coarsely, evaluate_scale, learn_factors

# A kernel is skipped if its error on the coarse grid is more than this many times the least.
NEAR = 1.1
# The kernel of the least squared error is taken, unless another has fewer wrong rows by this many
# standard errors. On Covertype the exponential kernel has the smaller squared error, the Gaussian
# fewer wrong rows, whose values are farther off: of the rows of three tests 2.2, 2.3 and 2.3 % are
# wrong in place of 2.3, 2.6 and 2.4 %.
FEWER_WRONG_Z = 2.0
# A scale without the weakest features may have this many times the squared error, and this many
# times the wrong rows: held-out rows lie here as densely as those that cells are trained on. A
# factor of a hundredth hardly changes an error, either way, but each feature makes models larger:
# without 25 of 28 those of 10 million rows take 176 MiB instead of 1258, and err less often.
# On covtype the features of factors below .03 are worth 3 to 9 % of the squared error.
AS_GOOD, AS_FEW_WRONG = 1.002, 1.01


@dataclass(frozen=True, eq=False)
class Decision:
    """The chosen candidate, all that were compared, and by what z a learned scale is better."""

    taken: Candidate
    candidates: tuple[Candidate, ...]
    z: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        return {
            "decision": self.taken.name,
            "coding": self.taken.coding,
            "z": self.z,
            "chosen": self.taken.to_json(),
            "candidates": [own.to_json() for own in self.candidates],
        }


def decide_densely(
    steps: Steps, first: Candidate, kernels: Sequence[str], grid: TrialGrid, *, learns: bool
) -> Decision:
    """Compare the winner of the race, and a learned scale, on held-out rows of regions."""
    best = _tuned_and_evaluated(steps, first, grid)
    found = [best]
    z: dict[str, float] = {}
    if learns:
        learned = _learn(steps, best, kernels, grid)
        z[LEARNED] = learned.errors.z_over(best.errors)
        found.append(learned)
        if learned.errors.passes(best.errors, steps.job.aim.least_z):
            best = learned
    if best.name == LEARNED and (fewer := _without_weak_features(steps, best, grid)):
        best = fewer
        found.append(best)
    best, others = _with_best_kernel(steps, best, kernels, grid)
    found = sorted([*found, *others], key=lambda own: own.squared_error)
    return Decision(best, tuple(found), z)


def _tuned_and_evaluated(
    steps: Steps, own: Candidate, grid: TrialGrid, start: Chosen | None = None
) -> Candidate:
    return _evaluated(steps, _tune(steps, own, grid, start))


def _tune(steps: Steps, own: Candidate, grid: TrialGrid, start: Chosen | None = None) -> Candidate:
    start = start or choose_coarsely(steps, own.factors, own.trial.kernel, grid)
    chosen = choose(steps, own.factors, start.trial, grid)
    n_trials = own.n_trials + start.n_tried + chosen.n_tried
    return replace(own, trial=chosen.trial, n_trials=n_trials, coarse=start.squared_error)


def _evaluated(steps: Steps, own: Candidate) -> Candidate:
    return replace(own, errors=evaluate_scale(steps, own.factors, own.trial))


def _learn(steps: Steps, own: Candidate, kernels: Sequence[str], grid: TrialGrid) -> Candidate:
    """Return a candidate in the scale learned from its own, with the first candidate kernel.

    On 100,000 rows of Covertype the exponential kernel's has an error of 4.6 % instead of 3.9 %.
    """
    kernel, start = kernels[0], own
    if own.trial.kernel != kernel:
        first = grid.of_kernel(kernel).start(kernel)
        start = _tune(steps, replace(own, trial=first), grid)
    factors = learn_factors(steps, start.factors, start.trial)
    return _tuned_and_evaluated(steps, replace(start, name=LEARNED, factors=factors), grid)


def _without_weak_features(steps: Steps, own: Candidate, grid: TrialGrid) -> Candidate | None:
    """Return a candidate without the weakest features, by bisection; None if all are needed."""
    if own.squared_error < steps.job.aim.negligible:
        return None
    found, tried = None, without_weak(own.factors)
    while tried:
        at = len(tried) // 2
        fewer = _evaluated(steps, replace(own, factors=tried[at]))
        is_good = _is_as_good(fewer, own)
        found = fewer if is_good else found
        tried = tried[:at] if is_good else tried[at + 1 :]
    if found is None:
        return None
    # Few features have another best width than many, if held-out rows agree.
    coarse = choose_coarsely(steps, found.factors, found.trial.kernel, grid)
    tuned = _tune(steps, found, grid, replace(coarse, trial=found.trial))
    found = replace(found, coarse=tuned.coarse)
    if tuned.trial == found.trial:
        return found
    tuned = _evaluated(steps, tuned)
    is_better = _is_as_good(tuned, own) and tuned.squared_error <= found.squared_error
    return tuned if is_better else found


def _is_as_good(fewer: Candidate, own: Candidate) -> bool:
    old, new = own.errors, fewer.errors
    is_good = new.squared_error <= AS_GOOD * old.squared_error
    return is_good and new.error <= AS_FEW_WRONG * old.error


def _with_best_kernel(
    steps: Steps, own: Candidate, kernels: Sequence[str], grid: TrialGrid
) -> tuple[Candidate, list[Candidate]]:
    """Return a candidate with the best kernel on held-out rows, and those it was compared to."""
    others = [kernel for kernel in kernels if kernel != own.trial.kernel]
    starts = [choose_coarsely(steps, own.factors, kernel, grid) for kernel in others]
    least = min([own.coarse, *(start.squared_error for start in starts)])
    tried = [
        _tuned_and_evaluated(steps, replace(own, trial=start.trial), grid, start)
        for start in starts
        if start.squared_error <= NEAR * least
    ]
    best = min([own, *tried], key=lambda one: one.squared_error)
    fewer = min([best, own, *tried], key=lambda one: one.errors.error)
    is_better = fewer.errors.z_of_fewer_wrong(best.errors) > FEWER_WRONG_Z
    return fewer if is_better else best, tried


def retune(steps: Steps, decision: Decision, grid: TrialGrid, cell_size: int) -> Decision:
    """Choose width and ridge again on cells of the final size, from the choice on smaller cells."""
    if cell_size <= TRIAL_ROWS:
        return decision
    old = decision.taken
    chosen = choose(steps, old.factors, old.trial, grid, cell_size)
    new = replace(old, trial=chosen.trial, n_trials=old.n_trials + chosen.n_tried)
    # In the place of the old one, beside which reports would show the choice twice.
    return replace(
        decision,
        taken=new,
        candidates=tuple(new if own is old else own for own in decision.candidates),
    )
