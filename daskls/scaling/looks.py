"""What a race computes on workers: looks at one candidate, and the scales that it learns."""

from dataclasses import replace

import numpy as np

from daskls.blas import one_blas_thread
from daskls.kernels.copies import find_copies
from daskls.records import Float64
from daskls.scaling.descent import Answers, TrialSplit, descend
from daskls.scaling.grid import Trial, TrialGrid
from daskls.scaling.rounds import learn_on
from daskls.scaling.rungs import Part, RaceJob, RaceRows, Rung, read_race_rows


def evaluate_candidate(
    number: int, factors: Float64, start: Trial, rung: Rung, grid: TrialGrid, job: RaceJob
) -> Float64:
    rows = read_race_rows(number, job)
    with one_blas_thread():
        trial, answers, n_trials = _descend(rows, factors, start, rung, grid, job)
    return _packed(trial, answers, n_trials, rung.weights(rows), grid)


def _descend(
    rows: RaceRows, factors: Float64, start: Trial, rung: Rung, grid: TrialGrid, job: RaceJob
) -> tuple[Trial, Answers, int]:
    splits = []
    for part in rung.parts:
        own = part.of(rows)
        A, Y = own.X * factors.astype(np.float32), job.aim.columns(own.targets)
        sizes = part.n_training, part.n_asked
        # As they were before scaling: rows that a scale makes equal stay rows of their own.
        copies = find_copies(own.X[: part.n_training])
        splits.append(TrialSplit(A, Y, own.weights, *sizes, start.kernel, job.aim, copies))
    weights = rung.weights(rows)
    own_grid = grid.of_kernel(start.kernel)
    return descend(splits, start, own_grid, weights, rung.reaches, rung.most_trials)


def _packed(
    trial: Trial, answers: Answers, n_trials: int, weights: Float64, grid: TrialGrid
) -> Float64:
    """Return the trial's place, the number of trials, squared errors, wrong rows and weights."""
    head = [*grid.place(trial), n_trials]
    return np.concatenate([head, answers.squared, answers.wrong, weights])


def errors_of_mean(rung: Rung, job: RaceJob) -> dict[str, Float64]:
    """Return the errors of a rung's rows by the mean of the training rows alone."""
    rows, found = read_race_rows(0, job), []
    for part in rung.parts:
        own, n = part.of(rows), part.n_training
        Y = job.aim.columns(own.targets)
        asked = Y[len(Y) - part.n_asked :]
        mean = np.average(Y[:n], axis=0, weights=own.weights[:n])
        found.append(Answers(*job.aim.losses(np.broadcast_to(mean, asked.shape), asked)))
    answers = Answers.joined(found)
    return {"squared": answers.squared, "wrong": answers.wrong, "weights": rung.weights(rows)}


def cross_evaluate_candidate(
    number: int, factors: Float64, start: Trial, rung: Rung, grid: TrialGrid, job: RaceJob
) -> dict[str, Float64]:
    """Predict each row without itself, in the scale learned on the half that it is not in."""
    rows = read_race_rows(number, job)
    n = rung.sampled.n_training
    half, place, found, n_trials = n // 2, None, [], 0
    mean = np.ones(len(factors))
    with one_blas_thread():
        for n_learning in (half, n - half):
            learned, trial = _learned(rows, ((0, n_learning),), factors, start, job)
            mean *= np.sqrt(learned)
            asking = replace(rung, sampled=Part((0, n), (n_learning, n)))
            from_place = place or grid.nearest(trial)
            place, answers, n_own = _descend(rows, learned, from_place, asking, grid, job)
            found.append(answers)
            n_trials += n_own
            # The half that was asked comes first now.
            rows = rows.take(np.r_[n_learning:n, :n_learning])
    assert place is not None
    answers = Answers.joined(reversed(found))
    look = _packed(place, answers, n_trials, rung.weights(rows), grid)
    return {"looks": look[None], "factors": mean[None]}


def learn_scale(
    number: int,
    factors: Float64,
    trial: Trial,
    learning: tuple[tuple[int, int], ...],
    job: RaceJob,
) -> Float64:
    """Return the width and the factors, (1 + d',), that are learned on some ranges of rows."""
    rows = read_race_rows(number, job)
    with one_blas_thread():
        learned, found = _learned(rows, learning, factors, trial, job)
    return np.append(found.width, learned)


def _learned(
    rows: RaceRows,
    learning: tuple[tuple[int, int], ...],
    factors: Float64,
    trial: Trial,
    job: RaceJob,
) -> tuple[Float64, Trial]:
    cells = [rows.take(slice(*own)) for own in learning]
    columns = [(own.X, own.targets, own.weights) for own in cells]
    return learn_on(columns, factors, trial, job.aim)
