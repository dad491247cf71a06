"""The home of an estimator's model: its store, copies of it, and bytes for a pickle."""

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask

from daskls.errors import StoreError
from daskls.run.identity import check_free
from daskls.store.files import disk_errors, local_path
from daskls.store.folder import Folder
from daskls.store.layout import Root
from daskls.store.temporary import ModelHandle, TemporaryFolder

__all__ = ["choose_store", "copy_model", "embed_model", "extract_model", "interrupts_told"]

# A pickle of an estimator with a temporary store holds its model, up to this size.
MAX_EMBEDDED_NBYTES = 64 << 20
# What a killed fit may have left in a store; it is no part of the model.
NOT_MODEL = ("exchange-*", "input-*", ".*")
SAVE_AGAIN = "call save again"


def choose_store(store: str | os.PathLike[str] | None) -> tuple[Path, TemporaryFolder | None]:
    """Return the model's folder, given or temporary, and the object that keeps a temporary one."""
    if store is not None:
        path = local_path(store)
        with disk_errors(path):
            check_free(path)
        return path, None
    keep = TemporaryFolder(dask.config.get("temporary-directory", None))
    return keep.path / "model.zarr", keep


@contextmanager
def interrupts_told(store: str | os.PathLike[str] | None) -> Iterator[None]:
    """Let the KeyboardInterrupt that stops a fit say how to go on, as its last line."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.args = (
            "without store= nothing is kept; with it, the same call would go on from what is "
            "finished"
            if store is None
            else f"what is finished is kept; the same call, on store={os.fspath(store)!r}, goes "
            "on from there",
        )
        raise


def copy_model(handle: ModelHandle, target: str | os.PathLike[str]) -> None:
    """Copy a finished model; it appears at ``target`` whole or not at all.

    Raises
    ------
    StoreError : when ``target`` exists, or its disk is full or cannot be written
    """
    path = local_path(target, what="target")
    parent = Folder(str(path.parent), SAVE_AGAIN)
    parent.make()
    if parent.exists(path.name):
        raise StoreError(f"{path} exists already; give another path or remove it first.")
    with handle.in_use(), parent.attempt(path.name) as attempt:
        source = Root.open(handle.path).store
        for key in source.below(skip=NOT_MODEL):
            attempt.write(key, source.read(key, source.size(key)))
        attempt.move()


def embed_model(handle: ModelHandle) -> bytes:
    """Return a temporary model as bytes.

    Raises
    ------
    StoreError : when it is larger than `MAX_EMBEDDED_NBYTES`, or was removed
    """
    with handle.in_use():
        source = Root.open(handle.path).store
        nbytes = source.nbytes()
        if nbytes > MAX_EMBEDDED_NBYTES:
            raise StoreError(
                f"The model is in a temporary store and has {nbytes >> 20} MiB; a pickle may hold "
                f"{MAX_EMBEDDED_NBYTES >> 20} MiB. Call save(path) and pickle daskls.load(path), "
                "or fit with store=."
            )
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for key in source.below():
                content = source.read(key, nbytes)
                entry = tarfile.TarInfo(f"model.zarr/{key}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def extract_model(content: bytes) -> ModelHandle:
    """Put an embedded model into a new temporary folder."""
    path, keep = choose_store(None)
    unpacking = disk_errors(path, "load the pickle again")
    with unpacking, tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(path.parent, filter="data")
    return ModelHandle(str(path), str(Root.open(path).attributes["fingerprint"]), keep)
