"""One fit at a time on a store: who owns it, who may take it over, and who finds out."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from hashlib import sha256

import pytest
from support import checkers, python_env, small_svc

from daskls import StoreError
from daskls.store import owner
from daskls.store.folder import Folder
from daskls.store.objects import ROOT
from daskls.store.owner import OWNER, check_owner, own_store

# Owns a store until a line comes in.
HOLD = """
import sys
from pathlib import Path
from daskls.store.owner import own_store
with own_store(Path(sys.argv[1])):
    print("owned", flush=True)
    sys.stdin.readline()
"""


def start(code, *args, **options):
    command = [sys.executable, "-c", code, *map(str, args)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, env=python_env(), text=True, **pipes, **options)


@contextmanager
def holder(store):
    process = start(HOLD, store)
    try:
        assert process.stdout.readline() == "owned\n", process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def edit(store, age_s=None, **values):
    path = store / OWNER
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    if age_s is not None:
        os.utime(path, (time.time() - age_s,) * 2)


def take(store):
    with own_store(store):
        check_owner(store)


def refused(store, match):
    with pytest.raises(StoreError, match=match) as refusal, own_store(store):
        pytest.fail("two own the store")
    return str(refusal.value)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "stores" / "m"


@pytest.fixture(scope="module")
def dead(tmp_path_factory):
    store = tmp_path_factory.mktemp("dead")
    with holder(store):
        pass
    return (store / OWNER).read_bytes()


@pytest.fixture
def left(store, dead):
    store.mkdir(parents=True)
    (store / OWNER).write_bytes(dead)
    return store


def test_a_store_is_given_back_at_the_end(store):
    with own_store(store):
        assert (store / OWNER).exists()
    for error in (ZeroDivisionError, KeyboardInterrupt):
        with pytest.raises(error), own_store(store):
            raise error
    assert list(store.iterdir()) == []


def test_the_second_is_refused_and_told_whom_to_wait_for(store):
    with holder(store) as process:
        host, year = os.uname().nodename, time.strftime("%Y-")
        text = refused(store, f"process {process.pid} on {host}, since {year}")
        for part in (str(store), "last renewed its ownership", "Wait", "call fit again", "60 s"):
            assert part in text
        # Nothing of the second is left, and the first still owns the store.
        assert [p.name for p in store.iterdir()] == [OWNER]
        process.communicate("\n")
        assert process.returncode == 0
    take(store)


def test_a_killed_owner_is_known_at_once_also_as_a_zombie(store):
    with holder(store) as process:
        process.kill()
        # Its parent, this process, has not asked for its end: the system still lists it.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with own_store(store):
            assert json.loads((store / OWNER).read_text())["pid"] == os.getpid()
    assert list(store.iterdir()) == []


def test_a_stopped_owner_is_alive_but_no_other_process_of_its_number(store):
    with holder(store) as process:
        process.send_signal(signal.SIGSTOP)
        edit(store, age_s=10_000)
        refused(store, "Another fit")
        edit(store, started="1 ticks")
        take(store)
        process.send_signal(signal.SIGCONT)


def test_elsewhere_an_owner_is_gone_when_it_gives_no_sign(left):
    # The same host's name and number: what counts is the machine's run, and the container.
    edit(left, machine="another boot pid:[1]", age_s=50)
    refused(left, r"50 s ago|51 s ago")
    edit(left, machine="another boot pid:[1]", age_s=100)
    take(left)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"pid": 1}', b"\xff" * 50, b"{" * 10_000])
def test_a_damaged_file_counts_as_somebody(left, content):
    (left / OWNER).write_bytes(content)
    refused(left, "does not say")
    os.utime(left / OWNER, (time.time() - 100,) * 2)
    take(left)


def test_an_owner_renews_its_file(store, monkeypatch):
    monkeypatch.setattr(owner, "BEAT_S", 0.01)
    with own_store(store):
        os.utime(store / OWNER, (0, 0))
        given_up = time.monotonic() + 60
        while (store / OWNER).stat().st_mtime == 0 and time.monotonic() < given_up:
            time.sleep(0.01)
        assert (store / OWNER).stat().st_mtime > 0


def test_an_owner_that_lost_its_store_finds_out(store):
    loss = pytest.raises(StoreError, match=r"taken over by process 1 on .*call fit again")
    with loss, own_store(store):
        edit(store, pid=1, token="other")
        with pytest.raises(StoreError, match="taken over"):
            check_owner(store)
    # What is another's now stays.
    assert json.loads((store / OWNER).read_text())["token"] == "other"


@pytest.mark.parametrize("begun", [False, True])
def test_an_owner_whose_store_or_file_was_removed_finds_out(store, begun):
    def lose():
        if begun:
            (store / ROOT).touch()
        (store / OWNER).unlink() if begun else shutil.rmtree(store)
        raise KeyError("what followed from it")

    told = r"removed the file .*what is finished is kept" if begun else "was removed while fit was"
    with pytest.raises(StoreError, match=told), own_store(store):
        lose()
    assert store.exists() == begun


def test_a_fork_gives_nothing_back(store):
    with own_store(store):
        child = os.fork()
        if not child:
            # As the parent's `with` would, were the child to leave it.
            for own in list(owner._fits.values()):
                own.release()
            os._exit(0)
        os.waitpid(child, 0)
        check_owner(store)


N_ROUNDS = 5
CONTEND = """
import sys, time
from pathlib import Path
from threading import Thread
from daskls import StoreError
from daskls.store.owner import own_store
wins = []
def contend(store, begin):
    inside = store.with_suffix(".inside")
    while time.time() < begin:
        time.sleep(0.0005)
    try:
        with own_store(store):
            inside.touch(exist_ok=False)
            wins.append(store)
            time.sleep(0.2)
            inside.unlink()
    except StoreError:
        pass
print("ready", flush=True)
begin = float(sys.stdin.readline())
for number, store in enumerate(sys.argv[1:]):
    threads = [Thread(target=contend, args=(Path(store), begin + number)) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
print(len(set(wins)))
"""


def test_a_contender_that_was_killed_as_it_replaced_a_dead_owner_is_replaced(left, dead):
    (left / OWNER).write_bytes(dead)
    killed = json.dumps({**json.loads(dead), "token": "killed"}).encode()
    (left / f"{OWNER}.{sha256(dead).hexdigest()[:32]}").write_bytes(killed)
    with own_store(left):
        check_owner(left)
        assert [p.name for p in left.iterdir()] == [OWNER]
    assert list(left.iterdir()) == []


@pytest.mark.slow
def test_contenders_for_a_dead_owners_store_never_own_it_together(tmp_path, dead):
    stores = [tmp_path / f"{i}" for i in range(N_ROUNDS)]
    for store in stores:
        store.mkdir()
        (store / OWNER).write_bytes(dead)
    processes = [start(CONTEND, *stores) for _ in range(4)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 4
    begin = f"{time.time() + 0.5}\n"
    for process in processes:
        process.stdin.write(begin)
        process.stdin.flush()
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [errors for _, errors in outputs] == [""] * 4
    # Each store had an owner at least once; one that came late may have found it free again.
    assert sum(int(wins) for wins, _ in outputs) >= N_ROUNDS
    # One that lost an empty store to another, which ended, takes it for a removed one.
    assert [list(store.iterdir()) for store in stores if store.exists()] in (
        [[]] * n for n in range(N_ROUNDS + 1)
    )


def test_what_a_killed_contender_left_goes_with_the_next_fit(left):
    for name in (f"{OWNER}.{'0' * 32}", f".{OWNER}.{'1' * 32}", ".root." + "2" * 32):
        (left / name).write_bytes(b"")
    small_svc(store=left).fit(*checkers(100))
    assert sorted(p.name for p in left.iterdir()) == ["bundles", "index", "partition", "root"]


def test_a_contender_waits_for_another_that_replaces_a_dead_owner(left, dead):
    (left / OWNER).write_bytes(dead)
    first, second = (owner.Ownership(Folder(str(left))) for _ in range(2))
    read, refusals = first._read, []

    def read_as_second_comes(key=OWNER):
        found = read(key)
        if key == OWNER and (right := list(left.glob(f"{OWNER}.*"))):
            # The first has the right to replace the dead one, and is about to.
            assert [json.loads(p.read_text())["token"] for p in right] == [first.me.token]
            with pytest.raises(StoreError, match="Several fits are taking the store") as refusal:
                second.acquire()
            refusals.append(refusal)
        return found

    first._read = read_as_second_comes
    first.acquire()
    assert len(refusals) == 1
    first.check()
    for contender in (second, first):
        contender.release()
    assert list(left.iterdir()) == []
