"""Tasks that run twice, and disks that are full."""

import errno
import threading
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def full_disk(part, at):
    """From a number on fail on files whose path holds ``part``; the half that fits is left."""
    create, n = folder.create_file, []

    def refuse(path, *args, **kwargs):
        n.extend([path] * (part in path))
        if part not in path or len(n) <= at:
            return create(path, *args, **kwargs)
        Path(path).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "create_file", refuse)
        yield
    assert len(n) > at


# What the paths of files that are being written hold.
PARTS = {
    **{"exchange": "/.block-", "groups": "/.group-", "manifest": "/.manifest-", "root": "m/.root"},
    **{"partition": "/.partition.", "bundles": "/bundles/", "index": "/.index."},
}


@pytest.mark.parametrize("at", [0, 5])
@pytest.mark.parametrize("place", PARTS)
def test_a_full_disk(place, at, data, undisturbed, tmp_path):
    store = tmp_path / "m"
    once = place in ("manifest", "partition", "index", "root")
    told = r"No space left.*Free some space.*call fit again"
    with full_disk(PARTS[place], 0 if once else at), pytest.raises(StoreError, match=told):
        small_svc(store=store).fit(*data)
    with pytest.raises(StoreError):
        daskls.load(store)
    # Nothing half written has a name.
    for bundle in store.glob("bundles/*"):
        open_artifact(store, f"bundles/{bundle.name}").check()
    assert_same_model(undisturbed, small_svc(store=store).fit(*data))
    assert sorted(p.name for p in store.iterdir()) == ["bundles", "index", "partition", "root"]
