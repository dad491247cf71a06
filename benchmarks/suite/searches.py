"""Searches of the sampling methods, step by step: they reach into the methods, which do not tell.

Kept beside the suite's plain parts, so that one place changes where the methods do.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.peers import Data
from benchmarks.suite.journal import Record
from daskls import NeighborSamplingSVC
from daskls.methods.sampling import balls, fit, method
from daskls.methods.sampling.parts import read_part
from daskls.methods.sampling.search import SampleSearch, stalls
from daskls.methods.sampling.train import KEPT
from daskls.methods.scores import labels_of, model_scores
from daskls.store.models import BundleModels

# Queries that are answered together.
SLAB_ROWS = 512


def trace(model: Any, data: Data, n_steps: int, reference: np.ndarray | None = None) -> Record:
    """Train every step, also those beyond the stop; return rows, errors and seconds of each.

    With the numbers of reference rows, count which of these each step's support rows are, too.
    """
    kept: list[np.ndarray] | None = None if reference is None else []
    with tempfile.TemporaryDirectory() as folder, every_step(n_steps, kept) as ends:
        store = Path(folder) / "m"
        started = time.process_time()
        path = model.set_params(store=store).fit(data.X, data.y).path_
        # The number of a step's bundle is that of the radius; a step that adds no row has none.
        values = path[path.dtype.names[0]]
        by_round = isinstance(model, NeighborSamplingSVC)
        numbers = values if by_round else np.round(values * 10).astype(int) - 1
        real = [int(np.isin(rows, reference).sum()) for rows in kept or ()]
        return {
            "values": values.tolist(),
            "errors": [error_of_step(store, n, model, data) for n in numbers.tolist()],
            # What comes before the first step is a part of each.
            "step_cpu_s": np.diff([started, *ends]).tolist(),
            **{key: path[key].tolist() for key in ("n_rows", "n_support", "validation_error")},
            "n_initial_support": model.n_initial_support_,
            **({"n_real": real} if real else {}),
        }


@contextmanager
def every_step(n_steps: int, kept: list[np.ndarray] | None = None) -> Iterator[list[float]]:
    """Train on past the stop, keep all models; yield the CPU clock at the end of each step.

    The numbers of each step's support rows are appended to ``kept``.
    """
    ends: list[float] = []
    train = SampleSearch.train

    def timed(self: Any, *args: Any) -> Any:
        step = train(self, *args)
        ends.append(time.process_time())
        if kept is not None:
            kept.append(
                read_part(self.root, KEPT, step.number, step.number, ("numbers",))["numbers"]
            )
        return step

    with (
        patch.object(SampleSearch, "train", timed),
        patch.object(balls, "stalls", lambda *_: False),
        patch.object(fit, "stalls", lambda *_: False),
        patch.object(method.Sampling, "clean_up", lambda *_: None),
        patch.object(balls, "MAX_RADIUS_STEPS", n_steps),
        patch.object(fit.RoundSearch, "n_rounds", n_steps),
    ):
        yield ends


def error_of_step(store: Path, number: int, model: Any, data: Data) -> float:
    """Return the error of the model of one step."""
    (local,) = BundleModels(store, number, number, model._reader.spec).read_cells(np.zeros(1, int))
    wrong = 0
    for start in range(0, len(data.X_test), SLAB_ROWS):
        scores = model_scores(local, data.X_test[start : start + SLAB_ROWS], len(model.classes_))
        labels = labels_of(scores, model.classes_)
        wrong += int((labels != data.y_test[start : start + SLAB_ROWS]).sum())
    return wrong / len(data.X_test)


def chosen(errors: list[float], by_round: bool) -> tuple[int, int]:
    """Return where a search with these validation errors stops, and the step that it chooses."""
    rule: tuple[Any, ...] = (1, fit.LEAST_FALL) if by_round else (balls.RADIUS_PATIENCE,)
    ends = (i for i in range(len(errors)) if stalls(errors[: i + 1], *rule))
    stop = next(ends, len(errors) - 1)
    return stop, int(np.argmin(errors[: stop + 1]))
