"""Ctrl-C while a command starts its cluster, fits or predicts: real processes, all of them."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
from support import PAPERS, as_options, checkers, heed_interrupts, python_env, run_cli, small_svc

import daskls
from daskls.datasets import write
from daskls.store.dataset import DatasetWriter

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupts")
    # Some seconds of prediction, so that no command ends before the signal comes.
    with DatasetWriter(folder / "many", 2, "f8") as writer:
        writer.append(*checkers(4_000_000))
    small_svc(store=folder / "model", cell_size=200).fit(*checkers(2000))
    return folder


def start(*args):
    return subprocess.Popen(
        [sys.executable, "-m", "daskls", *map(str, args), "-q"],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
        # A session of its own, as a terminal gives: the signal goes to all of its processes.
        **{"env": python_env(), "start_new_session": True, "preexec_fn": heed_interrupts},
    )


def alive_of_session(session):
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.name())
    return found


def count_children(process):
    with suppress(psutil.NoSuchProcess):
        return len(psutil.Process(process.pid).children(recursive=True))
    return 0


# When the signal comes, as functions of (process, output): the resource tracker is the first child,
# two workers are the next.
MOMENTS = {
    "the first process": lambda process, out: count_children(process) >= 1,
    "both workers": lambda process, out: count_children(process) >= 3,
    # Its place until it is whole.
    "the output": lambda process, out: any(out.parent.glob(f".{out.name}.*")),
    "the first bundle": lambda process, out: any(out.glob("bundles/[!.]*")),
}
INTERRUPTED = {
    "predict": "Interrupted; the unfinished output was removed.",
    "fit": "Interrupted; what is finished is kept: run the same command again to go on from there.",
}


def interrupt(process, out, moment, later_s=0.0, times=1):
    while not MOMENTS[moment](process, out):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    time.sleep(later_s)
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.2 * (times > 1))


def check_end(process, command):
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr.splitlines()) == (130, [INTERRUPTED[command]])
    # What Python itself starts beside its processes goes when it sees that they are gone.
    deadline = time.monotonic() + 30
    while alive := alive_of_session(process.pid):
        assert time.monotonic() < deadline, alive
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("moment", "later_s", "times"),
    [("the first process", 0.6, 1), ("both workers", 0.1, 2), ("the output", 0.0, 1)],
)
def test_ctrl_c_while_predict_starts_a_cluster(moment, later_s, times, folder, tmp_path):
    out = tmp_path / "out"
    process = start("predict", folder / "model", folder / "many", out, "--workers", 2)
    interrupt(process, out, moment, later_s, times)
    check_end(process, "predict")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_ctrl_c_in_a_fit_says_how_to_go_on_and_the_same_command_does(tmp_path):
    data, model = tmp_path / "many", tmp_path / "m"
    # Six bundles of some seconds each.
    write("checkerboard", data, 60_000)
    options = as_options(cell_size=1000, search="full", random_state=1, **PAPERS)
    process = start("fit", data, model, *options, "--workers", 1)
    interrupt(process, model, "the first bundle")
    check_end(process, "fit")
    assert "unfinished" in run_cli("info", model).stdout
    kept = {p: p.stat().st_mtime_ns for p in model.glob("bundles/[!.]*")}
    assert kept
    # Not in this process, whose small tasks make other bundles.
    process = start("fit", data, model, *options, "--workers", 0)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 0
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert daskls.load(model).n_cells_ == 60
