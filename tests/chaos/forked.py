"""Run a function in a fork of this process: what kills or hangs it costs the one trial.

Everything heavy is imported and compiled before the fork, so that a trial costs its own work only.
"""

import json
import os
import resource
import select
import signal
import time
import warnings

from chaos.outcomes import Result, result_of_error
from daskls.store.owner import OWNER

# Beside what the process holds already: a damaged size must not take the machine's memory.
SPARE_NBYTES = 4 << 30
POLL_S = 0.5


def run_forked(task, limit_s, *, watched=None):
    """Call ``task()`` in a fork; return a Result.

    Parameters
    ----------
    task : function that returns a digest, or anything that JSON holds
    limit_s : float. Seconds without progress after which the fork is killed and "hung".
    watched : folder whose changes are progress, or None
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        _run_child(task, writer)
    os.close(writer)
    try:
        text, is_hung = _read_all(reader, limit_s, watched)
    finally:
        os.close(reader)
        if _is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    status = _reap(pid)
    if is_hung:
        return Result("hung", message=f"no progress for {limit_s:g} s")
    if not text:
        return Result("signal", message=f"ended by {signal_name(status)}")
    return Result(**json.loads(text))


def signal_name(status):
    """Return what a wait status says, for people."""
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.WEXITSTATUS(status)}"


def _run_child(task, writer):
    """Run the task, send its result, end without the parent's cleaning up."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        limit = _virtual_nbytes() + SPARE_NBYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        text = json.dumps(vars(outcome_of(task)))
        os.write(writer, text.encode())
    finally:
        os._exit(0)


def outcome_of(task):
    """Return the Result of a call: its value, or what it raised."""
    try:
        return Result("value", value=task())
    except BaseException as error:  # whatever ends a fit is what a campaign looks for
        return result_of_error(error)


def _virtual_nbytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _read_all(reader, limit_s, watched):
    """Return what the fork wrote until it ended, and whether it had to be given up."""
    chunks, seen, since = [], None, time.monotonic()
    while time.monotonic() - since < limit_s:
        if select.select([reader], [], [], POLL_S)[0]:
            chunk = os.read(reader, 1 << 16)
            if not chunk:
                return b"".join(chunks), False
            chunks.append(chunk)
        now = newest(watched)
        if now != seen:
            seen, since = now, time.monotonic()
    return b"", True


def newest(folder):
    """Return what changes when anything below a folder is written, made or removed.

    But for the owner's sign of life, which a fit that hangs gives as well.
    """
    if folder is None:
        return None
    count, latest = 0, 0.0
    for parent, _, files in os.walk(folder):
        for name in [".", *(name for name in files if name != OWNER)]:
            try:
                latest = max(latest, os.stat(os.path.join(parent, name)).st_mtime_ns)
            except OSError:
                continue
            count += 1
    return count, latest


def _is_alive(pid):
    """Whether a child has not ended; leaves it to be reaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _reap(pid):
    return os.waitpid(pid, 0)[1]
