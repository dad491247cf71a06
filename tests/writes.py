"""What a process puts into a folder, told by Python itself: to list it, stop there, or die there.

No function of the library is replaced: an audit hook sees files as they are given their names.
"""

import os
import re
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from distributed import WorkerPlugin

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class StopError(Exception):
    """Stands for whatever stops a fit."""


class Writes:
    """Calls ``act`` with the name of each file or folder that is put in place below a folder.

    Hidden ones are not in place yet. What ``act`` raises ends the fit before the file has its name.
    ``begun``: tell of hidden ones alone, of each object that begins to be written.
    """

    _watching = None

    def __init__(self, folder, act, *, begun=False):
        self.folder, self.act, self.begun = f"{folder}{os.sep}", act, begun

    def __enter__(self):
        if Writes._watching is None:
            # A hook stays for good, so there is one, which looks where it is to look.
            Writes._watching = []
            sys.addaudithook(Writes._hook)
        Writes._watching.append(self)
        return self

    def __exit__(self, *error):
        Writes._watching.remove(self)

    @staticmethod
    def _hook(event, args):
        target = None
        if event in ("os.rename", "os.link"):
            target = args[1]
        elif event == "open" and isinstance(args[2], int) and args[2] & WRITING:
            target = args[0]
        path = os.fspath(target) if isinstance(target, (str, os.PathLike)) else ""
        for watch in list(Writes._watching) if path else ():
            if str(path).startswith(watch.folder):
                name = path[len(watch.folder) :]
                is_hidden = any(part.startswith(".") for part in name.split(os.sep))
                if is_hidden == watch.begun:
                    watch.act(name)


def stop_fit(fit, store, pattern, at=0):
    """Run a fit that stops before it puts in place the thing number ``at`` whose name matches."""
    found = []

    def stop(name):
        if re.match(pattern, name):
            found.append(name)
        if len(found) > at:
            raise StopError(name)

    with Writes(store, stop), pytest.raises(StopError):
        fit()


def stage_of(name):
    """Return what kind of thing a name is one of: itself without numbers."""
    return re.sub(r"[-.]?([0-9a-f]{8,}|\d+)", "", name)


class StopsEverywhere:
    """Stops a fit once before the first thing of each kind, and once before the second."""

    def __init__(self):
        self.stops, self.n_done, self.names = [], Counter(), Counter()

    def __call__(self, name):
        stage = stage_of(name)
        stop = stage, min(self.n_done[stage], 2)
        if stop[1] < 2 and stop not in self.stops:
            self.stops.append(stop)
            raise StopError(name)
        self.n_done[stage] += 1
        self.names[name] += 1


class KillsAt(WorkerPlugin):
    """Kills the process that puts the thing number ``at`` of all in place; keeps a log."""

    name = "kills"

    def __init__(self, store, log, at, *, begun=False):
        self.store, self.log, self.at, self.begun = str(store), str(log), at, begun

    def setup(self, worker=None):
        self.writes = Writes(self.store, self.act, begun=self.begun).__enter__()

    def teardown(self, worker=None):
        self.writes.__exit__()

    def act(self, name):
        log = Path(self.log)
        with log.open("a") as file:
            file.write(f"{os.getpid()} {name}\n")
        if len(log.read_text().splitlines()) < self.at:
            return
        try:
            os.close(os.open(f"{log}.killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        Path(f"{log}.killed").write_text(str(os.getpid()))
        self.happen()

    def happen(self):
        os.kill(os.getpid(), signal.SIGKILL)


class RemovesAt(KillsAt):
    def happen(self):
        remove(self.store)


def remove(store):
    while os.path.exists(store):
        shutil.rmtree(store, ignore_errors=True)


def read_written(log):
    """Return (pid, name) of all that was put in place, in order, and the pid that was killed."""
    lines = Path(log).read_text().splitlines()
    calls = [(int(pid), name) for pid, _, name in (line.partition(" ") for line in lines)]
    killed = Path(f"{log}.killed")
    return calls, int(killed.read_text()) if killed.exists() else None
