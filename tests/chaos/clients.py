"""A session as a process that can be killed, stopped and given up, seen from outside."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

from support import python_env

from chaos.outcomes import Result
from daskls.store.owner import OWNER

POLL_S = 0.1
START_S = 120.0
# Dask's setting daskls.patience, shorter than its default.
PATIENCE = "30s"


class SessionProcess:
    """A `chaos.session` in a process group of its own, with its workers in it."""

    def __init__(self, folder):
        reader, writer = os.pipe()
        env = python_env(DASK_DASKLS__PATIENCE=PATIENCE)
        env = {k: v for k, v in env.items() if not k.endswith("_NUM_THREADS")}
        self.log = open(os.path.join(folder, "session.log"), "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "chaos.session", str(writer)],
            **{"stdin": subprocess.PIPE, "stdout": self.log, "stderr": self.log},
            **{"pass_fds": [writer], "start_new_session": True, "env": env, "cwd": folder},
        )
        os.close(writer)
        self.reader, self.text, self.is_ours = reader, b"", False
        ready = self.wait_for("ready", START_S)
        if not isinstance(ready, dict):
            raise RuntimeError(f"no session: {ready}; see {self.log.name}")
        self.workers = ready["pids"]

    def send(self, do, **values):
        with suppress(BrokenPipeError):
            self.process.stdin.write((json.dumps({"do": do, **values}) + "\n").encode())
            self.process.stdin.flush()

    def wait_for(self, event, limit_s, watched=None):
        seen, since = None, time.monotonic()
        while time.monotonic() - since < limit_s:
            found = self._next(POLL_S)
            if found is not None and found["event"] == event:
                return found
            if found is None and self.process.poll() is not None:
                code = self.process.returncode
                return Result("ours") if self.is_ours else Result("signal", message=f"code {code}")
            now = newest(watched)
            if now != seen:
                seen, since = now, time.monotonic()
        return Result("hung", message=f"no progress for {limit_s:g} s")

    def result(self, limit_s, watched):
        end = self.wait_for("end", limit_s, watched)
        if isinstance(end, Result):
            return end, None
        return Result(**end["result"]), end["seconds"]

    def _next(self, timeout_s):
        while b"\n" not in self.text:
            if not select.select([self.reader], [], [], timeout_s)[0]:
                return None
            chunk = os.read(self.reader, 1 << 16)
            if not chunk:
                time.sleep(timeout_s)
                return None
            self.text += chunk
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def kill(self, number=signal.SIGKILL, *, group=False):
        self.is_ours = self.is_ours or number == signal.SIGKILL
        (os.killpg if group else os.kill)(self.process.pid, number)

    def signal_workers(self, number, places):
        n = 0
        for place in places:
            with suppress(ProcessLookupError):
                os.kill(self.workers[place], number)
                n += 1
        return n

    def end(self):
        if self.log.closed:
            return
        with suppress(ProcessLookupError):
            for number in (signal.SIGKILL, signal.SIGCONT):
                os.killpg(self.process.pid, number)
        self.process.wait()
        self.process.stdin.close()
        os.close(self.reader)
        self.log.close()


def newest(folder):
    """Return what changes when anything below a folder is written, made or removed.

    But for the owner's sign of life, which a fit that hangs gives as well.
    """
    count, latest = 0, 0.0
    for parent, _, files in os.walk(folder or ""):
        for name in [".", *(name for name in files if name != OWNER)]:
            with suppress(OSError):
                latest = max(latest, os.stat(os.path.join(parent, name)).st_mtime_ns)
                count += 1
    return count, latest
