"""The errors and warnings of daskls. Each message says: what, got, limit, remedy."""

import sys
import traceback
import warnings
from collections.abc import Sequence

__all__ = [
    "AdviceWarning",
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
    """The base class of all errors that daskls raises.

    Examples
    --------
    >>> import daskls
    >>> try:
    ...     daskls.load("no_such_model.zarr")
    ... except daskls.DasklsError as error:
    ...     print(type(error).__name__)
    StoreError
    """


class DataError(DasklsError, ValueError):
    """The data cannot be used: for example it holds infinity, or has the wrong shape.

    Examples
    --------
    >>> import daskls
    >>> try:
    ...     daskls.VoronoiSVC().fit([[0.0], [float("inf")]] * 9, [0, 1] * 9)
    ... except daskls.DataError as error:
    ...     print("row 1" in str(error))
    True
    """


class ParameterError(DasklsError, ValueError):
    """A parameter is out of its range, or two parameters exclude each other.

    Examples
    --------
    >>> import daskls
    >>> try:
    ...     daskls.VoronoiSVC(kernel="linear", feature_scale="spread").fit([[0.0], [1.0]], [0, 1])
    ... except daskls.ParameterError as error:
    ...     print(error)
    feature_scale and the choice of C and gamma by loss='squared_error' are for kernels of ...
    """


# MemoryError comes first: in the other order no worker could send the error to its client.
class MemoryPlanError(MemoryError, DasklsError):
    """The largest task would not fit in a worker's memory; raised before any training.

    Examples
    --------
    >>> import numpy as np, daskls
    >>> from distributed import Client
    >>> X = np.random.default_rng(0).random((40_000, 2))
    >>> with Client(n_workers=1, processes=False, memory_limit="4GiB", dashboard_address=":0"):
    ...     try:
    ...         daskls.VoronoiSVC(cell_size=40_000).fit(X, X[:, 0] > X[:, 1])
    ...     except daskls.MemoryPlanError as error:
    ...         print("lower cell_size" in str(error))
    True
    """


class StoreError(DasklsError):
    """A store is missing, incomplete, out of space, of another fit, or of a newer format.

    Examples
    --------
    >>> import daskls
    >>> try:
    ...     daskls.load("no_such_model.zarr")
    ... except daskls.StoreError as error:
    ...     print("no_such_model.zarr" in str(error))
    True
    """


class ClusterError(DasklsError):
    """The cluster was lost, closed or restarted, or was idle for too long; call again to resume.

    Examples
    --------
    >>> import daskls
    >>> from distributed import Client
    >>> client = Client(n_workers=1, processes=False, dashboard_address=":0")
    >>> client.close()
    >>> try:
    ...     daskls.VoronoiSVC(client=client).fit([[0.0], [1.0]] * 9, [0, 1] * 9)
    ... except daskls.ClusterError as error:
    ...     print(error)
    The client is closed, or belongs to the process that this one was forked from, so ...
    """


class DamageError(StoreError):
    """A file of a store is missing or damaged; ``where`` names it."""

    def __init__(self, message: str, where: str = "") -> None:
        super().__init__(message)
        # An attribute, unlike arguments of __init__, is pickled with an exception.
        self.where = where


class AdviceWarning(UserWarning):
    """Advice on data, parameters or the model: what to improve, by how much, and how.

    Each is given once per fit. All such warnings are of this category, so one filter silences
    them or turns them into errors.

    Examples
    --------
    >>> import warnings, daskls
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = daskls.VoronoiSVC(loss="hinge", feature_scale=None, cv=5, random_state=0)
    ...     _ = model.fit([[i / 9] for i in range(9)], ["a"] * 6 + ["b"] * 3)
    >>> [warning.category.__name__ for warning in caught]
    ['AdviceWarning']
    """


class GridEdgeWarning(AdviceWarning):
    """The best candidate is the smallest or the largest: a better value may lie beyond it.

    Examples
    --------
    >>> import warnings, daskls
    >>> from daskls.datasets import make_checkerboard
    >>> X, y = make_checkerboard(400)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = daskls.LandmarkSVC(3, C=[1e-6, 1e-5, 1], random_state=0).fit(X, y)
    >>> [warning.category.__name__ for warning in caught]
    ['GridEdgeWarning']
    """


class NonConvergenceWarning(AdviceWarning):
    """At least one local solver stopped at its step limit before it reached ``tol``.

    Examples
    --------
    >>> import warnings, daskls
    >>> from daskls.datasets import make_checkerboard
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = daskls.VoronoiSVC(
    ...         loss="hinge", feature_scale=None, C=1e9, gamma=1, tol=1e-9, random_state=0
    ...     ).fit(*make_checkerboard(400))
    >>> [warning.category.__name__ for warning in caught]
    ['NonConvergenceWarning']
    """


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, which called daskls, however deep inside the warning is given."""
    # Python 3.12 has `skip_file_prefixes` for this.
    outermost = 1
    for depth, (frame, _) in enumerate(traceback.walk_stack(sys._getframe(1)), 1):
        if frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
            outermost = depth
    # From a task of a cluster to the client as well.
    warn = getattr(sys.modules.get("distributed"), "warn", warnings.warn)
    warn(message, category, stacklevel=outermost + 2)


def counted(n: int, one: str, several: str) -> str:
    """Return a number with the words for one thing, or for several.

    >>> counted(1, "row", "rows"), counted(2000, "row", "rows")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {one if n == 1 else several}"


def listed(words: Sequence[str], most: int = 20, between: str = ", ") -> str:
    """Return words on one line; of more than ``most``, the first ones and dots.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ...'
    """
    return between.join([*words[:most], *(["..."] if len(words) > most else [])])
