"""The rules of the search: who goes on, and what decides; its steps on workers."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from splits import drawn_of, regions_at

from daskls.blas import one_blas_thread
from daskls.records import SolverSpec
from daskls.run.sample import Sample
from daskls.scaling import candidates
from daskls.scaling.candidates import KEPT_SHARE, LEARNED, Candidate, RowErrors, evaluate
from daskls.scaling.cells import TrialCell, TrialRows, learn_factors
from daskls.scaling.coding import find_bases
from daskls.scaling.grid import STEPS_VERSION, Steps, TrialGrid
from daskls.scaling.regions import RegionSplit, cells_of
from daskls.scaling.search import decide, race, uncoded_if_near
from daskls.scaling.splits import (
    SampleJob,
    SearchPlan,
    SplitSet,
    draw_rows,
    plan_of_sample,
    race_rows,
    read_cells,
    write_rows,
)
from daskls.solvers.squares.target_coding import ClassCoding

AIM, GRID = ClassCoding(2), TrialGrid.of(SolverSpec())
N = 400
NOISE = np.random.default_rng(0).random(N) + 0.5
# Of 5000 rows without cells, and 8000 with them; of few rows, left out in turn; and of regions.
RANDOM, LEFT_OUT = (plan_of_sample(drawn_of(n, 4000, with_cells=False), 4000) for n in (5000, 900))
WITH_CELLS = plan_of_sample(drawn_of(8000, 4000, with_cells=True), 4000)
OF_REGIONS = SearchPlan(
    (RegionSplit(0, 100, 2),),
    SplitSet((RegionSplit(0, 400, 2),)),
    SplitSet((RegionSplit(0, 100),), most_trials=1),
    SplitSet((RegionSplit(0, 100, 2),)),
    is_dense=True,
)


def one(factor, kernel="laplacian", name="given", coding="none"):
    """Return a candidate that is known by its factors."""
    number = ("none", "ranks").index(coding)
    return Candidate(number, coding, name, np.full(3, float(factor)), GRID.start(kernel))


def numbers(found):
    return [int(own.factors[0]) for own in found]


class Told:
    """Steps that answer what a test says of a candidate: squared errors, wrong rows, the trial."""

    def __init__(self, squared, wrong=lambda own: 0.0, moved=lambda own: own.trial, **given):
        self.squared, self.wrong, self.moved = squared, wrong, moved
        self.learned = given.get("learned", [9.0, 3.0, 1.0])
        self.noise, self.job = given.get("noise", NOISE), SampleJob("", AIM)
        self.learned_from = []

    def run(self, task, arguments, join):
        return join([getattr(self, task.__name__)(*own) for own in arguments])

    def evaluate_candidate(self, base, factors, trial, split_set, grid):
        own = SimpleNamespace(factors=factors, trial=trial, split_set=split_set)
        n, place = len(self.noise), grid.place(self.moved(own))
        squared = np.broadcast_to(self.squared(own) * self.noise, n)
        rows = squared, self.wrong(own), 1.0, np.arange(n), 9.0 * self.noise
        return np.stack(np.broadcast_arrays(*place, 1, *rows))

    def learn_scale(self, base, factors, trial, parts):
        self.learned_from.append((factors[0], trial, parts))
        return np.append(trial.width, self.learned)

    def cross_evaluate_candidate(self, base, factors, trial, split_set, grid):
        factors = np.array(self.learned)
        look = self.evaluate_candidate(base, factors, trial, split_set, grid)
        return {"look": look, "factors": factors}


def by_number(levels):
    return lambda own: levels[int(own.factors[0])]


def test_those_fall_that_are_worse_beyond_doubt():
    noise = np.random.default_rng(1).normal(size=N)
    # By 5 %, but only about a standard error.
    doubtful = 1 + (0.05 + noise - noise.mean()) / NOISE
    levels = {1: 1.2, 2: doubtful, 3: 1.02, 4: 1.0}
    left = race(Told(by_number(levels)), [one(i) for i in levels], RANDOM, GRID)
    # None that is near, however sure the difference is.
    assert numbers(left) == [4, 3, 2]
    levels = {i: 1 + i / 1000 for i in range(12)}
    left = race(Told(by_number(levels)), [one(i) for i in levels], RANDOM, GRID)
    assert numbers(left) == [0, 1, 2]


def test_the_best_of_each_kernel_goes_on_if_it_is_near_enough():
    kernels = {1: "laplacian", 2: "exponential", 3: "exponential", 4: "rbf"}
    steps = Told(by_number({1: 1.0, 2: 1.9, 3: 1.5, 4: 2.1}))
    given = [one(i, kernel) for i, kernel in kernels.items()]
    assert numbers(race(steps, given, RANDOM, GRID)) == [1, 3]
    assert numbers(race(steps, given, LEFT_OUT, GRID)) == [1]


def test_numbers_stay_numbers_unless_a_code_is_clearly_better():
    # Rows differ more between codings than the first pair does in the mean.
    noisy = 1 + 0.3 * np.sin(np.arange(N))
    for worse, taken in ((0.001, "none"), (0.5, "ranks")):
        given = [one(1, coding="ranks"), one(2)]
        steps = Told(by_number({1: noisy, 2: 1 + worse}))
        left = uncoded_if_near(evaluate(steps, given, RANDOM.rungs[0], GRID))
        assert [own.coding for own in left] == [taken]


@pytest.mark.parametrize("plan", [WITH_CELLS, OF_REGIONS], ids=["cells", "regions"])
def test_what_is_best_in_dense_rows_learns_there_and_the_last_rows_tune(plan):
    narrow, last = (GRID.at(place, "laplacian") for place in ((0, 0), (3, 3)))
    moved = {plan.tuning: narrow, plan.final: last}
    in_cells = {1: 1.2, 2: 1.0, 9: 0.5}

    def squared(own):
        return in_cells[int(own.factors[0])] if own.split_set == plan.tuning else 1.0

    steps = Told(squared, moved=lambda own: moved.get(own.split_set, own.trial))
    found = decide(steps, [one(1), one(2)], plan, GRID, learns=True).taken
    assert steps.learned_from == [(2, narrow, tuple(plan.learning))]
    assert (found.trial, numbers([found])) == (last, [2])
    # Its errors are those of the rows that decided.
    assert found.squared_error == pytest.approx(NOISE.mean())


def test_dense_rows_learn_with_the_first_kernel_even_where_another_is_left():
    steps = Told(by_number({1: 1.0, 9: 0.5}))
    decide(steps, [one(1, "rbf")], OF_REGIONS, GRID, learns=True, kernels=("laplacian", "rbf"))
    assert [trial.kernel for _, trial, _ in steps.learned_from] == ["laplacian"]


def test_where_no_error_is_left_numbers_stay_numbers_and_ridges_are_usual():
    given = [one(1, coding="ranks"), one(2, name="spread", coding="ranks"), one(3, name="spread")]
    odd = GRID.at((2, 0), "laplacian")
    steps = Told(by_number({1: 0.0, 2: 1e-9, 3: 2e-9}), moved=lambda own: odd)
    left = race(steps, given, RANDOM, GRID)
    # The best, and of each other name the first whose numbers stay numbers.
    assert numbers(left) == [1, 3]
    assert {own.trial for own in left} == {GRID.with_usual_ridge(odd)} != {odd}


def test_a_learned_scale_must_be_clearly_better():
    for n, z, taken in (
        *((400, 2.0, "given"), (400, 3.0, LEARNED)),
        *((1500, 3.0, "given"), (1500, 5.0, LEARNED)),
    ):
        # Each other row gains, or loses: the mean gain is about z standard errors.
        levels = {1: 3.0, 9: 3 - z / np.sqrt(n) - np.where(np.arange(n) % 2, 1.0, -1.0)}
        steps = Told(by_number(levels), noise=np.ones(n))
        found = decide(steps, [one(1)], RANDOM, GRID, learns=True)
        assert found.taken.name == taken
        # All that were compared are told, each once.
        assert sorted(numbers(found.candidates)) == [1, 9]
        assert found.taken in found.candidates
        # The best first, though it may not have been taken.
        assert found.candidates[0].name == LEARNED


FACTORS = [9.0, 4.5, 1.8, 0.4]


KEPT = (
    # Errors and wrong rows by the number of features. Thin rows: it must be better to go without.
    (RANDOM, {4: 1.0, 3: 0.9, 2: 1.2}, {}, 3),
    (RANDOM, {4: 1.0, 3: 1.001, 2: 1.001}, {}, 4),
    (RANDOM, {4: 1.0, 3: 0.9, 2: 0.9}, {3: 0.3, 2: 0.3}, 4),
    # Dense rows: it is enough to be as good, and the fewest are tried first.
    (OF_REGIONS, {4: 1.0, 3: 0.9, 2: 1.001}, {}, 2),
    (OF_REGIONS, {4: 1.0, 3: 1.01, 2: 1.01}, {}, 4),
    # Where there is no error, nothing tells which features count.
    (OF_REGIONS, {4: 1e-6, 3: 1e-6, 2: 1e-6}, {}, 4),
)


def test_weak_features_go_where_held_out_rows_do_without_them():
    def squared(own):
        return 2.0 if own.factors[0] == 1 else error_of[np.count_nonzero(own.factors)]

    def wrong(own):
        share = 0.5 if own.factors[0] == 1 else wrong_of.get(np.count_nonzero(own.factors), 0.1)
        return np.arange(N) < share * N

    for case in KEPT:
        plan, error_of, wrong_of, kept = case
        steps, own = Told(squared, wrong, learned=FACTORS), replace(one(1), factors=np.ones(4))
        taken = decide(steps, [own], plan, GRID, learns=True).taken
        assert taken.name == LEARNED
        assert taken.factors.tolist() == FACTORS[:kept] + [0.0] * (4 - kept), case
        # A scale that was not learned keeps all.
        own = replace(own, factors=np.array(FACTORS))
        assert decide(steps, [own], plan, GRID, learns=False).taken.factors.tolist() == FACTORS


def test_of_few_rows_a_scale_is_taken_where_left_out_rows_err_less():
    then, rows = GRID.at((0, 0), "laplacian"), np.arange(N)
    for level, share, taken in ((0.9, 0.1, LEARNED), (0.9, 0.2, "spread"), (1.1, 0.0, "spread")):
        steps = Told(
            by_number({1: 1.0, 9: level}),
            lambda own, share=share: rows < N * (share if own.factors[0] == 9 else 0.1),
            lambda own: then if own.factors[0] == 9 else own.trial,
        )
        found = decide(steps, [one(1, name="spread")], LEFT_OUT, GRID, learns=True).taken
        assert found.name == taken
        if taken == LEARNED:
            assert (found.trial, found.factors.tolist()) == (then, steps.learned)


def errors_of(squared, groups):
    ones = np.ones(len(squared))
    return RowErrors(squared, 0 * ones, ones, groups.astype(float), 9 * ones)


def test_a_comparison_is_the_paired_difference_over_its_error():
    rng = np.random.default_rng(0)
    old, gain, rows = rng.random(400), rng.normal(0.05, 0.1, 400), np.arange(400)
    alone = errors_of(old - gain, rows).z_over(errors_of(old, rows))
    expected = gain.mean() / gain.std() * np.sqrt(400)
    assert alone == pytest.approx(expected)
    # Rows of a group err together: four copies of each say no more.
    groups = np.repeat(rows, 4)
    many = errors_of(-np.repeat(gain, 4), groups).z_over(errors_of(np.zeros(1600), groups))
    assert many == pytest.approx(expected)


def plus(number, job):
    return number + 1


def test_a_stored_step_answers_only_what_was_asked(tmp_path, monkeypatch):
    def run(numbers, token=""):
        steps = Steps(SampleJob(str(tmp_path), AIM), None, token)
        found = steps.run(plus, [(n,) for n in numbers], lambda parts: {"sums": np.array(parts)})
        return found["sums"].tolist(), len([*tmp_path.rglob("000000-000000*")])

    assert run([1, 2]) == run([1, 2]) == ([2, 3], 1)
    # As in a fit that took other steps, or of other rows, or of another version.
    assert run([1, 5]) == ([2, 6], 2)
    assert run([1, 2], "other") == ([2, 3], 3)
    monkeypatch.setattr("daskls.scaling.grid.STEPS_VERSION", STEPS_VERSION + 1)
    assert run([1, 2]) == ([2, 3], 4)


def test_each_half_learns_a_scale_for_the_other(tmp_path):
    # The second feature says nothing.
    X = np.random.default_rng(4).random((300, 2)).astype("f4")
    sample = Sample(np.arange(300), X, (X[:, 0] > 0.5).astype("i4"), np.ones(300), 0)
    job = SampleJob(str(tmp_path), AIM)
    write_rows(job, sample, draw_rows(300, *race_rows(300), 0), find_bases(X, ("none",), 2))
    split_set, start = plan_of_sample(draw_rows(300, 300, 0, 0), 4000).final, GRID.start("rbf")
    found = candidates.cross_evaluate_candidate(0, np.ones(2), start, split_set, GRID, job)
    ((every,),) = read_cells(split_set.splits, 0, np.ones(2), job)
    halves = np.arange(150), np.arange(150, 300)
    learned = [
        learn_factors([TrialRows(every.rows.take(own), 150, own)], np.ones(2), start, AIM)[0]
        ** KEPT_SHARE
        for own in halves
    ]
    # BLAS may have several threads here, which round otherwise.
    np.testing.assert_allclose(found["factors"], np.sqrt(learned[0] * learned[1]), rtol=1e-3)
    assert found["factors"][1] < found["factors"][0] / 2
    # Each row, in their order, without itself and in the scale of the other half; of one trial.
    look = found["look"]
    assert (look[:2] == look[:2, :1]).all()
    trial = GRID.at(tuple(look[:2, 0].astype(int)), "rbf")
    for own, factors in zip(halves, learned[::-1], strict=True):
        rows = np.r_[np.setdiff1d(np.arange(300), own), own]
        cell = TrialCell(TrialRows(every.rows.take(rows), 300, own), factors, "rbf", AIM)
        np.testing.assert_allclose(look[3, own], cell.errors(trial).squared, atol=1e-3)


def test_errors_of_regions_come_in_one_order_however_they_are_cut(tmp_path):
    job = regions_at(tmp_path, 2, 900)
    split_set = SplitSet(tuple(RegionSplit(region, 100) for region in range(2)), most_trials=1)
    scales = np.ones(2), np.array([1.0, 0.0])
    given = [replace(one(1, "rbf"), factors=own) for own in scales]
    first, second = (own.errors for own in evaluate(Steps(job), given, split_set, GRID))
    for name in ("weights", "groups"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.squared_error != second.squared_error
    # Regions are looked at apart; all at once gives the same.
    whole = candidates.evaluate_candidate(0, scales[0], given[0].trial, split_set, GRID, job)
    np.testing.assert_array_equal(whole[3], first.squared)
    # Their rows are dense: what they teach is all kept.
    part = RegionSplit(0, 900, 1)
    with one_blas_thread():
        wanted, _ = learn_factors([*cells_of(part, scales[0], job)], scales[0], given[0].trial, AIM)
    assert wanted[0] > 1.5 * wanted[1]
    np.testing.assert_allclose(
        candidates.learn(Steps(job), given[0], [part], GRID).factors, wanted, rtol=1e-3
    )
