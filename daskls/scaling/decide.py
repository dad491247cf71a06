"""The choice of the scale, the kernel, the width and the ridge that all cells share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskls.records import Float64, KernelName
from daskls.scaling.choose import Chosen, TrialGrid, choose, choose_coarsely
from daskls.scaling.held_out import HeldOutErrors, compare, evaluate_scales
from daskls.scaling.rounds import learn_factors
from daskls.scaling.steps import Steps
from daskls.scaling.trial import LOOK_ROWS

__all__ = ["Candidate", "Decision", "choose_for", "decide_scale", "settle"]

# A scale takes the place of another where its squared errors are lower by so many standard errors,
# and its error is no higher.
LEAST_Z = 4.0
# A kernel is passed over whose coarse error is this many times the least.
NEAR = 1.1


@dataclass(frozen=True, eq=False)
class Candidate:
    """A scale under comparison.

    Attributes
    ----------
    name : "given", "spread" or "learned"
    factors : float64 array, shape (d,). Of rows as regions keep them.
    chosen : Chosen. The trial of its own.
    rivals : tuple of Chosen. The best of other kernels, where they are near.
    evaluated : HeldOutErrors, or None where nothing is compared
    """

    name: str
    factors: Float64
    chosen: Chosen
    rivals: tuple[Chosen, ...] = ()
    evaluated: HeldOutErrors | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what people may want to know of it."""
        trial, chosen, evaluated = self.chosen.trial, self.chosen, self.evaluated
        told: dict[str, Any] = {
            "kernel": trial.kernel,
            "width": trial.width,
            "ridge": trial.ridge,
            "leave_one_out": {"squared_error": chosen.squared_error, "error": chosen.error},
            "n_tried": chosen.n_tried,
        }
        if evaluated is not None:
            told["held_out"] = {"squared_error": evaluated.squared_error, "error": evaluated.error}
        return told


@dataclass(frozen=True, eq=False)
class Decision:
    """The scale that is taken, and the reasons."""

    taken: Candidate
    candidates: tuple[Candidate, ...]
    z: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the decision as JSON values."""
        return {
            "decision": self.taken.name,
            "z": self.z,
            "least_z": LEAST_Z,
            "chosen": self.taken.to_json(),
            "candidates": {own.name: own.to_json() for own in self.candidates},
        }


def choose_for(
    steps: Steps,
    name: str,
    factors: Float64,
    kernels: Sequence[KernelName],
    grid: TrialGrid,
    cell_size: int = LOOK_ROWS,
) -> Candidate:
    """Return a scale with the best kernel, width and ridge for it."""
    starts = [choose_coarsely(steps, factors, kernel, grid, cell_size) for kernel in kernels]
    least = min(start.squared_error for start in starts)
    found = [
        choose(steps, factors, start.trial, grid, cell_size)
        for start in starts
        if start.squared_error <= NEAR * least
    ]
    return Candidate(name, factors, *_best_of(found))


def _best_of(found: Sequence[Chosen]) -> tuple[Chosen, tuple[Chosen, ...]]:
    """Return the best of several kernels, with all trials counted, and the others."""
    best = min(found, key=lambda own: own.squared_error)
    rivals = tuple(own for own in found if own is not best)
    return replace(best, n_tried=sum(own.n_tried for own in found)), rivals


def settle(steps: Steps, taken: Candidate, grid: TrialGrid, cell_size: int) -> Candidate:
    """Return a scale with width and ridge chosen once more, on cells of the size that is used.

    From what smaller cells have chosen.
    """
    if cell_size <= LOOK_ROWS:
        return taken
    found = [
        choose(steps, taken.factors, own.trial, grid, cell_size)
        for own in (taken.chosen, *taken.rivals)
    ]
    best, rivals = _best_of(found)
    best = replace(best, n_tried=best.n_tried + taken.chosen.n_tried)
    return replace(taken, chosen=best, rivals=rivals)


def decide_scale(
    steps: Steps, spreads: Float64, kernels: Sequence[KernelName], grid: TrialGrid
) -> Decision:
    """Compare rows as given, by their spread, and in a learned scale, on held-out rows.

    Parameters
    ----------
    steps : Steps
    spreads : float64 array, shape (d,). What makes rows as given of rows that regions keep.
    kernels : names of kernels to choose from
    grid : TrialGrid
    """
    given = evaluated(steps, choose_for(steps, "given", spreads, kernels, grid))
    spread = evaluated(steps, choose_for(steps, "spread", np.ones(len(spreads)), kernels, grid))
    taken, z_spread = _better(given, spread)
    # From the better of the two, by however little: a start is no decision.
    start = min((given, spread), key=lambda own: _errors_of(own).squared_error)
    factors = learn_factors(steps, start.factors, start.chosen.trial)
    learned = evaluated(steps, choose_for(steps, "learned", factors, kernels, grid))
    taken, z_learned = _better(taken, learned)
    return Decision(taken, (given, spread, learned), {"spread": z_spread, "learned": z_learned})


def evaluated(steps: Steps, candidate: Candidate) -> Candidate:
    """Return a candidate with its errors on held-out rows."""
    (found,) = evaluate_scales(steps, [(candidate.factors, candidate.chosen.trial)])
    return replace(candidate, evaluated=found)


def _errors_of(candidate: Candidate) -> HeldOutErrors:
    assert candidate.evaluated is not None
    return candidate.evaluated


def _better(old: Candidate, new: Candidate) -> tuple[Candidate, float]:
    """Return the new scale where it is better beyond doubt, else the old one; and z."""
    a, b = _errors_of(old), _errors_of(new)
    z = compare(a, b)
    return (new if z >= LEAST_Z and b.error <= a.error else old), z
