"""Faults while a cluster works: killed and stopped processes, closed clusters.

A trial is a session of its own: two workers, a client, a fit or a prediction, and one fault at a
moment drawn uniformly over the length of an undisturbed run. Then the same is asked again.
"""

import json
import shutil
import signal
import time
from itertools import product
from pathlib import Path

import numpy as np

import daskls
from chaos import methods
from chaos.clients import PATIENCE, SessionProcess
from chaos.outcomes import classify, outcome_of

KINDS = ("kill", "pause", "restart", "close", "client kill", "Ctrl-C")
COMBINATIONS = tuple(product(KINDS, ("fit", "predict"), methods.NAMES))
# How a kind of fault is done; drawn.
WAYS = {
    "kill": ("one worker", "one worker", "both workers", "one worker twice"),
    "pause": ("one worker for 5 s", "one worker for good", "both workers for 5 s"),
    "close": ("cluster", "workers", "client"),
    "Ctrl-C": ("the client", "all processes"),
}
# After these the session has no client, or no worker, that could work: a worker that gets the
# terminal's Ctrl-C ends, and Dask starts no other.
NO_SESSION = ("close", "client kill", "all processes")
PAUSE_S = 5.0


class FaultCampaign:
    """References in a folder, made once; trials in folders of their own."""

    def __init__(self, folder, seed, limit_s=120.0, *, is_short=False):
        self.folder, self.seed, self.limit_s = Path(folder).absolute(), seed, limit_s
        self.is_short = is_short
        self.size, self.part = ("small", 8) if is_short else ("large", 1)
        self.folder.mkdir(parents=True, exist_ok=True)
        methods.many_small_tasks()
        self.reference = {}

    def about(self):
        return (
            "Two workers of one thread, a client in a process of its own; one fault at a moment "
            "drawn over the length of an undisturbed run, half of the runs on fresh workers. "
            '"ours" is a client that the trial killed. Then the same is asked again. Hung: '
            f"{self.limit_s:g} s without progress; `daskls.patience` is {PATIENCE}. "
            f"Seed {self.seed}."
        )

    def prepare(self, names):
        """Run each estimator undisturbed, for its bits and its lengths; kept in the folder."""
        for name in names:
            path = self.folder / f"reference-{name}.json"
            if not path.exists():
                path.write_text(json.dumps(self._measure(name)))
            self.reference[name] = json.loads(path.read_text())

    def training(self, name, size=None):
        size = size or self.size
        return {"name": name, "size": size, "data": methods.write_data(self.folder, size, name)}

    def queries(self, name):
        return methods.write_queries(self.folder, methods.N_ASKED[name] // self.part, name)

    def _measure(self, name):
        store, scratch = self.folder / f"model-{name}", self.folder / f"measured-{name}"
        for path in (store, scratch):
            shutil.rmtree(path, ignore_errors=True)
        scratch.mkdir()
        found, again = {}, scratch / "again"
        asked = {"store": str(store), "data": self.queries(name), "target": str(scratch / "labels")}
        session, fit = SessionProcess(scratch), self.training(name)
        try:
            _, found["fit cold_s"] = self.undisturbed(session, "fit", **fit, store=str(store))
            _, found["fit_s"] = self.undisturbed(session, "fit", **fit, store=str(again))
            found["predict"], found["predict_s"] = self.undisturbed(session, "predict", **asked)
        finally:
            session.end()
        found["fit"] = methods.digest(daskls.load(store))
        assert methods.digest(daskls.load(again)) == found["fit"], name
        shutil.rmtree(scratch)
        return found

    def undisturbed(self, session, do, **values):
        session.send(do, **values)
        result, seconds = session.result(self.limit_s, None)
        assert result.kind == "value", result
        return result.value, seconds

    def draw(self, trial):
        rounds, place = divmod(trial, len(COMBINATIONS))
        order = np.random.default_rng([self.seed, rounds]).permutation(len(COMBINATIONS))
        return *COMBINATIONS[order[place]], np.random.default_rng([self.seed, rounds, place, 1])

    def run(self, trial):
        return Trial(self, trial).run()


class Trial:
    def __init__(self, campaign, number):
        self.campaign, self.number, self.limit_s = campaign, number, campaign.limit_s
        self.kind, self.stage, self.name, rng = campaign.draw(number)
        ways = WAYS.get(self.kind, ("",))
        if campaign.is_short:
            # Nothing is stopped for good: it would move when the client gives up.
            ways = [way for way in ways if not way.endswith("for good")]
        self.how = str(rng.choice(ways))
        self.is_warm, self.in_session = (bool(rng.integers(2)) for _ in range(2))
        self.share, self.victims = float(rng.random()), rng.permutation(2).tolist()
        self.in_session = self.in_session and not {self.kind, self.how} & {*NO_SESSION}
        self.folder = campaign.folder / f"fault-{campaign.seed}-{number}"
        self.place = self.folder / "place"
        self.store, self.target = self.place / "store", self.place / "labels"
        # When the fault comes, in seconds after the start.
        reference = campaign.reference[self.name]
        cold_s = 0.0 if self.is_warm else reference["fit cold_s"] - reference["fit_s"]
        self.moment_s = self.share * (reference[f"{self.stage}_s"] + max(cold_s, 0.0))
        self.expected = reference[self.stage]

    def run(self):
        began = time.monotonic()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.place.mkdir(parents=True)
        if self.stage == "predict":
            shutil.copytree(self.campaign.folder / f"model-{self.name}", self.store)
        try:
            session = SessionProcess(self.folder)
            try:
                if self.is_warm:
                    # The workers import and compile.
                    small = self.campaign.training(self.name, "small")
                    store = str(self.folder / "warm")
                    self.campaign.undisturbed(session, "fit", **small, store=store)
                first, done = self._disturb(session)
                again = self._again(session)
            finally:
                session.end()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        return {
            **{"campaign": "faults", "seed": self.campaign.seed, "trial": self.number},
            **{"kind": self.kind, "how": self.how, "stage": self.stage, "estimator": self.name},
            **{"warm": self.is_warm, "moment": f"at {self.moment_s:.2f} s, {self.share:.0%}"},
            **{"then_in": "session" if self.in_session else "new session", "done": done},
            **{"outcome": classify(first, self.expected), "error": first.name},
            **{"message": first.message, "where": first.where},
            **{"again": classify(again, self.expected), "again_error": again.name},
            **{"again_message": again.message, "again_where": again.where},
            "seconds": round(time.monotonic() - began, 1),
        }

    def _send(self, session):
        own = {"data": self.campaign.queries(self.name), "target": str(self.target)}
        if self.stage == "fit":
            own = self.campaign.training(self.name)
        session.send(self.stage, **own, store=str(self.store))

    def _disturb(self, session):
        self._send(session)
        begin = session.wait_for("begin", self.limit_s)
        assert isinstance(begin, dict), begin
        time.sleep(self.moment_s)
        done = self._do_fault(session)
        result, seconds = session.result(self.limit_s, self.place)
        if seconds is not None and seconds < self.moment_s:
            done = f"too late: {done}"
        if self.kind == "pause":
            session.signal_workers(signal.SIGCONT, [0, 1])
        return self._valued(result), done

    def _do_fault(self, session):
        if self.kind in ("restart", "close"):
            return session.send(self.kind, how=self.how or "restart") or self.kind
        if self.kind == "client kill":
            return session.kill() or "killed"
        if self.kind == "Ctrl-C":
            return session.kill(signal.SIGINT, group=self.how == "all processes") or "interrupted"
        places = self.victims if self.how.startswith("both") else self.victims[:1]
        number = signal.SIGKILL if self.kind == "kill" else signal.SIGSTOP
        n = session.signal_workers(number, places)
        if self.how == "one worker twice":
            # One that comes back may be killed again.
            time.sleep(1.0)
            n += session.signal_workers(number, self.victims[1:])
        if self.how.endswith("5 s"):
            time.sleep(PAUSE_S)
            session.signal_workers(signal.SIGCONT, places)
        return f"{n} workers"

    def _valued(self, result):
        if result.kind != "value" or self.stage == "predict":
            return result
        return outcome_of(lambda: methods.digest(daskls.load(self.store)))

    def _again(self, session):
        shutil.rmtree(self.target, ignore_errors=True)
        if self.in_session and session.process.poll() is None:
            self._send(session)
            result, _ = session.result(self.limit_s, self.place)
            if result.name != "ClusterError":
                return self._valued(result)
        # It said what is wrong with the cluster, or is gone: work goes on elsewhere.
        session.end()
        other = SessionProcess(self.folder)
        try:
            self._send(other)
            return self._valued(other.result(self.limit_s, self.place)[0])
        finally:
            other.end()
