"""Stores that are removed while in use, and folders that go because their writing failed."""

import time

from daskls.errors import StoreError
from daskls.store.artifacts import open_store
from daskls.store.backend import Backend

__all__ = ["is_being_removed", "remove_begun"]

# Looks whether a folder that was removed has come back.
N_REMOVALS, REMOVAL_S = 4, 0.05
# How often, and after what pause, one looks whether a file goes that is there.
MANY_LOOKS, FEW_LOOKS = 40, 6
LOOK_PAUSE_S = 0.05


def is_being_removed(store: Backend, key: str, error: Exception) -> bool:
    """Return whether an error is due to an artifact that is gone, or to its store being removed.

    Removing a store takes a while: the first artifact found missing may not be this one.
    """
    for number in range(_n_looks(error)):
        if number:
            time.sleep(LOOK_PAUSE_S)
        if not store.exists(key):
            return True
    return False


def _n_looks(error: BaseException | None) -> int:
    """Return how often to look: longest where a file was missed, not at all for other reasons."""
    if not isinstance(error, OSError | StoreError):
        return 1
    while error is not None:
        if isinstance(error, FileNotFoundError):
            return MANY_LOOKS
        error = error.__cause__
    # The cause does not travel with an error from a worker.
    return FEW_LOOKS


def remove_begun(location: str) -> None:
    """Remove Zarr data whose writing failed, for good.

    Of several files that Zarr writes at once the first failure comes back; the others continue for
    a moment, and would make the folder again.
    """
    store = open_store(location)
    for _ in range(N_REMOVALS):
        store.drop("")
        time.sleep(REMOVAL_S)
