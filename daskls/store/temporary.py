"""Temporary stores of models without a path, which go with their last user."""

import os
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask

from daskls.errors import StoreError
from daskls.store.files import disk_errors
from daskls.store.folder import Folder
from daskls.store.removal import is_being_removed

__all__ = ["ModelHandle", "TemporaryFolder", "temporary_path"]


class TemporaryFolder:
    """A folder that is removed with the last object that refers to this one.

    It does not travel: only the process that made the folder removes it.
    """

    def __init__(self, parent: str | None = None) -> None:
        where = Path(tempfile.gettempdir() if parent is None else parent).expanduser()
        with disk_errors(where, "set it as Dask's temporary-directory, or fit with store="):
            where.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix="daskls-", dir=where)).absolute()
        # Runs at the end of the interpreter as well, where __del__ may not.
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())


def temporary_path() -> Path:
    """Return a path of nothing yet, where Dask keeps temporary data; the caller removes it."""
    where = dask.config.get("temporary-directory", None) or tempfile.gettempdir()
    return Path(where).expanduser().absolute() / f"daskls-{uuid.uuid4().hex}"


def _remove(path: Path, owner: int) -> None:
    """Remove a folder, unless a fork of its owner asks."""
    if os.getpid() == owner:
        Folder(str(path)).drop("")


class ModelHandle:
    """A handle on a model: a path and a fingerprint.

    ``keep`` ties a temporary folder to the object that holds the handle, an estimator or the graph
    of a lazy prediction; it is dropped when the handle is sent to a worker.
    """

    def __init__(self, path: str, fingerprint: str, keep: TemporaryFolder | None = None) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.keep = keep

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "fingerprint": self.fingerprint, "keep": None}

    def __dask_tokenize__(self) -> tuple[str, str, str]:
        return ("daskls.ModelHandle", self.path, self.fingerprint)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Say that the model is gone, where that is the reason for an error in the body.

        Raises
        ------
        StoreError : in place of the error of the first missing file
        """
        try:
            yield
        except Exception as error:
            if not is_being_removed(Path(self.path, "zarr.json"), error):
                raise
            raise StoreError(
                f"The model at {self.path} was removed while it was in use, or this machine does "
                "not see it. Put it back, or train it again, then call predict again."
            ) from error

    @property
    def is_temporary(self) -> bool:
        """Whether the model goes when its last user goes."""
        return self.keep is not None
