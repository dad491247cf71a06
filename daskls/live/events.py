"""Events about trained cells, which workers send to the scheduler for its page."""

from collections.abc import Iterable

import numpy as np

from daskls.cluster import in_task
from daskls.records import CellReport, Mask, Table

# The topic of events on the scheduler.
TOPIC = "daskls"
# Per leaf: its number, its cells, their rows, the rows of cells whose error was measured, those of
# cells of one class or one number, and the rows that were wrong, or sums of squared errors.
COUNTED = ("leaf", "cells", "rows", "measured", "pure", "wrong")
# One list per name in `COUNTED`, each with one value per leaf.
LeafCounts = list[list[float]]


def report_cells(root: str, first: int, last: int, reports: Iterable[CellReport]) -> None:
    """Report a bundle that this task has written to the scheduler, under the fit's store."""
    if not in_task():
        return
    from distributed import get_worker

    table = np.array([report.as_tuple() for report in reports], CellReport.dtype())
    get_worker().log_event(TOPIC, {"bundles": [[root, first, last, count_leaves(table)]]})


def count_leaves(table: Table) -> LeafCounts:
    leaves, inverse = np.unique(table["leaf"], return_inverse=True)
    rows, errors = table["n_rows"].astype(np.float64), table["validation_error"]
    weights = (
        np.ones(len(rows)),
        rows,
        rows * np.isfinite(errors),
        rows * find_single_class(table),
        rows * np.nan_to_num(errors),
    )
    counted = (np.bincount(inverse, weights=weight, minlength=len(leaves)) for weight in weights)
    return [leaves.tolist(), *(numbers.tolist() for numbers in counted)]


def find_single_class(table: Table) -> Mask:
    """Return which cells hold a single class or number, which they predict without an error."""
    pure: Mask = np.where(table["n_classes"] == 0, table["n_trained"] == 0, table["n_classes"] == 1)
    return pure
