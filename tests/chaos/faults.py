"""Faults while a cluster works: killed and stopped processes, closed clusters.

A trial is a session of its own: two workers, a client, a fit or a prediction, and one fault at a
moment drawn uniformly over the length of an undisturbed run. Then the same is asked again.
"""

import json
import shutil
import signal
import time
from pathlib import Path

import numpy as np

import daskls
from chaos import methods
from chaos.clients import PATIENCE, SessionProcess
from chaos.outcomes import classify, outcome_of

KINDS = ("kill", "pause", "restart", "close", "client kill", "Ctrl-C")
STAGES = ("fit", "predict")
COMBINATIONS = tuple(
    (kind, stage, name) for kind in KINDS for stage in STAGES for name in methods.NAMES
)
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
            "drawn over the length of an undisturbed run, half of the runs on workers that have "
            'not imported daskls yet. "ours" is a client that the trial killed. Then the same is '
            "asked again, in the same session or in a new one: the last columns say whether the "
            f"bits are those of an undisturbed run. Hung: {self.limit_s:g} s without progress; "
            f"`daskls.patience` is {PATIENCE}. Seed {self.seed}."
        )

    def prepare(self, names=methods.NAMES):
        """Run each estimator undisturbed, for its bits and its lengths; kept in the folder."""
        for name in names:
            path = self.folder / f"reference-{name}.json"
            if not path.exists():
                found = self._measure(name)
                path.write_text(json.dumps(found))
            self.reference[name] = json.loads(path.read_text())

    def _fit_fields(self, name):
        return methods.write_queries(self.folder, methods.N_ASKED[name] // self.part, name)

    def _measure(self, name):
        """Return the bits and the seconds of undisturbed runs in one session."""
        store, scratch = self.folder / f"model-{name}", self.folder / f"measured-{name}"
        for path in (store, scratch):
            shutil.rmtree(path, ignore_errors=True)
        scratch.mkdir()
        found, asked = {}, {"store": str(store), "data": self._fit_fields(name)}
        session = SessionProcess(scratch)
        try:
            fit = {
                "name": name,
                "size": self.size,
                "data": methods.write_data(self.folder, self.size, name),
            }
            _, found["fit cold_s"] = self._undisturbed(session, "fit", **fit, store=str(store))
            _, found["fit_s"] = self._undisturbed(
                session, "fit", **fit, store=str(scratch / "again")
            )
            found["predict"], found["predict_s"] = self._undisturbed(
                session, "predict", target=str(scratch / "labels"), **asked
            )
        finally:
            session.end()
        found["fit"] = methods.digest(daskls.load(store))
        assert methods.digest(daskls.load(scratch / "again")) == found["fit"], name
        shutil.rmtree(scratch)
        return found

    def _undisturbed(self, session, do, **values):
        session.send(do, **values)
        result, seconds = session.result(self.limit_s, None)
        assert result.kind == "value", result
        return result.value, seconds

    def draw(self, trial):
        rounds, place = divmod(trial, len(COMBINATIONS))
        order = np.random.default_rng([self.seed, rounds]).permutation(len(COMBINATIONS))
        return *COMBINATIONS[order[place]], np.random.default_rng([self.seed, rounds, place, 1])

    def run(self, trial):
        """Run one trial; return its record."""
        return Trial(self, trial).run()


class Trial:
    """One session, one fault, and what is asked after it."""

    def __init__(self, campaign, number):
        self.campaign, self.number = campaign, number
        self.kind, self.stage, self.name, rng = campaign.draw(number)
        # In the short form nothing is stopped for good: it would move when the client gives up.
        ways = [
            way
            for way in WAYS.get(self.kind, ("",))
            if not (campaign.is_short and way.endswith("for good"))
        ]
        self.how = str(rng.choice(ways))
        self.is_warm, self.in_session = (bool(rng.integers(2)) for _ in range(2))
        self.share, self.victims = float(rng.random()), rng.permutation(2).tolist()
        self.in_session = self.in_session and not {self.kind, self.how} & {*NO_SESSION}
        self.folder = campaign.folder / f"fault-{campaign.seed}-{number}"

    @property
    def reference(self):
        return self.campaign.reference[self.name]

    @property
    def moment_s(self):
        """When the fault comes, in seconds after the start."""
        cold_s = 0.0 if self.is_warm else self.reference["fit cold_s"] - self.reference["fit_s"]
        return self.share * (self.reference[f"{self.stage}_s"] + max(cold_s, 0.0))

    def run(self):
        """Run the trial; return its record."""
        began = time.monotonic()
        about = {
            **{"campaign": "faults", "seed": self.campaign.seed, "trial": self.number},
            **{"kind": self.kind, "how": self.how, "stage": self.stage, "estimator": self.name},
            "warm": self.is_warm,
            **{"moment": f"{self.how} at {self.moment_s:.2f} s, {self.share:.0%}"},
            "then_in": "session" if self.in_session else "new session",
        }
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            return {**about, **self._observe(), "seconds": round(time.monotonic() - began, 1)}
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _observe(self):
        """Disturb a run, ask again; return the classes and what was said."""
        self.place = self.folder / "place"
        self.place.mkdir()
        self.store, self.target = self.place / "store", self.place / "labels"
        if self.stage == "predict":
            shutil.copytree(self.campaign.folder / f"model-{self.name}", self.store)
        session = SessionProcess(self.folder)
        try:
            if self.is_warm:
                self._warm_up(session)
            first, done = self._disturb(session)
            again = self._again(session)
        finally:
            session.end()
        expected = self.reference[self.stage]
        return {
            **{"done": done, "outcome": classify(first, expected), "error": first.name},
            **{"message": first.message, "where": first.where},
            **{"again": classify(again, expected), "again_error": again.name},
            **{"again_message": again.message, "again_where": again.where},
        }

    def _warm_up(self, session):
        """Let the workers import and compile."""
        store = self.folder / "warm"
        data = methods.write_data(self.campaign.folder, "small", self.name)
        session.send("fit", name=self.name, size="small", store=str(store), data=data)
        result, _ = session.result(self.campaign.limit_s, None)
        assert result.kind == "value", f"undisturbed: {result}"

    def _send(self, session):
        """Ask for the fit or the prediction."""
        if self.stage == "fit":
            size = self.campaign.size
            data = methods.write_data(self.campaign.folder, size, self.name)
            return session.send("fit", name=self.name, size=size, data=data, store=str(self.store))
        asked = {"data": self.campaign._fit_fields(self.name), "target": str(self.target)}
        return session.send("predict", store=str(self.store), **asked)

    def _disturb(self, session):
        """Run with the fault; return the Result, and what the fault did."""
        self._send(session)
        begin = session.wait_for("begin", self.campaign.limit_s)
        assert isinstance(begin, dict), begin
        time.sleep(self.moment_s)
        done = self._do_fault(session)
        result, seconds = session.result(self.campaign.limit_s, self.place)
        if seconds is not None and seconds < self.moment_s:
            done = f"too late: {done}"
        if self.kind == "pause":
            session.signal_workers(signal.SIGCONT, [0, 1])
        return self._valued(result), done

    def _do_fault(self, session):
        """Do the fault; return what was done, in words."""
        if self.kind in ("kill", "pause"):
            return self._do_to_workers(session)
        if self.kind in ("restart", "close"):
            return session.send(self.kind, how=self.how or "restart") or self.kind
        if self.kind == "client kill":
            return session.kill() or "killed"
        return session.kill(signal.SIGINT, group=self.how == "all processes") or "interrupted"

    def _do_to_workers(self, session):
        """Kill or stop workers; a worker that comes back may be killed again."""
        places = self.victims if self.how.startswith("both") else self.victims[:1]
        number = signal.SIGKILL if self.kind == "kill" else signal.SIGSTOP
        n = session.signal_workers(number, places)
        if self.how == "one worker twice":
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
        """Ask once more: the same session, or a new one."""
        shutil.rmtree(self.target, ignore_errors=True)
        if self.in_session and session.is_alive():
            self._send(session)
            result, _ = session.result(self.campaign.limit_s, self.place)
            if result.name != "ClusterError":
                return self._valued(result)
        # It said what is wrong with the cluster, or is gone: work goes on elsewhere.
        session.end()
        other = SessionProcess(self.folder)
        try:
            self._send(other)
            return self._valued(other.result(self.campaign.limit_s, self.place)[0])
        finally:
            other.end()
