"""The parts that a fit on samples keeps in its store between tasks.

``sampling/<kind>/<first>-<last>`` holds named arrays. All parts are removed when the model is
finished.
"""

from collections.abc import Iterable, Mapping

from daskls.records import AnyArray
from daskls.store.artifact import read_arrays, write_artifact
from daskls.store.contents import FINISH, ROWS_ARRAYS, StorePart
from daskls.store.exchange import Rows
from daskls.store.models import bundle_key
from daskls.store.objects import Location, open_store

FOLDER = "sampling"
# Names of stored arrays, and the fields of `Rows` that they hold.
ROW_ARRAYS = {"X": "X", "codes": "targets", "weights": "weights", "numbers": "numbers"}
NUMBERED = "numbers int64 n; positions int64 n"
PLACED = f"{ROWS_ARRAYS}; positions int64 n"
FURTHER_HELD = "further_numbers int64 n; further_order int64 n; further_positions int64 n"
SAMPLING_PARTS = tuple(
    StorePart(f"{FOLDER}/{kind}/*", "methods/sampling", holds, FINISH, tuple(follows))
    for kind, holds, *follows in (
        ("initial", PLACED),
        ("samples", NUMBERED),
        ("drawn", f"{PLACED}; order int64 n; {FURTHER_HELD}"),
        ("support", PLACED),
        # The bundle with the model says that both are there.
        ("kept", PLACED, "bundles/{name}"),
        ("balls*", NUMBERED),
        ("nearest*", NUMBERED),
        ("radii", "radii float64 radii"),
    )
)


def kind_path(kind: str) -> str:
    """Return the folder of a kind of parts, for the functions that work on bundles."""
    return f"{FOLDER}/{kind}"


def _key(kind: str, first: int, last: int) -> str:
    return bundle_key(first, last, kind_path(kind))


def has_part(root: Location, kind: str, first: int, last: int) -> bool:
    return open_store(root).exists(_key(kind, first, last))


def write_part(
    root: Location, kind: str, first: int, last: int, arrays: Mapping[str, AnyArray]
) -> None:
    """Write named arrays; a stored part is not replaced."""
    write_artifact(root, _key(kind, first, last), arrays)


def read_part(
    root: Location, kind: str, first: int, last: int, names: Iterable[str]
) -> dict[str, AnyArray]:
    return read_arrays(root, _key(kind, first, last), names)


def read_part_rows(root: Location, kind: str, first: int, last: int) -> Rows:
    arrays = read_part(root, kind, first, last, ROW_ARRAYS)
    return Rows(**{field: arrays[name] for name, field in ROW_ARRAYS.items()})
