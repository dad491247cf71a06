"""The time left of a fit, by its bill and by what its stages took."""

import io
from contextlib import contextmanager

import dask
import numpy as np
import pytest
from rich.console import Console
from small import small_sample
from support import PAPERS, checkers

import daskls
from daskls.estimators.view import progress_bars
from daskls.live.fit import format_line
from daskls.live.record import FitRecord, Header
from daskls.run.progress import Expectation, Progress, StageClock

STAGES = [("scale", 10.0), ("regions", 5.0), ("scale", 20.0), ("train", 100.0)]


def test_all_is_left_before_the_first_stage():
    assert Expectation(STAGES).left_s(None, 50.0) == 135.0


def test_stages_that_are_over_are_not_left():
    expected = Expectation(STAGES)
    expected.begin("scale", 0.0)
    assert expected.left_s(None, 4.0) == 131.0
    expected.begin("regions", 10.0)
    assert expected.left_s(None, 12.0) == 123.0
    # It comes again.
    expected.begin("scale", 15.0)
    assert expected.left_s(None, 15.0) == 120.0
    expected.begin("unheard of", 20.0)
    assert expected.left_s(None, 25.0) == 110.0
    # One that takes longer is about to end, and makes the rest longer: 45 s instead of 35.
    assert expected.left_s(None, 45.0) == pytest.approx(100.0 * 45 / 35)
    assert expected.left_s(None, 5000.0) == pytest.approx(400.0)


def test_slower_stages_make_the_rest_slower():
    slow, fast, odd = (Expectation(STAGES) for _ in range(3))
    for expected, seconds in ((slow, 20.0), (fast, 5.0), (odd, 10_000.0)):
        expected.begin("scale", 0.0)
        expected.begin("regions", seconds)
        expected.begin("regions", seconds)
    assert slow.left_s(None, 20.0) == pytest.approx(250.0)
    assert fast.left_s(None, 5.0) == pytest.approx(62.5)
    assert odd.left_s(None, 10_000.0) == pytest.approx(4 * 125.0)


def test_the_last_stage_goes_over_to_its_own_pace():
    expected = Expectation(STAGES)
    expected.begin("train", 0.0)
    # Ten times slower than expected: at first nobody knows, in the end it is plain.
    assert expected.left_s(0.01, 10.0) == pytest.approx(0.01 * 990 + 0.99 * 90)
    assert expected.left_s(0.9, 900.0) == pytest.approx(0.9 * 100)
    assert expected.left_s(1.0, 1000.0) == 0.0
    assert expected.left_s(0.0, 30.0) == 70.0


def test_a_clock_hands_on_what_is_left():
    heard = []
    clock = StageClock(heard.append)
    with clock.stage("sample", 3, None):
        pass
    assert {own.left_s for own in heard} == {None}
    heard.clear()
    clock.expect([("regroup", 5.0), ("train", 50.0)])
    with clock.stage("regroup", 3, lambda: 1):
        pass
    with clock.stage("train", 3, lambda: 0):
        pass
    assert 54.0 < heard[0].left_s <= 55.0
    assert heard[-1] == Progress("train", 3, 3, pytest.approx(0.0, abs=1.0))


def test_every_front_tells_it():
    record = FitRecord(Header("VoronoiSVC", 1000, 2))
    record.advance("train", 0, 40, now=0.0)
    assert record.snapshot(0.0)["left_in_all_s"] is None
    record.advance("train", 10, 40, now=5.0, left_s=100.0)
    assert record.snapshot(15.0)["left_in_all_s"] == 90.0
    assert "1 min 35 s left in all" in format_line(record, record.stages["train"], 10.0)
    record.end("finished", 20.0)
    assert record.snapshot(20.0)["left_in_all_s"] is None
    text = io.StringIO()
    with progress_bars(console=Console(file=text, width=120, force_terminal=True)) as listen:
        listen(Progress("train", 1, 4, 130.0))
    assert "the whole fit: about 2 min 10 s left" in text.getvalue()


def test_the_page_tells_it():
    pytest.importorskip("bokeh")
    from daskls.live.page import numbers_html

    record = FitRecord(Header("VoronoiSVC", 1000, 2))
    record.advance("train", 10, 40, now=0.0, left_s=100.0)
    assert "Time left, expected: <b>1 min 40 s</b>" in numbers_html(record.snapshot(0.0), [])


@pytest.mark.parametrize("is_long", [False, True])
def test_long_fits_are_billed_and_the_model_is_the_same(is_long, monkeypatch):
    from daskls.estimators import base
    from daskls.methods import fit

    rows, y = checkers(3000)
    given = {"C": 1, "gamma": 20, "random_state": 0, **PAPERS}
    plain = daskls.VoronoiSVC(500, **given).fit(rows, y)
    heard = []
    monkeypatch.setattr(fit, "LONG_ROWS", 1000 if is_long else 10**9)
    run = base.LocalEstimator._run

    def watched(self, request, data, store):
        monkeypatch.setattr("daskls.estimators.view.progress_bars", listening(heard))
        return run(self, request, data, store)

    monkeypatch.setattr(base.LocalEstimator, "_run", watched)
    with dask.config.set(scheduler="sync"):
        seen = daskls.VoronoiSVC(500, **given).fit(rows, y)
    np.testing.assert_array_equal(seen.decision_function(rows), plain.decision_function(rows))
    told = [own.left_s is not None for own in heard if own.stage == "train"]
    assert told
    assert all(told) == is_long


def listening(heard):
    """Return what yields a listener in place of bars."""
    from contextlib import contextmanager

    @contextmanager
    def bars(**_):
        yield heard.append

    return bars


def test_every_stage_of_a_choice_counts_what_is_done(monkeypatch):
    small_sample(monkeypatch, 300)
    seen, stage = [], StageClock.stage

    @contextmanager
    def watched(self, name, total, count):
        with stage(self, name, total, count):
            yield
            seen.append((name, count and min(count(), total)))

    monkeypatch.setattr(StageClock, "stage", watched)
    X, y = checkers(2500)
    daskls.VoronoiSVC(300, feature_coding="none", kernel="rbf", random_state=0).fit(X, y)
    names, counts = zip(*seen, strict=True)
    # The race, then the decision on regions.
    assert names == ("sample", "scale", "regions", "scale", "regroup", "train")
    assert counts[0] is None
    assert min(counts[1:]) > 0
