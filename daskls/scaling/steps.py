"""Steps of a decision, each stored when it is done, so that a killed fit resumes after it."""

from collections.abc import Callable, Sequence
from typing import Any

from daskls.records import AnyArray, Float64
from daskls.run.compute import compute_each
from daskls.store.artifacts import open_store
from daskls.store.packs import read_pack, write_pack

__all__ = ["STEPS", "Steps", "sum_in_order"]

# The kind of parts that steps are kept as.
STEPS = "steps"


def sum_in_order(parts: Sequence[Float64]) -> Float64:
    """Return the sum of arrays, first to last: a sum's bits depend on its order."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


class Steps:
    """The steps of one decision, in their order, which the data and the parameters decide.

    Parameters
    ----------
    job : RegionJob or ThinJob
    client : distributed client, or None for the current scheduler
    """

    def __init__(self, job: Any, client: Any = None) -> None:
        self.job, self._client = job, client
        self._n_steps = 0

    def run(
        self,
        task: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        join: Callable[[Sequence[Any]], dict[str, AnyArray]],
    ) -> dict[str, AnyArray]:
        """Return what ``join`` makes of the results of a task, computed or as it was kept.

        Parameters
        ----------
        task : function. Its name is what the dashboard shows.
        arguments : sequence of tuple. One call each; the job is given last.
        join : makes named arrays of the results, which are in the order of the arguments
        """
        key = f"{self.job.folder(STEPS)}/{self._n_steps:06d}-{self._n_steps:06d}"
        self._n_steps += 1
        if not open_store(self.job.root).exists(key):
            calls = [(*own, self.job) for own in arguments]
            write_pack(self.job.root, key, join(compute_each(task, calls, self._client)))
        return read_pack(self.job.root, key)
