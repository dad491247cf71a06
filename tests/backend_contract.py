"""What every back end promises: a class of tests, which a back end's own tests inherit."""

import pickle
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from daskls.errors import DamageError, StoreError
from daskls.store.locations import open_store
from daskls.store.errors import checksum

OWNER = ".owner"
ME, OTHER = b'{"who": "me"}', b'{"who": "another"}'


class BackendContract:
    """Give it a fixture ``store``: one in which nothing is yet, of a kind that `open_store` knows.

    ``TICK_S`` is the least difference between two times of the back end's clock.
    """

    TICK_S = 0.02

    # --- by its location

    def test_its_location_opens_it_and_is_all_that_travels(self, store):
        store.put("a/one", b"1")
        assert open_store(store.where()).read("a/one", 1) == b"1"
        assert open_store(store.where("a")).read("one", 1) == b"1"
        assert str(store) in store.where("a/one")
        store.size("a/one")
        sent = pickle.dumps(store)
        assert len(sent) < 200 + len(store.where())
        other = pickle.loads(sent)
        assert other.read("a/one", 1) == b"1"
        assert (type(other), other.where(), other.then) == (type(store), store.where(), store.then)

    def test_a_local_path_leads_to_the_artifact(self, store):
        store.put("a/one", b"1")
        path = store.local("a/one")
        if path is not None:
            with open(path, "rb") as file:
                assert file.read() == b"1"

    # --- putting

    def test_what_is_put_is_there_whole(self, store):
        assert store.put("a/one", b"12", np.arange(3, dtype="u1").data, np.ones(1).data)
        assert store.read("a/one", 13) == b"12\x00\x01\x02" + np.ones(1).tobytes()
        assert store.put("a/one", b"anew")
        assert store.read("a/one", 4) == b"anew"
        assert store.put("none")
        assert store.read("none", 0) == b""

    def test_a_marker_is_put_once(self, store):
        assert store.put("marker", b"first", create=True)
        assert not store.put("marker", b"second", create=True)
        assert store.read("marker", 5) == b"first"

    def test_a_marker_that_was_seen_gives_way_and_no_other_one(self, store):
        store.put("marker", b"first", create=True)
        seen = store.stamp("marker")
        assert store.put("marker", b"second", create=True, instead_of=seen)
        assert not store.put("marker", b"third", create=True, instead_of=seen)
        assert store.read("marker", 6) == b"second"
        assert store.put("another", b"new", create=True, instead_of=store.stamp("another"))

    def test_of_many_writers_one_puts_the_marker(self, store):
        won = at_once(lambda number: store.put("x/marker", bytes([number]), create=True))
        assert [bytes([number]) for number in won] == [store.read("x/marker", 1)]

    def test_of_many_claims_one_is_granted_and_none_stays(self, store):
        new = open_store(store.where("above/new"))

        def claim(number):
            with suppress(StoreError), new.claim():
                return new.put("one", bytes([number]))
            return False

        won = at_once(claim)
        assert [bytes([number]) for number in won] == [new.read("one", 1)]
        assert new.names() == ["one"]
        with pytest.raises(StoreError, match="new exists already; give another path"), new.claim():
            pass

    def test_nothing_is_there_of_a_stream_that_failed(self, store):
        store.put("x/whole", b"")
        with suppress(ZeroDivisionError), store.stream("x/data") as file:
            file.write(b"half")
            _ = 1 / 0
        assert store.below() == ["x/whole"]
        with store.stream("x/data") as file:
            file.write(b"wh")
            assert not store.exists("x/data")
            file.write(np.frombuffer(b"ole", "u1").data)
        assert store.read("x/data", 5) == b"whole"

    def test_nothing_is_there_of_an_attempt_that_is_not_committed(self, store):
        store.put("x/whole", b"")
        with suppress(ZeroDivisionError), store.attempt("x/part") as attempt:
            attempt.write("deep/file", b"1")
            attempt.write("file", b"2")
            assert not store.exists("x/part/marker")
            _ = 1 / 0
        with store.attempt("x/other") as attempt:
            attempt.write("file", b"1")
        assert store.below() == ["x/whole"]

    def test_of_two_attempts_the_first_stays_unless_it_gives_way(self, store):
        assert [make_part(store, number) for number in (1, 2)] == [True, False]
        assert read_part(store) == b"\x01\x01"
        n_files = len(store.below())
        assert not make_part(store, 3)
        assert make_part(store, 4, replace=True)
        assert read_part(store) == b"\x04\x04"
        assert len(store.below()) == n_files

    def test_a_part_that_was_seen_gives_way_and_no_other_one(self, store):
        make_part(store, 1)
        seen = store.stamp("parts/x/marker")
        n_files = len(store.below())
        assert make_part(store, 2, instead_of=seen)
        assert read_part(store) == b"\x02\x02"
        assert not make_part(store, 3, instead_of=seen)
        assert read_part(store) == b"\x02\x02"
        assert len(store.below()) == n_files

    def test_of_many_attempts_one_is_seen_whole(self, store):
        won = at_once(lambda number: make_part(store, number))
        assert [bytes([number] * 2) for number in won] == [read_part(store)]

    # --- looking

    def test_list_and_drop(self, store):
        assert (store.names(), store.below(), store.names("a")) == ([], [], [])
        assert not store.exists("a/one")
        store.put("a/one", b"anew")
        store.put("a/b/two", b"2")
        store.put("ab", b"")
        assert all(map(store.exists, ("", "a", "a/b", "a/b/two")))
        assert not store.exists("a/b/tw")
        assert sorted(store.names("a")) == ["b", "one"]
        assert sorted(store.names()) == ["a", "ab"]
        assert store.find("a/o*", "a/*/two", "none/*", "*/one") == ["a/b/two", "a/one"]
        assert store.find("a", "a*") == ["a", "ab"]
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
        assert (store.size("a/one"), store.nbytes("a/one")) == (4, 4)
        assert (store.nbytes("a"), store.nbytes(), store.nbytes("none")) == (5, 5, 0)
        for key in ("none", "a", ""):
            with pytest.raises(DamageError):
                store.size(key)

    def test_there_is_room(self, store):
        assert store.free_nbytes() > 1 << 20

    def test_a_new_artifact_has_a_new_stamp(self, store):
        stamps = [store.stamp("none")]
        # Also of the same bytes: readers of a store that was repaired open it anew.
        for content in (b"1", b"2", b"2"):
            store.put("root", content)
            stamps.append(store.stamp("root"))
            assert store.stamp("root") == stamps[-1]
            time.sleep(self.TICK_S)
        assert len(set(stamps)) == 4

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

    # --- reading

    def test_a_range_is_read_alone_and_its_record_is_checked(self, store):
        values = np.random.default_rng(0).random(1000)
        store.put("x", values.data)
        found = np.empty(10)
        with store.reading("x") as reader:
            assert reader.nbytes == values.nbytes
            assert reader.name == store.where("x")
            for start in (500, 0, 990):
                reader.fill_record(found, 8 * start, checksum(values[start : start + 10]))
                np.testing.assert_array_equal(found, values[start : start + 10])
            with pytest.raises(DamageError, match="checksum"):
                reader.fill_record(found, 8, checksum(values[:10]))
            with pytest.raises(DamageError, match="8 bytes too early"):
                reader.fill(found, 8 * 991)

    def test_what_is_missing_or_too_large_is_damage(self, store):
        store.put("one", b"anew")
        with pytest.raises(DamageError, match="at most 3 are expected"):
            store.read("one", 3)
        with pytest.raises(DamageError, match="it is missing") as error:
            store.read("two", 1)
        assert error.value.where == store.where("two")
        with pytest.raises(DamageError), store.reading("none/two") as reader:
            assert reader.nbytes == 0

    # --- copying

    def test_a_copy(self, store):
        for key in ("a/one", "last", "b"):
            store.put(key, key.encode())
        other = open_store(store.where("copies/1"))
        assert other.copy_from(store, ["last", "a/one"], "last")
        assert other.below() == ["a/one", "last"]
        assert other.read("a/one", 5) == b"a/one"
        failed = open_store(store.where("copies/2"))
        with pytest.raises(DamageError):
            failed.copy_from(store, ["a/one", "none", "last"], "last")
        assert not failed.exists("")
        assert store.names("copies") == ["1"]

    # --- an owner

    def test_an_owner_takes_what_nobody_has(self, store):
        assert store.examine(OWNER) is None
        assert store.take(OWNER, ME)
        assert store.examine(OWNER).content == ME
        assert not store.take(OWNER, OTHER)
        assert store.examine(OWNER).content == ME
        assert store.below() == [OWNER]

    def test_of_many_contenders_one_takes_it(self, store):
        won = at_once(lambda number: store.take(OWNER, bytes([number])))
        assert [bytes([number]) for number in won] == [store.examine(OWNER).content]
        assert store.below() == [OWNER]

    def test_it_is_given_back_by_its_owner_alone(self, store):
        store.take(OWNER, ME)
        store.give_back(OWNER, OTHER)
        assert store.examine(OWNER).content == ME
        store.give_back(OWNER, ME)
        store.give_back(OWNER, ME)
        assert store.examine(OWNER) is None
        assert store.take(OWNER, OTHER)

    def test_it_ages_until_its_owner_renews_it(self, store):
        store.take(OWNER, ME)
        assert store.age(OWNER, store.examine(OWNER)) < 1 + self.TICK_S
        time.sleep(0.3 + 2 * self.TICK_S)
        old = store.examine(OWNER)
        age_s = store.age(OWNER, old)
        assert 0.2 < age_s < 30
        assert not store.renew(OWNER, OTHER)
        assert store.examine(OWNER) == old
        assert store.renew(OWNER, ME)
        held = store.examine(OWNER)
        assert held.content == ME
        assert held != old
        assert store.age(OWNER, held) < age_s
        assert store.below() == [OWNER]

    def test_nobody_renews_what_is_gone(self, store):
        assert not store.renew(OWNER, ME)
        assert store.examine(OWNER) is None

    def test_it_is_taken_over_as_it_was_examined(self, store):
        store.take(OWNER, OTHER)
        assert store.take_over(OWNER, store.examine(OWNER), ME)
        assert store.examine(OWNER).content == ME
        assert store.age(OWNER, store.examine(OWNER)) < 1 + self.TICK_S
        assert not store.renew(OWNER, OTHER)
        assert store.below() == [OWNER]

    @pytest.mark.parametrize("since", ["renewed", "given back", "another's"])
    def test_it_is_not_taken_over_if_it_is_another_one_since(self, store, since):
        store.take(OWNER, OTHER)
        held = store.examine(OWNER)
        time.sleep(2 * self.TICK_S)
        if since == "renewed":
            assert store.renew(OWNER, OTHER)
        else:
            store.give_back(OWNER, OTHER)
        if since == "another's":
            assert store.take(OWNER, b"a third")
        now = store.examine(OWNER)
        assert not store.take_over(OWNER, held, ME)
        assert store.examine(OWNER) == now

    def test_of_many_contenders_one_takes_it_over(self, store):
        store.take(OWNER, OTHER)
        held = store.examine(OWNER)
        won = at_once(lambda number: store.take_over(OWNER, held, bytes([number])))
        assert [bytes([number]) for number in won] == [store.examine(OWNER).content]
        assert store.below() == [OWNER]


def at_once(act, n=6):
    """Return the numbers of the threads, all begun together, for which an act was true."""
    barrier, won = threading.Barrier(n), []

    def contend(number):
        barrier.wait()
        if act(number):
            won.append(number)

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def make_part(store, number, **options):
    """Write a part of two files; its marker names where they are."""
    with store.attempt("parts/x", **options) as attempt:
        attempt.write("a/file", bytes([number]))
        attempt.write("file", bytes([number]))
        return attempt.commit("marker", attempt.prefix.encode())


def read_part(store):
    prefix = store.read("parts/x/marker", 99).decode()
    return b"".join(store.read(f"parts/x/{prefix}{name}", 1) for name in ("a/file", "file"))
