"""Checks of stored values before compiled code uses them: sizes, pointers, trees, codes.

A checksum says that a file is what was written. These checks say that its values are valid to index
by, even in files that daskls did not write.
"""

from dataclasses import fields
from typing import Any

import numpy as np

from daskls.kernels.kernel import KERNELS
from daskls.records import SCORINGS, CellReport, Int64, Ints, SolverSpec, Table
from daskls.store.artifact import Artifact
from daskls.store.errors import damaged, malformed_is_damage
from daskls.targets import TARGET_DTYPES, Target

# Every process that predicts keeps the labels; their dtype may claim far more than their text.
MAX_LABELS_NBYTES = 64 << 20


def check_root(part: Artifact) -> None:
    """Raise a `DamageError` if a root lacks values that every reader needs."""
    with malformed_is_damage(part.where()):
        attributes = part.attrs
        # Exact types: to isinstance, JSON's true is an int.
        _expect(type(attributes["fingerprint"]) is str, "fingerprint")
        _expect(type(attributes["seed"]) is int, "seed")
        _expect(type(attributes["complete"]) is bool, "complete")
        _expect(type(attributes.get("stage_s", {})) is dict, "stage_s")
        meta = attributes["meta"]
        _expect(type(meta["estimator"]) is str, "estimator")
        _expect(type(meta["params"]) is dict, "params")
        _expect(type(meta.get("method", {})) is dict, "method")
        for name in ("n_features", "n_rows"):
            _expect(type(meta[name]) is int and meta[name] > 0, name)
        spec_from_json(meta["spec"])
        check_classes(meta["classes"])
        target = Target.from_json(meta)
        _expect((len(meta["classes"]["values"]) > 0) == (target.kind == "classes"), "classes")


def _expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(f"{what} is not as expected")


def spec_from_json(values: dict[str, Any]) -> SolverSpec:
    """Return the spec whose fields JSON values are.

    Raises
    ------
    ValueError, TypeError, KeyError : when the values are no spec
    """
    lists = {k: tuple(v) for k, v in values.items() if isinstance(v, list)}
    spec = SolverSpec(**{**values, **lists})
    _expect(spec.kernel in KERNELS, "kernel")
    _expect(type(spec.loss) is str, "loss")
    _expect(spec.target in TARGET_DTYPES, "target")
    _expect(spec.width is None or (type(spec.width) is float and spec.width > 0), "width")
    for name in ("epsilon", "unit", "cache_size"):
        given = getattr(spec, name)
        _expect(given is None or (type(given) is float and 0 <= given < np.inf), name)
    _expect(spec.unit > 0, "unit")
    _expect(spec.scoring in (None, *SCORINGS), "scoring")
    _expect(all(type(q) is float and 0 < q < 1 for q in spec.levels), "quantile")
    losses = spec.constant_losses
    is_sound = losses is None or all(type(own) is float and 0 <= own < np.inf for own in losses)
    _expect(is_sound, "constant_losses")
    counts = (2, 2) if spec.n_grid is None else spec.n_grid
    _expect(len(counts) == 2 and all(type(n) is int and n > 1 for n in counts), "n_grid")
    _expect(type(spec.degree) is int and spec.degree >= 0, "degree")
    for name in ("C", "gamma"):
        given = getattr(spec, name)
        _expect(given is None or (type(given) is tuple and len(given) > 0), name)
        _expect(bool(np.isfinite(np.array(given or (), np.float64)).all()), name)
    _expect(bool(np.isfinite([float(spec.coef0), float(spec.tol), int(spec.cv)]).all()), "tol")
    return spec


def check_classes(values: Any) -> None:
    """Refuse labels whose dtype would take far more memory than their text."""
    dtype, labels = np.dtype(values["dtype"]), values["values"]
    _expect(type(labels) is list, "classes")
    _expect(len(labels) * dtype.itemsize <= MAX_LABELS_NBYTES, "the size of the classes' dtype")
    _expect(np.array(labels, dtype).shape == (len(labels),), "classes")


def check_report(table: Table, n_cells: int | None) -> None:
    """Raise a `ValueError` if a table of cells has impossible counts."""
    _expect(n_cells is None or len(table) == n_cells, f"the number of cells, {len(table)},")
    for name in ("cell", "leaf", "n_rows", "n_classes", "n_support", "partition"):
        _expect(bool((table[name] >= 0).all()), name)
    for f in fields(CellReport):
        if f.type is float:
            _expect(not np.isinf(table[f.name]).any(), f.name)


def check_counts(where: str, name: str, counts: Int64, total: int | None) -> None:
    """Raise a `DamageError` if counts are negative, or do not add up to a given ``total``."""
    if len(counts) and int(counts.min()) < 0:
        raise damaged(where, f"{name} holds {int(counts.min())}, which is not a count")
    # Python integers do not overflow.
    found = sum(counts.tolist())
    if total is not None and found != total:
        raise damaged(where, f"{name} adds up to {found}, and {total} is expected")


def check_codes(where: str, name: str, codes: Ints, n_codes: int) -> None:
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < n_codes:
        raise damaged(where, f"{name} ranges from {codes.min()} to {codes.max()} of {n_codes}")


def check_contiguous(where: str, bundles: list[tuple[int, int]], n: int | None) -> None:
    """Raise a `DamageError` if bundles (first, last) do not follow one another up to ``n`` - 1."""
    expected = 0
    for first, last in bundles:
        if first != expected or last < first:
            raise damaged(where, f"its bundle {first}-{last} does not follow the one before")
        expected = last + 1
    if n is not None and expected != n:
        raise damaged(where, f"its bundles hold {expected}, and {n} is expected")
