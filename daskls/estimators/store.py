"""Where an estimator's model lives: its store, copies of it, and bytes for a pickle."""

import io
import os
import shutil
import tarfile
from pathlib import Path

import dask

from daskls.errors import StoreError
from daskls.graph.identity import check_free
from daskls.store.files import local_path, replace_folder
from daskls.store.layout import Root
from daskls.store.temporary import ModelHandle, TemporaryFolder

__all__ = ["copy_model", "embed_model", "extract_model", "open_store"]

# A pickle of an estimator with a temporary store holds its model, up to this size.
MAX_EMBEDDED_NBYTES = 64 << 20
# What a killed fit may have left in a store; it is no part of the model.
NOT_MODEL = ("exchange-*", "input-*", ".*")


def open_store(store: str | os.PathLike[str] | None) -> tuple[Path, TemporaryFolder | None]:
    """Return the model's folder: the given one, or a temporary one and what keeps it alive."""
    if store is not None:
        path = local_path(store)
        check_free(path)
        return path, None
    keep = TemporaryFolder(dask.config.get("temporary-directory", None))
    return keep.path / "model.zarr", keep


def copy_model(handle: ModelHandle, target: str | os.PathLike[str]) -> None:
    """Copy a finished model; it appears at ``target`` whole or not at all.

    Raises
    ------
    StoreError : when ``target`` exists
    """
    path = local_path(target, what="target")
    if path.exists():
        raise StoreError(f"{path} exists already; give another path or remove it first.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_folder(path) as folder:
        shutil.copytree(handle.path, folder, ignore=shutil.ignore_patterns(*NOT_MODEL))


def embed_model(handle: ModelHandle) -> bytes:
    """Return a temporary model as bytes.

    Raises
    ------
    StoreError : when it is larger than `MAX_EMBEDDED_NBYTES`
    """
    files = [p for p in Path(handle.path).rglob("*") if p.is_file()]
    nbytes = sum(p.stat().st_size for p in files)
    if nbytes > MAX_EMBEDDED_NBYTES:
        raise StoreError(
            f"The model is in a temporary store and has {nbytes >> 20} MiB; a pickle may hold "
            f"{MAX_EMBEDDED_NBYTES >> 20} MiB. Call save(path) and pickle daskls.load(path), or "
            "fit with store=."
        )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(handle.path, arcname="model.zarr")
    return buffer.getvalue()


def extract_model(content: bytes) -> ModelHandle:
    """Put an embedded model into a new temporary folder."""
    path, keep = open_store(None)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(path.parent, filter="data")
    return ModelHandle(str(path), str(Root.open(path).attributes["fingerprint"]), keep)
