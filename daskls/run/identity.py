"""The identity of a fit, by its data and parameters, which a store belongs to.

Damage in the store of a resumed fit: searched for at its beginning, removed where found.
"""

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import dask
import numpy as np

from daskls.errors import DamageError, StoreError
from daskls.plan import group_open
from daskls.records import Labels, ReserveSpec, ScalingSpec
from daskls.run.blocks import BlockRows
from daskls.run.compute import compute
from daskls.run.contract import FitRequest, Method
from daskls.run.scan import TargetScan, name_classes
from daskls.store.artifacts import Location, open_store
from daskls.store.backend import Backend
from daskls.store.checks import spec_to_json
from daskls.store.contents import StorePart
from daskls.store.flat import DESCRIPTION
from daskls.store.layout import HOLD_ROOT_COPY, Root, find_root
from daskls.store.repair import check_part, drop_parts, heal_root, list_parts, part_of


def check_free(store: Location) -> None:
    """Refuse a folder that holds something else, or the begun fit of an earlier version.

    Raises
    ------
    StoreError
    """
    opened = open_store(store)
    names = opened.names()
    if DESCRIPTION in names or set(names) & set(HOLD_ROOT_COPY):
        heal_root(opened)
        Root.open(opened).check_format()
    # Inputs that were in memory, the owner's file and the probe come before the root.
    elif _is_artifact(opened) or not all(name.startswith(("input-", ".")) for name in names):
        raise StoreError(
            f"The store {store} exists but holds no model. Give a path that does not exist yet."
        )


def _is_artifact(store: Backend) -> bool:
    """Whether something that holds no others is where a store would be."""
    try:
        store.size("")
    except StoreError:
        return False
    return True


def find_seed(request: FitRequest, store: Location) -> int:
    """Return the request's seed; without one, that of the begun store, or a fresh one."""
    if request.seed is not None:
        return request.seed
    if find_root(store):
        return int(Root.open(store).attributes["seed"])
    return int(np.random.default_rng().integers(2**31))


def open_root(
    request: FitRequest,
    rows: BlockRows,
    scan: TargetScan,
    seed: int,
    checksum: int,
    store: Location,
) -> Root:
    """Return the store's root, new or begun by an equal fit.

    Raises
    ------
    StoreError : when the store was begun with other data or other parameters
    """
    classes = name_classes(rows, scan.target.labels)
    identity = {
        "data": {
            "n_rows": scan.n_kept,
            "n_features": rows.n_features,
            "dtype": rows.X.dtype.str,
            "feature_names": request.feature_names,
            **_table_to_json(request.table),
            "checksum": f"{checksum:016x}",
            "classes": _labels_to_json(classes),
            **scan.target.to_json(),
        },
        "parameters": {
            "estimator": request.estimator,
            "spec": spec_to_json(request.spec),
            "cell_size": request.cell_size,
            "n_partitions": request.n_partitions,
            "class_weight": _json_weight(request.class_weight),
            "seed": seed,
            **_scaling_to_json(request.scaling),
            **_probability_to_json(request.probability),
            **_reserved_to_json(request.reserved_for),
            **request.method.to_json(),
        },
    }
    # Through JSON and back, so that what was stored compares equal to what is asked for.
    identity = json.loads(json.dumps(identity))
    fingerprint = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    if not find_root(store):
        meta = {
            "estimator": request.estimator,
            "params": request.params,
            "spec": spec_to_json(request.spec),
            "method": request.method.to_json(),
            "seed": seed,
            **_scaling_to_json(request.scaling),
            **_probability_to_json(request.probability),
            **_reserved_to_json(request.reserved_for),
            "n_features": rows.n_features,
            "feature_names": request.feature_names,
            **_table_to_json(request.table),
            "n_rows": scan.n_kept,
            "classes": _labels_to_json(classes),
            **scan.target.to_json(),
        }
        attributes = {"fingerprint": fingerprint, "identity": identity, "seed": seed, "meta": meta}
        return Root.create(store, attributes)
    root = Root.open(store)
    if root.attributes["fingerprint"] != fingerprint:
        differing = _differences(root.attributes["identity"], identity)
        raise StoreError(
            f"The store {store} belongs to another fit: {differing}. Give another store, remove "
            "this one, or fit with the data and parameters that it was begun with."
        )
    return root


def _scaling_to_json(scaling: ScalingSpec | None) -> dict[str, Any]:
    """Return what is decided before space is cut as JSON values; nothing where nothing is."""
    if scaling is None:
        return {}
    values = asdict(scaling)
    # Stores of before there were codings keep their names.
    values = {key: own for key, own in values.items() if (key, own) != ("feature_coding", "none")}
    return {"scaling": values}


def _probability_to_json(probability: str | None) -> dict[str, Any]:
    """Return the kind of the maps of scores as JSON values; nothing where there are none."""
    return {} if probability is None else {"probability": probability}


def _reserved_to_json(spec: ReserveSpec | None) -> dict[str, Any]:
    """Return what rows are reserved for as JSON values; nothing where none are."""
    return {} if spec is None else {spec.name: asdict(spec)}


def _table_to_json(table: dict[str, Any] | None) -> dict[str, Any]:
    """Return how columns became features; nothing where there was no table."""
    return {} if table is None else {"table": table}


def _labels_to_json(labels: Labels) -> dict[str, Any]:
    """Return class labels and their dtype as JSON values."""
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _json_weight(weight: dict[Any, float] | str | None) -> Any:
    """Return class weights as JSON values."""
    if not isinstance(weight, dict):
        return weight
    # Sorted: the order in which a dict names classes is no part of the fit's identity.
    return sorted([str(label), float(value)] for label, value in weight.items())


def _differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Say which entries of two identities differ, and how."""
    parts = []
    # The size of cells follows from their number.
    derived = {"cell_size"} if "n_cells" in new["parameters"] else set()
    for group, entries in new.items():
        before_all = old.get(group, {})
        for name in dict.fromkeys([*entries, *before_all]):
            before, value = before_all.get(name), entries.get(name)
            if before == value or name in derived:
                continue
            if isinstance(value, dict) and isinstance(before, dict):
                keys = dict.fromkeys([*value, *before])
                names = [k for k in keys if before.get(k) != value.get(k)]
                parts += [f"{k} was {before.get(k)!r}, is {value.get(k)!r}" for k in names]
            else:
                parts.append(f"{name} was {before!r}, is {value!r}")
    return "; ".join(parts)


# What one task reads: so much that its own overhead is small beside it.
TASK_NBYTES = 64 << 20

log = logging.getLogger("daskls")


def check_parts(root: str, parts: list[tuple[str, bool]]) -> list[str]:
    """Read all of some parts; return the files that are damaged."""
    return [file for key, is_pack in parts for file in check_part(root, key, is_pack)]


def repair(root: Root, method: Method, client: Any = None) -> None:
    """Read every file that is there, once; remove what is damaged, so that it is made again.

    Parameters
    ----------
    root : Root. Of the store that this fit resumes, finished or not.
    method : Method. Of the model.
    client : distributed client, or None for the current scheduler
    """
    own = method.parts()
    parts = list_parts(root.store, own)
    groups = group_open([nbytes for *_, nbytes in parts], [False] * len(parts), TASK_NBYTES)
    check = dask.delayed(check_parts, pure=False)
    tasks = [check(root.where(), [part[:2] for part in parts[a : b + 1]]) for a, b in groups]
    files = [file for found in compute(tasks, client) for file in found] if tasks else []
    # Where a file is damaged the model is unfinished anyway, and the check may stop at that file.
    lack = _find_lack(root, method) if root.is_complete and not files else None
    for what in [*files, *([lack] if lack else [])]:
        log.warning("The store %s is damaged and is being repaired: %s.", root.where(), what)
    if files or lack:
        drop_parts(root, _damaged_keys(root, files, own), own)


def _find_lack(root: Root, method: Method) -> str | None:
    """Say what a model that is marked as complete lacks; None if it lacks nothing."""
    try:
        method.check_complete(root)
    except StoreError as error:
        return str(error)
    return None


def _damaged_keys(root: Root, files: list[str], own: tuple[StorePart, ...]) -> set[str]:
    """Return the parts that files belong to."""
    return {key for key in (part_of(root.where(), file, own) for file in files) if key}


@contextmanager
def dropping_damage(store: Location, method: Method) -> Iterator[None]:
    """Remove the part that a fit finds damaged; the error propagates, the next fit makes it again.

    Raises
    ------
    DamageError
    """
    try:
        yield
    except DamageError as error:
        try:
            root, own = Root.open(store), method.parts()
            drop_parts(root, _damaged_keys(root, [error.where], own), own)
        except StoreError as other:
            error.add_note(f"It could not be removed: {other}")
        raise
