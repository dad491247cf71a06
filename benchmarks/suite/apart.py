"""Measurements in processes of their own, which are ended where they take too long."""

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.suite.journal import TOO_SLOW, Record

ROOT = Path(__file__).parents[2]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_peer(name: str, folder: Path, params: Record, limit_s: float) -> Record:
    """Run one library of `peers` by itself; what it could not do is in ``failure``.

    The environment variable PEER_PYTHON names the interpreter that has the peers; daskls runs in
    this one.
    """
    own = name.startswith("daskls")
    python = sys.executable if own else os.environ.get("PEER_PYTHON", sys.executable)
    command = [python, "-m", "benchmarks.peers", name, str(folder), json.dumps(params)]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"failure": f"{TOO_SLOW} after {limit_s:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return dict(json.loads(lines[-1]))
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return {"failure": f"exit {done.returncode}: {last[:200]}".strip(": ")}


def run_forked(work: Callable[..., Record], *args: Any, limit_s: int) -> Record:
    """Do some work in a fork, which the system ends at ``limit_s`` CPU seconds of `begin_limit`."""
    # Forked, so that the rows need not travel; this process has no threads.
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, work, args))
    child.start()
    sender.close()
    try:
        found = receiver.recv()
    except EOFError:
        found = {"failure": f"{TOO_SLOW}: more than {limit_s} CPU s"}
    child.join()
    return found


def _answer(sender: Any, work: Callable[..., Record], args: tuple[Any, ...]) -> None:
    try:
        sender.send(work(*args))
    except Exception as error:
        sender.send({"failure": f"{type(error).__name__}: {error}"})


def begin_limit(seconds: int) -> None:
    """Let the system end this process when it has used up its CPU seconds from now on."""
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + seconds, used + seconds + 5))
