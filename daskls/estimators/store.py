"""Where an estimator keeps its model: a store, copies of it, and bytes in a pickle."""

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager

from daskls.errors import AdviceWarning, warn_user
from daskls.run.identity import check_free
from daskls.store.errors import disk_errors, exists_already
from daskls.store.layout import Root
from daskls.store.objects import ROOT, BaseStore, ModelHandle, TemporaryFolder, open_store, store_at

# A pickle of a larger model, which memory holds twice while it is made, is advised against.
LARGE_PICKLE_NBYTES = 256 << 20
# Keys that a killed fit may have left in a store; they are not part of the model.
NOT_MODEL = ("exchange-*", "input-*", ".*")
SAVE_AGAIN = "call save again"
# The name of the model in a temporary folder and in a pickle.
TEMPORARY = "model.zarr"


def choose_store(store: str | os.PathLike[str] | None) -> tuple[BaseStore, TemporaryFolder | None]:
    """Return the model's store and, if it is temporary, the object that keeps it alive."""
    if store is not None:
        objects = store_at(store)
        with disk_errors(objects.where()):
            check_free(objects)
        return objects, None
    keep = TemporaryFolder()
    return open_store(keep.where / TEMPORARY), keep


@contextmanager
def interrupts_explained(store: str | os.PathLike[str] | None) -> Iterator[None]:
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
    """Copy a finished model; it appears at ``target`` whole or not at all."""
    copy = store_at(target, what="target")
    copy.then = SAVE_AGAIN
    if copy.exists(""):
        raise exists_already(copy)
    with handle.in_use():
        source = open_store(handle.location)
        with copy.building() as place:
            target_store = open_store(place.where)
            target_store.then = SAVE_AGAIN
            # The root last: without it nobody takes the others for a model.
            for key in sorted(_keys_of(source), key=ROOT.__eq__):
                target_store.put(key, source.read(key, source.size(key)))


def _keys_of(model: BaseStore) -> Iterator[str]:
    yield from Root.open(model).store.below(skip=NOT_MODEL)


def embed_model(handle: ModelHandle) -> bytes:
    """Return a temporary model as the bytes of a tar archive; warn if they are many."""
    with handle.in_use():
        source = Root.open(handle.location).store
        keys = list(_keys_of(source))
        nbytes = sum(map(source.size, keys))
        if nbytes > LARGE_PICKLE_NBYTES:
            warn_user(
                f"A pickle or a copy of this model holds all its {nbytes >> 20} MiB in memory "
                f"(more than {LARGE_PICKLE_NBYTES >> 20} MiB), as it is in a temporary store. "
                "Call save(path) and pickle daskls.load(path), which is only the path; or fit "
                "with store=.",
                AdviceWarning,
            )
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for key in keys:
                content = source.read(key, nbytes)
                entry = tarfile.TarInfo(f"{TEMPORARY}/{key}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def extract_model(content: bytes) -> ModelHandle:
    store, keep = choose_store(None)
    assert keep is not None
    unpacking = disk_errors(store.where(), "load the pickle again")
    with unpacking, tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(keep.where, filter="data")
    return ModelHandle(store.where(), str(Root.open(store).attributes["fingerprint"]), keep)
