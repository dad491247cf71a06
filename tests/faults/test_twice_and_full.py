"""Tasks that run twice, and disks that are full."""

import errno
import threading

import pytest
from support import Calls, assert_same_model, small_svc

import daskls
from daskls import StoreError
from daskls.methods.cells import fit
from daskls.run import regroup
from daskls.store import folder
from daskls.store.artifact import open_artifact


def test_every_task_twice_at_once_does_no_harm(data, undisturbed, monkeypatch, tmp_path):
    bundle_runs = Calls(monkeypatch, fit, "write_bundle", lambda *args: args[1])
    monkeypatch.setattr(fit, "fit_bundle", twice(fit.fit_bundle))
    monkeypatch.setattr(regroup, "assign_block", twice(regroup.assign_block))
    model = small_svc(store=tmp_path / "m").fit(*data)
    assert_same_model(undisturbed, model)
    # Both runs of at least one bundle came to the writing.
    assert max(bundle_runs.counter().values()) == 2
    assert not list((tmp_path / "m" / "bundles").glob(".*"))


def twice(task):
    """Return a task that runs in two threads at once and returns one's answer."""

    def run(*args, **kwargs):
        answers, barrier = [], threading.Barrier(2)

        def one():
            barrier.wait()
            answers.append(task(*args, **kwargs))

        threads = [threading.Thread(target=one) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 2, "one of two equal tasks failed"
        return answers[0]

    run.__name__ = task.__name__
    return run


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def folder_writer(monkeypatch, at, part):
    """Fail on files of the store whose path holds ``part``; the half that fits is left."""

    def match(path):
        if part in path:
            with open(path, "wb") as file:
                file.write(b"half")
        return part in path

    return FullFrom(monkeypatch, folder, "create_file", at, match)


class FullFrom:
    """Lets writing work ``at`` times and then fails, until `heal`."""

    def __init__(self, monkeypatch, owner, name, at, matches):
        self.n, self.full = 0, True
        original = getattr(owner, name)

        def write(*args, **kwargs):
            if self.full and matches(*args, **kwargs):
                self.n += 1
                if self.n > at:
                    no_space()
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, write)

    def heal(self):
        assert self.n > 0, "the disk was never full: nothing was tested"
        self.full = False


# What the paths of files that are being written hold.
PARTS = {
    **{"exchange": "/.block-", "groups": "/.group-", "manifest": "/.manifest-", "root": "m/.root"},
    **{"partition": "/.partition.", "bundles": "/bundles/", "index": "/.index."},
}


@pytest.mark.parametrize("at", [0, 5])
@pytest.mark.parametrize("place", PARTS)
def test_a_full_disk(place, at, data, undisturbed, monkeypatch, tmp_path):
    store = tmp_path / "m"
    once = place in ("manifest", "partition", "index", "root")
    full = folder_writer(monkeypatch, 0 if once else at, PARTS[place])
    with pytest.raises(StoreError, match=r"No space left.*Free some space.*call fit again"):
        small_svc(store=store).fit(*data)
    with pytest.raises(StoreError):
        daskls.load(store)
    # Nothing half written has a name.
    for bundle in store.glob("bundles/*"):
        open_artifact(store, f"bundles/{bundle.name}").check()
    full.heal()
    model = small_svc(store=store).fit(*data)
    assert_same_model(undisturbed, model)
    assert sorted(p.name for p in store.iterdir()) == ["bundles", "index", "partition", "root"]
