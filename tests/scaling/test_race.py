"""The race of candidates: its looks against brute force, its rules, and what it chooses."""

from dataclasses import replace
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel

from daskls import RandomChunkSVC, VoronoiSVC, VoronoiSVR
from daskls.records import SolverSpec
from daskls.run.sample import Sample
from daskls.scaling.coding import find_bases
from daskls.scaling.descent import TrialSplit, descend
from daskls.scaling.grid import RIDGES, STEPS_VERSION, WIDTHS, Steps, Trial, TrialGrid
from daskls.scaling.looks import _descend, cross_evaluate_candidate, errors_of_mean
from daskls.scaling.paired import LEARNED, RowErrors
from daskls.scaling.race import (
    LEFT_OUT_Z,
    Candidate,
    _decide,
    _leave_out,
    _survivors,
    _uncoded_if_near,
    _unlearned_first,
    _without_weak_features,
    race,
)
from daskls.scaling.rounds import learn_on
from daskls.scaling.rungs import (
    RESERVED_ROWS,
    Part,
    RaceJob,
    RaceRows,
    Rung,
    draw_cells_of,
    draw_race_rows,
    held_out,
    most_mixed_first,
    plan_race,
    race_rows,
    read_race_rows,
    write_race_rows,
)
from daskls.solvers.squares.aims import ClassAim, NumberAim
from daskls.solvers.squares.system import median_distance

RNG = np.random.default_rng(0)
A = RNG.random((150, 3)).astype("f4")
CODES = (A[:, 0] * 3).astype(int)
Y = np.where(CODES[:, None] == np.arange(3), 1.0, -1.0)
WEIGHTS = RNG.random(150) + 0.5
Y_ERRORS = RNG.random(200)
TRIAL, AIM = Trial("laplacian", 0.5, 0.03), ClassAim(3)


def ridge_of(rows, trial=TRIAL):
    gamma = 1 / (trial.width * median_distance("laplacian", A[:rows]))
    return gamma, trial.ridge


def test_answers_of_a_split_are_those_of_kernel_ridge():
    split = TrialSplit(A, Y, WEIGHTS, 100, 50, "laplacian", AIM)
    found = split.errors(TRIAL)
    gamma, ridge = ridge_of(100)
    K, far = laplacian_kernel(A[:100], gamma=gamma), laplacian_kernel(A[100:], A[:100], gamma)
    values = far @ np.linalg.solve(K + np.diag(ridge / WEIGHTS[:100]), Y[:100])
    squared = ((np.clip(values, -1, 1) - Y[100:]) ** 2).mean(axis=1)
    np.testing.assert_allclose(found.squared, squared, atol=1e-4)
    np.testing.assert_array_equal(found.wrong, values.argmax(axis=1) != CODES[100:])


@pytest.mark.parametrize("n_asked", [60, 25, 1])
def test_rows_that_are_left_out_are_answered_by_all_others(n_asked):
    found = TrialSplit(A[:60], Y[:60], np.ones(60), 60, n_asked, "laplacian", AIM).errors(TRIAL)
    assert len(found.squared) == n_asked
    gamma, ridge = ridge_of(60)
    for i in range(59, 59 - n_asked, -7):
        others = np.delete(np.arange(60), i)
        model = KernelRidge(alpha=ridge, kernel="laplacian", gamma=gamma).fit(A[others], Y[others])
        value = np.clip(model.predict(A[i : i + 1]), -1, 1)
        error = ((value - Y[i]) ** 2).mean()
        assert found.squared[i - 60 + n_asked] == pytest.approx(error, abs=1e-4)


def test_descent_ends_where_no_neighbor_is_better():
    split, grid = TrialSplit(A, Y, WEIGHTS, 100, 50, "rbf", AIM), TrialGrid.of(SolverSpec())
    trial, answers, n_trials = descend([split], grid.start("rbf"), grid, WEIGHTS[100:], (2, 1), 999)
    i, j = grid.place(trial)
    least = np.average(answers.squared, weights=WEIGHTS[100:])
    for place in ((i + 2, j), (i - 2, j), (i, j + 1), (i, j - 1)):
        other = grid.at(place, "rbf")
        if other is not None:
            assert np.average(split.errors(other).squared, weights=WEIGHTS[100:]) >= least
    assert n_trials < len(WIDTHS) * len(RIDGES)
    assert descend([split], grid.start("rbf"), grid, WEIGHTS[100:], (2, 1), 3)[2] <= 3


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "laplacian"])
def test_equal_rows_have_no_distance(kernel):
    # Products of these leave rounding errors of 1e-8 between them.
    equal = np.repeat(A[:1] * np.float32(0.37), 80, axis=0)
    assert median_distance(kernel, equal) == 1.0
    other = equal[0] + np.array([3.0, 0.0, 0.0], "f4")
    assert median_distance(kernel, np.vstack([equal, other])) == pytest.approx(3.0, rel=1e-6)
    answers = TrialSplit(equal, Y[:80], WEIGHTS[:80], 50, 30, kernel, AIM).errors(
        Trial(kernel, 8.0, 0.003)
    )
    mean = np.clip(np.average(Y[:50], axis=0, weights=WEIGHTS[:50]), -1, 1)
    np.testing.assert_allclose(answers.squared, ((mean - Y[50:80]) ** 2).mean(axis=1), atol=2e-3)


def test_given_values_are_all_that_is_tried():
    grid = TrialGrid.of(SolverSpec(C=(1.0, 5.0), gamma=(0.5, 2.0, 8.0)))
    split = TrialSplit(A, Y, WEIGHTS, 100, 50, "rbf", AIM)
    trial, _, _ = descend([split], grid.start("rbf"), grid, WEIGHTS[100:], (2, 1), 999)
    assert trial.is_gamma
    assert trial.width in (0.5, 2.0, 8.0)
    assert trial.ridge in (0.5, 0.1)


def test_those_fall_that_are_worse_beyond_doubt():
    rng, weights = np.random.default_rng(0), np.ones(400)
    base = rng.random(400)

    def candidate(name, squared):
        errors = RowErrors(squared, squared, weights)
        return Candidate(0, "none", name, np.ones(2), TRIAL, errors)

    best, near = candidate("best", base), candidate("near", base + rng.normal(0.001, 0.1, 400))
    far = candidate("far", base + rng.normal(0.1, 0.1, 400))
    assert [own.name for own in _survivors([far, near, best], 5, 2.0)] == ["best", "near"]
    assert [own.name for own in _survivors([far, near, best], 1, 2.0)] == ["best"]
    assert [own.name for own in _survivors([far, near, best], 5, np.inf)] == ["best", "near", "far"]


def test_none_falls_that_is_near_the_best():
    squared = RNG.random(2000)
    best, near, far = (
        Candidate(0, "none", name, np.ones(1), TRIAL, RowErrors(own, own > 0.5, np.ones(2000)))
        for name, own in (("best", squared), ("near", squared + 0.01), ("far", squared + 0.05))
    )
    # Beyond all doubt, and by 2 and 10 %.
    assert _survivors([far, near, best], 3, 2.0) == [best, near]


def test_a_learned_scale_mistakes_no_more_rows():
    squared, wrong = RNG.random(500), np.arange(500) % 10 == 0

    def passes(squared, wrong):
        return RowErrors(squared, wrong, np.ones(500)).passes(plain, LEFT_OUT_Z)

    plain = RowErrors(squared, wrong, np.ones(500))
    assert passes(squared - 0.1, wrong)
    assert not passes(squared - 0.1, wrong | (np.arange(500) == 1))
    assert not passes(squared + 0.1, wrong)


@pytest.mark.parametrize(("gain", "kept"), [(0.1, [0, 1, 2]), (-0.001, None)])
def test_weak_features_are_dropped_where_that_is_better(gain, kept):
    grid = TrialGrid.of(SolverSpec())
    trial = grid.start("laplacian")
    factors = np.array([1.0, 0.5, 0.2, 0.05])

    def row(squared):
        return np.concatenate([[*grid.place(trial), 1], squared, np.zeros(200), np.ones(200)])

    # Of all features, of two and of three: the best of these is near enough to be compared.
    looks = [row(Y_ERRORS), row(2 * Y_ERRORS), row(1.05 * Y_ERRORS)]
    steps = Recorded(looks, [row((1 - gain) * Y_ERRORS)])
    last = plan_race(draw_race_rows(200, *race_rows(200), 0), 4000).last
    first = replace(last, most_trials=1)
    plan = SimpleNamespace(first=first, last=last, runs=np.arange(200))
    errors = RowErrors(Y_ERRORS, np.zeros(200), np.ones(200))
    own = Candidate(0, "none", LEARNED, factors, trial, errors)
    found = _without_weak_features(steps, own, plan, grid)
    asked = [[call[1].tolist() for call in arguments] for _, arguments in steps.calls]
    two, three = [1.0, 0.5, 0.0, 0.0], [1.0, 0.5, 0.2, 0.0]
    assert asked == [[factors.tolist(), two, three], [three]]
    rungs = [{call[3] for call in arguments} for _, arguments in steps.calls]
    assert rungs == [{first}, {replace(last, most_trials=1)}]
    assert [np.flatnonzero(one.factors).tolist() for one in found] == ([kept] if kept else [])
    assert _without_weak_features(Recorded(), replace(own, name="spread"), plan, grid) == []
    far = Recorded([row(Y_ERRORS), row(2 * Y_ERRORS), row(1.2 * Y_ERRORS)])
    assert _without_weak_features(far, own, plan, grid) == []


def test_a_stored_step_answers_only_what_was_asked(tmp_path, monkeypatch):
    job = RaceJob(str(tmp_path), AIM)

    def joined(parts):
        return {"sums": np.array(parts)}

    assert Steps(job).run(plus_one, [(1,), (2,)], joined)["sums"].tolist() == [2, 3]
    # As in a fit that another version began, which took other steps.
    assert Steps(job).run(plus_one, [(1,), (5,)], joined)["sums"].tolist() == [2, 6]
    assert Steps(job).run(plus_two, [(1,), (2,)], joined)["sums"].tolist() == [3, 4]
    n_kept = len(list(tmp_path.rglob("000000-000000*")))
    assert n_kept == 3
    assert Steps(job).run(plus_one, [(1,), (2,)], joined)["sums"].tolist() == [2, 3]
    assert len(list(tmp_path.rglob("000000-000000*"))) == n_kept
    # Nor of other rows.
    assert Steps(job, None, "other").run(plus_one, [(1,)], joined)["sums"].tolist() == [2]
    assert len(list(tmp_path.rglob("000000-000000*"))) == n_kept + 1
    # Nor of a version in which the same step gives another result.
    monkeypatch.setattr("daskls.scaling.grid.STEPS_VERSION", STEPS_VERSION + 1)
    assert Steps(job).run(plus_one, [(1,), (2,)], joined)["sums"].tolist() == [2, 3]
    assert len(list(tmp_path.rglob("000000-000000*"))) == n_kept + 2


def plus_one(number, job):
    return number + 1


def plus_two(number, job):
    return number + 2


class Recorded:
    """Steps whose results are given; keeps what they were asked."""

    def __init__(self, *results):
        self.results, self.calls = list(results), []
        self.job = RaceJob("", AIM)

    def run(self, task, arguments, join):
        if task.__name__ == "errors_of_mean":
            # Every candidate is better than that.
            n = sum(part.n_asked for part in arguments[0][0].parts)
            noise = np.random.default_rng(0).random(n)
            return {"squared": 9 + noise, "wrong": np.ones(n), "weights": np.ones(n)}
        self.calls.append((task.__name__, arguments))
        return join(self.results.pop(0))


def test_a_scale_is_the_mean_of_the_two_that_were_judged():
    grid = TrialGrid.of(SolverSpec())
    first, then = grid.start("laplacian"), grid.at((0, 0), "laplacian")

    def row(trial, squared):
        return np.concatenate([[*grid.place(trial), 1], squared, np.zeros(200), np.ones(200)])

    drawn = draw_race_rows(200, *race_rows(200), 0)
    crossed = {"looks": row(then, Y_ERRORS / 2)[None], "factors": np.full((1, 3), 2.0)}
    steps = Recorded([row(first, Y_ERRORS)], [crossed])
    own = Candidate(0, "none", "spread", np.ones(3), first)
    taken, plain = _leave_out(steps, [own], plan_race(drawn, 4000), grid, learns=True)
    assert [name for name, _ in steps.calls] == ["evaluate_candidate", "cross_evaluate_candidate"]
    assert steps.calls[1][1][0][2] == first
    assert (taken.name, taken.trial, taken.factors.tolist()) == (LEARNED, then, [2.0] * 3)
    assert plain.trial == first


def test_each_half_learns_a_scale_for_the_other(tmp_path, monkeypatch):
    # The second feature says nothing.
    X = np.random.default_rng(4).random((300, 2)).astype("f4")
    sample = Sample(np.arange(300), X, (X[:, 0] > 0.5).astype("i4"), np.ones(300), 0)
    drawn, grid, aim = (
        draw_race_rows(300, *race_rows(300), 0),
        TrialGrid.of(SolverSpec()),
        ClassAim(2),
    )
    job = RaceJob(str(tmp_path), aim)
    write_race_rows(job, sample, drawn, find_bases(X, ("none",), 2))
    rung, start = plan_race(drawn, 4000).last, grid.start("rbf")
    begun = []

    def descends(rows, factors, trial, rung, grid, job):
        begun.append(trial)
        return _descend(rows, factors, trial, rung, grid, job)

    monkeypatch.setattr("daskls.scaling.looks._descend", descends)
    found = cross_evaluate_candidate(0, np.ones(2), start, rung, grid, job)
    (look,), (factors,) = found["looks"], found["factors"]
    rows = read_race_rows(0, job)
    own = rows.X, rows.targets, rows.weights
    learned = [
        learn_on([tuple(a[half] for a in own)], np.ones(2), start, aim)
        for half in (slice(150), slice(150, None))
    ]
    of_halves, widths = [factors for factors, _ in learned], [trial.width for _, trial in learned]
    # BLAS may have several threads here, which round otherwise.
    np.testing.assert_allclose(factors, np.sqrt(of_halves[0] * of_halves[1]), rtol=1e-3)
    assert factors[1] < factors[0] / 2
    # Where it begins: at the width that the first scale came to, not at the start's.
    assert begun[0] == grid.nearest(replace(start, width=widths[0])) != start
    # In the rows' order. The first half is asked last, in the scale of the second, under the trial.
    errors = look[3:].reshape(3, -1)
    trial = grid.at(tuple(look[:2].astype(int)), "rbf")
    A, y, w = (values[np.r_[150:300, :150]] for values in own)
    A, Y = A * of_halves[1].astype("f4"), aim.columns(y)
    answers = TrialSplit(A, Y, w, 300, 150, "rbf", aim).errors(trial)
    np.testing.assert_allclose(errors[0][:150], answers.squared, atol=1e-3)


def seen_at(grid, trial, squared, wrong):
    """Return what a task returns of a candidate whose rows have these errors."""
    return np.concatenate([[*grid.place(trial), 1], squared, wrong, np.ones(len(squared))])


def test_a_learned_scale_that_errs_more_often_gives_way_to_the_next():
    grid = TrialGrid.of(SolverSpec())
    plan = plan_race(draw_race_rows(4000, *race_rows(4000), 0), 4000)
    n = len(plan.runs)
    errors = RNG.random(n)
    often, seldom = np.arange(n) % 10 == 0, np.arange(n) % 20 == 0
    at = {kernel: grid.start(kernel) for kernel in ("laplacian", "exponential")}
    rows = {
        "given": seen_at(grid, at["laplacian"], errors, seldom),
        "least": seen_at(grid, at["exponential"], errors / 3, often),
        "next": seen_at(grid, at["laplacian"], errors / 2.95, seldom),
    }
    # With cells, whose first look may mislead: two go on.
    plan = replace(plan, last=replace(plan.last, cells=(plan.last.sampled,)))
    given = Candidate(0, "none", "given", np.ones(3), at["laplacian"])
    least, following = (
        replace(given, name=LEARNED, trial=at[k]) for k in ("exponential", "laplacian")
    )
    # Looked at once each; then the two best go on, and the one whose scale is given.
    steps = Recorded(list(rows.values()), [rows["least"], rows["next"], rows["given"]])
    taken, *others = _decide(steps, [given, least, following], plan, grid)
    assert (taken.name, taken.trial.kernel) == (LEARNED, "laplacian")
    assert [own.trial.kernel for own in others] == ["exponential", "laplacian"]
    assert others[1].name == "given"


@pytest.mark.parametrize(("z", "taken"), [(2.0, ["given"] * 2), (3.0, [LEARNED, "given"])])
def test_a_learned_scale_must_pass_a_lower_bar_where_few_rows_are_held_out(z, taken):
    plan = plan_race(draw_race_rows(4000, *race_rows(4000), 0), 4000)
    n = len(plan.runs)
    # Each other row gains, or loses: the mean gain is about z standard errors.
    gains = z / np.sqrt(n) + np.where(np.arange(n) % 2, 1.0, -1.0)
    plain = Candidate(
        0, "none", "given", np.ones(2), TRIAL, RowErrors(np.ones(n), *[np.ones(n)] * 2)
    )
    better = replace(plain.errors, squared=1 - gains)
    learned = replace(plain, name=LEARNED, errors=better)
    # The final of more rows.
    of_many = replace(plan, runs=np.arange(RESERVED_ROWS))
    steps = Recorded()
    for own, name in zip((plan, of_many), taken, strict=True):
        assert _unlearned_first([learned, plain], own, steps)[0].name == name


def test_what_settled_in_cells_is_in_the_final():
    grid = TrialGrid.of(SolverSpec())
    plan = plan_race(draw_race_rows(4000, *race_rows(4000), 0), 4000)
    n = len(plan.runs)
    names = ("given", "spread", LEARNED)
    candidates = [Candidate(0, "none", name, np.ones(3), TRIAL) for name in names]

    def seen(*levels):
        return [seen_at(grid, TRIAL, np.full(n, level), np.zeros(n)) for level in levels]

    # Better by chance.
    noise = np.random.default_rng(0).normal(0, 0.5, n)
    noisy = seen_at(grid, TRIAL, 0.48 + noise - noise.mean(), np.zeros(n))
    looks = [*seen(0.5, 0.49), noisy]
    # Without cells: the best, and the best of the others.
    found = _decide(Recorded(looks, seen(0.3, 0.5)), candidates, plan, grid)
    assert [own.name for own in found] == ["spread", LEARNED]
    with_cells = replace(plan, last=replace(plan.last, cells=(plan.last.sampled,)))
    # The two best, and the first.
    found = _decide(Recorded(looks, seen(0.3, 0.5, 0.2)), candidates, with_cells, grid)
    assert [own.name for own in found] == ["given", LEARNED, "spread"]
    # Only the learned scale where it leads by far; with more wrong rows it does not.
    gain = np.random.default_rng(1).random(n)
    for own_plan in (plan, with_cells):
        lead = [*seen(0.5, 0.49), seen_at(grid, TRIAL, 0.49 - 0.4 * gain, np.zeros(n))]
        found = _decide(Recorded(lead, seen(0.3)), candidates, own_plan, grid)
        assert [own.name for own in found] == [LEARNED]
    lead = [*seen(0.5, 0.49), seen_at(grid, TRIAL, 0.49 - 0.4 * gain, gain > 0.9)]
    found = _decide(Recorded(lead, seen(0.3, 0.5)), candidates, plan, grid)
    assert [own.name for own in found] == ["spread", LEARNED]
    # Nor is one refined beside it that errs more often.
    worse = seen_at(grid, TRIAL, 0.5 - 0.4 * gain, gain > 0.9)
    lead = [seen(0.5)[0], worse, seen_at(grid, TRIAL, 0.49 - 0.4 * gain, np.zeros(n))]
    two = [candidates[0], *(replace(own, name=LEARNED) for own in candidates[1:])]
    assert len(_decide(Recorded(lead, seen(0.3)), two, with_cells, grid)) == 1


@pytest.mark.parametrize(
    ("kernels", "level"),
    [(("laplacian", "laplacian", "exponential"), 1.0), (("rbf",), 1.0), (("rbf",), 1e-6)],
)
def test_the_best_learns_a_scale_at_its_width_in_dense_rows(kernels, level):
    X = RNG.random((8000, 3)).astype("f4")
    drawn = replace(
        draw_race_rows(8000, *race_rows(8000), 0), cells=draw_cells_of(X, 8, 1000, seed=0)
    )
    plan, grid = plan_race(drawn, 4000), TrialGrid.of(SolverSpec())
    settling = [part.train for part in plan.last.cells[:3]]
    assert [part.train for part in plan.dense.parts] == settling
    assert all(part.leaves_out for part in plan.dense.parts)
    halves = [(last - first) // 2 for first, last in settling]
    assert [part.n_asked for part in plan.dense.parts] == halves
    candidates = [
        Candidate(0, "none", f"scale {i}", np.full(3, i + 1.0), grid.start(kernel))
        for i, kernel in enumerate(kernels)
    ]
    narrow, noise = {kernel: grid.at((0, 0), kernel) for kernel in kernels}, RNG.random(4000)

    def seen(rung, trials, level=1.0):
        n = len(rung.weights(RaceRows(None, None, np.ones(len(drawn.rows)))))
        return [
            seen_at(grid, trials[own.trial.kernel], level * noise[:n] * (1 + i / 50), np.zeros(n))
            for i, own in enumerate(candidates)
        ]

    at_start = {own.trial.kernel: own.trial for own in candidates}
    rungs = [seen(rung, at_start) for rung in plan.rungs]
    # Cells without errors teach neither a width nor a scale: random rows alone do.
    n_learned = 2 if level == 1.0 else 1
    # Each at a width that is nearest to the second of the grid.
    scales = [np.array([1.1 * WIDTHS[1], 1.0, 2.0, 3.0])] * n_learned
    steps = Recorded(*rungs, seen(plan.dense, narrow, level), scales)
    # The final has no results, so the race ends there.
    with pytest.raises(IndexError):
        race(steps, candidates, plan, grid, learns=True, is_last=True)
    (learned,) = [calls for name, calls in steps.calls if name == "learn_scale"]
    wanted = narrow if level == 1.0 else at_start
    best = wanted[kernels[0]]
    assert [call[2:] for call in learned] == [(best, rows) for rows in plan.learning[:n_learned]]
    looked_at = [call[1:3] for call in steps.calls[-1][1]]
    scaled = [trial for factors, trial in looked_at if factors.tolist() == [1.0, 2.0, 3.0]]
    # The others are tried in these scales, at their own widths.
    others = [wanted[kernel] for kernel in dict.fromkeys(kernels[1:]) if kernel != kernels[0]]
    assert scaled == [replace(best, width=WIDTHS[1])] * n_learned + others * n_learned


@pytest.mark.parametrize(("worse", "taken"), [(0.001, ["none"]), (0.5, ["ranks", "none"])])
def test_where_regions_decide_numbers_stay_numbers_unless_a_code_is_better(worse, taken):
    none = RowErrors(Y_ERRORS * (1 + worse), np.zeros(200), np.ones(200))
    # Rows differ more between codings than these do in the mean.
    noisy = Y_ERRORS * (1 + 0.3 * np.sin(np.arange(200)))
    seen = [
        Candidate(1, "ranks", "spread", np.ones(2), TRIAL, replace(none, squared=noisy)),
        Candidate(0, "none", "spread", np.ones(2), TRIAL, none),
    ]
    assert [own.coding for own in _uncoded_if_near(seen)] == taken
    assert _uncoded_if_near(seen[:1]) == seen[:1]


FIRST_LEVELS = {0: 0.1, 1: 9.0, 2: 8.0, 3: 0.102, 4: 7.0}


@pytest.mark.parametrize(
    ("levels", "other", "n_again"),
    [
        # Only the first rung had candidates of the scale "given"; the best without a coding is 2.
        ([FIRST_LEVELS, {0: 1e-4, 3: 2e-4}, {0: 1e-4}], 2, 1),
        # No error was left with fewer rows.
        ([FIRST_LEVELS, {0: 1e-4, 3: 2e-4}, {0: 0.1}], 2, 1),
        # What the last rung has seen needs no other look.
        ([FIRST_LEVELS | {1: 0.101}, {0: 0.1, 1: 0.1, 3: 0.1}, {0: 1e-4, 1: 3e-4, 3: 2e-4}], 1, 0),
    ],
)
def test_where_no_error_is_left_other_scales_are_looked_at_again(levels, other, n_again):
    grid = TrialGrid.of(SolverSpec())
    plan = plan_race(draw_race_rows(4000, *race_rows(4000), 0), 4000)
    trials = [grid.at((0, j), "laplacian") for j in range(5)]
    names = ("spread", "given", "given", "spread", "given")
    codings = ("none", "none", "none", "none", "ranks")
    candidates = [
        Candidate(0, coding, name, np.full(3, i), trials[i])
        for i, (coding, name) in enumerate(zip(codings, names, strict=True))
    ]
    # In the final the other one is better.
    looks = [*levels, *[{other: 2e-4}] * n_again, {0: 1e-4, other: 1e-5}]
    rungs = [*plan.rungs, *[plan.rungs[-1]] * n_again, plan.first]
    noise = RNG.random(4000)

    def seen(rung, own):
        n = len(rung.weights(RaceRows(None, None, np.ones(5500))))
        return [seen_at(grid, trials[i], noise[:n] * own[i], np.zeros(n)) for i in own]

    steps = Recorded(*[seen(rung, own) for rung, own in zip(rungs, looks, strict=True)])
    found = race(steps, candidates, plan, grid, learns=True, is_last=True)
    assert [own.factors[0] for own in found] == [other, 0]
    assert [calls[0][3] for _, calls in steps.calls] == rungs
    assert [[call[1][0] for call in calls] for _, calls in steps.calls] == [*map(list, looks)]


def test_a_learned_scale_that_errs_more_often_loses_where_nothing_is_left_to_gain():
    grid, given = TrialGrid.of(SolverSpec()), Candidate(0, "none", "given", np.ones(3), TRIAL)
    plan = plan_race(draw_race_rows(4000, *race_rows(4000), 0), 4000)
    n = len(plan.runs)
    errors = RNG.random(n) * 2e-4
    rows = [seen_at(grid, TRIAL, errors, np.zeros(n))]
    rows.append(seen_at(grid, TRIAL, errors * 0.9, np.arange(n) == 0))
    found = _decide(Recorded(rows), [given, replace(given, name=LEARNED)], plan, grid)
    assert [own.name for own in found] == ["given", LEARNED]


@pytest.mark.parametrize(("squared", "n_calls"), [(1e-4, 1), (0.1, 2)])
def test_where_nothing_is_left_to_gain_nothing_is_tried(squared, n_calls):
    grid, own = TrialGrid.of(SolverSpec()), Candidate(0, "none", "given", np.ones(3), TRIAL)
    plan = plan_race(draw_race_rows(4000, *race_rows(4000), 0), 4000)
    n = len(plan.runs)
    seen = seen_at(grid, TRIAL, np.full(n, squared), np.zeros(n))
    steps = Recorded([seen], [seen])
    (taken,) = _decide(steps, [own], plan, grid)
    assert len(steps.calls) == n_calls
    assert taken.squared_error == pytest.approx(squared)


@pytest.mark.parametrize("n_rows", [2, 30, 399, 400, 2999, 3000, 5999, 80_000])
def test_no_row_answers_after_a_model_of_its_own(n_rows):
    drawn = draw_race_rows(n_rows, *race_rows(n_rows), seed=3)
    assert len(np.unique(drawn.rows)) == len(drawn.rows)
    plan = plan_race(drawn, 4000)
    assert plan.dense is None
    for rung in (*plan.rungs, plan.first, plan.last):
        for part in rung.parts:
            train, asked = set(range(*part.train)), set(range(*part.asked))
            assert train
            # With few rows the last rung leaves out each; no other rung asks for rows that train.
            is_left_out = rung is plan.last and n_rows < 3000
            assert asked == train if is_left_out else not train & asked
            assert max(train | asked) < len(drawn.rows)
    if plan.has_final:
        held = held_out(n_rows, 3)
        assert held[drawn.reserved].all()
        assert not held[drawn.pool].any()


def test_cells_hold_all_rows_of_their_part_of_space():
    X = RNG.random((8000, 2)).astype("f4")
    cells = draw_cells_of(X, 8, 1000, seed=0)
    assert len(cells) == 8
    held = held_out(8000, 0)
    for train, asked in cells:
        # The last half is a random half.
        assert 0.3 < (np.diff(train) > 0).mean() < 0.7
        assert not held[train].any()
        assert held[asked].all()
        own = X[np.r_[train, asked]]
        inside = ((own.min(axis=0) <= X) & (own.max(axis=0) >= X)).all(axis=1)
        # The cuts are no boxes; of a plane's cells the boxes hold hardly any other row.
        assert inside.sum() < 2.5 * len(own)


def test_tiny_cells_come_last():
    # Half of the rows have one of 80 rare categories each, far from all others.
    X = np.zeros((8000, 82), "f4")
    X[np.arange(4000), np.arange(4000) % 80] = 100
    X[4000:, 80:] = RNG.random((4000, 2))
    sizes = [len(train) + len(asked) for train, asked in draw_cells_of(X, 8, 1000, seed=0)]
    # At least the other half's four cells, and then one category each.
    large = [size > 60 for size in sizes]
    assert large == sorted(large, reverse=True)
    assert 4 <= sum(large) < 8


def test_cells_whose_rows_differ_come_first():
    codes = np.array([0] * 10 + [0, 1] * 5 + [2] * 9 + [1])
    cells = tuple((np.arange(i, i + 10), np.arange(0)) for i in (0, 10, 20))
    found = most_mixed_first(cells, codes, ClassAim(3))
    assert [train[0] for train, _ in found] == [10, 20, 0]
    numbers = np.arange(30.0)[:, None] ** 2
    found = most_mixed_first(cells, numbers, NumberAim(1))
    assert [train[0] for train, _ in found] == [20, 10, 0]


def test_left_out_rows_of_several_cells_weigh_alike():
    rows = RaceRows(None, None, np.ones(30))
    rung = Rung(
        Part.leaving_out(0, 10), tuple(Part.leaving_out(*own, 0.4) for own in ((10, 25), (25, 30)))
    )
    np.testing.assert_allclose(rung.weights(rows), np.full(18, 1 / 18))


# What is chosen

N = 1200
ROWS = np.random.default_rng(1).random((N, 4))
# An order of steps that no distance of values knows: the logarithm decides.
SKEWED = np.exp(8 * ROWS)
LABELS = ((ROWS[:, 0] > 0.5) == (ROWS[:, 1] > 0.5)).astype(int)


def chosen(model):
    return model._reader.resolved.summary


def test_ranks_are_chosen_where_orders_decide():
    model = VoronoiSVC(random_state=0).fit(SKEWED, LABELS)
    assert chosen(model)["coding"] == "ranks"
    plain = VoronoiSVC(random_state=0, feature_coding="none").fit(SKEWED, LABELS)
    fresh = np.random.default_rng(2).random((1000, 4))
    truth = (fresh[:, 0] > 0.5) == (fresh[:, 1] > 0.5)
    wrong = [1 - own.score(np.exp(8 * fresh), truth) for own in (model, plain)]
    assert wrong[0] < wrong[1] / 2


def test_indicators_are_chosen_where_categories_decide():
    rng = np.random.default_rng(0)
    rows = rng.integers(9, size=(N, 3)).astype(float)
    good = rng.permutation(9) % 2
    y = good[rows[:, 0].astype(int)] ^ good[rows[:, 1].astype(int)]
    model = VoronoiSVC(random_state=0).fit(rows, y)
    assert chosen(model)["coding"] in ("indicators", "both")
    plain = VoronoiSVC(random_state=0, feature_coding="none").fit(rows, y)
    assert chosen(model)["chosen"]["squared_error"] < chosen(plain)["chosen"]["squared_error"]


def test_equal_candidates_race_once():
    """Of 0 and 1 the Laplacian kernel is the Gaussian with another gamma, and spreads are equal."""
    rng = np.random.default_rng(0)
    rows = (rng.random((N, 8)) < 0.5).astype(float)
    y = (rows[:, :3].sum(axis=1) > 1).astype(int)
    model = VoronoiSVC(random_state=0, feature_scale="spread").fit(rows, y)
    told = chosen(model)["candidates"]
    assert {own["coding"] for own in told} == {"none"}
    assert "laplacian" not in {own["kernel"] for own in told}


def test_one_seed_one_choice_however_rows_come_and_wherever_they_are_looked_at():
    rows = da.from_array(SKEWED, chunks=(170, -1)), da.from_array(LABELS, chunks=170)
    found = []
    for X, y, scheduler in (
        (SKEWED, LABELS, "synchronous"),
        (SKEWED, LABELS, "threads"),
        (*rows, "threads"),
    ):
        with dask.config.set(scheduler=scheduler):
            model = VoronoiSVC(500, random_state=0).fit(X, y)
        found.append((chosen(model), model.decision_function(SKEWED[:200])))
    for told, values in found[1:]:
        assert told == found[0][0]
        np.testing.assert_array_equal(values, found[0][1])


def test_sizes_of_cells_follow_from_rows():
    assert VoronoiSVC(random_state=0).fit(SKEWED, LABELS).n_cells_ == 1
    model = RandomChunkSVC(loss="squared_error", kernel="auto", random_state=0)
    assert model.fit(SKEWED, LABELS).n_cells_ == 1
    many = np.random.default_rng(0).random((4300, 2))
    y = many[:, 0] > many[:, 1]
    given = {"kernel": "rbf", "C": 1.0, "gamma": 5.0, "feature_scale": None, "random_state": 0}
    assert VoronoiSVC(**given).fit(many, y).n_cells_ == 2
    assert VoronoiSVC(**{**given, "loss": "hinge"}).fit(many, y).n_cells_ == 3


@pytest.mark.parametrize(
    ("n_rows", "learns", "of_numbers"), [(2000, True, True), (3500, False, False)]
)
def test_narrow_widths_are_tried_where_wide_ones_learn_nothing(n_rows, learns, of_numbers):
    X = np.random.default_rng(0).random((2 * n_rows, 2))
    waves = np.sin(16 * np.pi * X).prod(axis=1)
    y = waves if of_numbers else waves > 0
    scale = {} if learns else {"feature_scale": "spread"}
    model = (VoronoiSVR if of_numbers else VoronoiSVC)(random_state=0, **scale)
    score = model.fit(X[:n_rows], y[:n_rows]).score(X[n_rows:], y[n_rows:])
    assert score > 0.75
    assert model._reader.resolved.spec.width < 0.5


def test_the_errors_of_the_mean_are_those_of_a_constant(tmp_path):
    rng = np.random.default_rng(0)
    sample = Sample(np.arange(900), rng.random((900, 2)), rng.integers(0, 2, 900), np.ones(900), 0)
    drawn = draw_race_rows(900, *race_rows(900), 0)
    job = RaceJob(str(tmp_path), ClassAim(2))
    write_race_rows(job, sample, drawn, find_bases(sample.X, ("none",), 2))
    for rung in (*plan_race(drawn, 4000).rungs, plan_race(drawn, 4000).last):
        found = errors_of_mean(rung, job)
        Y = 2.0 * sample.targets[drawn.rows] - 1
        wanted = (Y[slice(*rung.sampled.asked)] - Y[slice(*rung.sampled.train)].mean()) ** 2
        np.testing.assert_allclose(found["squared"], wanted)
        assert len(found["squared"]) == len(found["wrong"]) == len(found["weights"])


def test_weights_take_part_in_the_choice():
    # The second half is noise that nobody counts.
    rows = np.r_[SKEWED, SKEWED]
    y = np.r_[LABELS, np.random.default_rng(0).integers(2, size=N)]
    weights = np.r_[np.ones(N), np.full(N, 1e-6)]
    model = VoronoiSVC(random_state=0).fit(rows, y, sample_weight=weights)
    assert chosen(model)["chosen"]["error"] < 0.15
    assert model.score(SKEWED, LABELS) > 0.95
