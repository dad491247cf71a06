"""The root of a model on disk: how it is created, opened, checked and updated.

`store/contents.py` lists the parts of a store. Groups are sealed (`store/groups.py`); what a fit
removes at its end are packs (`store/packs.py`) and the exchange's files. So every byte that is read
has a checksum. Some groups keep a copy of the root's attributes; `store/repair.py` removes damaged
parts.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from daskls.errors import StoreError
from daskls.records import AnyArray, CellReport, Table
from daskls.store.artifacts import Location, open_store
from daskls.store.checks import check_report, check_root
from daskls.store.contents import SHARED_PARTS, StorePart
from daskls.store.files import malformed_is_damage
from daskls.store.flat import DESCRIPTION, MAX_CHUNK_ROWS
from daskls.store.groups import (
    Group,
    check_seal,
    has_group,
    open_group,
    read_attributes,
    write_description,
    write_group,
)
from daskls.store.lock import check_owner
from daskls.targets import Target

MODEL_FORMAT = 5
MODEL_KIND = "model"
# Groups that keep a copy of the root's attributes, from which a damaged root is restored.
HOLD_ROOT_COPY, ROOT_COPY = ("index", "partition", "scale"), "root"
# Names of killed tasks' attempts: see `store/folder.py`.
ATTEMPTS = ("bundles/.*", "rows/.*", ".new-*", ".*." + "[0-9a-f]" * 32)


def report_to_json(report: Table) -> list[list[Any]]:
    """Return a table of cells as JSON values; NaN, which JSON lacks, becomes None."""
    return [[None if value != value else value for value in row.item()] for row in report]


def report_from_json(group: Group, n_cells: int | None = None) -> Table:
    """Return the table of cells that a group keeps as JSON."""
    with malformed_is_damage(group.where()):
        rows = group.attrs["report"]
        table = np.empty(len(rows), CellReport.dtype())
        for i, row in enumerate(rows):
            table[i] = tuple(np.nan if value is None else value for value in row)
        check_report(table, n_cells)
    return table


def root_stamp(root: Location) -> Hashable:
    """Return a stamp that changes whenever a model's root is written."""
    return open_store(root).stamp(DESCRIPTION)


def find_root(root: Location) -> bool:
    return open_store(root).exists(DESCRIPTION)


class Root:
    """The root group of a model: its store and its attributes."""

    def __init__(self, group: Group) -> None:
        self.store = group.store
        self.group = group

    def where(self, key: str = "") -> str:
        """Return the location of the model, or of a part of it, which tasks open."""
        return self.store.where(key)

    @classmethod
    def open(cls, location: Location) -> "Root":
        """Open an existing model; StoreError where there is none, or of another format."""
        store = open_store(location)
        if not store.exists(DESCRIPTION):
            raise StoreError(
                f"There is no model at {store.where()}. Give a path that save() or `daskls fit` "
                "wrote."
            )
        attributes = read_attributes(store, "")
        if attributes is None:
            raise StoreError(
                f"There is no model at {store.where()}, but a Zarr array or something else. Give a "
                "path that save() or `daskls fit` wrote."
            )
        _check_kind(store.where(), attributes)
        # Before the checksum: another format may have another one.
        group = check_seal(store, "", attributes)
        check_root(group)
        return cls(group)

    @classmethod
    def create(cls, location: Location, attributes: dict[str, Any]) -> "Root":
        """Create the root group with its identity; it is not marked complete."""
        store = open_store(location)
        own = {"daskls_format": MODEL_FORMAT, "kind": MODEL_KIND, "complete": False, **attributes}
        # Before the folder is created: a fit that lost its store must not start it again.
        check_owner(store)
        store.make()
        write_description(store, "", own)
        return cls.open(store)

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self.group.attrs)

    @property
    def is_complete(self) -> bool:
        """Whether the model is marked complete: all bundles and the index are written."""
        return bool(self.group.attrs.get("complete", False))

    @property
    def n_features(self) -> int:
        return int(self.group.attrs["meta"]["n_features"])

    @property
    def n_rows(self) -> int:
        """The number of rows that count: of positive weight."""
        return int(self.group.attrs["meta"]["n_rows"])

    @property
    def target(self) -> Target:
        return Target.from_json(self.group.attrs["meta"])

    def update(self, **attributes: Any) -> None:
        """Set attributes, the marker among them; the description is replaced as a whole.

        StoreError when this fit has lost its store, or the disk refuses.
        """
        # A suspended fit whose store was taken over must find out before it sets the marker.
        check_owner(self.store)
        write_description(self.store, "", {**self.group.attrs, **attributes})
        self.group = open_group(self.store, "")

    def write_group(
        self,
        name: str,
        arrays: Mapping[str, AnyArray],
        attributes: Mapping[str, Any],
        chunk_rows: int = MAX_CHUNK_ROWS,
    ) -> None:
        """Write a whole subgroup, replacing any old one."""
        check_owner(self.store)
        if name in HOLD_ROOT_COPY:
            # Without the marker: a restored root is unfinished.
            copy = {key: value for key, value in self.group.attrs.items() if key != "complete"}
            attributes = {**attributes, ROOT_COPY: copy}
        write_group(self.store, name, arrays, attributes, chunk_rows, replace=True)

    def find_group(self, name: str) -> Group | None:
        """Return a subgroup, or None if it was not written."""
        return open_group(self.store, name) if has_group(self.store, name) else None

    def remove_leftovers(self, own: tuple[StorePart, ...]) -> None:
        """Remove what only a fit needs, of earlier attempts too, and what killed tasks left.

        `own` are the parts of the store's method.
        """
        leftovers = {part.top for part in (*SHARED_PARTS, *own) if part.is_leftover}
        self.store.drop(*ATTEMPTS, *sorted(leftovers))
        self.store.drop_attempts("bundles", DESCRIPTION)


def _check_kind(path: str, attributes: dict[str, Any]) -> None:
    kind = attributes.get("kind")
    if kind != MODEL_KIND:
        what = "a data set" if kind == "dataset" else f"a Zarr group of kind {kind!r}"
        raise StoreError(
            f"{path} is {what}, not a daskls model. Give a path that save() or `daskls fit` wrote."
        )
    found = attributes.get("daskls_format")
    if found != MODEL_FORMAT:
        older = type(found) is int and found < MODEL_FORMAT
        remedy = "Train the model again with this daskls" if older else "Upgrade daskls to open it"
        where = ", into a store that does not exist yet" if older else ""
        raise StoreError(
            f"The model at {path} has format {found!r}; this daskls reads format "
            f"{MODEL_FORMAT}. {remedy}{where}."
        )
