"""A fit in a process of its own that dies as it puts the thing number ``at`` in place."""

import dask
import dask.array as da
import pytest
from small import small, small_leaves, tiny_tasks
from support import checkers
from writes import KillsAt


def run(name, store, at):
    """Fit a small estimator of a class and be killed."""
    X, y = checkers(600, n_classes=3)
    rows = da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100)
    KillsAt(store, f"{store}.log", at).setup()
    small_leaves(pytest.MonkeyPatch())
    with tiny_tasks(), dask.config.set(scheduler="threads", num_workers=2):
        small(name, store=store).fit(*rows)
