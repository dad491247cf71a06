"""Temporary stores of models without a path, which are removed with their last user."""

import os
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import dask

from daskls.errors import StoreError
from daskls.store.contents import ROOT
from daskls.store.errors import disk_errors
from daskls.store.folder import Folder
from daskls.store.objects import Objects, is_being_removed, open_store


class TemporaryFolder:
    """A folder that is removed with the last reference to this object.

    It is not sent to workers. Only the process that created the folder removes it: that of a
    `tempfile.TemporaryDirectory` may be removed by a fork.
    """

    def __init__(self) -> None:
        where = temporary_root()
        with disk_errors(where, "set it as Dask's temporary-directory, or fit with store="):
            where.mkdir(parents=True, exist_ok=True)
            self.where = Path(tempfile.mkdtemp(prefix="daskls-", dir=where)).absolute()
        # Also runs at the interpreter's exit, where __del__ may not.
        self._finalizer = weakref.finalize(self, _remove, self.where, os.getpid())


def temporary_root() -> Path:
    """Return the folder where Dask keeps temporary data."""
    return Path(dask.config.get("temporary-directory", None) or tempfile.gettempdir()).expanduser()


def temporary_path() -> Path:
    """Return an unused path where Dask keeps temporary data; the caller removes it."""
    return temporary_root().absolute() / f"daskls-{uuid.uuid4().hex}"


@dataclass(frozen=True)
class Scratch:
    """Files of one call, for this process or shared with workers; removed with its context.

    `shared` is a path or a URL.
    """

    folder: Path
    shared: str

    @classmethod
    def temporary(cls) -> "Scratch":
        """Return one where Dask keeps temporary data, which workers must see."""
        return cls.at(temporary_path())

    @classmethod
    def at(cls, folder: Path) -> "Scratch":
        return cls(folder, str(folder))

    @classmethod
    def inside(cls, store: Objects, name: str) -> "Scratch":
        """Return one in an unfinished store; in a bucket, this process gets a folder of its own."""
        local = store.local(name)
        return cls(temporary_path() if local is None else Path(local), store.where(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for place in {str(self.folder), self.shared}:
            open_store(place).drop("")


def _remove(path: Path, owner: int) -> None:
    """Remove a folder, unless this process is a fork of its owner."""
    if os.getpid() == owner:
        Folder(str(path)).drop("")


class ModelHandle:
    """A handle on a model: a location and a fingerprint.

    ``keep`` ties a temporary folder to the handle's holder, an estimator or the graph of a lazy
    prediction; it is dropped when the handle is sent to a worker.
    """

    def __init__(
        self, location: str, fingerprint: str, keep: TemporaryFolder | None = None
    ) -> None:
        self.location = location
        self.fingerprint = fingerprint
        self.keep = keep

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.location, self.fingerprint)

    def __dask_tokenize__(self) -> tuple[str, str, str]:
        return ("daskls.ModelHandle", self.location, self.fingerprint)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Raise StoreError that the model is gone if that caused an error in the body."""
        try:
            yield
        except Exception as error:
            if not is_being_removed(open_store(self.location), ROOT, error):
                raise
            raise StoreError(
                f"The model at {self.location} was removed while it was in use, or this machine "
                "does not see it. Put it back, or train it again, then call predict again."
            ) from error

    @property
    def is_temporary(self) -> bool:
        return self.keep is not None
