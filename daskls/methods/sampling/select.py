"""Selection of C and gamma for the one model, by cross-validation of a few rows drawn by number."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from daskls.kernels.registry import find_kernel
from daskls.methods.sampling.train import TrainJob, read_drawn, read_further
from daskls.records import CellReport, Int64
from daskls.run.blas import one_blas_thread, undisturbed
from daskls.seeds import SELECTING
from daskls.solvers.base import Neighborhood
from daskls.solvers.registry import find_neighborhood_solver

__all__ = ["evaluate_candidates"]

# Of a model that is kept nowhere.
NOBODY = CellReport(0, 0, 0, 0, 0.0)


@undisturbed
def evaluate_candidates(
    n_rows: int, percentiles: tuple[float, ...] | None, job: TrainJob
) -> dict[str, Any]:
    """Return the candidates of the smallest error on so many of the drawn rows.

    Where the rows are of one class, or equal, nothing tells candidates apart: C and gamma are None.
    """
    own = job.own
    with one_blas_thread():
        rows = own.handle.open().read_positions(_positions(n_rows, job))
        spec = replace(own.spec, cv=min(own.spec.cv, n_rows), search="full")
        seed = SELECTING(own.draws.seed, n_rows=n_rows)
        given = rows.X, rows.targets, rows.weights
        near = Neighborhood(*given, n_rows, spec, percentiles, seed)
        report = find_neighborhood_solver(spec).fit_neighborhood(near, NOBODY).report
    has_gamma = find_kernel(own.spec.kernel).has_gamma and not math.isnan(report.gamma)
    return {
        "C": None if math.isnan(report.C) else report.C,
        "gamma": report.gamma if has_gamma else None,
        "n_rows": n_rows,
        "validation_error": report.validation_error,
    }


def _positions(n_rows: int, job: TrainJob) -> Int64:
    """Return where the first rows of the permutation stand, in the order of row numbers."""
    own = job.own
    n_first = min(n_rows, own.draws.n_sampled)
    rows, _, positions = read_drawn(own, job.tiles, 0, n_first)
    numbers, further = read_further(own, job.tiles, 0, n_rows - n_first)
    order = np.argsort(np.concatenate([rows.numbers, numbers]))
    found: Int64 = np.concatenate([positions, further])[order]
    return found
