"""Ties a store to one fit, by its data and parameters, and repairs the store of a resumed fit."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import zip_longest
from typing import Any, TypeVar

import numpy as np

from daskls.cluster import compute_each
from daskls.errors import DamageError, DataError, MemoryPlanError, ParameterError, StoreError
from daskls.plan.bundles import group_neighbors
from daskls.records import Labels
from daskls.run.blocks import BlockRows
from daskls.run.contract import FitRequest, Method
from daskls.run.scan import TargetScan, name_classes
from daskls.store.artifact import open_artifact
from daskls.store.contents import StorePart
from daskls.store.dataset import kind_at
from daskls.store.layout import MODEL_KIND, Root, drop_parts, find_root, list_parts, part_of
from daskls.store.objects import ROOT, Location, open_store

# Characters of a value in an error.
MOST_TOLD = 200
# Bytes that one task of a repair reads: enough to make its overhead small.
TASK_NBYTES = 64 << 20
T = TypeVar("T")
log = logging.getLogger("daskls")


def check_free(store: Location) -> None:
    """Raise StoreError if the place holds something else, or a fit of another format."""
    opened = open_store(store)
    names = opened.names()
    if ROOT in names or kind_at(opened) == MODEL_KIND:
        try:
            Root.open(opened)
        except DamageError as error:
            raise StoreError(
                f"{error.where} is damaged, so it is not known which data and parameters the store "
                f"{store} belongs to. Remove the store, then fit again."
            ) from error
    # Files of a fit before its root are no obstacle: inputs from memory, the owner, the probe.
    elif opened.is_object() or not all(name.startswith(("input-", ".")) for name in names):
        raise StoreError(
            f"The store {store} exists but holds no model. Give a path that does not exist yet."
        )


def find_seed(request: FitRequest, store: Location) -> int:
    if request.seed is not None:
        return request.seed
    if find_root(store):
        return int(Root.open(store).attributes["meta"]["seed"])
    return int(np.random.default_rng().integers(2**31))


def open_root(
    request: FitRequest,
    rows: BlockRows,
    scan: TargetScan,
    seed: int,
    checksum: int,
    store: Location,
) -> Root:
    """Return the store's root, new or begun by an equal fit; StoreError where by another one."""
    meta = {
        "n_rows": scan.n_kept,
        "n_features": rows.n_features,
        "dtype": rows.X.dtype.str,
        "feature_names": request.feature_names,
        **({} if request.table is None else {"table": request.table}),
        "checksum": f"{checksum:016x}",
        "classes": _labels_to_json(name_classes(rows, scan.target.labels)),
        **scan.target.to_json(),
        "estimator": request.estimator,
        "spec": asdict(request.spec),
        "method": request.method.to_json(),
        "cell_size": request.cell_size,
        "n_partitions": request.n_partitions,
        "class_weight": _json_weight(request.class_weight),
        "seed": seed,
        **_options_to_json(request),
    }
    # Through JSON and back, so that it compares equal to one that was stored.
    meta = json.loads(json.dumps(meta))
    fingerprint = hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
    if not find_root(store):
        # Parameters as they were given say no more: what follows from them identifies the fit. Nor
        # does what is for people: where the rows came from, and how many each class has.
        meta["params"] = request.params
        if rows.gaps is not None:
            meta["gaps"] = asdict(rows.gaps)
        meta["origin"] = {**request.origin, "counts": scan.counts.tolist()}
        return Root.create(store, {"fingerprint": fingerprint, "meta": meta})
    root = Root.open(store)
    if root.attributes["fingerprint"] != fingerprint:
        differing = _differences(root.attributes["meta"], meta)
        raise StoreError(
            f"A store holds one fit, but {store} belongs to another fit, of other data or "
            "parameters. Give another store, remove this one, or leave out store= in a search. "
            f"What differs: {differing}."
        )
    return root


def _options_to_json(request: FitRequest) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if request.scaling is not None:
        scaling = asdict(request.scaling)
        # Without a coding there is no entry, so stores older than codings stay equal.
        if scaling["feature_coding"] == "none":
            del scaling["feature_coding"]
        options["scaling"] = scaling
    if request.probability is not None:
        options["probability"] = request.probability
    if request.reserved_for is not None:
        options[request.reserved_for.name] = asdict(request.reserved_for)
    return options


def _labels_to_json(labels: Labels) -> dict[str, Any]:
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _json_weight(weight: dict[Any, float] | str | None) -> Any:
    if not isinstance(weight, dict):
        return weight
    # Sorted, as the order of a dict is not part of the fit's identity.
    return sorted([str(label), float(value)] for label, value in weight.items())


def _differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    parts = []
    # cell_size follows from n_cells, so it would only repeat that difference.
    derived = {"params", "gaps", "origin"} | (
        {"cell_size"} if "n_cells" in new["method"] else set()
    )
    for name in dict.fromkeys([*new, *old]):
        before, value = old.get(name), new.get(name)
        if before == value or name in derived:
            continue
        if name == "checksum":
            parts.append("rows, labels or weights")
        elif isinstance(value, dict) and isinstance(before, dict):
            keys = dict.fromkeys([*value, *before])
            names = [k for k in keys if before.get(k) != value.get(k)]
            parts += [_difference(k, before.get(k), value.get(k)) for k in names]
        else:
            parts.append(_difference(name, before, value))
    return "; ".join(parts)


def _difference(name: str, before: Any, value: Any) -> str:
    if name == "columns" and before and value:
        # Of a table: the first that differs, as there may be very many.
        pairs: list[Any] = [*zip_longest(before, value, fillvalue={})]
        before, value = next(pair for pair in pairs if pair[0] != pair[1])
        name = f"column {(before or value)['name']!r}"
    return f"{name} was {_shortened(before)}, is {_shortened(value)}"


def _shortened(value: Any) -> str:
    """Return a value as text; of a long one, as of many classes, the beginning."""
    text = repr(value)
    return text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]}..."


@contextmanager
def removed_if_refused(root: Root, method: Method) -> Iterator[None]:
    """Remove the store of a refused fit: it would refuse the next one, whose parameters differ.

    Rows may be right once they can be read, and memory may be added: what is made then stays.
    """
    try:
        yield
    except (DataError, MemoryPlanError, ParameterError) as error:
        is_wrong = isinstance(error, ParameterError)
        if not root.is_complete and (is_wrong or not list_parts(root, method.parts())):
            root.remove(method.parts())
        raise


def repair(root: Root, method: Method, client: Any = None) -> None:
    """Read every part of a finished model, and remove damaged ones, so that the fit redoes them.

    Of an unfinished one, whoever reads a part checks it.
    """
    if not root.is_complete:
        return
    store_parts = method.parts()
    parts = list_parts(root, store_parts)
    groups = group_neighbors([nbytes for _, nbytes in parts], TASK_NBYTES)
    calls = [(root.where(), [key for key, _ in parts[a : b + 1]]) for a, b in groups]
    files = [file for damaged in compute_each(check_parts, calls, client) for file in damaged]
    # The check could fail on a damaged file.
    lack = None if files else _find_lack(root, method)
    for what in [*files, *([lack] if lack else [])]:
        log.warning(
            "The store %s is damaged and is being repaired: %s.", root.where(), what.rstrip(".")
        )
    if files or lack:
        drop_parts(root, _damaged_keys(root, files, store_parts), store_parts)


def check_parts(root: str, keys: list[str]) -> list[str]:
    """Read some parts in full; return the damaged ones."""
    damaged = []
    for key in keys:
        try:
            open_artifact(root, key).check()
        except DamageError as error:
            damaged.append(error.where)
    return damaged


def _find_lack(root: Root, method: Method) -> str | None:
    """Describe what a model that is marked as complete lacks; None if nothing."""
    try:
        method.check_complete(root)
    except StoreError as error:
        return str(error)
    return None


def run_repaired(run: Callable[[], T], store: Location, method: Method) -> T:
    """Return a fit's result; parts of the store that it finds damaged are made again, each once."""
    repaired: set[str] = set()
    while True:
        try:
            return run()
        except DamageError as error:
            # Also where it is raised: for the next fit.
            _drop_damage(store, method, error)
            if error.where in repaired:
                raise
            repaired.add(error.where)
            log.warning("The store %s is damaged and is being repaired: %s", store, error)


def _drop_damage(store: Location, method: Method, error: DamageError) -> None:
    """Remove the part that an error names; the error is raised if that cannot be done."""
    try:
        root, store_parts = Root.open(store), method.parts()
        drop_parts(root, _damaged_keys(root, [error.where], store_parts), store_parts)
    except StoreError as other:
        error.add_note(f"It could not be removed: {other}")
        raise error from other


def _damaged_keys(root: Root, files: list[str], store_parts: tuple[StorePart, ...]) -> set[str]:
    return {key for key in (part_of(root.where(), file, store_parts) for file in files) if key}
