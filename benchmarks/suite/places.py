"""Where an experiment runs: on a cluster of this machine, or in this process alone."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster


@contextmanager
def cluster(n_workers: int = 2, memory: str = "2GiB", n_threads: int = 1) -> Iterator[LocalCluster]:
    """Start workers that the body's fits use."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            memory_limit=memory,
            dashboard_address=":0",
        ) as found,
        Client(found),
    ):
        yield found


def alone() -> AbstractContextManager[Any]:
    """Run one task after the other in this process, in one thread."""
    return dask.config.set(scheduler="sync", num_workers=1)


def warm_up(*models: Any, d: int = 3) -> None:
    """Fit each on a few rows: kernels are compiled once a machine, imports paid once a process."""
    X = np.random.default_rng(0).random((2000, d))
    for model in models:
        model.fit(X, X[:, 0] > 0.5).predict(X)
