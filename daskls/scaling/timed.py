"""Looks at candidates, timed; see `daskls.run.timed`."""

from collections.abc import Callable
from functools import partial

import numpy as np

from daskls.records import Float32, Float64
from daskls.run.pace import Setting
from daskls.run.timed import seconds_in
from daskls.scaling.grid import Trial, TrialGrid
from daskls.scaling.heats import ASKED_ROWS
from daskls.scaling.look import Look
from daskls.scaling.regions import HELD_SHARE
from daskls.scaling.solve import TrialCell
from daskls.solvers.squares.aims import Aim, aim_of
from daskls.targets import Target

__all__ = ["answer_held", "begin_look", "leave_out", "look_on", "take_gradients"]


def _trials(setting: Setting) -> tuple[Trial, Trial]:
    """Return where looks begin, and the trial of the next width."""
    kernel = setting.spec.kernel
    grid = TrialGrid().of_kernel(kernel)
    start = grid.start(kernel)
    beside = grid.at((grid.place(start)[0] + 1, grid.place(start)[1]), kernel)
    assert beside is not None
    return start, beside


def _aim(setting: Setting) -> Aim:
    k = setting.n_classes
    if setting.spec.target == "numbers":
        return aim_of(Target("numbers", center=np.zeros(k), scale=np.ones(k)))
    return aim_of(Target("classes", np.arange(k)))


def _drawn(n_rows: int, setting: Setting) -> tuple[Float32, Float64]:
    X, targets = setting.draw(n_rows)
    return X.astype(np.float32), _aim(setting).columns(targets)


def _look(size: int, setting: Setting) -> Callable[[], Look]:
    """Return what begins a look at drawn rows."""
    A, Y = _drawn(size + ASKED_ROWS, setting)
    return partial(Look, A, Y, np.ones(len(A)), size, setting.spec.kernel, _aim(setting))


def begin_look(size: int, setting: Setting) -> float:
    """Time distances of so many rows to each other, and to those that are asked."""
    return seconds_in(_look(size, setting))


def look_on(size: int, setting: Setting) -> float:
    """Time a trial of another width on so many rows."""
    look, (start, beside) = _look(size, setting)(), _trials(setting)
    look.errors(start)
    return seconds_in(lambda: look.errors(beside))


def _cell(size: int, setting: Setting) -> TrialCell:
    X, targets = setting.draw(size)
    return TrialCell(X.astype(np.float32), targets, np.ones(size), _aim(setting))


def leave_out(size: int, setting: Setting) -> float:
    """Time leave-one-out errors of a cell under one trial."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    return seconds_in(lambda: cell.errors([start]))


def take_gradients(size: int, setting: Setting) -> float:
    """Time the derivatives of a cell's functions."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    return seconds_in(lambda: cell.gradients(start))


def answer_held(size: int, setting: Setting) -> float:
    """Time answers of a cell to the rows that were held out of it."""
    cell, (start, _) = _cell(size, setting), _trials(setting)
    queries = setting.draw(max(size // HELD_SHARE, 1))[0].astype(np.float32)
    return seconds_in(lambda: cell.values(queries, start))
