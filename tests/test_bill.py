"""The bill before the work, against what fits then find."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from small import ENTRIES, connected, late_marked, small, small_sample, task_memory
from support import PAPERS, CountingScheduler, checkers, n_bundles

import daskls
from daskls import DataError, MemoryPlanError, ParameterError
from daskls.datasets import write
from daskls.plan import Bill, Resources, StageBill, StageDemand, Work, bill_stages
from daskls.plan.demand import Demand, ExchangePlan, expected_cells, seconds_of
from daskls.records import SolverSpec
from daskls.run.workers import find_resources, resources_of
from daskls.store.exchange import Exchange

MIB = 1 << 20
N = 600
X, Y = checkers(N, n_classes=3)


@pytest.fixture(params=late_marked(ENTRIES))
def name(request):
    """Return the name of a registered estimator."""
    return request.param


def nbytes_of(folder):
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def refusal_of(model):
    """Return why a fit is refused, or None."""
    try:
        model.fit(X, Y)
    except MemoryPlanError as error:
        return str(error)
    return None


class TestEveryMethod:
    """What holds of every registered method."""

    def test_its_sizes_are_those_that_its_fit_begins_with(self, name, monkeypatch):
        method = type(small(name)._method())
        check, seen = method.check, []

        def spied(self, extent, resources):
            seen.append((extent, resources))
            check(self, extent, resources)

        monkeypatch.setattr(method, "check", spied)
        small(name).plan(X, Y, timed=False)
        planned = [extent for extent, _ in seen]
        seen.clear()
        small(name).fit(X, Y)
        first, _ = seen[0]
        assert first == planned[0]
        # The largest leaf, and what is chosen for all cells, are found later.
        found = seen[-1][0]
        assert found.at == "found"
        sizes = (replace(own.sizes, spec=SolverSpec()) for own in (found, planned[2]))
        assert len(set(sizes)) == 1

    @pytest.mark.parametrize("nbytes", [20_000, 300_000, MIB, 3 * MIB, 64 * MIB])
    def test_it_refuses_what_its_fit_refuses(self, name, nbytes):
        with task_memory(nbytes):
            bill = small(name).plan(X, Y, timed=False)
            told = refusal_of(small(name))
        assert (told is not None) == bool(bill.refusals)
        assert told is None or told in bill.refusals

    def test_pieces_of_its_work_are_timed(self, name):
        bill = small(name).plan(X, Y)
        assert [stage.name for stage in bill.stages if not stage.cpu_s] == []
        # Of a blink; what is compiled first is no part of it.
        assert 0 < bill.cpu_s < 60
        assert bill.wall_s(1) == pytest.approx(bill.cpu_s)
        assert bill.wall_s(10_000) <= bill.wall_s(2) <= bill.wall_s(1)

    def test_its_stages_are_those_that_run(self, name):
        bill = small(name).plan(X, Y, timed=False)
        ran = set(small(name).fit(X, Y).stage_s_)
        assert ran - {"calibrate"} <= {stage.name for stage in bill.stages}
        assert {s.name for s in bill.stages} - {"cut"} <= ran
        assert bill.n_rows == N
        assert str(bill).splitlines()[0] == bill.title
        for told in (str(bill), bill._repr_html_()):
            assert all(stage.name in told for stage in bill.stages)


def test_tasks_and_bundles_are_those_of_the_fit():
    rows, y = checkers(20_000)
    model = daskls.VoronoiSVC(200, C=1, gamma=20, cv=2, random_state=0, **PAPERS)
    bill = model.plan(rows, y, timed=False)
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        model.fit(rows, y)
    assert 0.8 <= bill.n_bundles / n_bundles(model) <= 1.25
    assert 0.8 <= bill.n_models / model.n_cells_ <= 1.25
    # Dask counts what reads a block's rows as a task of its own.
    assert 0.5 <= bill.n_tasks / sum(scheduler.n_tasks) <= 1.0


@pytest.mark.parametrize("n_partitions", [1, 3])
def test_the_exchange_is_as_large_as_planned(n_partitions, tmp_path, monkeypatch):
    rows, y = checkers(6000, d=5)
    # All of it is there at its peak.
    monkeypatch.setattr(Exchange, "delete", lambda _: None)
    monkeypatch.setattr("daskls.store.layout.Root.remove_leftovers", lambda *_: None)
    model = daskls.VoronoiSVC(
        500,
        C=1,
        gamma=20,
        n_partitions=n_partitions,
        store=tmp_path / "m",
        random_state=0,
        **PAPERS,
    )
    bill = model.plan(rows, y, timed=False)
    model.fit(rows, y)
    (folder,) = (tmp_path / "m").glob("exchange-*")
    assert 1.0 <= nbytes_of(folder) / bill.exchange.nbytes <= 1.1


def test_a_model_is_no_larger_than_planned_and_not_much_smaller(tmp_path):
    rows, y = checkers(6000, d=5)
    for number, loss in enumerate(("squared_error", "hinge")):
        store = tmp_path / f"{number}"
        model = daskls.VoronoiSVC(
            500, loss=loss, kernel="rbf", feature_scale=None, C=1, gamma=20, store=store,
            probability=False, random_state=0,
        )  # fmt: skip
        bill = model.plan(rows, y, timed=False)
        written = nbytes_of(model.fit(rows, y)._handle.location)
        # Of least squares every row is a support row; files have heads of some bytes.
        least = 0.7 if loss == "squared_error" else 0.1
        assert least <= written / bill.model_nbytes <= 1.2


def test_nothing_of_the_rows_is_read():
    def fail(block):
        raise AssertionError("a block was computed")

    lazy = da.ones((5000, 3), chunks=(1000, 3)).map_blocks(fail, dtype="f8")
    labels = da.ones(5000, chunks=1000).map_blocks(fail, dtype="i8")
    bill = daskls.VoronoiSVC().plan(lazy, labels, timed=False)
    assert (bill.n_rows, bill.n_features) == (5000, 3)
    assert "2 classes" in bill.notes


def test_a_shape_is_planned_as_rows_of_that_shape(tmp_path):
    model = daskls.VoronoiSVC(cell_size=500)
    rows = np.zeros((40_000, 6), np.float32)
    y = np.arange(40_000) % 2
    asked = {"workers": 4, "memory_limit": "1GiB", "timed": False}
    of_rows = model.plan(rows, y, **asked)
    of_shape = model.plan((40_000, 6), **asked)
    assert replace(of_shape, notes=()) == of_rows
    assert of_shape.notes == ("float32 features", "2 classes")
    write("checkerboard", tmp_path / "data.zarr", 40_000, chunk_rows=10_000)
    on_disk = daskls.VoronoiSVC(cell_size=500).plan(str(tmp_path / "data.zarr"), **asked)
    assert on_disk.notes == ()
    assert (on_disk.n_rows, on_disk.n_features) == (40_000, 2)


def test_classes_are_counted_where_y_is_in_memory():
    model = daskls.VoronoiSVC(loss="squared_error")
    few, many = (
        model.plan(np.zeros((5000, 4), np.float32), np.arange(5000) % k, timed=False)
        for k in (2, 26)
    )
    assert many.model_nbytes > 3 * few.model_nbytes
    numbers = daskls.VoronoiSVR(n_partitions=1)
    one = numbers.plan((5000, 4), np.zeros((5000, 1)), timed=False)
    five = numbers.plan((5000, 4), np.zeros((5000, 5)), timed=False)
    assert five.model_nbytes > one.model_nbytes
    assert five.exchange.nbytes == one.exchange.nbytes + 4 * 8 * 5000


def test_more_rows_are_more_of_everything():
    model = daskls.VoronoiSVC()
    bills = [model.plan((n, 28), workers=8, timed=False) for n in (10**6, 10**7, 10**8)]
    for before, after in pairwise(bills):
        # The choice for all cells is the same whatever the rows are.
        assert 2 < after.n_tasks / before.n_tasks < 12
        assert after.model_nbytes == 10 * before.model_nbytes
        # Of 1e8 rows blocks are merged, and each row is written twice.
        is_merged = "merge" in {stage.name for stage in after.stages}
        assert after.exchange.nbytes == 10 * before.exchange.nbytes * (2 if is_merged else 1)
        assert is_merged == (after.n_rows == 10**8)
        assert after.task_nbytes >= before.task_nbytes


def test_every_refusal_is_told_and_each_once():
    bill = daskls.VoronoiSVC(cell_size=30_000).plan(
        (100_000, 28), workers=2, memory_limit="512MiB", timed=False
    )
    assert len(bill.refusals) == len(set(bill.refusals)) >= 2
    assert "lower cell_size to about" in bill.refusals[0]
    assert any('feature_scale="spread"' in text for text in bill.refusals)
    assert "refused: " in str(bill)


def test_what_is_refused_on_a_cluster_that_is_not_there():
    model = daskls.VoronoiSVC(cell_size=8000, loss="squared_error")
    small_ones, large = (
        model.plan((200_000, 10), workers=3, memory_limit=limit, timed=False)
        for limit in ("600MiB", "16GiB")
    )
    assert small_ones.refusals
    assert large.refusals == ()
    assert small_ones.resources.n_slots == large.resources.n_slots == 3


def test_a_worker_that_need_not_exist_offers_what_one_that_does_offers(one_worker):
    with connected(one_worker) as client:
        found = find_resources(client)
    described = resources_of(1, 1, "1GiB")
    assert found.n_slots == described.n_slots == 1
    # One that has worked holds more than one that has just begun.
    assert found.task_nbytes <= described.task_nbytes


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"X": (1, 3)}, DataError, "2 rows"),
        ({"X": (5, 0)}, DataError, "1 feature"),
        ({"X": (5, 2), "workers": 0}, ParameterError, "workers=0"),
        ({"X": (5, 2), "memory_limit": "2GiB"}, ParameterError, "workers is None"),
        ({"X": (5, 2), "workers": 1, "memory_limit": "much"}, ParameterError, "write it as 2GiB"),
    ],
)
def test_what_cannot_be_planned_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        daskls.VoronoiSVC().plan(**given, timed=False)


def test_rows_that_only_reading_tells_are_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y\n1,2,0\n3,4,1\n")
    with pytest.raises(DataError, match="Give a shape"):
        daskls.VoronoiSVC().plan(str(path), "y", timed=False)
    unknown = da.from_array(X, chunks=(100, 2))
    unknown = unknown[unknown[:, 0] > 0.5]
    with pytest.raises(DataError, match="compute_chunk_sizes"):
        daskls.VoronoiSVC().plan(unknown, timed=False)


def test_a_frame_is_planned_by_its_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0] * 50, "b": ["x", "y"] * 50, "y": [0, 1] * 50})
    bill = daskls.VoronoiSVC().plan(frame, "y", timed=False)
    assert (bill.n_rows, bill.n_features) == (100, 2)
    assert any("one per category" in note for note in bill.notes)


def test_maps_to_probabilities_by_a_second_fit_are_part_of_it():
    rows, y = checkers(3000)
    plain, mapped = (
        daskls.VoronoiSVC(500, probability=p, C=1, gamma=20, **PAPERS).plan(rows, y, timed=False)
        for p in (False, True)
    )
    assert [s.name for s in mapped.stages if s not in plain.stages] == ["calibrate"]


def test_a_bound_on_false_alarms_is_part_of_it():
    rows, y = checkers(3000)
    plain, model = (
        daskls.VoronoiSVC(500, max_false_alarm=m, C=1, gamma=20, random_state=0, **PAPERS)
        for m in (None, 0.1)
    )
    bills = plain.plan(rows, y, timed=False), model.plan(rows, y, timed=False)
    names = [[stage.name for stage in bill.stages] for bill in bills]
    assert names[1] == [*names[0], "threshold"]
    bound = model.fit(rows, y).false_alarm_
    assert "threshold" in model.stage_s_
    # The client holds what is scored.
    held = bills[1].client_nbytes - bills[0].client_nbytes
    assert held == pytest.approx(16 * (bound.n_negatives + bound.n_positives), rel=0.15)


def test_intervals_are_part_of_it():
    rows, y = checkers(3000)
    given = {"C": 1, "gamma": 20, "kernel": "rbf", "feature_scale": None, "random_state": 0}
    plain, model = (daskls.VoronoiSVR(500, interval=c, **given) for c in (None, 0.9))
    bills = plain.plan(rows, y, timed=False), model.plan(rows, y, timed=False)
    names = [[stage.name for stage in bill.stages] for bill in bills]
    assert names[1] == [*names[0], "intervals"]
    n_held = model.fit(rows, y).interval_.n_rows
    assert "intervals" in model.stage_s_
    # The client holds what is asked about.
    held = bills[1].client_nbytes - bills[0].client_nbytes
    assert held == pytest.approx(16 * n_held, rel=0.15)


def test_regions_are_planned_where_the_sample_is_thin(monkeypatch):
    def stages(n):
        bill = daskls.VoronoiSVC(200).plan((n, 4), timed=False)
        return [stage.name for stage in bill.stages]

    assert "regions" not in stages(30_000)
    assert stages(300_000).count("scale") == 2
    small_sample(monkeypatch, 1000)
    assert "regions" in stages(30_000)


@pytest.mark.parametrize("name", ["FalkNoiseFilter", "KNNSVMNoiseFilter"])
def test_a_filter_costs_what_its_classifier_costs(name):
    noise = getattr(daskls, name)(n_neighbors=50, random_state=0)
    asked = {"workers": 2, "memory_limit": "1GiB", "timed": False}
    bill = noise.plan(X, Y, **asked)
    assert bill == noise._classifier().plan(X, Y, **asked)
    assert bill.estimator in ("FalkSVC", "KNNSVC")


def test_a_worker_of_a_cluster_times_the_pieces(one_worker):
    with connected(one_worker) as client:
        bill = small("VoronoiSVC", client=client).plan(X, Y)
    assert bill.resources.n_slots == 1
    assert bill.cpu_s > 0


# --- arithmetic


def test_seconds_follow_the_power_between_measured_sizes():
    paces = {"a": ((100, 1.0), (200, 8.0), (400, 16.0))}
    assert seconds_of(Work("a", 200, 2), paces) == pytest.approx(16.0)
    assert seconds_of(Work("a", 150, 1), paces) == pytest.approx(1.5**3)
    # Beyond the largest by the last power, below the least by the first.
    assert seconds_of(Work("a", 800, 1), paces) == pytest.approx(32.0)
    assert seconds_of(Work("a", 50, 1), paces) == pytest.approx(1 / 8)
    # No piece takes time by more than the cube, or less for more rows.
    assert seconds_of(Work("b", 200, 1), {"b": ((10, 1.0), (100, 1e9))}) == pytest.approx(8e9)
    assert seconds_of(Work("b", 200, 1), {"b": ((10, 2.0), (100, 1.0))}) == pytest.approx(1.0)


def test_cells_are_as_full_as_is_usual():
    assert expected_cells(500, 1000) == (1, 500)
    n_cells, rows = expected_cells(10**6, 2000)
    assert 500 < n_cells < 600
    assert rows <= 2000


def billed(works, *stages):
    paces = {"a": ((1, 1.0),)}
    own = [StageDemand("x", n, 5, tuple(works), task_s=0.0, **more) for n, more in stages]
    bills = bill_stages(own, Demand(), paces)
    exchange = ExchangePlan(1, 1, 1, 1, 1, 1, 1)
    return Bill("A", 1, 1, bills, 1, 1, Resources(4, 100), 0, 0, exchange, 0)


def test_slots_share_tasks_and_wait_for_the_longest():
    ten = [Work("a", 1, 10)]
    even = billed(ten, (10, {}))
    assert even.cpu_s == 10
    assert even.wall_s(1) == 10
    assert even.wall_s() == 2.5
    assert even.wall_s(100) == 1
    # One task holds half of the work.
    assert billed(ten, (10, {"share": 0.5})).wall_s(100) == 5
    # Ten rounds of one task each; and what the client does alone.
    assert billed(ten, (10, {"n_rounds": 10})).wall_s(100) == 10
    assert billed(ten, (0, {})).wall_s(100) == 10
    assert billed(ten, (10, {}), (0, {})).wall_s(100) == 11


def test_without_paces_no_seconds_are_told():
    bill = replace(billed([], (1, {})), stages=(StageBill("x", 1, 5),))
    assert bill.cpu_s is None
    assert bill.wall_s() is None
    assert "expected" not in str(bill)
