"""Damaged stores: one file of a finished or an unfinished store, then what people do next.

A finished store is loaded and asked, then trained again; an unfinished one, a fit killed at one of
its changes of the file system, is trained again. Each step runs in a fork of its own.
"""

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import dask
import numpy as np

import daskls
from chaos import methods
from chaos.damage import KINDS, do_damage, files_of
from chaos.forked import run_forked
from chaos.outcomes import classify

# A store whose owner cannot be told is refused for as long as the message says.
OWNED, OWNED_S = "Another fit is writing", 61.0
# What is said of a store whose root is damaged, or gone: the user removes the store.
ROOTLESS = ("Remove the store, then fit again", "exists but holds no model")
STATES = ("finished", "unfinished")
# Every (state, kind, estimator) once a round.
COMBINATIONS = tuple(
    (state, kind, name) for kind in KINDS for state in STATES for name in methods.NAMES
)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.truncate")


def in_this_process():
    """Return a context in which Dask's work is done by the calling thread."""
    return dask.config.set(scheduler="sync")


def fit_digest(name, data, store):
    """Train, or go on with, a store in this process; return the model's digest."""
    with in_this_process():
        return methods.digest(methods.fit(name, "small", data, store=store))


def load_digest(store):
    """Open a store and ask it; return its digest."""
    return methods.digest(daskls.load(store))


def die_at_change(folder, at, log=None):
    """Let this process kill itself before the change number ``at`` of files below a folder.

    Without ``at`` the changes are counted, into the file ``log``.
    """
    prefix, lock, n = str(folder), threading.Lock(), [0]

    def hook(event, args):
        if event == "open":
            if not (isinstance(args[0], str) and args[2] & WRITES):
                return
        elif event not in CHANGES:
            return
        if not str(args[0]).startswith(prefix):
            return
        with lock:
            n[0] += 1
            if at is not None and n[0] >= at:
                os.kill(os.getpid(), signal.SIGKILL)
        if at is None:
            os.pwrite(log, b"%12d" % n[0], 0)

    sys.addaudithook(hook)


class StoreCampaign:
    """References in a folder, made once; trials in folders of their own."""

    TITLE = "Damaged stores"
    TABLES = ("state",)

    def __init__(self, folder, seed, limit_s=120.0, keep=None, *, is_short=False):
        self.folder, self.seed, self.limit_s = Path(folder).absolute(), seed, limit_s
        self.keep = keep and Path(keep)
        self.folder.mkdir(parents=True, exist_ok=True)
        methods.many_small_tasks()
        self.expected, self.n_changes = {}, {}

    def close(self):
        """Leave nothing behind that runs."""

    def data_for(self, name):
        """Return the path of the rows that an estimator is trained on."""
        return methods.write_data(self.folder, "small", name)

    def prepare(self, names=methods.NAMES):
        """Train each estimator undisturbed: twice, so that the fit itself gives the same bits."""
        for name in names:
            store = self.folder / f"finished-{name}"
            shutil.rmtree(store, ignore_errors=True)
            self.expected[name] = fit_digest(name, self.data_for(name), store)
            counted = self._count_changes(name)
            assert counted.value == self.expected[name], f"{name}: {counted}"

    def _count_changes(self, name):
        """Train once more, in a fork; keep how many changes of files it made."""
        store, path = self.folder / f"counted-{name}", self.folder / f"changes-{name}"
        shutil.rmtree(store, ignore_errors=True)
        log = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

        def fit():
            die_at_change(store, None, log)
            return fit_digest(name, self.data_for(name), store)

        result = run_forked(fit, self.limit_s)
        os.close(log)
        self.n_changes[name] = int(path.read_text())
        shutil.rmtree(store, ignore_errors=True)
        return result

    def about(self):
        """Return what the table shows, for people."""
        return (
            "One file of a store, drawn uniformly over all that it holds, is damaged: of a "
            "finished store, which is then loaded, asked and trained again; or of a fit killed "
            "before one of its changes of the file system, drawn uniformly, which is then called "
            "again. The classes are those of the first answer; a fit that refuses with a clear "
            "error is called once more, its store removed where the error says so, and the last "
            "columns say whether the model in the end has "
            f"the bits of an undisturbed fit. Seed {self.seed}."
        )

    def draw(self, trial):
        """Return what a trial is, by its number: state, kind of damage, estimator, generator."""
        rounds, place = divmod(trial, len(COMBINATIONS))
        order = np.random.default_rng([self.seed, rounds]).permutation(len(COMBINATIONS))
        return *COMBINATIONS[order[place]], np.random.default_rng([self.seed, rounds, place, 1])

    def run(self, trial):
        """Run one trial; return its record."""
        state, kind, name, rng = self.draw(trial)
        store = self.folder / f"trial-{self.seed}-{trial}"
        shutil.rmtree(store, ignore_errors=True)
        began = time.monotonic()
        moment = self._make_store(state, name, store, rng)
        damage = do_damage(store, kind, rng) if files_of(store) else "no file was there yet"
        if self.keep:
            shutil.copytree(store, self.keep / store.name, dirs_exist_ok=True)
        record = {
            **{"campaign": "stores", "seed": self.seed, "trial": trial, "state": state},
            **{"kind": kind, "estimator": name, "moment": moment, "damage": damage},
            **self._observe(state, name, store),
        }
        shutil.rmtree(store, ignore_errors=True)
        return {**record, "seconds": round(time.monotonic() - began, 1)}

    def _make_store(self, state, name, store, rng):
        """Put a finished or an unfinished store in place; return when the fit was stopped."""
        if state == "finished":
            shutil.copytree(self.folder / f"finished-{name}", store)
            return None
        # From the second change on: before it there is nothing to damage.
        at = int(rng.integers(2, self.n_changes[name] + 1))

        def fit():
            die_at_change(store, at)
            return fit_digest(name, self.data_for(name), store)

        run_forked(fit, self.limit_s)
        return f"change {at} of {self.n_changes[name]}"

    def _observe(self, state, name, store):
        """Ask and train again; return the classes and what was said."""
        expected = self.expected[name]

        def fit():
            return fit_digest(name, self.data_for(name), store)

        if state == "finished":
            first = run_forked(lambda: load_digest(store), self.limit_s, watched=store)
            again = run_forked(fit, self.limit_s, watched=store)
        else:
            first = again = run_forked(fit, self.limit_s, watched=store)
        n_fits = 1
        refused = classify(again, expected) == "clear"
        refusal = again.message if refused else ""
        if refused:
            if OWNED in refusal:
                time.sleep(OWNED_S)
            elif any(words in refusal for words in ROOTLESS):
                shutil.rmtree(store)
            again = run_forked(fit, self.limit_s, watched=store)
            n_fits = 2
        return {
            **{"outcome": classify(first, expected), "error": first.name},
            **{"message": first.message, "where": first.where},
            **{"again": classify(again, expected), "again_error": again.name},
            **{"again_message": again.message, "again_where": again.where},
            **{"n_fits": n_fits, "refusal": refusal},
        }
