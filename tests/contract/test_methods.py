"""The promises that every registered method keeps: a new method is tested by being registered.

What is small for a method says `small.py`, by the names of parameters.
"""

import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from small import (
    CASES,
    ENTRIES,
    LATE,
    VARIANT,
    answers_of,
    assert_same_bits,
    bits_of,
    connected,
    late_marked,
    queries,
    small,
    small_sample,
    task_memory,
    tiny_tasks,
    ways,
)
from small import small_leaves as few_rows_a_leaf
from support import checkers, few, path_of, python_env, tiny_blocks
from writes import KillsAt, RemovesAt, StopError, StopsEverywhere, Writes, read_written

import daskls
from daskls import DataError, MemoryPlanError, StoreError
from daskls.errors import DasklsError

N = 600
X, Y = checkers(N, n_classes=3)
TWO = Y > 0
BLOCKS = (100,) * 6
# Begun names of what shows who writes into a store, and whether workers see it.
OWNED = (".owner", "..owner", ".probe", "..probe")


# One whose fit is its stages alone, and one with rounds between them.
EARLY = {"VoronoiSVC", "FalkSVC"}

# Ways whose models hold more than cells do: maps of rows that were held out, or reserved rows.
MORE = {
    "maps": ("VoronoiSVC", {"loss": "squared_error", "cv": 5, "n_partitions": 2}),
    "intervals": ("VoronoiSVR", {"interval": 0.8, "n_partitions": 2}),
    "false alarms": (
        "VoronoiSVC",
        {"loss": "squared_error", "cv": 5, "max_false_alarm": 0.1, "n_partitions": 2},
    ),
}


def with_more(marks=()):
    """Return (name, way) of every method, and of the ways whose models hold more."""
    late = [pytest.param(n, {}, marks=pytest.mark.slow if n in LATE else (), id=n) for n in CASES]
    # A variant is of a method as it is.
    more = () if VARIANT else MORE.items()
    return [*late, *(pytest.param(*own, marks=marks, id=id) for id, own in more)]


def labels_of(way):
    """Return the labels that a way is fitted with."""
    return TWO if "max_false_alarm" in way else Y


def one_of_parts(*parts):
    """Return (name, part of a fit): at every change one part of two methods, by turns."""
    return [
        pytest.param(name, part, marks=() if is_early else pytest.mark.slow)
        for i, name in enumerate(ENTRIES)
        for part in parts
        for is_early in [name in EARLY and part == parts[i % len(parts)]]
    ]


def rows_of(X=X, y=Y, chunks=BLOCKS):
    """Return rows as Dask arrays in blocks."""
    return da.from_array(X, chunks=(chunks, X.shape[1])), da.from_array(y, chunks=(chunks,))


def params_of(model):
    """Return the parameters that travel; a list comes back for a tuple."""
    params = clone(model).set_params(store=None, client=None).get_params()
    return {key: list(v) if isinstance(v, tuple) else v for key, v in params.items()}


def listing(folder):
    """Return the names of all files below a folder."""
    return sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*") if p.is_file())


@pytest.fixture(scope="module", autouse=True)
def small_leaves():
    """Let searches look at several leaves of so few rows."""
    with pytest.MonkeyPatch.context() as patch:
        few_rows_a_leaf(patch)
        yield


@pytest.fixture(scope="module")
def reference(small_leaves):
    """Return a function that gives the bits of an undisturbed fit, made once."""
    made = {}

    def find(name, way=(), offset=0.0, dtype="f8"):
        key = name, repr(way), offset, dtype
        if key not in made:
            with dask.config.set(scheduler="sync"):
                own = small(name, **dict(way))
                model = own.fit((X + offset).astype(dtype), labels_of(dict(way)))
            made[key] = bits_of(model, offset)
        return made[key]

    return find


@pytest.fixture(params=late_marked(CASES))
def name(request):
    """Return the name of a registered estimator."""
    return request.param


@pytest.fixture(scope="module")
def fitted(small_leaves):
    """Return a function that gives a fitted model, made once; tests do not change it."""
    made = {}

    def find(name, n_classes=3):
        if (name, n_classes) not in made:
            two = TWO.astype(float) if is_regressor(small(name)) else TWO
            made[name, n_classes] = small(name).fit(X, Y if n_classes == 3 else two)
        return made[name, n_classes]

    return find


@pytest.fixture(scope="module")
def n_written(small_leaves, tmp_path_factory):
    """Return a function that counts the things a fit puts in place, once a method."""
    made = {}

    def count(name):
        if name not in made:
            store, names = tmp_path_factory.mktemp("counted") / "m", []
            with tiny_tasks(), dask.config.set(scheduler="sync"), Writes(store, names.append):
                small(name, store=store).fit(*rows_of())
            made[name] = len(names)
        return made[name]

    return count


class TestMethod:
    """Promises of one method, each a test, whatever the method is."""

    # --- one seed, one model

    @pytest.mark.parametrize(("name", "way"), ways(CASES), ids=str)
    def test_chunks_tasks_and_threads_leave_no_trace(self, name, way, reference):
        expected = reference(name, tuple(way.items()))
        for scheduler, chunks, n_bundles in [
            ("sync", BLOCKS, 10_000),
            ("threads", (250, 1, 349), 3),
        ]:
            with tiny_tasks(N_BUNDLES=n_bundles), dask.config.set(scheduler=scheduler):
                found = small(name, **way).fit(*rows_of(chunks=chunks))
            assert_same_bits(expected, found)

    def test_memory_and_slots_leave_no_trace(self, name, reference):
        expected = reference(name)
        for nbytes, n_slots in [(112 << 20, 7), (4 << 30, 1)]:
            with task_memory(nbytes, n_slots), tiny_tasks(N_BUNDLES=n_slots):
                assert_same_bits(expected, small(name).fit(*rows_of()))

    @pytest.mark.parametrize(("name", "way"), with_more())
    def test_workers_leave_no_trace(self, name, way, two_workers, reference):
        expected = reference(name, tuple(way.items()))
        with connected(two_workers) as client, tiny_tasks():
            found = small(name, **way, client=client).fit(*rows_of(y=labels_of(way)))
        assert_same_bits(expected, found)

    def test_the_order_of_bytes_leaves_no_trace(self, name, reference):
        found = small(name).fit(np.asfortranarray(X), Y.astype("i8"))
        assert_same_bits(reference(name), found)
        scores = answers_of(found, np.asfortranarray(queries()))
        assert scores.tobytes() == reference(name)["scores"][2]

    @pytest.mark.parametrize(("dtype", "offset"), few([("f8", 1e6), ("f4", 0.0)]))
    def test_types_and_offsets_are_one_model_too(self, name, dtype, offset, reference):
        expected = reference(name, (), offset, dtype)
        rows = rows_of((X + offset).astype(dtype), chunks=(250, 1, 349))
        with tiny_tasks(), dask.config.set(scheduler="sync"):
            assert_same_bits(expected, bits_of(small(name).fit(*rows), offset))

    @pytest.mark.parametrize(("name", "way"), ways(CASES), ids=str)
    def test_booleans_are_zeros_and_ones(self, name, way):
        d = 2 if "feature_scale" in way and name == "FalkSVC" else 8
        rows = checkers(N, d=8)[0][:, :d] > 0.5
        a, b = (small(name, **way).fit(given, Y) for given in (rows, rows.astype("u1")))
        assert answers_of(a, rows).tobytes() == answers_of(b, rows.astype("u1")).tobytes()

    # --- stopped, killed, resumed

    @pytest.mark.parametrize(("name", "way"), with_more(pytest.mark.slow))
    def test_a_fit_that_is_stopped_anywhere_goes_on(self, name, way, tmp_path, reference):
        stops, store, y = StopsEverywhere(), tmp_path / "m", labels_of(way)
        with tiny_tasks(), dask.config.set(scheduler="sync"), Writes(store, stops):
            for _ in range(100):
                try:
                    model = small(name, **way, store=store).fit(*rows_of(y=y))
                    break
                except StopError:
                    with pytest.raises(StoreError):
                        daskls.load(store)
        assert_same_bits(reference(name, tuple(way.items())), model)
        assert len(stops.stops) >= 6
        # What was in place stayed: a stop costs one thing at most.
        n_again = sum(stops.names.values()) - len(stops.names)
        assert n_again <= len(stops.stops), stops.names.most_common(9)
        whole = small(name, **way, store=tmp_path / "n").fit(X, y)
        parts = {p.split("/")[0] for p in listing(path_of(whole))}
        assert {p.split("/")[0] for p in listing(store)} == parts
        # No part is there that no stop was at.
        assert parts <= {p.split("/")[0] for p in stops.names}

    def test_a_task_that_runs_again_does_nothing(self, name, tmp_path, reference):
        # As that of a worker which died after it wrote, before it said so.
        again = []

        def twice(graph, keys, **options):
            found = dask.get(graph, keys, **options)
            with Writes(tmp_path / "m", again.append, begun=True):
                dask.get(graph, keys, **options)
            return found

        with tiny_tasks(), dask.config.set(scheduler=twice):
            model = small(name, store=tmp_path / "m").fit(*rows_of())
        assert_same_bits(reference(name), model)
        # Beside the owner: what the exchange holds, which is put together.
        assert {p for p in again if ".manifest-" not in p and not p.startswith(OWNED)} == set()

    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "part"), one_of_parts(0.3, 0.7))
    def test_a_killed_worker_costs_one_task(
        self, name, part, two_workers, tmp_path, reference, n_written
    ):
        at = max(int(part * n_written(name)) - 3, 2)
        with tiny_tasks(), connected(two_workers) as client:
            client.register_plugin(KillsAt(tmp_path / "m", tmp_path / "log", at))
            model = small(name, client=client, store=tmp_path / "m").fit(*rows_of())
            client.wait_for_workers(2, timeout=180)
            client.unregister_worker_plugin("kills")
        calls, killed = read_written(tmp_path / "log")
        assert killed is not None
        assert_same_bits(reference(name), model)
        twice = [key for key, n in Counter(key for _, key in calls).items() if n > 1]
        assert len(twice) <= 4, twice

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ENTRIES)
    def test_a_killed_client_loses_nothing_that_is_finished(
        self, name, tmp_path, reference, n_written
    ):
        code = "import sys; from contract_client import run; run(*sys.argv[1:3], int(sys.argv[3]))"
        store = tmp_path / "m"
        done = subprocess.run(
            [sys.executable, "-c", code, name, str(store), "12"],
            env=python_env(), check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == -9, done.stderr
        before, again = len(listing(store)), []
        with tiny_tasks(), Writes(store, again.append):
            model = small(name, store=store).fit(*rows_of())
        assert_same_bits(reference(name), model)
        # As much as was there is not written again, but for what holds it together.
        assert len(again) <= n_written(name) - 12 + 6, (before, again)

    @pytest.mark.parametrize(("name", "part"), one_of_parts(0.1, 0.5, 0.9))
    def test_a_store_removed_in_a_fit_stays_away(self, name, part, tmp_path, n_written):
        store = tmp_path / "stores" / "m"
        removes = RemovesAt(store, tmp_path / "log", max(int(part * n_written(name)), 1))
        gone = r"was removed while fit was writing it\..*begins anew"
        # Tasks that are under way when the fit gives up end before the pool does.
        with (
            tiny_tasks(),
            ThreadPoolExecutor(4) as pool,
            dask.config.set(pool=pool),
            Writes(store, removes.act),
            pytest.raises(StoreError, match=gone),
        ):
            small(name, store=store).fit(*rows_of())
        assert read_written(tmp_path / "log")[1] is not None
        assert list(store.parent.iterdir()) == []

    # --- memory

    def test_what_fits_no_task_is_refused_and_leaves_nothing(self, name, tmp_path, reference):
        store = tmp_path / "m"
        with task_memory(20_000), pytest.raises(MemoryPlanError, match=r"needs .*; .*or ") as error:
            small(name, store=store).fit(X, Y)
        assert "\n" not in str(error.value)
        # The same store takes the same fit where there is memory.
        assert_same_bits(reference(name), small(name, store=store).fit(X, Y))

    # --- answers

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_chunks_of_queries_leave_no_trace(self, name, n_classes, fitted, monkeypatch):
        model, asked = fitted(name, n_classes), queries()
        whole = answers_of(model, asked)
        tiny_blocks(monkeypatch, SLAB_ROWS=37, SLAB_NBYTES=1, LEAST_SLAB_ROWS=7)
        for chunks in [(400,), (1, 298, 1, 100), (50,) * 8]:
            lazy = answers_of(model, da.from_array(asked, chunks=(chunks, 2)))
            assert lazy.chunks[0] == chunks
            assert lazy.compute().tobytes() == whole.tobytes()
        alone = np.concatenate([answers_of(model, row[None]) for row in asked[:30]])
        assert alone.tobytes() == whole[:30].tobytes()

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_labels_are_those_of_the_largest_scores(self, name, n_classes, fitted, tmp_path):
        model, asked = fitted(name, n_classes), queries()
        if is_regressor(model):
            lazy = da.from_array(asked, chunks=(90, 2))
            model.predict_to_zarr(lazy, tmp_path / "numbers")
            found = da.from_zarr(str(tmp_path / "numbers")).compute()
            assert found.tobytes() == model.predict(asked).tobytes()
            return
        scores = model.decision_function(asked)
        best = scores.argmax(axis=1) if n_classes > 2 else (scores > 0).astype(int)
        np.testing.assert_array_equal(model.predict(asked), model.classes_[best])
        lazy = da.from_array(asked, chunks=(90, 2))
        model.predict_to_zarr(lazy, tmp_path / "labels")
        np.testing.assert_array_equal(da.from_zarr(str(tmp_path / "labels")), model.classes_[best])

    # --- kept

    @pytest.mark.parametrize("how", ["save", "pickle"])
    @pytest.mark.parametrize(("name", "way"), with_more())
    def test_what_was_kept_answers_as_before(self, name, way, how, fitted, tmp_path):
        model = fitted(name) if not way else small(name, **way).fit(X, labels_of(way))
        if how == "save":
            model.save(tmp_path / "m")
            other = daskls.load(tmp_path / "m")
        else:
            other = pickle.loads(pickle.dumps(model))
        assert type(other) is type(model)
        assert_same_bits(model, other)
        assert params_of(other) == params_of(model)
        # What came back can be fitted again.
        again = clone(other).set_params(store=None).fit(X, labels_of(way))
        assert_same_bits(model, again)

    def test_a_finished_store_is_the_model_of_one_fit(self, name, tmp_path):
        store = tmp_path / "m"
        model = small(name, store=store).fit(X, Y)
        stamps = {p: (store / p).stat().st_mtime_ns for p in listing(store)}
        assert not any(part.startswith(".") for p in stamps for part in p.split("/"))
        with Writes(store, (begun := []).append, begun=True):
            assert_same_bits(model, small(name, store=store).fit(X, Y))
        # Nothing is trained: nothing but the owner is written, not even for a while.
        assert {p for p in begun if not p.startswith(OWNED)} == set()
        assert {p: (store / p).stat().st_mtime_ns for p in listing(store)} == stamps
        with pytest.raises(StoreError, match="another fit"):
            small(name, store=store, random_state=1).fit(X, Y)
        with pytest.raises(StoreError, match="another fit"):
            small(name, store=store).fit(X, 2 - Y)
        assert_same_bits(model, daskls.load(store))

    # --- weights

    def test_rows_of_weight_0_are_as_if_they_were_not_there(self, name, monkeypatch):
        # Of a sample of few rows: how many are drawn depends on those that count.
        small_sample(monkeypatch, 200)
        counts = np.arange(N) % 3 > 0
        y = np.where(counts, Y, 9)
        weighted = small(name).fit(X, y, sample_weight=counts.astype(float))
        fewer = small(name).fit(X[counts], Y[counts])
        assert is_regressor(weighted) or weighted.classes_.tolist() == [0, 1, 2]
        scores = [answers_of(model, queries()).tobytes() for model in (weighted, fewer)]
        assert scores[0] == scores[1]

    def test_class_weights_are_weights_of_rows(self, name, fitted):
        if "class_weight" not in small(name).get_params():
            pytest.skip("it takes weights of rows alone")
        by_class = small(name, class_weight={0: 3.0, 1: 0.5}).fit(X, Y)
        by_row = small(name).fit(X, Y, sample_weight=np.array([3.0, 0.5, 1.0])[Y])
        scores = [model.decision_function(queries()) for model in (by_class, by_row, fitted(name))]
        assert scores[0].tobytes() == scores[1].tobytes() != scores[2].tobytes()

    # --- bad input

    def test_what_cannot_be_trained_on_is_one_error(self, name, tmp_path):
        bad = X.copy()
        bad[123, 1] = np.inf
        store = tmp_path / "m"
        for rows, labels, message in [
            (bad, Y, r"row 123"),
            *([] if is_regressor(small(name)) else [(X, np.zeros(N, int), r"one class")]),
            (X, Y[:-1], r"599|600"),
            (X[:, :0], Y, r"0 feature"),
            (X[:0], Y[:0], r"0 (rows|sample)|no rows"),
        ]:
            with pytest.raises((DasklsError, ValueError), match=message):
                small(name, store=store).fit(rows, labels)
        small(name, store=store).fit(X, Y)

    def test_what_cannot_be_answered_is_one_error(self, name, fitted):
        model, asked = fitted(name), queries()
        asked[7, 0] = np.inf
        with pytest.raises(DataError, match="row 7"):
            model.predict(asked)
        with pytest.raises(DataError, match="3 features"):
            model.predict(np.zeros((4, 3)))
        with pytest.raises(DataError, match=r"must be numeric, got dtype datetime64\[s\]"):
            model.predict(queries().astype("M8[s]"))
