"""The root of a model: how it is created, opened, checked and updated; and the repair of its store.

`store/contents.py` lists the parts of a store, each an artifact (`store/artifact.py`) or the Zarr
data of an input. The root holds no arrays: it says what the model is, and whether it is complete.

A fit remakes a part from its inputs with the same bits. So a damaged part is removed, together with
what was made from it where remaking the part alone is not enough.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.kernels.kernel import KERNELS
from daskls.records import AnyArray, CellReport, SolverSpec, Table
from daskls.store.artifact import MAX_HEADER_NBYTES, Artifact, open_artifact, write_artifact
from daskls.store.caches import cached
from daskls.store.contents import ENDS, SHARED_PARTS, StorePart
from daskls.store.errors import damaged, expect, from_json, is_of, malformed_is_damage
from daskls.store.objects import DESCRIPTION, ROOT, BaseStore, Location, group_at, open_store
from daskls.store.owner import OWNER, check_owner
from daskls.targets import Target

MODEL_FORMAT = 7
MODEL_KIND = "model"
# The array that holds the table of cells, one row per cell.
REPORT = "report"
# Needed by every reader of a root, and of its ``meta``.
ROOT_TYPES = {"fingerprint": str, "complete": bool, "meta": dict}
META_TYPES = {
    "estimator": str,
    "params": dict,
    "method": dict,
    "n_features": int,
    "n_rows": int,
    "seed": int,
}
# Every process that predicts keeps the labels; their dtype may claim far more than their text.
MAX_LABELS_NBYTES = 64 << 20
Parts = tuple[StorePart, ...]


def read_report(part: Artifact, n_cells: int | None = None) -> Table:
    if part.dtype_of(REPORT) != CellReport.dtype():
        raise damaged(part.where(), f"its report has columns {part.dtype_of(REPORT)}")
    return part.read(REPORT, shape=(n_cells,))


def check_root(part: Artifact) -> None:
    """Raise a `DamageError` if a root lacks values that every reader needs."""
    with malformed_is_damage(part.where()):
        meta = part.attrs["meta"]
        for values, types in ((part.attrs, ROOT_TYPES), (meta, META_TYPES)):
            for name, kind in types.items():
                expect(is_of(values[name], kind), name)
        expect(min(meta["n_features"], meta["n_rows"]) > 0, "n_features or n_rows")
        expect(is_of(part.attrs.get("stage_s", {}), dict), "stage_s")
        expect(is_of(meta.get("origin", {}), dict), "origin")
        spec_from_json(meta["spec"])
        dtype, labels = np.dtype(meta["classes"]["dtype"]), meta["classes"]["values"]
        expect(len(labels) * dtype.itemsize <= MAX_LABELS_NBYTES, "the size of the classes' dtype")
        expect(np.array(labels, dtype).shape == (len(labels),), "classes")
        expect((len(labels) > 0) == (Target.from_json(meta).kind == "classes"), "classes")


def spec_from_json(values: dict[str, Any]) -> SolverSpec:
    """Return the spec whose fields JSON values are; raises as `from_json`."""
    spec = from_json(SolverSpec, values)
    expect(spec.kernel in KERNELS, "kernel")
    return spec


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
    return Root.open(root).fingerprint


class Root:
    """The root of a model: its store and its attributes."""

    def __init__(self, part: Artifact) -> None:
        self.store = part.store
        self._part = part

    def where(self, key: str = "") -> str:
        """Return the location of the model, or of a part of it, which tasks open."""
        return self.store.where(key)

    @classmethod
    def open(cls, location: Location, fingerprint: str | None = None) -> "Root":
        """Open an existing model; StoreError where there is none, or another than was wanted."""
        store = open_store(location)
        if not store.exists(ROOT):
            raise _no_model(store)
        # By one read, as another root may replace it at any moment.
        part = open_artifact(store, ROOT, MAX_HEADER_NBYTES)
        version = part.attrs.get("daskls_format")
        if version != MODEL_FORMAT:
            raise _other_format(store, version)
        check_root(part)
        root = cls(part)
        if fingerprint not in (None, root.fingerprint):
            raise StoreError(
                f"The model at {location} was replaced by another one since this prediction was "
                "set up. Load the model again and call predict again."
            )
        return root

    @classmethod
    def create(cls, location: Location, attributes: dict[str, Any]) -> "Root":
        """Create the root with its identity; it is not marked complete."""
        store = open_store(location)
        attrs = {"daskls_format": MODEL_FORMAT, "kind": MODEL_KIND, "complete": False, **attributes}
        # Before the folder is created: a fit that lost its store must not start it again.
        check_owner(store)
        store.make()
        _put_root(store, attrs)
        return cls.open(store)

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._part.attrs)

    @property
    def fingerprint(self) -> str:
        """The identity of the fit: a checksum of data and parameters."""
        return str(self._part.attrs["fingerprint"])

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
        _put_root(self.store, {**self._part.attrs, **attributes})
        self._part = open_artifact(self.store, ROOT, MAX_HEADER_NBYTES)

    def write(
        self, name: str, arrays: Mapping[str, AnyArray], attributes: Mapping[str, Any]
    ) -> None:
        """Write a part of the model, replacing any old one."""
        check_owner(self.store)
        write_artifact(self.store, name, arrays, attributes, replace=True)

    def find(self, name: str) -> Artifact | None:
        """Return a part, or None if it was not written."""
        return open_artifact(self.store, name) if self.store.exists(name) else None

    def part(self, name: str, what: str) -> Artifact:
        """Return a part, which says ``what`` the model lacks where it is missing."""
        part = self.find(name)
        if part is None:
            raise damaged(self.where(name), f"the model lacks {what}")
        return part

    def remove_leftovers(self, parts: tuple[StorePart, ...]) -> None:
        """Remove what only a fit needs, of earlier ones too, and what killed writers left.

        `parts` are those of the store's method.
        """
        leftovers = {part.top for part in (*SHARED_PARTS, *parts) if part.is_leftover}
        self.store.drop(f"{OWNER}.*", *sorted(leftovers))
        self.store.sweep()

    def remove(self, parts: tuple[StorePart, ...]) -> None:
        """Remove the model, its root last: until then no other fit may begin here."""
        check_owner(self.store)
        tops = {part.top for part in (*SHARED_PARTS, *parts) if part.dropped != ENDS}
        made = [top for top in sorted(tops - {ROOT}) if not top.startswith(".")]
        self.store.drop(*made, strict=True)
        self.store.drop(ROOT, strict=True)


def _put_root(store: BaseStore, attributes: dict[str, Any]) -> None:
    # All else that a loss of power takes is damage, which the next fit repairs.
    write_artifact(store, ROOT, {}, attributes, replace=True, lasting=True)


def _no_model(store: BaseStore) -> StoreError:
    """Return the error for a place without a root, which may hold a model of an earlier version."""
    where = store.where()
    give = "Give a path that save() or `daskls fit` wrote."
    # Of a bucket that does not exist only a listing says so.
    if DESCRIPTION not in store.names():
        return StoreError(f"There is no model at {where}. {give}")
    attributes = group_at(store)
    if attributes is None:
        return StoreError(
            f"There is no model at {where}, but a Zarr array or something else. {give}"
        )
    kind = attributes.get("kind")
    if kind == MODEL_KIND:
        return _other_format(store, attributes.get("daskls_format"))
    what = "a data set" if kind == "dataset" else f"a Zarr group of kind {kind!r}"
    return StoreError(f"{where} is {what}, not a daskls model. {give}")


def _other_format(store: BaseStore, version: Any) -> StoreError:
    older = type(version) is int and version < MODEL_FORMAT
    wrote = ", which daskls 0.2 or a state before 0.3 wrote" if older else ""
    remedy = (
        "Train the model again with this daskls, into a store that does not exist yet"
        if older
        else "Upgrade daskls to open it"
    )
    return StoreError(
        f"The model at {store.where()} has format {version!r}{wrote}; this daskls reads format "
        f"{MODEL_FORMAT}. {remedy}."
    )


# Repair


def list_parts(root: Root, parts: Parts) -> list[tuple[str, int]]:
    """Return the key of each artifact of a finished model but its root, and its bytes.

    `parts` are those of the store's method.
    """
    table = [part for part in (*SHARED_PARTS, *parts) if part.is_artifact and part.key != ROOT]
    lasting = [part for part in table if not part.is_leftover]
    sizes = root.store.sizes().items()
    return [(key, nbytes) for key, nbytes in sizes if any(part.matches(key) for part in lasting)]


def part_of(root: str, file: str, parts: Parts = ()) -> str | None:
    """Return the key of the part that a file belongs to; None outside the store, or of its root.

    >>> part_of("/m", "/m/bundles/000000-000003")
    'bundles/000000-000003'
    >>> part_of("/m", "/m/root")
    """
    if not file.startswith(f"{root}/"):
        return None
    names = file.removeprefix(f"{root}/").split("/")
    if names[0] == ROOT:
        return None
    for part in (*SHARED_PARTS, *parts):
        key = "/".join(names[: part.key.count("/") + 1])
        if part.matches(key):
            return key
    return "/".join(names[:2])


def drop_parts(root: Root, keys: Iterable[str], parts: Parts) -> None:
    """Remove damaged parts and what goes with them; the model is no longer complete.

    There are no keys if a part is missing; `parts` are those of the store's method.
    """
    damaged, attributes = set(keys), root.attributes
    if root.is_complete and not root.store.exists("partition"):
        # The fit has removed its rows, so no part can be remade: start from the partition.
        damaged.add("partition")
    gone = {other for key in damaged for other in _with_followers(key, parts)}
    reset = {name for part in (*SHARED_PARTS, *parts) if part.key in gone for name in part.forgets}
    # First, so that an interrupted removal leaves an unfinished model. Unconditional, as the root's
    # new stamp tells readers that their caches are stale.
    root.update(complete=False, **{name: None for name in reset if name in attributes})
    root.store.drop(*gone, strict=True)


def _with_followers(key: str, parts: Parts) -> set[str]:
    """Return patterns of a part and of all that is removed with it."""
    gone = {key}
    for part in (*SHARED_PARTS, *parts):
        if part.matches(key):
            gone |= part.followers(key)
    # All parts of a method are made from the partition's leaves.
    return gone | {part.top for part in parts} if key == "partition" else gone
