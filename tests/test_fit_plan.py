"""The plan of a fit, against what the fit then finds."""

import html
from dataclasses import replace
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from small import ENTRIES, late_marked, small, task_memory
from support import PAPERS, CountingScheduler, checkers, n_bundles

import daskls
from daskls import DataError, MemoryPlanError, ParameterError
from daskls.records import SolverSpec
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


class StoppedError(Exception):
    pass


def stopped(*_, **__):
    """Stand in for the first task that reads X."""
    raise StoppedError


def refusal_of(model):
    """Return why a fit is refused, or None."""
    try:
        model.fit(X, Y)
    except MemoryPlanError as error:
        return str(error)
    return None


class TestEveryMethod:
    """What holds of every registered method."""

    @pytest.mark.always
    def test_its_sizes_are_those_that_its_fit_begins_with(self, name, monkeypatch):
        method = small(name)._method_class
        check, seen = method.check, []

        def spied(self, sizes, resources):
            seen.append(sizes)
            check(self, sizes, resources)

        monkeypatch.setattr(method, "check", spied)
        small(name).plan(X, Y)
        planned = [*seen]
        seen.clear()
        small(name).fit(X, Y)
        assert seen[0] == planned[0]
        # The largest leaf, and what is chosen for all cells, are found later.
        found = seen[-1]
        assert found.at == "found"
        sizes = (replace(own, spec=SolverSpec(), leaf_rows=0, at="") for own in (found, planned[2]))
        assert len(set(sizes)) == 1

    @pytest.mark.parametrize("nbytes", [20_000, 300_000, MIB, 3 * MIB, 64 * MIB])
    def test_it_refuses_what_its_fit_refuses(self, name, nbytes):
        with task_memory(nbytes):
            plan = small(name).plan(X, Y)
            told = refusal_of(small(name))
        assert (told is not None) == bool(plan.refusals)
        assert told is None or told in plan.refusals
        # A task may use three quarters of its memory, or all of it.
        assert told is None or plan.task_nbytes > nbytes * 3 // 4


def test_tasks_and_bundles_are_those_of_the_fit():
    rows, y = checkers(20_000)
    model = daskls.VoronoiSVC(200, C=1, gamma=20, cv=2, random_state=0, **PAPERS)
    plan = model.plan(rows, y)
    scheduler = CountingScheduler()
    with dask.config.set(scheduler=scheduler):
        model.fit(rows, y)
    assert abs(plan.n_bundles - n_bundles(model)) <= 1
    assert 0.8 <= plan.n_models / model.n_cells_ <= 1.25
    # Dask counts what reads a block's rows as a task of its own.
    assert 0.5 <= plan.n_tasks / sum(scheduler.n_tasks) <= 1.0


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
    plan = model.plan(rows, y)
    model.fit(rows, y)
    (folder,) = (tmp_path / "m").glob("exchange-*")
    assert 1.0 <= nbytes_of(folder) / plan.exchange.nbytes <= 1.1


def test_a_model_is_no_larger_than_planned_and_not_much_smaller(tmp_path):
    rows, y = checkers(6000, d=5)
    for number, loss in enumerate(("squared_error", "hinge")):
        store = tmp_path / f"{number}"
        model = daskls.VoronoiSVC(
            500, loss=loss, kernel="rbf", feature_scale=None, C=1, gamma=20, store=store,
            probability=False, random_state=0,
        )  # fmt: skip
        plan = model.plan(rows, y)
        written = nbytes_of(model.fit(rows, y)._handle.location)
        # Of least squares every row is a support row; files have heads of some bytes.
        least = 0.7 if loss == "squared_error" else 0.1
        assert least <= written / plan.model_nbytes <= 1.2


def test_nothing_of_the_rows_is_read():
    def fail(block):
        raise AssertionError("a block was computed")

    lazy = da.ones((5000, 3), chunks=(1000, 3)).map_blocks(fail, dtype="f8")
    labels = da.ones(5000, chunks=1000).map_blocks(fail, dtype="i8")
    plan = daskls.VoronoiSVC().plan(lazy, labels)
    assert (plan.n_rows, plan.n_features) == (5000, 3)
    assert "2 classes" in plan.notes
    assert all(f"\n{name:22}{text}" in str(plan) for name, text in plan.pairs())
    assert plan._repr_html_() == f"<pre>{html.escape(str(plan))}</pre>"
    # A filter costs what its classifier costs.
    noise, same = (getattr(daskls, name)(50) for name in ("FalkNoiseFilter", "FalkSVC"))
    where = {"workers": 2, "memory_limit": "1GiB"}
    assert noise.plan(lazy, labels, **where) == same.plan(lazy, labels, **where)


def test_of_ten_times_the_rows_a_plan_has_ten_times_as_much():
    million, ten, hundred = (daskls.VoronoiSVC().plan((10**n, 28), workers=8) for n in (6, 7, 8))
    assert hundred.model_nbytes == 10 * ten.model_nbytes == 100 * million.model_nbytes
    # Of 1e8 rows blocks are merged, and each row is written twice.
    assert hundred.exchange.nbytes == 20 * ten.exchange.nbytes == 200 * million.exchange.nbytes
    knn = partial(daskls.KernelKNNClassifier, 5)
    exact, near = (knn(neighbors=how).plan((10**6, 20)) for how in ("exact", "approximate"))
    assert exact.n_bundles == 0 < near.n_bundles
    assert near.model_nbytes > exact.model_nbytes


def test_a_plan_counts_on_the_partitions_of_rows_that_are_not_reserved():
    # From 16,000 rows on there are four partitions; of 18,000 a fifth is held out.
    cases = ("VoronoiSVC", 63, {"max_false_alarm": 0.1}), ("VoronoiSVR", 125, {"interval": 0.9})
    for name, d, given in cases:
        make = partial(getattr(daskls, name), kernel="rbf")
        one, four = (make(**own).plan((18_000, d)).exchange.nbytes for own in (given, {}))
        assert four == 4 * one


@pytest.mark.parametrize("n_rows", [1500, 6000, 12_000, 70_000])
def test_a_plan_and_its_fit_refuse_the_same(n_rows, monkeypatch):
    rows = np.random.default_rng(0).random((n_rows, 4)).astype(np.float32)
    y, model = rows[:, 0] > 0.5, daskls.VoronoiSVC(random_state=0)
    monkeypatch.setattr("daskls.pipeline.sample_rows", stopped)
    refused = []
    for mebibytes in range(4, 500, 8):
        with task_memory(mebibytes * MIB):
            planned = model.plan(rows, y).refusals
            with pytest.raises((MemoryPlanError, StoppedError)) as found:
                model.fit(rows, y)
        assert bool(planned) == found.errisinstance(MemoryPlanError)
        # A fit stops at the first of them.
        assert not planned or str(found.value) in planned
        refused.append(bool(planned))
    # Less memory is refused, more is not.
    assert refused[0]
    assert not refused[-1]
    assert refused == sorted(refused, reverse=True)


@pytest.mark.always
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"X": (1, 3)}, DataError, "2 rows"),
        ({"X": (5, 0)}, DataError, "1 feature"),
        ({"X": da.ones((9, 2))[da.ones(9) > 0]}, DataError, "is unknown until.*chunk_sizes"),
        ({"X": (5, 2), "workers": 0}, ParameterError, "workers=0"),
        ({"X": (5, 2), "memory_limit": "2GiB"}, ParameterError, "workers is None"),
        ({"X": (5, 2), "workers": 1, "memory_limit": "much"}, ParameterError, "write it as 2GiB"),
    ],
)
def test_what_cannot_be_planned_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        daskls.VoronoiSVC().plan(**given)


def test_a_frame_is_planned_by_its_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0] * 50, "b": ["x", "y"] * 50, "y": [0, 1] * 50})
    plan = daskls.VoronoiSVC().plan(frame, "y")
    apart = daskls.VoronoiSVC().plan(frame[["a", "b"]], frame.y)
    assert (apart.n_rows, apart.n_features) == (100, 3)
    with pytest.raises(DataError, match=r"y holds None .* in row 5"):
        daskls.VoronoiSVC().plan(frame[["a", "b"]], [0, 1, 0, 1, 0, None] + [1] * 94)
    assert (plan.n_rows, plan.n_features) == (100, 3)
    assert daskls.VoronoiSVC().plan(frame, "y", drop="b").n_features == 1
    with pytest.raises(daskls.ParameterError, match="has no effect on X with y apart"):
        daskls.VoronoiSVC().plan(frame[["a"]], frame.y, drop="b")
