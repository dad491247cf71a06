"""The root of a model: how it is created, opened, checked and updated.

`store/contents.py` lists the parts of a store, each an artifact (`store/artifact.py`) or the Zarr
data of an input. The root holds no arrays: it says what the model is, and whether it is complete.
"""

import json
from collections.abc import Hashable, Mapping
from typing import Any

from daskls.errors import DamageError, StoreError
from daskls.records import AnyArray, CellReport, Table
from daskls.store.artifact import Artifact, open_artifact, write_artifact
from daskls.store.caches import cached
from daskls.store.checks import check_report, check_root
from daskls.store.contents import ROOT, SHARED_PARTS, StorePart
from daskls.store.errors import malformed_is_damage
from daskls.store.locations import Location, open_store
from daskls.store.objects import Objects
from daskls.store.owner import OWNER, check_owner
from daskls.targets import Target

MODEL_FORMAT = 6
MODEL_KIND = "model"
# The root of a Zarr group, as models had one up to format 5, and as data sets have one.
ZARR_ROOT, MAX_ZARR_NBYTES = "zarr.json", 64 << 20
# The array that holds the table of cells, one row per cell.
REPORT = "report"


def read_report(part: Artifact, n_cells: int | None = None) -> Table:
    """Return the table of cells that a part keeps."""
    table = part.read(REPORT, shape=(n_cells,))
    with malformed_is_damage(part.where()):
        if table.dtype != CellReport.dtype():
            raise ValueError(f"its report has columns {table.dtype}")
        check_report(table, n_cells)
    return table


def root_stamp(root: Location) -> Hashable:
    """Return a stamp that changes whenever a model's root is written."""
    return open_store(root).stamp(ROOT)


def find_root(root: Location) -> bool:
    return open_store(root).exists(ROOT)


def check_fit(root: Location, fingerprint: str) -> None:
    """Raise StoreError where a store is not that of a fit, or not any more.

    A task asks this before it writes: its client may be gone, and the store removed and begun by
    another fit, whose keys are the same.
    """
    if _fingerprint_at(open_store(root).where(), root_stamp(root)) != fingerprint:
        raise StoreError(f"The store {root} was changed while a fit used it. Fit again.")


@cached(4)
def _fingerprint_at(root: str, stamp: Hashable) -> str:
    return str(Root.open(root).attributes["fingerprint"])


class Root:
    """The root of a model: its store and its attributes."""

    def __init__(self, part: Artifact) -> None:
        self.store = part.store
        self._part = part

    def where(self, key: str = "") -> str:
        """Return the location of the model, or of a part of it, which tasks open."""
        return self.store.where(key)

    @classmethod
    def open(cls, location: Location) -> "Root":
        """Open an existing model; StoreError where there is none, or of another format."""
        store = open_store(location)
        if not store.exists(ROOT):
            raise _no_model(store)
        part = open_artifact(store, ROOT, whole=True)
        found = part.attrs.get("daskls_format")
        if found != MODEL_FORMAT:
            raise _other_format(store, found)
        check_root(part)
        return cls(part)

    @classmethod
    def create(cls, location: Location, attributes: dict[str, Any]) -> "Root":
        """Create the root with its identity; it is not marked complete."""
        store = open_store(location)
        own = {"daskls_format": MODEL_FORMAT, "kind": MODEL_KIND, "complete": False, **attributes}
        # Before the folder is created: a fit that lost its store must not start it again.
        check_owner(store)
        store.make()
        write_artifact(store, ROOT, {}, own, replace=True)
        return cls.open(store)

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._part.attrs)

    @property
    def is_complete(self) -> bool:
        """Whether the model is marked complete: all bundles and the index are written."""
        return bool(self._part.attrs.get("complete", False))

    @property
    def n_features(self) -> int:
        return int(self._part.attrs["meta"]["n_features"])

    @property
    def n_rows(self) -> int:
        """The number of rows that count: of positive weight."""
        return int(self._part.attrs["meta"]["n_rows"])

    @property
    def target(self) -> Target:
        return Target.from_json(self._part.attrs["meta"])

    def update(self, **attributes: Any) -> None:
        """Set attributes, `complete` among them; the root is replaced as a whole.

        StoreError when this fit has lost its store, or the disk refuses.
        """
        # A suspended fit whose store was taken over must find out before the model is complete.
        check_owner(self.store)
        write_artifact(self.store, ROOT, {}, {**self._part.attrs, **attributes}, replace=True)
        self._part = open_artifact(self.store, ROOT, whole=True)

    def write(
        self, name: str, arrays: Mapping[str, AnyArray], attributes: Mapping[str, Any]
    ) -> None:
        """Write a part of the model, replacing any old one."""
        check_owner(self.store)
        write_artifact(self.store, name, arrays, attributes, replace=True)

    def find(self, name: str) -> Artifact | None:
        """Return a part, or None if it was not written."""
        return open_artifact(self.store, name) if self.store.exists(name) else None

    def remove_leftovers(self, own: tuple[StorePart, ...]) -> None:
        """Remove what only a fit needs, of earlier ones too, and what killed writers left.

        `own` are the parts of the store's method.
        """
        leftovers = {part.top for part in (*SHARED_PARTS, *own) if part.is_leftover}
        self.store.drop(f"{OWNER}.*", *sorted(leftovers))
        self.store.sweep()


def _no_model(store: Objects) -> StoreError:
    """Return the error for a place without a root, which may hold a model of an earlier version."""
    where = store.where()
    give = "Give a path that save() or `daskls fit` wrote."
    # Of a bucket that does not exist only a listing says so.
    if ZARR_ROOT not in store.names():
        return StoreError(f"There is no model at {where}. {give}")
    try:
        found = json.loads(store.read(ZARR_ROOT, MAX_ZARR_NBYTES))
        attributes = dict(found.get("attributes") or {}) if found["node_type"] == "group" else None
    except (DamageError, ValueError, KeyError, TypeError, AttributeError):
        attributes = None
    if attributes is None:
        return StoreError(
            f"There is no model at {where}, but a Zarr array or something else. {give}"
        )
    kind = attributes.get("kind")
    if kind == MODEL_KIND:
        return _other_format(store, attributes.get("daskls_format"))
    what = "a data set" if kind == "dataset" else f"a Zarr group of kind {kind!r}"
    return StoreError(f"{where} is {what}, not a daskls model. {give}")


def _other_format(store: Objects, found: Any) -> StoreError:
    older = type(found) is int and found < MODEL_FORMAT
    wrote = ", which daskls 0.2 or a state before 0.3 wrote" if older else ""
    remedy = (
        "Train the model again with this daskls, into a store that does not exist yet"
        if older
        else "Upgrade daskls to open it"
    )
    return StoreError(
        f"The model at {store.where()} has format {found!r}{wrote}; this daskls reads format "
        f"{MODEL_FORMAT}. {remedy}."
    )
