"""Which modules of daskls a call enters, in what order: how far a reader has to walk.

PYTHONPATH=tests python -m entered
"""

import sys
import threading
from pathlib import Path

import dask
import numpy as np

import daskls

PACKAGE = Path(daskls.__file__).parent


def modules_entered(call, until=None):
    """Return the modules that a call enters, one after the other, up to a function.

    Parameters
    ----------
    call : function without arguments
    until : (module, function), as ("pipeline.py", "run_fit"), or None: to its end
    """
    entered, is_done = [], threading.Event()

    def profile(frame, event, _):
        code = frame.f_code
        if event != "call" or is_done.is_set() or not code.co_filename.startswith(str(PACKAGE)):
            return
        module = Path(code.co_filename).relative_to(PACKAGE).as_posix()
        if (module, code.co_name) == until:
            is_done.set()
        elif entered[-1:] != [module]:
            entered.append(module)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return entered


def walk():
    """Return stays and modules of a fit to its stages, to its solver, and of a prediction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X[:, 0] > 0
    with dask.config.set(scheduler="synchronous"):
        model = daskls.VoronoiSVC(random_state=0).fit(X, y)
        model.predict(X[:5])
        ways = {
            "fit, to run_fit": (lambda: model.fit(X, y), ("pipeline.py", "run_fit")),
            "fit, to the local solver": (
                lambda: model.fit(X, y),
                ("solvers/squares/solver.py", "fit"),
            ),
            "predict": (lambda: model.predict(X[:5]), None),
        }
        found = {name: modules_entered(*way) for name, way in ways.items()}
    return {name: (len(stays), len(set(stays))) for name, stays in found.items()}


if __name__ == "__main__":
    for name, (stays, modules) in walk().items():
        print(f"{name}: {stays} stays in {modules} modules, {stays - modules} re-entries")
