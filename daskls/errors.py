"""Every error that daskls raises on purpose. Each message says: what, got, limit, remedy."""

__all__ = [
    "ClusterError",
    "DamageError",
    "DasklsError",
    "DataError",
    "GridEdgeWarning",
    "MemoryPlanError",
    "NonConvergenceWarning",
    "ParameterError",
    "StoreError",
]


class DasklsError(Exception):
    """The root of daskls's errors."""


class DataError(DasklsError, ValueError):
    """The data cannot be used: NaN, a wrong shape, one class, and the like."""


class ParameterError(DasklsError, ValueError):
    """A parameter is out of its range, or two parameters exclude each other."""


# MemoryError first: the other way round no worker could send one to its client.
class MemoryPlanError(MemoryError, DasklsError):
    """The largest task would not fit a worker; raised before any training."""


class StoreError(DasklsError):
    """A store is missing, incomplete, foreign, from a newer format, or out of space."""


class ClusterError(DasklsError):
    """The cluster was lost, closed or restarted, or did nothing for too long; call it again."""


class DamageError(StoreError):
    """A file of a store is missing, or not what was written; ``path`` names it, ``why`` tells."""

    def __init__(self, message: str, path: str = "", why: str = "") -> None:
        super().__init__(message)
        # An exception travels from a worker with its attributes.
        self.path = path
        self.why = why


class GridEdgeWarning(UserWarning):
    """The best of the candidates is their smallest or largest: a better one may lie beyond."""


class NonConvergenceWarning(UserWarning):
    """Some local solver stopped at its step limit before it reached `tol`."""
