"""The race of candidates: coding, kernel and scale, each with the width and ridge it does best by.

Heats of more and more rows; after each, those fall that are worse beyond doubt. Scales are learned
of the best that are left. At last models of the size of a cell are compared on rows that no scale,
width or ridge has seen; of few rows each row is left out instead, and a scale is judged on the half
of them that it was not learned on.

How many looks that takes follows from the numbers of rows and candidates alone, so that one seed
stays one model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daskls.kernels.kernel import find_kernel
from daskls.records import Coding, Float32, Float64, Int64, KernelSpec
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.scaling.grid import Steps, Trial, TrialGrid
from daskls.scaling.heats import Heat, RacePlan, ThinJob, ThinRows, read_thin
from daskls.scaling.look import Answers, Look, climb
from daskls.scaling.rounds import learn_on
from daskls.solvers.squares.system import median_distance

# Candidates that a heat leaves at the most, and standard errors of a paired difference beyond which
# one falls. Few rows are a poor judge, and learning curves cross: the first heats let more pass,
# and none falls whose squared error is near the best.
LEFT, CERTAIN, NEAR_BEST = (9, 5, 3), (3.0, 2.0, 2.0), 1.03
N_FINALISTS, N_CLIMBING = 3, 2
# The best of each kernel stays beside them, if its squared error is no more than so many times the
# least. More rows turn the order of kernels (krkopt: 25.0 % became 17.3), and so does a learned
# scale: on Friedman's first function .058 of the Laplacian, .059 of the Gauss become .050 and .043.
IN_SIGHT = 2.0
# Rows, rounds and trials of a scale that only tells whose is worth learning.
SCOUT_ROWS, SCOUT_ROUNDS, SCOUT_LOOKS = 500, 3, 3
# Candidates whose scales are learned where no scout tells, and the rounds of each.
N_LEARNED, LEARNING_ROUNDS = 2, 6
# Standard errors by which a learned scale has to be better where each row is left out; on rows that
# were held out, `Aim.least_z`. And it must not mistake more rows: on splice its squared error is a
# third less, the share of wrong rows equal, and on fresh rows half as many again are wrong.
LEARNED, LEAST_Z_LEARNED = "learned", 1.0


@dataclass(frozen=True, eq=False)
class Candidate:
    """A coding, a scale and a trial, and its errors where it was seen last.

    Attributes
    ----------
    base : int. The number of its coding among those in question.
    coding : Coding
    name : str. Of its scale: "given", "spread", "learned".
    factors : float64 array, shape (d',). Of rows as they are kept in the coding.
    trial : Trial
    squared, wrong, weights : float64 arrays, shape (q,). Of the rows that were answered last.
    n_looks : int. In all heats.
    """

    base: int
    coding: Coding
    name: str
    factors: Float64
    trial: Trial
    squared: Float64 = field(default_factory=lambda: np.empty(0))
    wrong: Float64 = field(default_factory=lambda: np.empty(0))
    weights: Float64 = field(default_factory=lambda: np.empty(0))
    n_looks: int = 0

    @property
    def squared_error(self) -> float:
        """The weighted mean of squared errors."""
        return float(np.average(self.squared, weights=self.weights))

    @property
    def error(self) -> float:
        """The weighted share of wrong rows."""
        return float(np.average(self.wrong, weights=self.weights))

    def to_json(self) -> dict[str, Any]:
        """Return a summary of the candidate for `daskls info`."""
        return {
            "coding": self.coding,
            "scale": self.name,
            "kernel": self.trial.kernel,
            "width": self.trial.width,
            "ridge": self.trial.ridge,
            "squared_error": self.squared_error,
            "error": self.error,
            "n_rows": len(self.squared),
            "n_tried": self.n_looks,
        }


def shape_of(A: Float32, trial: Trial) -> Float64:
    """Return what tells candidates apart that are one: -log of kernel values of some rows.

    In units of the width. Of features of two values at one distance, for example, the Laplacian
    kernel is the Gaussian with another gamma: a race of both would be one of equals.
    """
    kernel = find_kernel(trial.kernel)
    gamma = trial.width if trial.is_gamma else kernel.gamma_of(median_distance(trial.kernel, A))
    base = kernel.matrix(A.astype(np.float64)).astype(np.float64)
    values = kernel.apply(base, KernelSpec(trial.kernel, gamma), base)
    return -np.log(values)


@undisturbed
def look_at(
    number: int, factors: Float64, start: Trial, heat: Heat, grid: TrialGrid, job: ThinJob
) -> Float64:
    """Return what a candidate came to in a heat: its place and its errors, see `_packed`."""
    rows = read_thin(number, job)
    with one_blas_thread():
        trial, answers, n_looks = _climb(rows, factors, start, heat, grid, job)
    return _packed(trial, answers, n_looks, heat.weights(rows), grid)


def _climb(
    rows: ThinRows, factors: Float64, start: Trial, heat: Heat, grid: TrialGrid, job: ThinJob
) -> tuple[Trial, Answers, int]:
    looks = []
    for part in heat.parts:
        own = part.of(rows)
        A, Y = own.X * factors.astype(np.float32), job.aim.columns(own.targets)
        looks.append(Look(A, Y, own.weights, part.n_training, start.kernel, job.aim))
    weights = heat.weights(rows)
    own_grid = grid.of_kernel(start.kernel)
    return climb(looks, start, own_grid, weights, heat.reaches, heat.most_looks)


def _packed(
    trial: Trial, answers: Answers, n_looks: int, weights: Float64, grid: TrialGrid
) -> Float64:
    """Return the place and the number of looks, then squared errors, wrong rows and weights."""
    head = [*grid.place(trial), n_looks]
    return np.concatenate([head, answers.squared, answers.wrong, weights])


@undisturbed
def look_crossed(
    number: int, factors: Float64, start: Trial, heat: Heat, grid: TrialGrid, job: ThinJob
) -> Float64:
    """Return what a scale comes to that is learned on one half of the rows and judged on the other.

    Each row is answered without itself, in the scale of the half that it is not in.
    """
    rows = read_thin(number, job)
    n = heat.thin.n_training
    half, place, found, n_looks = n // 2, start, [], 0
    with one_blas_thread():
        for own in ((0, half), (half, n)):
            learned = _learned(rows, (own,), factors, start, job)
            place, answers, n_own = _climb(rows, learned, place, heat, grid, job)
            found.append(answers)
            n_looks += n_own
    first, second = found
    squared = np.r_[second.squared[:half], first.squared[half:]]
    wrong = np.r_[second.wrong[:half], first.wrong[half:]]
    return _packed(place, Answers(squared, wrong), n_looks, heat.weights(rows), grid)


@undisturbed
def learn_scale(
    number: int,
    factors: Float64,
    trial: Trial,
    learning: tuple[tuple[int, int], ...],
    n_rounds: int,
    job: ThinJob,
) -> Float64:
    """Return the factors that are learned on some rows."""
    rows = read_thin(number, job)
    with one_blas_thread():
        return _learned(rows, learning, factors, trial, job, n_rounds)


def _learned(
    rows: ThinRows,
    learning: tuple[tuple[int, int], ...],
    factors: Float64,
    trial: Trial,
    job: ThinJob,
    n_rounds: int = LEARNING_ROUNDS,
) -> Float64:
    cells = [rows.take(slice(*own)) for own in learning]
    columns = [(own.X, own.targets, own.weights) for own in cells]
    return learn_on(columns, factors, trial, n_rounds, job.aim)


def race(
    steps: Steps, candidates: Sequence[Candidate], plan: RacePlan, grid: TrialGrid, *, learns: bool
) -> list[Candidate]:
    """Return the candidates that are left, the best first.

    Parameters
    ----------
    steps : Steps. Of a `ThinJob` whose rows are stored.
    candidates : sequence of Candidate
    plan : RacePlan
    grid : TrialGrid
    learns : bool. Whether scales are learned.
    """
    left = list(candidates)
    for number, heat in enumerate(plan.heats):
        seen = _run(steps, left, heat, grid)
        left = _survivors(seen, LEFT[number], CERTAIN[number])
        if plan.has_final:
            left += _in_sight(seen, left)
        if left[0].squared_error < steps.job.aim.negligible:
            left, learns = left[:1], False
    if not plan.has_final:
        return _leave_out(steps, left, plan, grid, learns=learns)
    if not learns:
        return _decide(steps, left[:N_FINALISTS], plan, grid)
    of, n_plain = left[:N_LEARNED], N_LEARNED
    if steps.job.aim.scouts:
        of, n_plain = _scouted(steps, left, plan, grid), 1
    learned = [new for rows in plan.learning for new in _learn(steps, of, rows)]
    return _decide(steps, left[:n_plain] + learned, plan, grid)


def _scouted(
    steps: Steps, left: Sequence[Candidate], plan: RacePlan, grid: TrialGrid
) -> list[Candidate]:
    """Return the best candidate, and the one whose scout does best in the last heat."""
    if len(left) == 1:
        return [*left]
    few = ((0, min(SCOUT_ROWS, plan.learning[0][0][1])),)
    heat = replace(plan.heats[-1], most_looks=SCOUT_LOOKS)
    seen = _run(steps, _learn(steps, left, few, SCOUT_ROUNDS), heat, grid)
    found = int(np.argmin([own.squared_error for own in seen]))
    return [left[i] for i in dict.fromkeys((0, found))]


def _run(
    steps: Steps,
    candidates: Sequence[Candidate],
    heat: Heat,
    grid: TrialGrid,
    task: Any = look_at,
) -> list[Candidate]:
    """Return candidates with what they came to in a heat, in their order."""
    if not candidates:
        return []
    calls = [(own.base, own.factors, own.trial, heat, grid) for own in candidates]
    found = steps.run(task, calls, lambda parts: {"looks": np.stack(parts)})["looks"]
    return [_seen(own, row, grid) for own, row in zip(candidates, found, strict=True)]


def _seen(candidate: Candidate, row: Float64, grid: TrialGrid) -> Candidate:
    i, j, n_looks = row[:3].astype(np.int64).tolist()
    trial = grid.at((i, j), candidate.trial.kernel)
    assert trial is not None
    squared, wrong, weights = row[3:].reshape(3, -1)
    looks = candidate.n_looks + n_looks
    return replace(
        candidate, trial=trial, squared=squared, wrong=wrong, weights=weights, n_looks=looks
    )


def _survivors(looks: Sequence[Candidate], most: int, doubt: float) -> list[Candidate]:
    """Return the best, and those that are not worse beyond doubt; the best first."""
    ordered = sorted(looks, key=lambda own: own.squared_error)
    best = ordered[0]
    near = NEAR_BEST * best.squared_error
    return [own for own in ordered if own.squared_error <= near or _z(own, best) <= doubt][:most]


def _in_sight(seen: Sequence[Candidate], left: Sequence[Candidate]) -> list[Candidate]:
    """Return the best of each kernel that has none left, where it is near enough."""
    most, kernels = IN_SIGHT * left[0].squared_error, {own.trial.kernel for own in left}
    best = {own.trial.kernel: own for own in sorted(seen, key=lambda own: -own.squared_error)}
    return [own for k, own in best.items() if k not in kernels and own.squared_error <= most]


def _z(own: Candidate, best: Candidate, runs: Int64 | None = None) -> float:
    """Return the paired difference of squared errors over its standard error.

    By runs of rows that were held out together, where these are given.
    """
    lost = own.weights * (own.squared - best.squared)
    if runs is not None:
        lost = np.bincount(runs, lost).astype(np.float64)
    deviation = lost.std()
    return float(lost.mean() / deviation * np.sqrt(len(lost))) if deviation > 0 else 0.0


def _is_better(
    learned: Candidate, plain: Candidate, least: float, runs: Int64 | None = None
) -> bool:
    """Return whether a learned scale is taken in place of one that was not."""
    return learned.error <= plain.error and _z(plain, learned, runs) >= least


def _learn(
    steps: Steps,
    of: Sequence[Candidate],
    rows: tuple[tuple[int, int], ...],
    n_rounds: int = LEARNING_ROUNDS,
) -> list[Candidate]:
    """Return candidates, each in the scale that is learned from its own."""
    calls = [(own.base, own.factors, own.trial, rows, n_rounds) for own in of]
    # One after the other: codings have different numbers of features.
    found = steps.run(learn_scale, calls, lambda parts: {"factors": np.concatenate(parts)})
    ends = np.cumsum([len(own.factors) for own in of])[:-1]
    learned = np.split(found["factors"], ends)
    return [replace(own, name=LEARNED, factors=new) for own, new in zip(of, learned, strict=True)]


def _leave_out(
    steps: Steps, left: Sequence[Candidate], plan: RacePlan, grid: TrialGrid, *, learns: bool
) -> list[Candidate]:
    """Return the finalists, each row of theirs left out; and the best in a learned scale."""
    finalists = left[:N_FINALISTS] if plan.heats else left
    seen = _survivors(_run(steps, finalists, plan.last, grid), N_FINALISTS, CERTAIN[-1])
    best = seen[0]
    if not learns:
        return seen
    (crossed,) = _run(steps, [best], plan.last, grid, look_crossed)
    if not _is_better(crossed, best, LEAST_Z_LEARNED):
        return seen
    # Learned as it was judged: from where the best stood before.
    (learned,) = _learn(steps, [best], plan.learning[0])
    return [replace(crossed, name=LEARNED, factors=learned.factors), *seen]


def _decide(
    steps: Steps, finalists: Sequence[Candidate], plan: RacePlan, grid: TrialGrid
) -> list[Candidate]:
    """Return the finalists by their errors on rows that nothing has seen.

    All of them as they are, then the best from there on, if anything is left to gain.
    """
    first = replace(plan.last, most_looks=1)
    seen = _survivors(_run(steps, finalists, first, grid), len(finalists), np.inf)
    climbing = _survivors(seen, N_CLIMBING, CERTAIN[-1])
    # And the best in a scale that was not learned: the others have to be better than it can be.
    climbing += [own for own in seen if own.name != LEARNED and own not in climbing][:1]
    if seen[0].squared_error < steps.job.aim.negligible:
        climbing = []
    climbed = _run(steps, climbing, plan.last, grid)
    others = [own for own in seen if own not in climbing]
    final = sorted([*climbed, *others], key=lambda own: own.squared_error)
    # The best that was not learned, unless the learned one is better beyond doubt.
    for own in final:
        if own.name != LEARNED and not _is_better(final[0], own, steps.job.aim.least_z, plan.runs):
            return [own, *(other for other in final if other is not own)]
    return final
