"""What a fit would cost: the method ``plan`` of every estimator."""

from typing import Any

from daskls.errors import ParameterError
from daskls.estimators.ahead import look_ahead
from daskls.estimators.predictions import Predictions
from daskls.plan import Bill, Resources
from daskls.run.client import current_client
from daskls.run.contract import FitRequest
from daskls.run.resources import resources_of
from daskls.run.rows import open_rows
from daskls.store.temporary import Scratch

__all__ = ["Plans"]


class Plans(Predictions):
    """An estimator that tells what `fit` would cost before it begins."""

    # Those of every estimator.
    _validate_params: Any
    _request: Any

    def plan(
        self,
        X: Any,
        y: Any = None,
        *,
        workers: int | None = None,
        threads_per_worker: int = 1,
        memory_limit: int | str | None = None,
        timed: bool = True,
    ) -> Bill:
        """Return what `fit` would cost: tasks, bytes, seconds, and what it would refuse.

        Nothing is trained, and of X nothing is read but its shape, dtype and chunks. Pieces of the
        work are timed on a worker, on rows drawn anew: some seconds.

        Parameters
        ----------
        X : as `fit` takes it, where its rows are known before they are read; or a shape (rows,
            features), which is taken for float32
        y : as `fit` takes it, or None. Of y in memory the classes are counted, of a data set they
            are those that it names; else two are assumed.
        workers : int, or None for those of the current scheduler. Processes of a cluster that need
            not exist.
        threads_per_worker : int, >= 1, default 1. Of ``workers``.
        memory_limit : int, str as "2GiB", or None for a share of this machine. Of one of
            ``workers``.
        timed : bool, default True. Without, no seconds are told and nothing is run.

        Returns
        -------
        bill : Bill. ``print(bill)`` shows it; ``refusals`` are what `fit` would refuse, each with
            the parameter to change; ``cpu_s`` and ``wall_s(n_slots)`` the expected seconds.

        Raises
        ------
        DataError : a table whose rows only reading tells; a shape without rows or features
        ParameterError : parameters that do not go together, or are out of range
        """
        # Here, so that a process which only predicts never loads the trainers.
        from daskls.methods.bill import plan_fit

        self._validate_params()
        request: FitRequest = self._request()
        current_client(self.client)
        resources = _resources(workers, threads_per_worker, memory_limit)
        ahead = look_ahead(X, y, self._kind)
        with open_rows(ahead.X, ahead.y, None, Scratch.temporary(), self._kind) as rows:
            given = request, rows, ahead.target, resources, self.client
            return plan_fit(*given, timed=timed, notes=ahead.notes)


def _resources(
    workers: int | None, threads_per_worker: int, memory_limit: int | str | None
) -> Resources | None:
    """Return what a cluster of such workers would offer; None where none is described.

    Raises
    ------
    ParameterError
    """
    if workers is not None:
        return resources_of(workers, threads_per_worker, memory_limit)
    if memory_limit is not None or threads_per_worker != 1:
        raise ParameterError(
            f"memory_limit={memory_limit!r} and threads_per_worker={threads_per_worker} are of "
            "workers, but workers is None; say how many there are."
        )
    return None
