"""Fifty fits of all methods in one session on two workers of 512 MiB: what they hold after each."""

import shutil
import time
from pathlib import Path

import psutil

from chaos import methods
from chaos.clients import SessionProcess
from chaos.outcomes import Result, classify, markdown

N_FITS = 50
LIMIT = "512MiB"
PATIENCE_S = 20
MIB = 1 << 20


def run(folder, results, n_fits=N_FITS, limit_s=120.0):
    """Fit and predict in turn; write a table; return how many fits broke the promise."""
    folder = Path(folder).absolute()
    scratch = folder / "memory"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    session = SessionProcess(scratch, memory_limit=LIMIT, small_tasks=False)
    rows, broken = [], 0
    try:
        for number in range(n_fits):
            row, fine = _one(session, number, scratch, limit_s)
            rows.append(row)
            broken += not fine
            print(row, flush=True)
            if not session.is_alive() or "hung" in row[2]:
                break
    finally:
        session.end()
        shutil.rmtree(scratch, ignore_errors=True)
    _write(Path(results), rows, n_fits)
    return broken + n_fits - len(rows)


def _one(session, number, scratch, limit_s):
    """Fit, predict, look at the workers; after a refusal start them anew, as it must say."""
    name = methods.NAMES[number % len(methods.NAMES)]
    store, data = scratch / f"store-{number}", methods.write_data(scratch.parent, "plain", name)
    session.send("fit", name=name, size="plain", store=str(store), data=data)
    fit, seconds = session.result(limit_s, scratch)
    outcomes = [_outcome(fit)]
    if outcomes == ["ends"]:
        session.send(
            "predict", way="labels", store=str(store), data=data, target=str(scratch / "labels")
        )
        asked, _ = session.result(limit_s, scratch)
        outcomes.append(_outcome(asked))
        shutil.rmtree(scratch / "labels", ignore_errors=True)
        fit = asked if fit.kind == "value" else fit
    states, held = _look(session)
    shutil.rmtree(store, ignore_errors=True)
    if "refused" in outcomes:
        # What the refusal must say gives the memory back.
        session.send("restart")
        session.wait_for("disturbed", limit_s)
    fine = set(outcomes) <= {"ends", "refused"} and "paused" not in states
    said = fit.message[:200].replace("|", "/") + fit.name
    took = "" if seconds is None else f"{seconds:.1f}"
    return [number + 1, name, ", ".join(outcomes), took, *held, states, said], fine


def _outcome(result):
    """Return "ends", "refused" or what is wrong."""
    if result.kind == "value":
        return "ends"
    found = classify(result, None)
    says_how = "hold" in result.message and "restart" in result.message
    return "refused" if found == "clear" and says_how else f"{found}: {result.name}".strip(": ")


def _look(session):
    """Return the workers' states, and the RSS and PSS of each in MiB.

    A worker may pause for a moment; one that does so for long does it for good.
    """
    for _ in range(PATIENCE_S):
        session.send("look")
        found = session.wait_for("workers", 30)
        if isinstance(found, Result):
            return found.kind, ["", ""]
        if "paused" not in found["states"]:
            break
        time.sleep(1)
    held = []
    for pid in found["pids"]:
        memory = psutil.Process(pid).memory_full_info()
        held.append(f"{memory.rss // MIB} / {memory.pss // MIB}")
    return ", ".join(found["states"]), [*held, "", ""][:2]


def _write(results, rows, n_fits):
    header = ["fit", "method", "fit, predict", "s", "worker 1", "worker 2", "states", "said"]
    n, _, d = methods.SIZES["plain"]
    text = (
        f"# {n_fits} fits in one session on two workers of {LIMIT}\n\n"
        f"{n} x {d} rows, one thread a worker, each fit followed by the prediction of all rows. "
        "Memory after each in MiB: RSS / PSS of each worker's process. A fit that is refused "
        "says what the workers hold and how to get it back; then `client.restart()` runs.\n\n"
    )
    (results / "chaos_memory.md").write_text(text + markdown(header, rows))
