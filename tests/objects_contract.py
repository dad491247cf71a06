"""What every store of objects promises: a class of tests, which a kind's own tests inherit."""

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from daskls.errors import DamageError, StoreError
from daskls.store.artifact import read_arrays, write_artifact
from daskls.store.objects import open_store

# Names that users give: of folders, of buckets' paths.
STRANGE = ("a b", "a#b", "a%20b", "50%", "größe", "数据", "a+b&c=d", "a?b", "a'b", "~a", "a:b")


class ObjectsContract:
    """Give it a fixture ``store``: one in which nothing is yet, of a kind that `open_store` knows.

    ``TICK_S`` is the least difference between two times of the store's clock.
    """

    TICK_S = 0.02

    def test_its_location_opens_it_and_is_all_that_travels(self, store):
        store.put("a/one", b"1")
        assert open_store(store.where()).read("a/one", 1) == b"1"
        assert open_store(store.where("a")).read("one", 1) == b"1"
        assert str(store) in store.where("a/one")
        if (path := store.local("a/one")) is not None:
            assert Path(path).read_bytes() == b"1"
        sent = pickle.dumps(store)
        assert len(sent) < 200 + len(store.where())
        other = pickle.loads(sent)
        assert other.read("a/one", 1) == b"1"
        assert (type(other), other.where(), other.then) == (type(store), store.where(), store.then)

    @pytest.mark.always
    @pytest.mark.parametrize("name", STRANGE)
    def test_a_name_is_taken_as_it_is(self, store, name):
        named = open_store(store.where(name))
        named.make()
        for key in ("root", f"{name}/{name}"):
            named.put(key, key.encode())
            assert named.read(key, 99) == key.encode()
        assert named.below() == sorted(["root", f"{name}/{name}"])
        assert store.names() == [name]
        assert sorted(named.names()) == sorted(["root", name])
        write_artifact(named, f"{name}/part", {"x": np.arange(3)})
        assert read_arrays(open_store(named.where()), f"{name}/part")["x"].tolist() == [0, 1, 2]
        named.drop("")
        assert store.names() == []

    def test_what_is_put_is_there_whole(self, store):
        assert store.put("a/one", b"12", np.arange(3, dtype="u1").data, np.ones(1).data)
        assert store.read("a/one", 13) == b"12\x00\x01\x02" + np.ones(1).tobytes()
        assert store.put("a/one", b"anew")
        assert store.read("a/one", 4) == b"anew"
        assert store.put("none")
        assert store.read("none", 0) == b""

    def test_what_must_be_the_first_is_put_once_also_of_many_writers(self, store):
        assert store.put("one", b"first", create=True)
        assert not store.put("one", b"second", create=True)
        assert not store.put("one", create=True)
        assert store.read("one", 5) == b"first"
        won = at_once(lambda number: store.put("x/one", bytes([number]), create=True))
        assert [bytes([number]) for number in won] == [store.read("x/one", 1)]
        assert store.below() == ["one", "x/one"]

    def test_of_many_that_build_one_gets_the_place(self, store):
        new = open_store(store.where("above/new"))

        def build(number):
            with suppress(StoreError), new.building() as place:
                return open_store(place.where).put("one", bytes([number]))
            return False

        assert at_once(build)
        assert new.names() == ["one"]
        told = "new exists already; give another path"
        with pytest.raises(StoreError, match=told), new.building():
            pass

    def test_what_is_built_replaces_what_was_there_or_leaves_nothing(self, store):
        new = open_store(store.where("above/new"))
        for content in (b"1", b"2"):
            with new.building(replaces=True) as place:
                open_store(place.where).put("x/one", content)
                place.check()
            assert new.read("x/one", 1) == content
        other = open_store(store.where("above/other"))
        with suppress(KeyError), other.building() as place:
            open_store(place.where).put("x/one", b"3")
            raise KeyError
        with pytest.raises(StoreError, match="removed"), other.building() as place:
            open_store(place.where).drop("")
        assert store.names("above") == ["new"]
        assert new.names() == ["x"]

    def test_nothing_is_there_of_a_stream_that_failed(self, store):
        store.put("x/whole", b"")
        with suppress(ZeroDivisionError), store.stream("x/data") as file:
            file.write(b"half")
            _ = 1 / 0
        assert store.below() == ["x/whole"]
        # The old one stays until the new one is whole.
        for old in (b"", b"whole"):
            with store.stream("x/data") as file:
                file.write(b"wh")
                assert store.exists("x/data") == bool(old)
                file.write(np.frombuffer(b"ole", "u1").data)
            assert store.read("x/data", 5) == b"whole"
        with store.stream("x/empty"):
            pass
        assert store.below() == ["x/data", "x/empty", "x/whole"]

    def test_a_large_stream(self, store):
        piece = np.random.default_rng(0).bytes(3 << 20)
        with store.stream("x/large") as file:
            [file.write(piece) for _ in range(4)]
        assert store.size("x/large") == 4 * len(piece)
        assert store.range("x/large", 5 << 20, 6 << 20).tobytes() == piece[2 << 20 : 3 << 20]

    def test_list_and_drop(self, store):
        assert (store.names(), store.below(), store.names("a")) == ([], [], [])
        assert not store.exists("a/one")
        store.put("a/one", b"anew")
        store.put("a/b/two", b"2")
        store.put("ab", b"")
        assert all(map(store.exists, ("", "a/b/two", "a/one", "ab")))
        assert not store.exists("a/b/tw")
        assert sorted(store.names("a")) == ["b", "one"]
        assert sorted(store.names()) == ["a", "ab"]
        assert store.find("a/o*", "a/*/two", "none/*", "*/one") == ["a/b/two", "a/one"]
        assert store.find("a*") == ["a", "ab"]
        assert store.below() == ["a/b/two", "a/one", "ab"]
        assert store.below("a") == ["a/b/two", "a/one"]
        assert store.below(skip=["b"]) == ["a/one", "ab"]
        store.drop("a/b", "none", "none/*")
        assert store.below() == ["a/one", "ab"]
        store.drop("a*", strict=True)
        assert store.below() == []

    def test_sizes(self, store):
        store.put("a/one", b"1234")
        store.put("a/b/two", b"2")
        assert store.size("a/one") == 4
        assert store.sizes("a") == {"a/b/two": 1, "a/one": 4}
        assert (store.nbytes("a"), store.nbytes(), store.nbytes("none")) == (5, 5, 0)
        assert store.free_nbytes() > 1 << 20
        for key in ("none", "a", ""):
            with pytest.raises(DamageError):
                store.size(key)

    def test_a_new_object_has_a_new_stamp_and_a_later_time(self, store):
        assert store.modified("root") is None
        stamps, times = [store.stamp("root")], []
        # Also of the same bytes: readers of a store that was repaired open it anew.
        for content in (b"1", b"2", b"2"):
            store.put("root", content)
            stamps.append(store.stamp("root"))
            times.append(store.modified("root"))
            assert store.stamp("root") == stamps[-1]
            time.sleep(self.TICK_S)
        assert len(set(stamps)) == 4
        assert times == sorted(times)
        assert times[0] < times[2] < times[0] + 30

    def test_the_whole_store_is_dropped_and_made_again(self, store):
        store.put("a/one", b"1")
        store.unmake()
        assert store.read("a/one", 1) == b"1"
        store.drop("", strict=True)
        assert not store.exists("")
        store.make()
        store.make()
        store.unmake()
        assert not store.exists("")
        store.make()
        store.put("a/one", b"1")

    def test_a_range_is_read_alone(self, store):
        values = np.random.default_rng(0).random(1000)
        store.put("x", values.data)
        for start in (500, 0, 990):
            found = store.range("x", 8 * start, 8 * (start + 10))
            assert found.view("f8").tolist() == values[start : start + 10].tolist()
            # The caller's own, who may write to it.
            found[:] = 0
        head, nbytes = store.head("x", 16)
        assert (head.view("f8").tolist(), nbytes) == (values[:2].tolist(), values.nbytes)
        head, nbytes = store.head("x", 1 << 20)
        assert (len(head), nbytes) == (values.nbytes, values.nbytes)
        for start, early in ((991, 8), (1000, 80), (2000, 80)):
            with pytest.raises(DamageError, match=f"{early} bytes too early"):
                store.range("x", 8 * start, 8 * (start + 10))
        store.put("empty")
        assert [len(store.head("empty", 9)[0]), store.head("empty", 9)[1]] == [0, 0]

    def test_what_is_missing_or_too_large_is_damage(self, store):
        store.put("one", b"anew")
        with pytest.raises(DamageError, match="at most 3 are expected"):
            store.read("one", 3)
        for read in (lambda key: store.read(key, 1), lambda key: store.range(key, 0, 1)):
            with pytest.raises(DamageError, match="it is missing") as error:
                read("two")
            assert error.value.where == store.where("two")
            for key in ("none/two", "one/two", "../two", "a/../one"):
                with pytest.raises(DamageError):
                    read(key)


def at_once(act, n=6):
    barrier, won = threading.Barrier(n), []

    def contend(number):
        barrier.wait()
        if act(number):
            won.append(number)

    with ThreadPoolExecutor(n) as pool:
        list(pool.map(contend, range(n)))
    return won
