"""Checks of stored values, before compiled code indexes by them or memory is taken for them.

A checksum says that a file is what was written: damage is found by it, and by nothing here. These
checks, and those of dtypes, shapes and finite numbers in `Artifact.read`, are for what daskls did
not write, a model from a stranger: none may read outside arrays, or take memory without bound. What
such values mean for its answers is as little checked as in a model that was trained on wrong data.
"""

from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from daskls.kernels.kernel import KERNELS
from daskls.records import Int64, Ints, SolverSpec
from daskls.store.artifact import Artifact
from daskls.store.errors import damaged, malformed_is_damage
from daskls.targets import Target

# Every process that predicts keeps the labels; their dtype may claim far more than their text.
MAX_LABELS_NBYTES = 64 << 20
ROOT_TYPES = {"fingerprint": str, "seed": int, "complete": bool, "meta": dict}
META_TYPES = {"estimator": str, "params": dict, "method": dict, "n_features": int, "n_rows": int}
T = TypeVar("T")


def check_counts(where: str, name: str, counts: Int64, total: int | None = None) -> Int64:
    """Return where each of parts of these sizes begins, and the last one ends.

    DamageError if a count is negative, or they do not add up to a given ``total``.
    """
    if len(counts) and int(counts.min()) < 0:
        raise damaged(where, f"{name} holds {int(counts.min())}, which is not a count")
    # Python integers do not overflow.
    found = sum(counts.tolist())
    if total is not None and found != total:
        raise damaged(where, f"{name} adds up to {found}, and {total} is expected")
    starts: Int64 = np.r_[0, np.cumsum(counts, dtype=np.int64)]
    return starts


def check_codes(where: str, name: str, codes: Ints, n_codes: int) -> None:
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < n_codes:
        raise damaged(where, f"{name} ranges from {codes.min()} to {codes.max()} of {n_codes}")


def check_root(part: Artifact) -> None:
    """Raise a `DamageError` if a root lacks values that every reader needs."""
    with malformed_is_damage(part.where()):
        meta = part.attrs["meta"]
        for values, types in ((part.attrs, ROOT_TYPES), (meta, META_TYPES)):
            for name, kind in types.items():
                _expect(_is(values[name], kind), name)
        _expect(min(meta["n_features"], meta["n_rows"]) > 0, "n_features or n_rows")
        spec_from_json(meta["spec"])
        dtype, labels = np.dtype(meta["classes"]["dtype"]), meta["classes"]["values"]
        _expect(len(labels) * dtype.itemsize <= MAX_LABELS_NBYTES, "the size of the classes' dtype")
        _expect(np.array(labels, dtype).shape == (len(labels),), "classes")
        _expect((len(labels) > 0) == (Target.from_json(meta).kind == "classes"), "classes")


def spec_from_json(values: dict[str, Any]) -> SolverSpec:
    """Return the spec whose fields JSON values are; raises as `from_json`."""
    spec = from_json(SolverSpec, values)
    _expect(spec.kernel in KERNELS, "kernel")
    return spec


def from_json(kind: type[T], values: dict[str, Any]) -> T:
    """Return the record whose fields JSON values are.

    Raises
    ------
    ValueError, TypeError, KeyError : when the values are not of the fields' types
    """
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    types = get_type_hints(kind)
    for name, value in given.items():
        _expect(_is(value, types[name]), name)
    return kind(**given)


def _is(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; numbers must be finite, and tuples not empty."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is(value, own) for own in args)
    if origin is Literal:
        return value in args
    if origin is tuple:
        if type(value) is not tuple:
            return False
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        return 0 < len(value) == len(kinds) and all(map(_is, value, kinds))
    if kind is float:
        # Whole numbers come without a point.
        return type(value) in (int, float) and bool(np.isfinite(value))
    # Exact types: to isinstance, JSON's true is an int.
    return type(value) is (NoneType if kind is None else kind)


def _expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise ValueError(f"{what} is not as expected")
