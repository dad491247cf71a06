"""Faults of a bucket while a fit uses it: spoiled requests, a wrong clock, a killed process.

A trial is a fit in a fork of this process, through a front that spoils a share of its requests,
and the same fit again without. This process never uses the bucket: its forks could not.
"""

import os
import random
import signal
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import s3
from s3_front import KINDS, Front

from chaos import methods
from chaos.forked import run_forked
from chaos.outcomes import Result, classify
from chaos.stores import in_this_process

# Spoiled requests of one kind, of all, and all of them for a while; or the process goes.
WAYS = (*KINDS, "mixed", "skewed", "kill", "kill, mixed")
PATIENCE = 5
COMBINATIONS = tuple((way, name) for way in WAYS for name in methods.NAMES)


class BucketCampaign:
    """References made once; each trial has a store of its own in the bucket."""

    TITLE = "Faults of a bucket"
    TABLES = ()

    def __init__(self, folder, seed, limit_s=120.0, keep=None, *, is_short=False):
        # Nothing on a disk shows progress, and a fit whose requests fail waits between its tries.
        self.folder, self.seed, self.limit_s = Path(folder).absolute(), seed, PATIENCE * limit_s
        self.folder.mkdir(parents=True, exist_ok=True)
        methods.many_small_tasks()
        self.reference, self._stack = {}, ExitStack()
        self.front = Front(self._stack.enter_context(s3.serving()))
        self._stack.callback(self.front.close)
        os.environ.update(s3.settings(self.front.endpoint))

    def about(self):
        """Return what the table shows, for people."""
        return (
            "A fit in one process, its store in a bucket of a server on this machine, through a "
            "front that spoils a share of the requests, drawn from 1 to 20 %: slow, answered with "
            "500 or 503, lost before or after they arrive, done twice, or cut off; all refused for "
            "a while, as of a wrong clock (skewed); or the process is killed. Then the same fit "
            "again, undisturbed, whose store must hold what one holds that never was disturbed. "
            f"Hung: {self.limit_s:g} s without an end. Seed {self.seed}."
        )

    def prepare(self, names=methods.NAMES):
        """Fit each estimator undisturbed: its bits, its seconds, and what its store holds."""
        for name in names:
            path = methods.write_data(self.folder, "small", name)
            with in_this_process():
                methods.fit(name, "small", path)
            done = run_forked(lambda n=name, p=path: fit(n, p, f"reference-{n}"), self.limit_s)
            assert done.kind == "value", done
            self.reference[name] = done.value

    def draw(self, trial):
        """Return what a trial is, by its number: way, stage, estimator."""
        rounds, place = divmod(trial, len(COMBINATIONS))
        order = np.random.default_rng([self.seed, rounds]).permutation(len(COMBINATIONS))
        way, name = COMBINATIONS[order[place]]
        return way, "fit", name

    def run(self, trial):
        """Run one trial; return its record."""
        way, _, name = self.draw(trial)
        rng = random.Random(1000 * self.seed + trial)
        store, data = f"{self.seed}-{trial}", methods.write_data(self.folder, "small", name)
        share, first = 10 ** rng.uniform(-2, -0.7), rng.random()
        expected = self.reference[name]
        n_requests, kill_s = expected["requests"], rng.random() * expected["seconds"]
        self.front.fault = spoiler(way, share, int(first * n_requests), rng)
        self.front.forget()
        kill_s = kill_s if way.startswith("kill") else None
        result = run_forked(lambda: fit(name, data, store, kill_s), self.limit_s)
        spoiled = sum(self.front.spoiled.values())
        self.front.fault = None
        if kill_s is not None and result.kind == "signal":
            result = Result("ours", message=result.message)
        again = run_forked(lambda: fit(name, data, store), self.limit_s)
        return {
            **{"campaign": "buckets", "seed": self.seed, "trial": trial, "kind": way},
            **{"estimator": name, "stage": "fit"},
            "moment": f"{spoiled} requests spoiled, from {int(first * n_requests)} on",
            **{"outcome": classify(bits(result), expected["bits"]), "error": result.name},
            **{"message": result.message, "where": result.where},
            **{"again": classify(whole(again), whole_of(expected)), "again_error": again.name},
            **{"again_message": again.message, "again_where": again.where},
        }

    def close(self):
        """End the server."""
        self._stack.close()


def spoiler(way, share, first, rng):
    """Return what decides over each request."""
    lock, count = threading.Lock(), [0]

    def fault(*_):
        with lock:
            count[0] += 1
            if way == "skewed":
                return "skewed" if first <= count[0] < first + 20 else None
            is_spoiled = way != "kill" and rng.random() < share
            return (rng.choice(KINDS) if way not in KINDS else way) if is_spoiled else None

    return fault


def fit(name, data, store, kill_s=None):
    """Fit in the bucket; return the model's bits and what the store holds."""

    from daskls.store.bucket import Bucket

    if kill_s is not None:
        threading.Timer(kill_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    url, began = f"s3://{s3.BUCKET}/{store}", time.monotonic()
    with in_this_process():
        model = methods.fit(name, "small", data, store=url)
        found = {"bits": methods.digest(model)}
    keys = Bucket(url).below()
    return {**found, "keys": keys, "seconds": time.monotonic() - began, "requests": 2 * len(keys)}


def bits(result):
    """Return a result with the model's bits alone."""
    return Result("value", result.value["bits"]) if result.kind == "value" else result


def whole_of(value):
    return [value["bits"], value["keys"]]


def whole(result):
    """Return a result with the bits and what the store holds."""
    return Result("value", whole_of(result.value)) if result.kind == "value" else result
